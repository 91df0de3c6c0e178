package suite_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
)

var (
	goBlock      = regexp.MustCompile("(?ms)^[ \t]*(?:```|~~~)[ \t]*(?:go|golang)\\b.*?\n(.*?)^[ \t]*(?:```|~~~)[ \t]*$")
	block        = regexp.MustCompile("(?ms)^[ \t]*(```|~~~).*?^[ \t]*(```|~~~)[ \t]*$")
	link         = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]+))?\)`)
	heading      = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	linked       = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	testDeclared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w+)\(`)
	namedTest    = regexp.MustCompile("`(?:[\\w./-]*/)?((?:Test|Fuzz|Example)\\w+|\\w+_test\\.go)`")
)

// Every Go block of every page is also in a file that is compiled. That is an Example, which runs if it has an
// Output, or the program that the page describes. Every test that a page names exists.
func TestPagesAreTrue(t *testing.T) {
	t.Parallel()
	pages, sources := texts(t, ".md"), texts(t, ".go")
	var examples strings.Builder
	tests := map[string]bool{} // and files of tests
	for name, text := range sources {
		base := path.Base(name)
		if !strings.HasSuffix(base, "_test.go") {
			continue
		}
		tests[base] = true
		for _, declared := range testDeclared.FindAllStringSubmatch(text, -1) {
			tests[declared[1]] = true
		}
		if strings.HasPrefix(base, "example") {
			examples.WriteString("\n" + text)
		}
	}
	require.NotEmpty(t, goBlock.FindAllString(pages["docs/tour.md"], -1))
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
			compiled += strings.ReplaceAll(compiled, "\n\t", "\n") // a block may be the body of a function
			for _, block := range goBlock.FindAllStringSubmatch(page, -1) {
				if name == "README.md" && strings.HasPrefix(block[1], "package main\n") {
					continue // TestTheProgramOfTheReadme builds and runs it
				}
				stands := strings.Contains(compiled, "\n"+block[1])
				assert.True(t, stands, "no Example has\n%s", block[1])
			}
			for _, named := range namedTest.FindAllStringSubmatch(page, -1) {
				assert.True(t, tests[named[1]], "there is no %s", named[1])
			}
		})
	}
}

// Every link of a page to a file of the repository leads to a file. the file, and the heading of a page.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages := texts(t, ".md")
	anchors := map[string]map[string]bool{}
	for name, page := range pages {
		anchors[name] = anchorsOf(page)
	}
	for name, page := range pages {
		for _, to := range link.FindAllStringSubmatch(block.ReplaceAllString(page, ""), -1) {
			if strings.Contains(to[1], "://") {
				continue
			}
			file := name
			if to[1] != "" {
				file = path.Join(path.Dir(name), to[1])
				_, err := os.Stat(path.Join(root, file))
				assert.NoError(t, err, name)
			}
			if to[2] != "" {
				assert.True(t, anchors[file][to[2]], "%s links to %s, which has no heading #%s", name, file, to[2])
			}
		}
	}
}

// anchorsOf are the anchors of a page's headings, as GitHub makes them.
func anchorsOf(page string) map[string]bool {
	found := map[string]bool{}
	for _, title := range heading.FindAllStringSubmatch(block.ReplaceAllString(page, ""), -1) {
		anchor := anchorOf(title[1])
		for n := 1; found[anchor]; n++ {
			anchor = fmt.Sprintf("%s-%d", anchorOf(title[1]), n)
		}
		found[anchor] = true
	}
	return found
}

func anchorOf(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, linked.ReplaceAllString(title, "$1"))
}

// The public names that the pages for users write as code exist.
func TestNamesOnPagesExist(t *testing.T) {
	t.Parallel()
	public := map[string]bool{"RootCAs": true} // of crypto/tls
	for _, name := range regexp.MustCompile(`\w+`).FindAllString(readPage(t, "api/current.txt"), -1) {
		public[name] = true
	}
	named := regexp.MustCompile("`\\*?(?:(?:webdelivery|filters|redislimit|redisqueue|client)\\.)?([A-Z]\\w*[a-z]\\w*(?:\\.[A-Z]\\w*)*)(?:\\([^`]*\\))?`")
	for _, name := range []string{"README.md", "docs/tour.md", "docs/errors.md", "docs/endpoints.md"} {
		found := named.FindAllStringSubmatch(block.ReplaceAllString(readPage(t, name), ""), -1)
		require.NotEmpty(t, found, name)
		for _, code := range found {
			for _, part := range strings.Split(code[1], ".") {
				assert.True(t, public[part] || strings.HasPrefix(part, "Test"), "%s: there is no %s", name, code[1])
			}
		}
	}
}

// Every method is in the table of README and, if it sends something, in that of docs/endpoints.md. The families of
// statistics have the same methods, so one of them stands for all.
func TestEveryMethodIsOnThePages(t *testing.T) {
	t.Parallel()
	readme, endpoints := readPage(t, "README.md"), readPage(t, "docs/endpoints.md")
	sends := map[string]bool{}
	for _, op := range operations.All() {
		sends[op.Name] = true
	}
	for _, method := range operations.Methods() {
		named := regexp.MustCompile("`" + regexp.QuoteMeta(method.Name) + "[`(]")
		endpoint := named
		if of, name, ok := strings.Cut(method.Go, "."); ok && of == "StatsFamily" {
			family := strings.TrimSuffix(method.Name, "."+name)
			assert.Contains(t, readme, "`"+family, "README.md")
			assert.Contains(t, endpoints, "`"+family, "docs/endpoints.md")
			named = regexp.MustCompile(`Stats\.\w+(\(category\))?\.` + name + "`")
			endpoint = regexp.MustCompile("`" + name + "`")
		}
		if method.Go == "Client.Limited" { // of a test
			continue
		}
		assert.Regexp(t, named, readme, "README.md")
		if sends[method.Name] && method.Name != "Do" {
			assert.Regexp(t, endpoint, endpoints, "docs/endpoints.md")
		}
	}
}

