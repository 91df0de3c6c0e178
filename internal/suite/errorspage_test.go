package suite_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notLiteral are words of docs/errors.md that Go's standard library says, or that are made of several literals.
var notLiteral = []string{"no such host", "failed to verify certificate", "certificate signed by unknown authority", "context deadline exceeded", "waiting for task"}

// The words of every text on the page stand in the code, or in the fake if they are the service's. Of a text, that is
// what lies between values and punctuation, if it has at least three words.
func TestThePageOfErrorsQuotesRealTexts(t *testing.T) {
	t.Parallel()
	_, section, found := strings.Cut(readPage(t, "docs/errors.md"), "\n## By text\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	literal, verb := regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)+\""), regexp.MustCompile(`%[a-z]`)
	var said []string
	for name, source := range texts(t, ".go") {
		if !strings.HasSuffix(name, "_test.go") {
			for _, text := range literal.FindAllString(source, -1) {
				said = append(said, verb.ReplaceAllString(text, "1"))
			}
		}
	}
	between, words := regexp.MustCompile(`[…:;"()]|\d\w*`), 0
	for row := range strings.SplitSeq(section, "\n") {
		cell, isRow := strings.CutPrefix(row, "| `")
		cell, _, _ = strings.Cut(cell, "` | ")
		for _, quoted := range between.Split(cell, -1) {
			quoted = strings.Trim(quoted, " ,`")
			if !isRow || strings.Count(quoted, " ") < 2 || slices.Contains(notLiteral, quoted) {
				continue
			}
			words++
			assert.True(t, slices.ContainsFunc(said, func(text string) bool { return strings.Contains(text, quoted) }), "%q of\n%s", quoted, cell)
		}
	}
	assert.Greater(t, words, 20)
}
