package invisible_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/invisible"
)

// Names of characters that are not shown, one of each kind.
func TestNames(t *testing.T) {
	t.Parallel()
	for kind, runes := range map[string][]rune{
		"the control character": {0, '\t', '\n', 0x7f, 0x85},
		"the blank":             {' ', 0xa0, 0x1680, 0x2003, 0x2028, 0x2029, 0x3000},
		"the invisible character": {
			0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x180b, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e,
			0x2060, 0x2061, 0x2062, 0x2063, 0x2064, 0x2065, 0x2066, 0x2067, 0x2068, 0x2069, 0x206a, 0x206f, 0x2800, 0x3164, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0xfffb,
			0x13441, 0x13442, 0x16fe4, 0x1d159, 0x1d173, 0xe0001, 0xe0020, 0xe007f, 0xe0100,
		},
	} {
		for _, r := range runes {
			assert.True(t, invisible.Is(r), "%U", r)
			assert.Contains(t, invisible.Name(r), kind+" U+", "%U", r)
			assert.Equal(t, 1, invisible.Index("a"+string(r)+"b"), "%U", r)
		}
	}
	for _, r := range []rune{'a', '~', 'ü', '日', 0x301, 0x600, 0x6dd, 0x20e3, 0x13440, 0x13443, 0x16fe3, 0x16ff0, 0x1d158, 0x1d15a, 0x1f600, 0xe000, 0xfffd} {
		assert.False(t, invisible.Is(r), "%U", r)
	}
}

// A joiner between two shapes and a variation selector after one belong to the text.
func TestIndex(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": -1, "a": -1, "a b": 1, "\xff": -1, "a\xff b": 2,
		"\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645": -1, // Persian
		"\u0915\u094d\u200d\u0937":                         -1, // Devanagari: the joiner follows a virama
		"\U0001f468\u200d\U0001f469":                       -1, // emoji of a family
		"\u2764\ufe0f\u200d\U0001f525":                     -1, // heart on fire
		"\u0915\u200d\u0937\u200d\u0937":                   -1, // a shape may be joined on both sides
		"\u2764\ufe0f\ufe0f\U000e0100":                     -1,
		"\u0915a\u200d\u0937":                              4,
		"\u2764\ufe0fa\ufe0f":                              7,
		"\u0915\u200d\ufe0f\u0937":                         3,
		"\u3001\u200d\u0937":                               3, // after punctuation
		"\xff\ufe0f":                                       1,
		"\u200d\u0915":                                     0,
		"\u0915\u200d":                                     3,
		"\u0915\u200d/":                                    3,
		"\u0915\u200d\u200d\u0937":                         3,
		"\u0915\u200d\u2800":                               3,
		"a\u200d\u0937":                                    1,
		"\u0915\u200db":                                    3,
		"a\ufe0f":                                          1,
		"\ufe0f":                                           0,
		"\u0915\u200d\xff":                                 3,
	} {
		assert.Equal(t, want, invisible.Index(text), "%q", text)
	}
}

// Of ASCII, only the control characters and the blank are invisible.
func TestASCII(t *testing.T) {
	t.Parallel()
	for r := rune(0); r < 0x80; r++ {
		assert.Equal(t, r <= 0x20 || r == 0x7f, invisible.Is(r), "%U", r)
	}
}
