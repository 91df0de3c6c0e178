package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

func finder(secrets ...string) *redact.Finder {
	var all []redact.Secret
	for _, s := range secrets {
		all = append(all, redact.New(s))
	}
	return redact.NewFinder(all...)
}

func TestSpellings(t *testing.T) {
	t.Parallel()
	const secret = "p/w \"&=?<\t'ü😀\\x+1"
	for name, spelled := range map[string]string{
		"itself":                 secret,
		"JSON":                   `p/w \"&=?<\t'ü😀\\x+1`,
		"JSON, lower case":       `p\u002fw\u0020\u0022\u0026\u003d\u003f\u003c\u0009\u0027\u00fc\ud83d\ude00\u005cx\u002b1`,
		"JSON, upper case":       `p\u002Fw\u0020\u0022\u0026\u003D\u003F\u003C\u0009\u0027\u00FC\uD83D\uDE00\u005Cx\u002B1`,
		"JSON, slash":            `p\/w \"&=?<\t'ü😀\\x+1`,
		"percent, upper case":    "p%2Fw%20%22%26%3D%3F%3C%09%27%C3%BC%F0%9F%98%80%5Cx%2B1",
		"percent, lower case":    "p%2fw%20%22%26%3d%3f%3c%09%27%c3%bc%f0%9f%98%80%5cx%2b1",
		"percent, + for a blank": "p%2Fw+%22%26%3D%3F%3C%09%27%C3%BC%F0%9F%98%80%5Cx%2B1",
		"HTML, decimal":          "p&#47;w&#32;&#34;&#38;&#61;&#63;&#60;&#9;&#39;&#252;&#128512;&#092;x&#43;1",
		"HTML, hexadecimal":      "p&#x2f;w&#x20;&#X22;&#x26;&#x3D;&#x3f;&#x3C;&#x9;&#x0027;&#xfc;&#x1F600;&#x5c;x&#x2b;1",
		"HTML, named":            "p/w &quot;&amp;=?&lt;\t&apos;ü😀\\x+1",
	} {
		assert.Equal(t, "a [redacted] b [redacted].", finder(secret).Text("a "+spelled+" b "+spelled+".", 1000), name)
	}
	assert.Equal(t, "[redacted] [redacted] [redacted] rest", finder("1234", "session=1234567", "1234567").Text("session=1234567 1234567 1234 rest", 1000))
	// The Base64 forms of a credential are secrets of their own, without padding.
	basic := base64.RawStdEncoding.EncodeToString([]byte("alice:" + secret))
	f := finder(secret, basic, "Basic "+basic)
	assert.Equal(t, `"[redacted]=="`, f.Text(`"Basic `+basic+`=="`, 1000))
	assert.Equal(t, "[redacted]==", f.Text(basic+"==", 1000))
	assert.Equal(t, "[redacted]", f.Text("Basic "+url.QueryEscape(basic), 1000))
}

func TestWhatIsNotChanged(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "nothing", "a\x00\xff\xfeb", "correct-horse", "correct-Horse-battery", "correct%252dhorse-battery", "[redacted]", "abc",
		"alice@example.com", "https://example.com/@a", "https://example.com/?q=//a", "a // b@c", "//" + `"a@b"`,
	} {
		assert.Equal(t, text, finder("correct-horse-battery", "abc", "").Text(text, 1000))
	}
}

func TestOtherPeoplesPasswordsInURLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://bob:pw@proxy:80/a@b":  "http://[redacted]@proxy:80/a@b",
		`"http:\/\/bob:pw@proxy\/"`:   `"http:\/\/[redacted]@proxy\/"`,
		"a //bob@h b ftp://x:y@h c@d": "a //[redacted]@h b ftp://[redacted]@h c@d",
	} {
		assert.Equal(t, want, finder().Text(text, 1000))
	}
}

