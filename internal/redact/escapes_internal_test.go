package redact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// reads counts the bytes that are read while the escapes of a text are tabulated.
func reads(text string) int {
	l := &layer{text: []byte(text), source: len(text)}
	l.tabulate(escapesDeep)
	return l.reads
}

// The work on a byte is bounded, whatever stands before and behind it: twice the text is twice the work.
func TestTheWorkIsLinear(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{
		"&#48", "&#x30", "&#0", "%26#48", "&#38", "&#38;", "&#x26#", "&#%30", "&amp", "%25", "%2525", `\`, `\u005c`, `\u{`, `\u{30`, `\u{0`, `\0`, `\60`,
		`\x0`, `\x30`, "=3D", "=\n", "= ", "= =20", "=20", "=\t\n", "~", "~0", "~1", "~%30", "&", "+", "&a&#97;", "&fjlig",
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
