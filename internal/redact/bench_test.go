package redact_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// The time per byte does not grow with the length of the text, whatever it contains.
func BenchmarkText(b *testing.B) {
	const password = "correct-horse-battery"
	pair := base64.StdEncoding.EncodeToString([]byte("alice:" + password))
	f := redact.NewFinder(
		redact.Hidden{Before: "alice:", Secret: redact.New(password)},
		redact.Hidden{Before: "Basic ", Secret: redact.New(pair)},
		redact.Hidden{Before: "authtoken=", Secret: redact.New("7f3c1e9a-4d2b-4c8e-9a71-0b5d6e8f1a2c")})
	for _, tt := range []struct{ name, unit string }{
		{"JSON", `{"code":400,"description":"no configuration for \"www.example.com\"","transaction_id":0},`},
		{"HTML", `<p class="error">The page at <a href="https://www.example.com/a?b=c&amp;d">this address</a> is down.</p>` + "\n"},
		{"percent", "%7B%22code%22%3A400%2C%22description%22%3A%22no+configuration%22%7D"},
		{"Base64", base64.StdEncoding.EncodeToString([]byte("The page at this address is down. "))},
		{"backslashes", `\`},
		{"percent signs", "%25"},
		{"ampersands", "&amp;"},
		{"secrets", password + " "},
		{"nearly secrets", password[:20]},
		{"digits", "&#%30"},
	} {
		for _, size := range []int{1 << 10, 64 << 10} {
			text := strings.Repeat(tt.unit, size/len(tt.unit)+1)[:size]
			b.Run(fmt.Sprintf("%s/%d", tt.name, size), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					f.Text(text)
				}
			})
		}
	}
}
