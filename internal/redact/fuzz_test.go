package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"mime/quotedprintable"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// A writer encodes a text so that the decoder of its kind can read it.
type writer func(r *rand.Rand, text string) string

// some escapes some characters, and all that must be escaped.
func some(r *rand.Rand, text, must string, escape func(rune) string) string {
	var b strings.Builder
	often := r.IntN(4)
	for _, c := range text {
		if strings.ContainsRune(must, c) || r.IntN(4) < often {
			b.WriteString(escape(c))
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// either writes hexadecimal digits in upper or lower case.
func either(r *rand.Rand, digits string) string {
	return some(r, digits, "", func(c rune) string { return strings.ToUpper(string(c)) })
}

var writers = []writer{
	func(_ *rand.Rand, text string) string {
		quoted, _ := json.Marshal(text)
		return string(quoted[1 : len(quoted)-1])
	},
	func(r *rand.Rand, text string) string {
		return some(r, text, "\\\"\n\r", func(c rune) string {
			var b strings.Builder
			for _, unit := range utf16.AppendRune(nil, c) {
				b.WriteString(`\u` + either(r, fmt.Sprintf("%04x", unit)))
			}
			return b.String()
		})
	},
	func(_ *rand.Rand, text string) string { return url.QueryEscape(text) },
	func(_ *rand.Rand, text string) string { return url.PathEscape(text) },
	func(r *rand.Rand, text string) string {
		return some(r, text, "%+", func(c rune) string {
			var b strings.Builder
			for _, one := range []byte(string(c)) {
				b.WriteString("%" + either(r, fmt.Sprintf("%02x", one)))
			}
			return b.String()
		})
	},
	func(_ *rand.Rand, text string) string { return html.EscapeString(text) },
	func(r *rand.Rand, text string) string {
		return some(r, text, "&", func(c rune) string {
			if r.IntN(2) == 0 {
				return fmt.Sprintf("&#%0*d;", r.IntN(9), c)
			}
			return fmt.Sprintf("&#x%s%s;", strings.Repeat("0", r.IntN(9)), either(r, strconv.FormatInt(int64(c), 16)))
		})
	},
	func(_ *rand.Rand, text string) string {
		quoted := strconv.Quote(text)
		return quoted[1 : len(quoted)-1]
	},
	func(_ *rand.Rand, text string) string {
		quoted := strconv.QuoteToASCII(text)
		return quoted[1 : len(quoted)-1]
	},
	func(_ *rand.Rand, text string) string {
		var b bytes.Buffer
		w := quotedprintable.NewWriter(&b)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		return b.String()
	},
	encoder(base64.StdEncoding), encoder(base64.RawStdEncoding), encoder(base64.URLEncoding), encoder(base64.RawURLEncoding),
}

func encoder(e *base64.Encoding) writer {
	return func(_ *rand.Rand, text string) string { return e.EncodeToString([]byte(text)) }
}

var (
	percents  = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	slashes   = regexp.MustCompile(`(?:\\u[0-9A-Fa-f]{4})+|\\U[0-9A-Fa-f]{8}|\\x[0-9A-Fa-f]{2}|\\[0-3][0-7]{2}|\\[^A-Za-z0-9]`)
	quotables = regexp.MustCompile(`=[0-9A-F]{2}|=\r?\n`)
	runs      = regexp.MustCompile(`[A-Za-z0-9+/_\-\r\n]{6,}`)
)

// decoders decode the output of the writers. They leave everything else unchanged.
var decoders = []func(string) []string{
	func(text string) []string {
		decode := func(text string) string {
			return percents.ReplaceAllStringFunc(text, func(s string) string {
				n, _ := strconv.ParseUint(s[1:], 16, 8)
				return string([]byte{byte(n)})
			})
		}
		return []string{decode(text), decode(strings.ReplaceAll(text, "+", " "))}
	},
	func(text string) []string {
		return []string{slashes.ReplaceAllStringFunc(text, func(s string) string {
			switch s[1] {
			case 'u':
				var units []uint16
				for _, one := range strings.Split(s[2:], `\u`) {
					n, _ := strconv.ParseUint(one, 16, 16)
					units = append(units, uint16(n))
				}
				return string(utf16.Decode(units))
			case 'U', 'x', '0', '1', '2', '3':
				if said, err := strconv.Unquote(`"` + s + `"`); err == nil {
					return said
				}
				return s
			default:
				return s[1:]
			}
		})}
	},
	func(text string) []string { return []string{html.UnescapeString(text)} },
	func(text string) []string {
		return []string{quotables.ReplaceAllStringFunc(text, func(s string) string {
			said, _ := io.ReadAll(quotedprintable.NewReader(strings.NewReader(s)))
			return string(said)
		})}
	},
	func(text string) []string {
		var all []string
		for _, run := range runs.FindAllString(text, -1) {
			run = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "").Replace(run)
			for first := range min(4, len(run)) {
				part := run[first:]
				if len(part)%4 == 1 {
					part = part[:len(part)-1]
				}
				said, err := base64.RawStdEncoding.DecodeString(part)
				if err == nil {
					all = append(all, string(said))
				}
			}
		}
		return all
	},
}

// decoded returns all texts that result from decoding a text, up to a number of times.
func decoded(text string, times int) []string {
	seen := map[string]bool{text: true}
	all := []string{text}
	for last := all; times > 0; times-- {
		var next []string
		for _, text := range last {
			for _, decode := range decoders {
				for _, said := range decode(text) {
					if !seen[said] {
						seen[said] = true
						next = append(next, said)
					}
				}
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// A secret is found in any form and any text. A text without it stays unchanged.
func FuzzForms(f *testing.F) {
	for i, secret := range []string{
		`s3cr/t&"wört`, "pass word", "%41%42%43", `\u0041\u0042`, "&amp;&lt;", "a+b=c+d=", "=41=42", "😀😀", `\\\\`, "%%%%%", "++++", "aaaa",
		"correct-horse-battery", "0123456789abcdef+/==", `"'"'"'`, "AAAAAAAA", "%2541%2541",
	} {
		for seed := range uint64(12) {
			f.Add(secret, `{"description":"no `, `"}`, seed+uint64(i)*100)
			f.Add(secret, secret[:2], secret[1:], seed+uint64(i)*1000)
		}
	}
	f.Fuzz(func(t *testing.T, secret, before, after string, seed uint64) {
		mark := redact.Mark
		if len(secret) < redact.Least || len(secret) > 200 || len(before)+len(after) > 400 ||
			strings.ContainsAny(secret, "[]") || strings.Contains(mark, secret) || strings.IndexFunc(secret, unicode.IsControl) >= 0 ||
			!utf8.ValidString(secret) || !utf8.ValidString(before) || !utf8.ValidString(after) {
			return
		}
		r := rand.New(rand.NewPCG(seed, 0))
		finder := finder(secret)
		alone, within := secret, secret
		for range r.IntN(4) {
			write := writers[r.IntN(len(writers))]
			alone = write(r, alone)
			if r.IntN(2) == 0 {
				within = before[:r.IntN(len(before)+1)] + within + after[:r.IntN(len(after)+1)]
			}
			within = write(r, strings.ToValidUTF8(within, "?"))
		}
		assert.Equal(t, "\x01"+mark+"\x01", finder.Text("\x01"+alone+"\x01"), "%q as %q", secret, alone)

		text := before + within + after
		shown := finder.Text(text)
		for _, said := range decoded(shown, 3) {
			if strings.Contains(said, secret) {
				t.Fatalf("%q is in %q, decoded from %q, which is shown of %q", secret, said, shown, text)
			}
		}
		for _, cut := range []int{r.IntN(len(text)), max(0, len(text)-1-r.IntN(len(after)+20))} {
			shown := finder.Beginning([]byte(text[:cut]), len(text), true)
			assert.LessOrEqual(t, len(shown), cut+len(mark)*len(text))
		}

		other := redactOther(secret)
		if !strings.ContainsRune(strings.Join(decoded(text, 3), ""), '@') {
			assert.Equal(t, text, other.Text(text))
		}
	})
}

// redactOther searches for a secret that no text of this test holds.
func redactOther(secret string) *redact.Finder {
	return finder(fmt.Sprintf("~%q~no text has this~%d", "ž", len(secret)))
}
