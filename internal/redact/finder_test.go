package redact_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

func TestWhatIsReplaced(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		secrets    []string
		text, want string
	}{
		"nothing":                        {[]string{"secret"}, "no secre t here, se%63re", "no secre t here, se%63re"},
		"each one":                       {[]string{"secret"}, "secret, secret", "[redacted], [redacted]"},
		"side by side":                   {[]string{"secret"}, "secretsecret", "[redacted]"},
		"overlapping itself":             {[]string{"anana"}, "bananananas", "b[redacted]s"},
		"overlapping":                    {[]string{"abcdef", "defghi"}, "xabcdefghix", "x[redacted]x"},
		"one inside another":             {[]string{"abcdefghi", "cdef"}, "abcdefghi, cdef", "[redacted], [redacted]"},
		"one that begins another":        {[]string{"abcd", "abcdefgh"}, "abcdefg abcdefgh", "[redacted]efg [redacted]"},
		"one that is tried in vain":      {[]string{"abcdx", "cdef"}, "abcdef", "ab[redacted]"},
		"like an escape of URLs":         {[]string{"%41%42"}, `%41%42, %2541%2542, \u002541%\u00342; AB`, "[redacted], [redacted], [redacted]; AB"},
		"like an escape of JSON":         {[]string{`\u0041`}, `\u0041, \\u0041, %5Cu0041; A`, "[redacted], [redacted], [redacted]; A"},
		"like an entity":                 {[]string{"&amp;"}, `&amp;, &amp;amp;, \u0026amp;; &`, "[redacted], [redacted], [redacted]; &"},
		"like Base64 of a secret":        {[]string{"c2VjcmV0"}, `c2VjcmV0, YzJWamNtVjA=; secret`, "[redacted], [redacted]; secret"},
		"backslashes":                    {[]string{`\\\\`}, `\\\\, \\\; \`, `[redacted], \\\; \`},
		"an escape of what comes before": {[]string{"41ab"}, `%41%61b x%3D41ab`, `%[redacted] x%3D[redacted]`},
		"too short":                      {[]string{"abc"}, "abc", "abc"},
		"empty":                          {[]string{""}, "abc", "abc"},
		"no secrets":                     {nil, `a\u0041%41YWJjZGVm`, `a\u0041%41YWJjZGVm`},
		"no escape":                      {[]string{"secret"}, `%zz \u00zz \q &#; &#x; &zz; = \`, `%zz \u00zz \q &#; &#x; &zz; = \`},
		"an escape of something else":    {[]string{"pass word"}, `pass%2dword pass\u002dword pass&#45;word`, `pass%2dword pass\u002dword pass&#45;word`},
		"an escape with a letter in it":  {[]string{"pass1word"}, `pass&#4&auml;9;word`, `pass&#4&auml;9;word`},
		"a sign that begins with =":      {[]string{"passAword"}, `pass&bne;41word`, `pass&bne;41word`},
		"a line that goes on":            {[]string{"pass\nword"}, "pass\\\nword", "pass\\\nword"},
		"a line that is too long":        {[]string{"password"}, "pass=" + strings.Repeat(" ", 76) + "\nword", "pass=" + strings.Repeat(" ", 76) + "\nword"},
		"too many lines in an escape":    {[]string{"pass=word"}, "pass%=\n=\n=\n=\n3Dword", "pass%=\n=\n=\n=\n3Dword"},
		"numbers that are no byte":       {[]string{"passAword"}, `pass\501word pass\x0141word`, `pass\501word pass\x0141word`},
		"half a pair is not a sign":      {[]string{"pass\ufffdword"}, `pass\ud83d\u0041word`, `pass\ud83d\u0041word`},
		"half a pair":                    {[]string{"secret"}, `\ud83d\u0041 \ud83d %uD83D%41`, `\ud83d\u0041 \ud83d %uD83D%41`},
		"no character":                   {[]string{"secret"}, `\U99999999 &#99999999999999999999; \u{99999999}`, `\U99999999 &#99999999999999999999; \u{99999999}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := finder(tt.secrets...)
			assert.Equal(t, tt.want, f.Text(tt.text))
			assert.Equal(t, tt.want, string(f.Bytes([]byte(tt.text))))
		})
	}
}

// Before is redacted together with its secret. With Before, a secret is found that would be too short alone.
func TestBefore(t *testing.T) {
	t.Parallel()
	f := redact.NewFinder(redact.Hidden{Before: "alice:", Secret: redact.New("x")}, redact.Hidden{Before: "a:", Secret: redact.New("b")}).
		With(redact.Hidden{Before: "id=", Secret: redact.New("12345")}, redact.Hidden{Before: "id=", Secret: redact.Secret{}})
	assert.Equal(t, "x [redacted] Y[redacted] a:b [redacted] [redacted] id=123 id=", f.Text("x alice:x YWFsaWNlOng= a:b id=12345 12345 id=123 id="))
}

// A secret of four bytes is also found without its Before, also in Base64. Before alone is not redacted.
func TestShortSecretsWithSomethingBeforeThem(t *testing.T) {
	t.Parallel()
	f := redact.NewFinder(redact.Hidden{Before: "a-long-name:", Secret: redact.New("abcd")}, redact.Hidden{Before: "user=", Secret: redact.New("")})
	assert.Equal(t, "[redacted] [redacted] [redacted] a-long-name: user=x", f.Text("a-long-name:abcd abcd YWJjZA== a-long-name: user=x"))
}

func TestAFinderThatIsNilFindsNothing(t *testing.T) {
	t.Parallel()
	var f *redact.Finder
	assert.Equal(t, "secret", f.Text("secret"))
	assert.Equal(t, "sec", string(f.Beginning([]byte("secret"), 3, true)))
}

// In a text that was cut off, a part of a secret or of a URL stays unless it is at the end. An address is not a secret.
func TestAHalfInTheMiddleStays(t *testing.T) {
	t.Parallel()
	f := finder("secret-word")
	for _, text := range []string{
		"secret-w x", "secret-w%20x", "c2VjcmV0LXdv x", "c2VjcmV0LXdv.", "http://bob:pw x", "see http://example.com", "see http://example.com:80",
	} {
		assert.Equal(t, text, string(f.Beginning([]byte(text), 100, true)))
	}
}

// Removed secrets make room for more of the text, up to the end of what was read. A part of a secret there is not
// shown.
func TestAHalfAtTheEndOfTheMarginIsNotShown(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("0123456789", 20)
	text := strings.Repeat(secret+" ", 50)
	require.Greater(t, len(text), 1000+redact.Margin) // the part that is read holds 45 and a half secrets
	want := strings.Repeat("[redacted] ", 45) + "[redacted]"
	assert.Equal(t, want, string(finder(secret).Beginning([]byte(text), 1000, false)))
}

// Wherever a text is cut off within any form of a secret, the rest of the secret is removed.
func TestTheBeginningOfASecretIsTakenOut(t *testing.T) {
	t.Parallel()
	const secret = `pass=wo"rd 😀`
	for name, form := range map[string]string{
		"itself":         secret,
		"JSON":           `\u0070ass\u003dwo\"rd \ud83d\ude00`,
		"JSON twice":     `\\u0070ass\\u003dwo\\\"rd \\ud83d\\ude00`,
		"braces":         `\u{70}ass\u{3d}wo\u{22}rd \u{1f600}`,
		"percent":        "%70ass%3Dwo%22rd+%F0%9F%98%80",
		"percent thrice": "%252570ass%25253Dwo%252522rd+%2525F0%25259F%252598%252580",
		"HTML":           "&#112;ass&equals;wo&quot;rd&#x20;&#x01F600;",
		"Base64":         "cGFzcz13byJyZCDwn5iA",
		"Base64 twice":   "Y0dGemN6MTNieUp5WkNEd241aUE=",
		"Base64 escaped": `\u0063GFzcz13byJyZCDwn5iA`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := finder(secret)
			for end := range len(form) + 1 {
				text := "before " + form[:end]
				shown := string(f.Beginning([]byte(text), len(text)+redact.Margin, true))
				if shown != "before [redacted]" {
					assert.Equal(t, text, shown)
					assert.Less(t, end, 8, "at least the first byte of the secret is shown") // no escape of one byte is longer
				}
			}
			// If the text was not cut off, it holds no secret.
			half := "before " + form[:len(form)/2]
			assert.Equal(t, half, string(f.Beginning([]byte(half), len(half), false)))
		})
	}
}

