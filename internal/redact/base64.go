package redact

import (
	"bytes"
	"math"
	"slices"
)

// values has the values of both Base64 alphabets, and none for other bytes.
var values = func() (v [256]byte) {
	for c := range v {
		switch c := byte(c); {
		case 'A' <= c && c <= 'Z':
			v[c] = c - 'A'
		case 'a' <= c && c <= 'z':
			v[c] = c - 'a' + 26
		case isDecimal(c):
			v[c] = c - '0' + 52
		case c == '+', c == '-':
			v[c] = 62
		case c == '/', c == '_':
			v[c] = 63
		default:
			v[c] = none
		}
	}
	return v
}()

const none = math.MaxUint8

// base64 decodes each run of Base64 characters in a layer, also after decoding its escapes. A group of four may begin
// at any character of a run. So each run is decoded from each of its first four characters on, into four layers. They
// hold only the runs that are long enough for a secret.
func (s *search) base64(l *layer) []*layer {
	if s.words == 0 {
		return nil
	}
	layers := s.runs(l)
	seen := map[*layer]bool{}
	for kinds := backslashes; kinds < softBreaks; kinds++ {
		inner := l
		for range escapesDeep {
			if inner = inner.unescaped(kinds | softBreaks); inner == nil {
				break
			}
			if !seen[inner] {
				seen[inner] = true
				layers = append(layers, s.runs(inner)...)
			}
		}
	}
	return layers
}

// escape returns the first escape at p of these kinds that is not loose.
func (l *layer) escape(p int, of kinds) (one step, found bool) {
	if kindOf(l.text[p])&of != 0 {
		for _, one := range l.escapes(p, 1) {
			if !one.loose {
				return one, true
			}
		}
	}
	return l.plain(p), false
}

// unescaped returns the layer with its escapes of these kinds decoded; nil if there are none. It keeps other kinds,
// because a percent sign before a Base64 text may not be an escape. It also keeps loose escapes, because Base64 has
// plus signs, and an equals sign often precedes it.
func (l *layer) unescaped(of kinds) *layer {
	if l.unescapedOf == nil {
		l.unescapedOf = map[kinds]*layer{}
		l.tabulate(1)
		for p := range l.text {
			if _, found := l.escape(p, ^l.kinds); found {
				l.kinds |= kindOf(l.text[p])
			}
		}
	}
	if of &= l.kinds; of == 0 {
		return nil
	}
	if inner := l.unescapedOf[of]; inner != nil {
		return inner
	}
	inner := &layer{source: l.source, cut: l.cut}
	l.unescapedOf[of] = inner
	odd := false
	for p := 0; p < len(l.text); {
		one, found := l.escape(p, of)
		odd = odd || found
		part := l.span(p, int(one.to))
		for _, c := range one.text[:one.size] {
			inner.text = append(inner.text, c)
			inner.from = append(inner.from, int32(part.from)) //nolint:gosec // no text is that long
			inner.to = append(inner.to, int32(part.to))       //nolint:gosec // the same
			inner.odd = append(inner.odd, odd)
		}
		odd = one.size == 0 // only an escape decodes to no bytes
		p = int(one.to)
	}
	return inner
}

// runs decodes the runs of a layer. If escapes were decoded, it decodes only the runs that had some, because the outer
// layer has the others. A run may contain line ends.
func (s *search) runs(l *layer) []*layer {
	layers := []*layer{{source: l.source}, {source: l.source}, {source: l.source}, {source: l.source}}
	least := leastRun(s.shortest)
	var run []int
	for p := 0; p < len(l.text); p++ {
		if values[l.text[p]] == none {
			continue
		}
		run = run[:0]
		first := p
		for ; p < len(l.text); p++ {
			c := l.text[p]
			if values[c] != none {
				run = append(run, p)
			} else if c != '\r' && c != '\n' {
				break
			}
		}
		cut := l.cut && p == len(l.text)
		end := l.padding(run[len(run)-1] + 1)
		if l.odd != nil && !slices.Contains(l.odd[first:end], true) || len(run) < least && !cut {
			continue
		}
		for skip, inner := range layers {
			inner.decode(l, run[min(skip, len(run)):], end)
			inner.cut = cut
		}
	}
	return layers
}

// padding returns the end of the equals signs that end a Base64 text at p, also if they are quoted-printable.
func (l *layer) padding(p int) int {
	for range 2 {
		if !bytes.HasPrefix(l.text[p:], []byte("=")) {
			break
		}
		p++
		for range escapesDeep {
			if bytes.HasPrefix(l.text[p:], []byte("3D")) {
				p += 2
			}
		}
	}
	return p
}

// decode appends the decoded run. Between runs it puts a NUL byte, which no secret has, so that none crosses runs.
func (l *layer) decode(outer *layer, run []int, end int) {
	if len(l.text) > 0 {
		l.text, l.from, l.to = append(l.text, 0), append(l.from, 0), append(l.to, 0)
	}
	bits, have := uint32(0), 0
	for i, p := range run {
		bits, have = bits<<6|uint32(values[outer.text[p]]), have+6
		if have < 8 {
			continue
		}
		have -= 8
		if i < len(run)-1 {
			p++
		} else {
			p = end
		}
		part := outer.span(run[i-1], p)
		l.text = append(l.text, byte(bits>>have)) //nolint:gosec // the lowest eight bits
		l.from = append(l.from, int32(part.from)) //nolint:gosec // no text is that long
		l.to = append(l.to, int32(part.to))       //nolint:gosec // the same
	}
}