// Nothing of a secret is shown that crosses the end of the shown part, nor of one that crosses the end of the searched
// part. A text that fills the searched part may go on.
func TestTheBound(t *testing.T) {
	t.Parallel()
	const most, searched = 100, 100 + redact.Margin
	secret := "s3cret-" + strings.Repeat("0123456789", 4)
	f := finder(secret)
	line := strings.Repeat("-", 2*searched)
	for _, end := range []int{most, searched} {
		for before := end - len(secret) - 1; before <= end; before++ {
			for _, length := range []int{searched - 1, searched, searched + 1} {
				got := f.Text((line[:before] + secret + line)[:length], most)
				require.NotContains(t, got, "s3", "%d of %d", before, length)
				require.True(t, strings.HasPrefix(line[:before]+redact.Mark+line, got), "%d of %d", before, length)
				require.LessOrEqual(t, len(got), most)
				require.GreaterOrEqual(t, len(got), most-len(secret))
			}
		}
	}
	// Redaction shortens a text. Its unsearched end does not move into the shown part.
	text := strings.Repeat(secret, searched/len(secret)+1)[:searched]
	assert.NotContains(t, f.Text(text, most), "s3")
	assert.Equal(t, "s3cret", f.Text("s3cret", most), "no secret is cut here")
}

type hiddenError struct{ secret string }

func (e *hiddenError) Error() string { return "dial: " + e.secret }
func (e *hiddenError) Unwrap() error { return io.ErrUnexpectedEOF }

func TestErrors(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	f := finder(secret)
	harmless := fmt.Errorf("read: %w", io.EOF)
	assert.Same(t, harmless, f.Error(harmless))

	cause := &hiddenError{secret}
	err := f.Error(fmt.Errorf("login: %w", cause))
	require.EqualError(t, err, "login: dial: [redacted]")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, io.EOF)
	_, found := errors.AsType[*hiddenError](err)
	assert.False(t, found, "it would print the secret")
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v %s %q", err, err, err, fmt.Sprintf("%#v", struct{ error }{err}), err), secret)

	long := f.Error(errors.New(strings.Repeat("a", redact.Most+1)))
	assert.Len(t, long.Error(), redact.Most)
}

func TestSecretsDoNotPrint(t *testing.T) {
	t.Parallel()
	s := redact.New("correct-horse-battery")
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v %v", s, s, s, &struct{ redact.Secret }{s}), "correct")
	assert.Equal(t, "correct-horse-battery", s.Reveal())
	assert.False(t, redact.New("").IsZero())
	assert.True(t, redact.Secret{}.IsZero())
	assert.Empty(t, redact.Secret{}.Reveal())
}

func TestLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "",
		"in one line, ü 日本":            "in one line, ü 日本",
		"a\nb":                         `"a\nb"`,
		"\x1b[31m":                     `"\x1b[31m"`,
		"a\xff":                        `"a\xff"`,
		strings.Repeat("a", 512):       strings.Repeat("a", 512),
		strings.Repeat("a", 513):       strings.Repeat("a", 512) + "...",
		"a" + strings.Repeat("ü", 256): "a" + strings.Repeat("ü", 255) + "\uFFFD...",
	} {
		assert.Equal(t, want, redact.Line(text))
	}
}

// Whatever stands around a secret, it does not survive in any spelling of an ordinary encoder.
func FuzzFinder(f *testing.F) {
	for _, secret := range []string{"p/w \"&=?", "correct-horse", "ü😀\u2028\t", "\\n\n\r\b\f", "%41%2f", "aaaa", "[redacted]", "&lt;&#34;", "\x00\x7f\ufffd+ "} {
		f.Add(secret, "before ", " after")
		f.Add(secret, secret[:2], secret[2:])
		f.Add(secret, "//", "@")
	}
	f.Fuzz(func(t *testing.T, secret, before, after string) {
		if len(secret) < 4 || len(secret) > 200 || len(before)+len(after) > 10_000 || !utf8.ValidString(secret) {
			return
		}
		encoded, err := json.Marshal(secret)
		require.NoError(t, err)
		find := finder(secret)
		for _, spelled := range []string{
			secret, string(encoded[1 : len(encoded)-1]), url.QueryEscape(secret), url.PathEscape(secret), html.EscapeString(secret),
		} {
			got := find.Text(before+spelled+after, redact.Most)
			for piece := range strings.SplitSeq(got, redact.Mark) { // the mark and what follows it may happen to spell a secret
				require.NotContains(t, piece, spelled)
			}
		}
	})
}
