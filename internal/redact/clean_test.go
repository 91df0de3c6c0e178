package redact_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// usual are texts of an entry of a network list.
var usual = []string{
	"6a7b8c9d-1e2f-4a3b-8c4d-5e6f70819203",
	"https://api.example.com/networklists/0d1c2b3a-4f5e-4d6c-9b7a-8f9e0a1b2c3d/elements/6a7b8c9d-1e2f-4a3b-8c4d-5e6f70819203",
	"198.51.100.7/32", "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff", "DE", "alice@example.com", "",
}

// A text that holds nothing like a secret costs no memory. A refused plan may hold 200,000 of them.
func TestUsualTextsCostNoMemory(t *testing.T) { //nolint:paralleltest // counts allocations
	f := finder("correct-horse-battery", "7f3c1e9a-4d2b-4c8e-9a71-0b5d6e8f1a2c")
	for _, text := range usual {
		assert.Equal(t, text, f.Text(text))
		assert.Zero(t, testing.AllocsPerRun(10, func() { f.Text(text) }), text)
	}
}

// First returns the beginning of a text, also if it holds no secret. It reads on behind the end, because a secret may
// begin before it.
func TestFirst(t *testing.T) {
	t.Parallel()
	f := finder("secret-word")
	assert.Equal(t, "192.0", f.First("192.0.2.1", 5))
	assert.Empty(t, f.First("192.0.2.1", 0))
	assert.Equal(t, "a [r", f.First("a secret-word", 4))
	assert.Equal(t, "a [redacted]", f.First("a secret-word", 20))
	var none *redact.Finder
	assert.Equal(t, "sec", none.First("secret-word", 3))
}

// In a text without escapes, a Base64 text may hold them, and it may hold a URL or another Base64 text.
func TestWhatHidesInBase64WithoutEscapes(t *testing.T) {
	t.Parallel()
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, tt := range []struct{ secret, decoded string }{
		{"secret", "\x80\x80secret\x80"},
		{"\xc3\xa9\xc3\xa9\xc3\xa9", "\xff\xc3\xa9\xc3\xa9\xc3\xa9\xff"},
		{"ⅇⅇⅇ", "\x80&#8519&#8519&#8519\x80"},
		{"secret", "s\\u0065c\\x72et"},
		{"secret", "secr=\r\net"},
		{"secret", "\x80" + encode("secret") + "\x80"},
		{"secret-word", "http://bob:p\x80\x81@h"},
		{"a-secret-that-is-long", "\x80//a:\x80@\x80"},
		{"a-secret-that-is-long", "\x80%2F/a:\x80%40\x80"},
		{"a-secret-that-is-long", "\x80/\\/a:\x80@\x80"},
	} {
		for _, before := range []string{"", "a", "ab", "abc"} {
			text := "no " + before + encode(tt.decoded+strings.Repeat("\xff", 24)) + "." // shorter runs hold no secret
			f := finder(tt.secret)
			assert.Contains(t, f.Text(text), redact.Mark, "%q of %q", text, tt.decoded)
			half := len(text) / 2
			assert.Contains(t, f.Text(text[:half]+"\r\n"+text[half:]), redact.Mark, "%q of %q", text, tt.decoded)
		}
	}
}
