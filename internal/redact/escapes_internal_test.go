package redact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// reads returns how many bytes tabulate reads for a text.
func reads(text string) int {
	l := &layer{text: []byte(text), source: len(text)}
	l.tabulate(escapesDeep)
	return l.reads
}

// The work per byte is bounded, whatever precedes and follows it: a text of twice the length takes twice the work.
func TestTheWorkIsLinear(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{
		"&#48", "&#x30", "&#0", "%26#48", "&#38", "&#38;", "&#x26#", "&#%30", "&amp", "%25", "%2525", `\`, `\u005c`, `\u{`, `\u{30`, `\u{0`, `\0`, `\60`,
		`\x0`, `\x30`, "=3D", "=\n", "= ", "= =20", "=20", "=\t\n", "~", "~0", "~1", "~%30", "&", "+", "&a&#97;", "&fjlig",
		"&" + strings.Repeat("&#97%3b", longestName),
	} {
		t.Run(unit, func(t *testing.T) {
			t.Parallel()
			const size = 4 << 10
			once, twice := reads(strings.Repeat(unit, size/len(unit))), reads(strings.Repeat(unit, 2*size/len(unit)))
			assert.LessOrEqual(t, twice, 2*once+once/8+1000)
			assert.LessOrEqual(t, once, 1000*size)
		})
	}
}

// The escapes of a text are read once for each depth. If no escapes are nested, two depths are enough.
func TestEscapesAreReadOnce(t *testing.T) {
	t.Parallel()
	l := &layer{text: []byte(`%41 &amp; \u0041`)}
	l.tabulate(2)
	twice := l.reads
	assert.Positive(t, twice)
	l.tabulate(1)
	l.tabulate(2)
	assert.Equal(t, twice, l.reads)
	l.tabulate(escapesDeep)
	again := &layer{text: l.text}
	again.tabulate(escapesDeep)
	assert.Equal(t, twice, again.reads)
}

// A run of Base64 is decoded once, and once more for each reading of its escapes. A run that is too short for a
// secret is not decoded. Loose escapes do not count.
func TestBase64IsDecodedOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"c2VjcmV0":         {"secret"},
		"c2VjcmV0 c2VjcmV": {"secret"},
		"c2VjcmV0 %zz &zz; &zz &lt &#61 c2VjcmV0": {"secret\x00secret"},
		"c2VjcmV0 c2Vj%63mV0 c2VjcmV0":            {"secret\x00secret", "secret"},
		"c2VjcmV0 c2Vj=\ncmV0 c2VjcmV0":           {"secret\x00secret", "secret"},
	} {
		s := search{automaton: NewFinder(Hidden{Secret: New("secret")}).built()}
		l := &layer{text: []byte(text), source: len(text)}
		l.tabulate(escapesDeep)
		var got []string
		for i, inner := range s.base64(l) {
			if i%4 == 0 { // the others begin with the second to fourth character of each run
				got = append(got, string(inner.text))
			}
		}
		assert.Equal(t, want, got, text)
	}
}
