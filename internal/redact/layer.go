package redact

// layer is a text to search: the source itself, or a text decoded from it.
type layer struct {
	text     []byte
	from, to []int32 // the part of the source that each byte was decoded from; nil in the source itself
	source   int     // length of the source
	odd      []bool  // bytes that were escapes in the outer layer; nil unless escapes were decoded
	cut      bool    // the text was cut off: its continuation is unknown
	tables   [escapesDeep + 1]table
	reads    int // bytes of escapes that were read, for tests

	kinds       kinds // kinds of the escapes that are not loose; valid if unescapedOf is not nil
	unescapedOf map[kinds]*layer
}

// span returns the part of the source that the bytes from p to q were decoded from. There must be at least one.
func (l *layer) span(p, q int) span {
	s := span{p, q}
	if l.from != nil {
		s = span{int(l.from[p]), int(l.to[q-1])}
	}
	if l.cut && q == len(l.text) {
		s.to = l.source // includes a rest that is too short to decode
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
