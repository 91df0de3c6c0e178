package suite_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

var (
	goBlock      = regexp.MustCompile("(?ms)^[ \t]*(?:```|~~~)[ \t]*(?:go|golang)\\b.*?\n(.*?)^[ \t]*(?:```|~~~)[ \t]*$")
	block        = regexp.MustCompile("(?ms)^[ \t]*(```|~~~).*?^[ \t]*(```|~~~)[ \t]*$")
	link         = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]+))?\)`)
	heading      = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	linked       = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	testDeclared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w+)\(`)
	comment      = regexp.MustCompile(`(?m)^\s*//.*$`)
	namedTest    = regexp.MustCompile("`(?:[\\w./-]*/)?((?:Test|Fuzz|Example)\\w+)`")
	goFile       = regexp.MustCompile(`\b[a-z][a-z0-9_]*\.go\b`)
)

// Every Go block of every page is also in a file that is compiled. That is an Example, which runs if it has an
// Output, or the program that the page describes. Every test and every Go file that a page names exists.
func TestPagesAreTrue(t *testing.T) {
	t.Parallel()
	pages, sources := texts(t, ".md"), texts(t, ".go")
	var examples strings.Builder
	tests, files := map[string]bool{}, map[string]bool{}
	for name, text := range sources {
		base := path.Base(name)
		files[base] = true
		if strings.HasPrefix(name, "examples/") && base == "main.go" {
			examples.WriteString("\n" + text)
		}
		if !strings.HasSuffix(base, "_test.go") {
			continue
		}
		for _, declared := range testDeclared.FindAllStringSubmatch(text, -1) {
			tests[declared[1]] = true
		}
		if strings.HasPrefix(base, "example") {
			examples.WriteString("\n" + text)
		}
	}
	require.NotEmpty(t, goBlock.FindAllString(pages["docs/guide.md"], -1))
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
			for _, named := range goFile.FindAllString(strings.ReplaceAll(page, "pkg.go.dev", ""), -1) {
				assert.True(t, files[named], "there is no %s", named)
			}
		})
	}
}

// Every link of a page, and every page that a comment names, leads to a file, and to a heading of it.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages, anchors := texts(t, ".md"), map[string]map[string]bool{}
	for name, page := range pages {
		anchors[name] = anchorsOf(page)
	}
	follow := func(from, to, heading string) {
		if to != from {
			_, err := os.Stat(path.Join(root, to))
			assert.NoError(t, err, "a link of %s", from)
		}
		assert.True(t, heading == "" || anchors[to][heading], "%s links to %s, which has no heading #%s", from, to, heading)
	}
	for name, page := range pages {
		for _, to := range link.FindAllStringSubmatch(block.ReplaceAllString(page, ""), -1) {
			switch {
			case strings.Contains(to[1], "://"):
			case to[1] == "":
				follow(name, name, to[2])
			default:
				follow(name, path.Join(path.Dir(name), to[1]), to[2])
			}
		}
	}
	named, found := regexp.MustCompile(`((?:docs/[\w/-]+|\b[A-Z]+)\.md)(?:#([\w-]+))?`), 0
	for name, text := range texts(t, ".go") {
		for _, line := range comment.FindAllString(text, -1) {
			for _, to := range named.FindAllStringSubmatch(line, -1) {
				found++
				if beside := path.Join(path.Dir(name), to[1]); pages[to[1]] == "" && pages[beside] != "" {
					to[1] = beside // such as the README of the same folder
				}
				follow(name, to[1], to[2])
			}
		}
	}
	assert.Greater(t, found, 15)
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

// The names that doc comments link to exist: [Name] in the package's own, [package.Name] in another of this repository.
func TestNamesInCommentsExist(t *testing.T) {
	t.Parallel()
	packages, public := map[string]bool{}, map[string]bool{}
	name := regexp.MustCompile(`^pkg (\w+), (?:const|var|func|type|method) (?:\(\*?(\w+)[^)]*\) )?(\w+)(?:\[[^\]]*\])?(?: (?:struct|interface), (\w+))?`)
	for line := range strings.Lines(readPage(t, "api/current.txt")) {
		if m := name.FindStringSubmatch(line); m != nil {
			packages[m[1]], public[m[1]+"."+strings.Trim(m[2]+"."+m[3]+"."+m[4], ".")] = true, true
		}
	}
	clause := regexp.MustCompile(`(?m)^package (\w+)`)
	linked, links := regexp.MustCompile(`\B\[\*?((?:[a-z]+\.)?[A-Z]\w*(?:\.[A-Z]\w*)?)\](?:\.([A-Z]\w*))?`), 0
	for file, text := range texts(t, ".go") {
		own := clause.FindStringSubmatch(text)[1]
		if !packages[own] || strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range linked.FindAllStringSubmatch(strings.Join(comment.FindAllString(text, -1), "\n"), -1) {
			to := strings.TrimSuffix(m[1]+"."+m[2], ".")
			of, _, ok := strings.Cut(to, ".")
			if !ok || strings.ToLower(of) != of {
				of, to = own, own+"."+to
			}
			if packages[of] && !strings.Contains(text, "// ["+m[1]+"]:") { // neither of the standard library nor the title of a link
				links++
				assert.True(t, public[to], "%s: there is no %s", file, to)
			}
		}
	}
	assert.Greater(t, links, 200)
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

// The program of the README builds in a module of its own, and prints what the README says.
func TestTheProgramOfTheReadme(t *testing.T) {
	t.Parallel()
	found := regexp.MustCompile("(?s)```go\n(package main\n.*?)```\n+```\n(.*?)```").FindStringSubmatch(readPage(t, "README.md"))
	require.NotNil(t, found, "a program, and then its output")

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
