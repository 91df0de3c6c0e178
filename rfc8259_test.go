package webdelivery_test

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A reader of JSON for the tests, written from RFC 8259 alone, so that the tests compare the SDK with no reader that
// it uses. Section 8 calls bytes that are not UTF-8 and halves of surrogate pairs unpredictable: this reader reads
// each as U+FFFD, and reports it.

// node is a JSON value.
type node struct {
	kind  byte     // { [ " 0 t f n
	raw   string   // as in the text
	text  string   // of a string, without quotes and escapes
	names []string // of the members of an object
	nodes []*node  // its members, or the values of an array

	brokenName bool // the member's name contains invalid UTF-8

	mended string // of a string: raw with U+FFFD for invalid UTF-8
	broken bool   // it contains invalid UTF-8
}

// parseJSON reads a text that is one value, in UTF-8 and without halves of surrogate pairs. It returns nil for other
// texts.
func parseJSON(text string) *node {
	if n := parseBroken(text); n != nil && !n.broken {
		return n
	}
	return nil
}

// parseBroken is parseJSON for texts that may have them.
func parseBroken(text string) *node {
	p := jsonParser{rest: text}
	n := p.value()
	p.blanks()
	if n == nil || p.rest != "" {
		return nil
	}
	return n
}

type jsonParser struct{ rest string }

func (p *jsonParser) blanks() { p.rest = strings.TrimLeft(p.rest, " \t\n\r") }

// take consumes a token if it comes next behind blanks.
func (p *jsonParser) take(token string) bool {
	p.blanks()
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *jsonParser) value() *node {
	p.blanks()
	begin := p.rest
	var n *node
	switch {
	case p.take("{"):
		n = p.members()
	case p.take("["):
		n = p.values()
	case strings.HasPrefix(p.rest, `"`):
		n = p.text()
	case p.take("true"):
		n = &node{kind: 't'}
	case p.take("false"):
		n = &node{kind: 'f'}
	case p.take("null"):
		n = &node{kind: 'n'}
	default:
		n = p.number()
	}
	if n != nil {
		n.raw = begin[:len(begin)-len(p.rest)]
	}
	return n
}

func (p *jsonParser) members() *node {
	n := &node{kind: '{'}
	if p.take("}") {
		return n
	}
	for {
		p.blanks()
		name := p.text()
		if name == nil || !p.take(":") {
			return nil
		}
		value := p.value()
		if value == nil {
			return nil
		}
		n.names, n.nodes = append(n.names, name.text), append(n.nodes, value)
		n.broken = n.broken || name.broken || value.broken
		value.brokenName = name.broken
		if p.take("}") {
			return n
		}
		if !p.take(",") {
			return nil
		}
	}
}

func (p *jsonParser) values() *node {
	n := &node{kind: '['}
	if p.take("]") {
		return n
	}
	for {
		value := p.value()
		if value == nil {
			return nil
		}
		n.nodes = append(n.nodes, value)
		n.broken = n.broken || value.broken
		if p.take("]") {
			return n
		}
		if !p.take(",") {
			return nil
		}
	}
}

func (p *jsonParser) number() *node {
	rest := strings.TrimPrefix(p.rest, "-")
	digits := func() int {
		trimmed := strings.TrimLeft(rest, "0123456789")
		n := len(rest) - len(trimmed)
		rest = trimmed
		return n
	}
	leadingZero := strings.HasPrefix(rest, "0")
	if n := digits(); n == 0 || leadingZero && n > 1 {
		return nil
	}
	if after, ok := strings.CutPrefix(rest, "."); ok {
		if rest = after; digits() == 0 {
			return nil
		}
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		rest = rest[1:]
		if rest != "" && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		if digits() == 0 {
			return nil
		}
	}
	p.rest = rest
	return &node{kind: '0'}
}

func (p *jsonParser) text() *node {
	rest, ok := strings.CutPrefix(p.rest, `"`)
	var b, mended strings.Builder
	mended.WriteByte('"')
	broken := false
	for ok && rest != "" {
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == '"':
			p.rest = rest[1:]
			return &node{kind: '"', text: b.String(), mended: mended.String() + `"`, broken: broken}
		case r == '\\':
			if r, size = escape(rest); size == 0 {
				return nil
			}
		case r < ' ':
			return nil
		}
		if r == utf8.RuneError && size == 1 || r == half {
			r, broken = utf8.RuneError, true
			mended.WriteRune(r)
		} else {
			mended.WriteString(rest[:size])
		}
		b.WriteRune(r)
		rest = rest[size:]
	}
	return nil
}

const half = rune(-1) // of a surrogate pair

// escape reads the escape at the beginning of a text, and returns its size; 0 if there is none.
func escape(text string) (rune, int) {
	if len(text) < 2 {
		return 0, 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, text[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	}
	unit := func(at int) (rune, bool) {
		if len(text) < at+6 || text[at] != '\\' || text[at+1] != 'u' || strings.Trim(text[at+2:at+6], "0123456789abcdefABCDEF") != "" {
			return 0, false
		}
		n, err := strconv.ParseUint(text[at+2:at+6], 16, 16)
		return rune(n), err == nil
	}
	first, ok := unit(0)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(first) {
		return first, 6
	}
	second, ok := unit(6)
	if both := utf16.DecodeRune(first, second); ok && both != utf8.RuneError {
		return both, 12
	}
	return half, 6
}