// The names that doc comments link to exist: [Name] in the package's own, [package.Name] in another.
func TestNamesInCommentsExist(t *testing.T) {
	t.Parallel()
	public := map[string]bool{}
	name := regexp.MustCompile(`^pkg (\w+), (?:const|var|func|type|method) (?:\(\*?(\w+)[^)]*\) )?(\w+)(?:\[[^\]]*\])?(?: (?:struct|interface), (\w+))?`)
	for line := range strings.Lines(readPage(t, "api/current.txt")) {
		if m := name.FindStringSubmatch(line); m != nil {
			public[m[1]+"."+strings.Trim(m[2]+"."+m[3]+"."+m[4], ".")] = true
		}
	}
	link := regexp.MustCompile(`\B\[\*?((?:[a-z]+\.)?[A-Z]\w*(?:\.[A-Z]\w*)?)\](?:\.([A-Z]\w*))?`)
	links := 0
	for _, folder := range []string{".", "filters", "feed", "webdeliverytest", "redislimit", "redisqueue"} {
		files, err := fs.Glob(os.DirFS(root), path.Join(folder, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			page := readPage(t, file)
			for line := range strings.Lines(page) {
				comment, ok := strings.CutPrefix(strings.TrimSpace(line), "//")
				if !ok {
					continue
				}
				for _, m := range link.FindAllStringSubmatch(comment, -1) {
					to := strings.TrimSuffix(m[1]+"."+m[2], ".")
					if of, _, ok := strings.Cut(to, "."); !ok || strings.ToLower(of) != of {
						to = map[string]string{".": "webdelivery"}[folder] + strings.TrimPrefix(folder, ".") + "." + to
					}
					of, _, _ := strings.Cut(to, ".")
					if strings.Contains(page, "// ["+m[1]+"]:") || !slices.Contains([]string{"webdelivery", "filters", "feed", "webdeliverytest", "redislimit", "redisqueue"}, of) {
						continue // the title of a link, or a name of the standard library
					}
					links++
					assert.True(t, public[to], "%s: there is no %s", file, to)
				}
			}
		}
	}
	assert.Greater(t, links, 200)
}

// What errors and logs have of a header stands in SECURITY.md alone. Who speaks of it elsewhere points there.
func TestHeadersAreToldInOnePlace(t *testing.T) {
	t.Parallel()
	told := readPage(t, "SECURITY.md")
	for _, words := range []string{"`X-Request-Id`", "`X-Correlation-Id`", "128 bytes", "searched for secrets"} {
		assert.Contains(t, told, words)
	}
	for _, name := range []string{"options.go", "docs/internals/architecture.md", "internal/transport/transport.go"} {
		assert.Regexp(t, `headers.*SECURITY\.md|SECURITY\.md\]? says .* headers`, readPage(t, name), name)
	}
	claim := regexp.MustCompile(`never (?:\w+ )?a header`)
	for _, ending := range []string{".md", ".go"} {
		for name, text := range texts(t, ending) {
			assert.Empty(t, claim.FindString(strings.ReplaceAll(text, "\n// ", " ")), name)
		}
	}
}

// The files that the pages for maintainers name exist somewhere in the repository, and each test of the root stands
// beside a file of its name.
func TestFilesThatPagesNameExist(t *testing.T) {
	t.Parallel()
	exists, product := map[string]bool{}, map[string]bool{}
	for name := range texts(t, ".go") {
		exists[path.Base(name)] = true
		product[name] = true
	}
	for _, page := range []string{"CONTRIBUTING.md", "docs/internals/architecture.md", "docs/internals/reliability.md", "internal/suite/README.md"} {
		for _, name := range regexp.MustCompile(`\b[a-z][a-z0-9_]*\.go\b`).FindAllString(readPage(t, page), -1) {
			assert.True(t, exists[name], "%s: there is no %s", page, name)
		}
	}
	for name := range product {
		of, is := strings.CutSuffix(name, "_test.go")
		if is && !strings.Contains(name, "/") && !strings.HasPrefix(name, "example_") && name != "helpers_test.go" {
			assert.True(t, product[strings.TrimSuffix(of, "_internal")+".go"], "%s: there is no file of its name; what every operation must hold is in internal/suite", name)
		}
	}
}

// Every program is in the list of programs.
func TestEveryProgramIsFound(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile(path.Join(root, "examples/README.md"))
	require.NoError(t, err)
	programs, err := fs.Glob(os.DirFS(root), "examples/*/main.go")
	require.NoError(t, err)
	require.NotEmpty(t, programs)
	for _, program := range programs {
		folder := path.Dir(program)
		assert.Contains(t, string(list), "]("+path.Base(folder)+")")
	}
}

// The changelog describes the version that the requests send.
func TestTheChangelogHasThisVersion(t *testing.T) {
	t.Parallel()
	changelog, err := os.ReadFile(path.Join(root, "CHANGELOG.md"))
	require.NoError(t, err)
	latest := regexp.MustCompile(`(?m)^## (\d\S+) - \d{4}-\d\d-\d\d$`).FindSubmatch(changelog)
	require.NotNil(t, latest)
	assert.Equal(t, webdelivery.Version, string(latest[1]))
}

// texts reads all files of the repository whose names end with ending, except those of hidden folders.
func texts(t *testing.T, ending string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ending):
			return nil
		}
		text, err := os.ReadFile(path.Join(root, name))
		found[name] = string(text)
		return err
	}))
	return found
}
