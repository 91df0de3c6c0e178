package webdelivery_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every Go block of the README stands in an Example function, so it compiles and runs; every test it names exists.
func TestREADMEIsTrue(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	unindented := ""
	for _, name := range []string{"example_test.go", "example_stats_test.go", "example_lists_test.go", "webdeliverytest/example_test.go"} {
		examples, err := os.ReadFile(name)
		require.NoError(t, err)
		unindented += strings.ReplaceAll(string(examples), "\n\t", "\n")
	}

	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	assert.GreaterOrEqual(t, len(blocks), 10)
	for _, block := range blocks {
		assert.Contains(t, unindented, block[1])
	}

	assertTestsExist(t, string(readme))
}

// assertTestsExist looks up the tests that a page names.
func assertTestsExist(t *testing.T, page string) {
	t.Helper()
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	var tests strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file.Name(), "_test.go") {
			text, err := os.ReadFile(file.Name())
			require.NoError(t, err)
			tests.WriteString(file.Name() + "\n" + string(text))
		}
	}
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz)\\w+|\\w+_test\\.go)`").FindAllStringSubmatch(page, -1) {
		assert.True(t, regexp.MustCompile(`\b`+regexp.QuoteMeta(name[1])+`\b`).MatchString(tests.String()), "there is no "+name[1])
	}
}
