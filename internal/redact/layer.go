package redact

// layer is a text to look at: the source itself, or what a Base64 text in it says.
type layer struct {
	text     []byte
	from, to []int32 // part of the source that each byte was decoded from; nil in the source itself
	source   int     // length of the source
	odd      []bool  // bytes that were written as escapes in the layer before; nil if this is no layer without escapes
	cut      bool    // the text goes on behind its end, nobody knows how
	tables   [escapesDeep + 1]table
	reads    int // bytes of escapes that were read, for tests

	kinds       kinds // of the escapes in it that are not loose, once unescapedOf is made
	unescapedOf map[kinds]*layer
}

// span returns the part of the source that the bytes from p to q, at least one, were decoded from.
func (l *layer) span(p, q int) span {
	s := span{p, q}
	if l.from != nil {
		s = span{int(l.from[p]), int(l.to[q-1])}
	}
	if l.cut && q == len(l.text) {
		s.to = l.source // a rest too short to be decoded may follow
	}
	return s
}

// kinds is a set of kinds of escapes.
type kinds uint8

const (
	backslashes kinds = 1 << iota
	percents
	entities
	softBreaks
)

func kindOf(c byte) kinds {
	switch c {
	case '\\':
		return backslashes
	case '%':
		return percents
	case '&':
		return entities
	case '=':
		return softBreaks
	default:
		return 0
	}
}