// If a text is cut off within an escape, Beginning removes the escape together with the beginning of the secret. If the
// text really ends there, it holds no secret. Each form begins an escape of the slash.
func TestHalfAnEscapeIsTakenOut(t *testing.T) {
	t.Parallel()
	f := finder("pass/")
	for _, half := range []string{
		`\`, `\u`, `\u0`, `\u002`, `\U0000002`, `\u{`, `\u{2`, `\u{0000000000000000002f`, `\x`, `\x2`, `\x0000002`, `\0`, `\05`, `\5`,
		"%", "%2", "%u00", "%25", "%252", `%5C%75%3`, `\%7`, "&", "&#", "&#4", "&#x2", "&so", "&sol", "&amp;#4", "~", "%7e", "=", "=2",
	} {
		text := "before pass" + half
		assert.Equal(t, "before [redacted]", string(f.Beginning([]byte(text), 100, true)), text)
		assert.Equal(t, text, string(f.Beginning([]byte(text), 100, false)))
	}
	for _, half := range []string{"=\r", "= \t", "=\r\n=2", `\` + "\r"} {
		text := "before pass" + half
		assert.Equal(t, "before [redacted]", string(f.Beginning([]byte(text), 100, true)), "%q", text)
		assert.Equal(t, text, string(f.Beginning([]byte(text), 100, false)))
	}
}

func TestBeginning(t *testing.T) {
	t.Parallel()
	f := finder("secret-word")
	for name, tt := range map[string]struct {
		text string
		most int
		want string
	}{
		"shorter":              {"a secret-word", 100, "a [redacted]"},
		"across the end":       {"a secret-word", 4, "a [r"},
		"of exactly that size": {"a secret", 8, "a secret"},
		"behind the end":       {"abcdef secret-word", 5, "abcde"},
		"a half at the margin": {strings.Repeat("secret-word ", 800) + "x", 1000, strings.Repeat("[redacted] ", 90) + "[redacted]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tt.want, string(f.Beginning([]byte(tt.text), tt.most, false)))
		})
	}
}

func TestUserInformationIsTakenOut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"see https://bob:pw@example.com/x":           "see https://[redacted]@example.com/x",
		"see https://token@example.com":              "see https://[redacted]@example.com",
		"https://bob:p%40w@[2001:db8::1]:80/":        "https://[redacted]@[2001:db8::1]:80/",
		"https://bob:p@w@example.com":                "https://[redacted]@example.com",
		`"http:\/\/bob:pw@example.com\/"`:            `"http:\/\/[redacted]@example.com\/"`,
		"u=https%3A%2F%2Fbob%3Apw%40example.com%2Fx": "u=https%3A%2F%2F[redacted]%40example.com%2Fx",
		"http://bob:p/w?#x@example.com:80":           "http://[redacted]@example.com:80",
		"a http://bob:p/w@h http://bob:p/w@h":        "a http://[redacted]@h http://[redacted]@h",
		"https://example.com/a@b":                    "https://example.com/a@b",
		"https://example.com:8080/a@b":               "https://example.com:8080/a@b",
		"https://[2001:db8::1]/a@b":                  "https://[2001:db8::1]/a@b",
		"https://example.com?mail=a@b":               "https://example.com?mail=a@b",
		"https://example.com, bob@example.com":       "https://example.com, bob@example.com",
		"// bob@example.com":                         "// bob@example.com",
		"https://@example.com":                       "https://@example.com",
		"http://bob:p{w@h/":                          "http://[redacted]@h/",
		"http://bob:{w}@h/":                          "http://[redacted]@h/",
		`{"u":"http://bob:p\"w@h/"}`:                 `{"u":"http://[redacted]@h/"}`,
		"see //bob:pw@h/x":                           "see //[redacted]@h/x",
		"http:///bob:pw@h":                           "http:///[redacted]@h",
		"https=3A//bob:pw@h":                         "https=3A//[redacted]@h",
		"https=3A=2F=2Fbob:pw@h":                     "https=3A=2F=2F[redacted]@h",
		"http://a&b:pw@h":                            "http://[redacted]@h",
		"http://h,b@c":                               "http://h,b@c",
		"http://h&a=b@c":                             "http://h&a=b@c",
		`{"u":"http:\/\/h:443","m":"a@b"}`:           `{"u":"http:\/\/h:443","m":"a@b"}`,
		"&quot;http://h:443&quot;,&quot;a@b&quot;":   "&quot;http://h:443&quot;,&quot;a@b&quot;",
		"see http://h:{port}/ or mail a@b":           "see http://h:{port}/ or mail a@b",
		"https://example.com//a@b":                   "https://example.com//a@b",
		"https://example.com:8080//a@b":              "https://example.com:8080//a@b",
		"// bob:pw@example.com":                      "// bob:pw@example.com",
		"http://bob:p%20w@h":                         "http://[redacted]@h",
		"http://bob:p&%20w@h":                        "http://[redacted]@h",
		"https=3A//token@h":                          "https=3A//[redacted]@h",
		"http://bob:pw=40h/":                         "http://bob:pw=40h/",
		"see http://bob:pw":                          "see http://bob:pw",
		`{"u":"http://bob:pw","m":"a@b"}`:            `{"u":"http://bob:pw","m":"a@b"}`,
		"http://bob:p//w@h":                          "http://[redacted]@h",
		"http://bob:p/w@h/a@b":                       "http://[redacted]@h/a@b",
		"http:~1~1bob:pw@h":                          "http:~1~1bob:pw@h",
		"see //bob:p[w]:x@h":                         "see //[redacted]@h",
		"http://h|a@b":                               "http://h|a@b",
		"http://bob:&pw@h":                           "http://[redacted]@h",
		"http://a&b:p%20w@h":                         "http://[redacted]@h",
		"http://bob:p\x7fw@h":                        "http://bob:p\x7fw@h",
		"http://h&#64;b":                             "http://[redacted]&#64;b",
		"http://h&#64b":                              "http://h&#64b",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, want, finder("secret").Text(text))
			assert.Equal(t, want, redact.NewFinder().Text(text))
		})
	}
	assert.Equal(t, "http://[redacted]", string(finder("secret").Beginning([]byte("http://bob:pw"), 100, true)))
}

func TestErrorKeepsWhatItMatches(t *testing.T) {
	t.Parallel()
	f := finder("secret")
	plain := errors.New("no")
	assert.Same(t, plain, f.Error(plain, nil))
	err := f.Error(fmt.Errorf("the secret: %w", io.ErrUnexpectedEOF), nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.EqualError(t, err, "the [redacted]: unexpected EOF")
	assert.NoError(t, errors.Unwrap(err))
}

// silent is an error whose text does not contain that of the error it wraps.
type silent struct{ inner []error }

func (e *silent) Error() string   { return "it failed" }
func (e *silent) Unwrap() []error { return e.inner }

// one is a silent error that wraps one error or none.
type one struct{ inner error }

func (e one) Error() string { return "it failed" }
func (e one) Unwrap() error { return e.inner }

// noted is an error with a field beside its text.
type noted struct{ note string }

func (e noted) Error() string { return "it failed" }

// A secret in an error is found wherever a program can read it: in its text, in wrapped errors and in its fields.
func TestErrorsAreSafeThroughout(t *testing.T) {
	t.Parallel()
	f := finder("secret")
	fields := func(err error) []string {
		if n, ok := err.(noted); ok { //nolint:errorlint // visits each error of the tree separately
			return []string{"a field", n.note}
		}
		return nil
	}
	plain, secret := errors.New("no"), errors.New("the secret")
	for name, tt := range map[string]struct {
		err  error
		safe bool
	}{
		"nothing":                  {plain, true},
		"nothing inside":           {one{plain}, true},
		"nothing wrapped":          {one{nil}, true},
		"nothing in a list":        {&silent{[]error{nil, plain}}, true},
		"a text":                   {secret, false},
		"wrapped":                  {one{secret}, false},
		"wrapped twice":            {one{one{secret}}, false},
		"in a list":                {&silent{[]error{plain, secret, plain}}, false},
		"a field":                  {noted{"the secret"}, false},
		"a field of what it wraps": {&silent{[]error{plain, noted{"the secret"}}}, false},
		"a field without one":      {noted{"no"}, true},
		"a long field":             {noted{strings.Repeat("x", redact.Most-len("it failed")-len("a field"))}, true},
		"a field that is longer":   {noted{strings.Repeat("x", redact.Most-len("it failed")-len("a field")+1)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := f.Error(tt.err, fields)
			assert.Equal(t, tt.safe, fmt.Sprintf("%T", got) == fmt.Sprintf("%T", tt.err))
			require.ErrorIs(t, got, tt.err)
			assert.Equal(t, f.Text(tt.err.Error()), got.Error())
		})
	}
}

// Holds finds a secret in any letter case. It returns true for a text that is too long to search.
func TestHolds(t *testing.T) {
	t.Parallel()
	f := redact.NewFinder(redact.Hidden{Before: "Basic ", Secret: redact.New("SeCreT")})
	for text, want := range map[string]bool{
		"": false, "no": false, "SeCreT": true, "a secret": true, "a SECRET": true, "x basic%20sECRET": true, "secre": false,
		strings.Repeat("x", redact.Most): false, strings.Repeat("x", redact.Most+1): true,
	} {
		assert.Equal(t, want, f.Holds(text), text[:min(len(text), 20)])
	}
	var none *redact.Finder
	assert.False(t, none.Holds("secret"))
	assert.True(t, none.Holds(strings.Repeat("x", redact.Most+1)))
}

// Line shows at most 512 bytes of a foreign text, splits no character, and quotes characters that do not print.
func TestLine(t *testing.T) {
	t.Parallel()
	x := strings.Repeat("x", 508)
	for text, want := range map[string]string{
		"":                                 "",
		"plain \"text\" ü":                 "plain \"text\" ü",
		"two\nlines":                       `"two\nlines"`,
		"\x1b[31mred":                      `"\x1b[31mred"`,
		"broken \xff":                      `"broken \xff"`,
		"a\u00a0blank":                     `"a\u00a0blank"`,
		x + "1234":                         x + "1234",
		x + "12345":                        x + "1234...",
		x + "123ü":                         x + "123...",
		x + "12ü":                          x + "12ü",
		x + "1😀":                           x + "1...",
		x + "\x80\x80\x80\x80\x80":         x + "...",
		x[1:] + "\x80\x80\x80\x80\x80\x80": `"` + x[1:] + `\x80..."`,
		strings.Repeat("\n", 600):          `"` + strings.Repeat(`\n`, 512) + `..."`,
	} {
		assert.Equal(t, want, redact.Line(text), "%q", text)
	}
}

func TestASecretDoesNotPrint(t *testing.T) {
	t.Parallel()
	secret := redact.New("correct-horse")
	holder := struct{ Field any }{secret}
	shown := fmt.Sprintf("%v %+v %#v %v %+v %#v", secret, secret, secret, holder, holder, holder)
	assert.NotContains(t, shown, "correct-horse")
	assert.Equal(t, "correct-horse", secret.Reveal())
	assert.False(t, secret.IsZero())
	assert.True(t, redact.Secret{}.IsZero())
	assert.Empty(t, redact.Secret{}.Reveal())
}
