package suite_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
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
		if strings.HasPrefix(name, "examples/") && base == "main.go" {
			examples.WriteString("\n" + text)
		}
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
	comment, links := regexp.MustCompile(`(?m)^\s*//.*$`), 0
	packages := map[string]string{
		".": "webdelivery", "filters": "filters", "feed": "feed", "webdeliverytest": "webdeliverytest", "redislimit": "redislimit", "redisqueue": "redisqueue",
	}
	for file, page := range texts(t, ".go") {
		own := packages[path.Dir(file)]
		if own == "" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(strings.Join(comment.FindAllString(page, -1), "\n"), -1) {
			to := strings.TrimSuffix(m[1]+"."+m[2], ".")
			of, _, ok := strings.Cut(to, ".")
			if !ok || strings.ToLower(of) != of {
				of, to = own, own+"."+to
			}
			if strings.Contains(page, "// ["+m[1]+"]:") || !slices.Contains(slices.Collect(maps.Values(packages)), of) {
				continue // the title of a link, or a name of the standard library
			}
			links++
			assert.True(t, public[to], "%s: there is no %s", file, to)
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
	exists, product := map[string]bool{}, texts(t, ".go")
	for name := range product {
		exists[path.Base(name)] = true
	}
	for _, page := range []string{"CONTRIBUTING.md", "docs/internals/architecture.md", "docs/internals/reliability.md", "internal/suite/README.md"} {
		for _, name := range regexp.MustCompile(`\b[a-z][a-z0-9_]*\.go\b`).FindAllString(readPage(t, page), -1) {
			assert.True(t, exists[name], "%s: there is no %s", page, name)
		}
	}
	for name := range product {
		of, is := strings.CutSuffix(name, "_test.go")
		if is && !strings.Contains(name, "/") && !strings.HasPrefix(name, "example_") && name != "helpers_test.go" {
			assert.Contains(t, product, strings.TrimSuffix(of, "_internal")+".go", "%s: there is no file of its name; what every operation must hold is in internal/suite", name)
		}
	}
}

// Every example is in the list of examples, and every command in that of commands.
func TestEveryProgramIsFound(t *testing.T) {
	t.Parallel()
	list := readPage(t, "examples/README.md")
	programs := regexp.MustCompile(`(?m)^examples/(\S+)/main\.go$`).FindAllStringSubmatch(strings.Join(slices.Sorted(maps.Keys(texts(t, ".go"))), "\n"), -1)
	require.NotEmpty(t, programs)
	for _, program := range programs {
		assert.Contains(t, list, "]("+program[1]+")")
	}
	list = readPage(t, "cmd/webdelivery/README.md")
	_, text, _ := strings.Cut(readPage(t, "cmd/webdelivery/main.go"), "\nvar commands = ")
	text, _, _ = strings.Cut(text, "\n}")
	commands := regexp.MustCompile(`(\w+)\.Command,`).FindAllStringSubmatch(text, -1)
	require.Greater(t, len(commands), 5)
	for _, command := range commands {
		assert.Contains(t, list, "\n| `"+command[1]+"` | ")
	}
}

// The changelog describes the version that the requests send.
func TestTheChangelogHasThisVersion(t *testing.T) {
	t.Parallel()
	latest := regexp.MustCompile(`(?m)^## (\d\S+) - \d{4}-\d\d-\d\d$`).FindStringSubmatch(readPage(t, "CHANGELOG.md"))
	require.NotNil(t, latest)
	assert.Equal(t, webdelivery.Version, latest[1])
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

const root = "../.."

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(path.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// The README is short enough to be read.
func TestTheReadmeIsShort(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, len(strings.Fields(readPage(t, "README.md"))), 1300, "words")
}

// The program of the README has at most 30 lines, builds in a module of its own, and prints what the README says.
func TestTheProgramOfTheReadme(t *testing.T) {
	t.Parallel()
	found := regexp.MustCompile("(?s)```go\n(package main\n.*?)```\n+```\n(.*?)```").FindStringSubmatch(readPage(t, "README.md"))
	require.NotNil(t, found, "a program, and then its output")
	assert.LessOrEqual(t, strings.Count(found[1], "\n"), 30, "lines")

	folderOfSDK, err := filepath.Abs(root)
	require.NoError(t, err)
	module := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(readPage(t, "go.mod"), "module example.com/first") +
		"\nrequire github.com/webdelivery/webdelivery-go v0.1.0\nreplace github.com/webdelivery/webdelivery-go => " + folderOfSDK + "\n"
	folder := t.TempDir()
	for name, text := range map[string]string{"main.go": found[1], "go.mod": module, "go.sum": readPage(t, "go.sum")} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	run := func(environment []string, name string, args ...string) string {
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir, command.Env = folder, append(os.Environ(), environment...)
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	run([]string{"GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off"}, "go", "build", "-o", "first", ".")

	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
	printed := run([]string{
		"WEBDELIVERY_BASE_URL=" + srv.URL, "WEBDELIVERY_CUSTOMER=" + srv.Customer, "WEBDELIVERY_USERNAME=" + srv.Username,
		"WEBDELIVERY_PASSWORD=" + srv.Password, "WEBDELIVERY_AUTH=",
	}, filepath.Join(folder, "first"))
	assert.Equal(t, found[2], printed)
	assert.Len(t, srv.Purged(), 1)
}
