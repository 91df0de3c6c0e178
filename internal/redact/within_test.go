package redact_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// The text of an inner error loses the prefix where it begins a text, and keeps the words elsewhere.
func TestWithin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"p: a":              "a",
		"a: p: b":           "a: b",
		"a\np: b\np: c":     "a\nb\nc",
		"a (p: b)":          "a (b)",
		"a, p: b":           "a, b",
		"stop: a, b p: c":   "stop: a, b p: c",
		"the word p":        "the word p",
		"":                  "",
		"p: a: p: b (p: c)": "a: b (c)",
	} {
		assert.Equal(t, want, redact.Within("p: ", text), "%q", text)
	}
}
