package webdelivery_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	goBlock   = regexp.MustCompile("(?ms)^[ \t]*(?:```|~~~)[ \t]*(?:go|golang)\\b.*?\n(.*?)^[ \t]*(?:```|~~~)[ \t]*$")
	namedTest = regexp.MustCompile("`(?:[\\w./-]*/)?((?:Test|Fuzz|Example)\\w+|\\w+_test\\.go)`")
)

// Every Go block of every page stands in a file that is compiled: with an Example, which runs when it has an Output, or
// in the program that the page is about. Every test that a page names exists.
func TestPagesAreTrue(t *testing.T) {
	t.Parallel()
	pages, sources := texts(t, ".md"), texts(t, ".go")
	var examples, tests strings.Builder
	for name, text := range sources {
		base := path.Base(name)
		if !strings.HasSuffix(base, "_test.go") {
			continue
		}
		tests.WriteString(base + "\n" + text)
		if strings.HasPrefix(base, "example") {
			examples.WriteString("\n" + text)
		}
	}
	require.NotEmpty(t, goBlock.FindAllString(pages["README.md"], -1))
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiled := examples.String()
			if strings.HasPrefix(name, "examples/") {
				for source, text := range sources {
					if path.Dir(source) == path.Dir(name) {
						compiled += "\n" + text
					}
				}
			}
			compiled += strings.ReplaceAll(compiled, "\n\t", "\n") // a block may be what a function holds
			for _, block := range goBlock.FindAllStringSubmatch(page, -1) {
				stands := strings.Contains(compiled, "\n"+block[1])
				assert.True(t, stands, "no Example has\n%s", block[1])
			}
			for _, named := range namedTest.FindAllStringSubmatch(page, -1) {
				exists := regexp.MustCompile(`\b` + regexp.QuoteMeta(named[1]) + `\b`).MatchString(tests.String())
				assert.True(t, exists, "there is no %s", named[1])
			}
		})
	}
}

// texts reads all files of the repository whose name ends so, those of hidden folders aside.
func texts(t *testing.T, ending string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ending):
			return nil
		}
		text, err := os.ReadFile(name)
		found[name] = string(text)
		return err
	}))
	return found
}
