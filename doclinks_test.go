package webdelivery_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serviceDocument is the address of the service document, as the links in doc comments have it.
const serviceDocument = "https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#"

var (
	documentHeading = regexp.MustCompile(`(?m)^#+ ((\d+(?:\.\d+)?)\.? .*)$`)
	sectionLink     = regexp.MustCompile(`(?m)^\[section ([\d.]+)\]: (\S+)$`)
	sectionCited    = regexp.MustCompile(`\[section\s+(\d+(?:\.\d+)?)\]`)
	sectionPlain    = regexp.MustCompile(`(?i)\bsections?\s+\d`)
	rfcSection      = regexp.MustCompile(`RFC \d+,\s+section\s+\d`)
	notInAnchors    = regexp.MustCompile(`[^\w\- ]`)
)

// GitHub makes the anchor of a heading from its text in lower case. It drops punctuation, and each blank becomes a hyphen.
func anchorsOfServiceDocument(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("docs/service-interface.md")
	require.NoError(t, err)
	anchors := map[string]string{}
	for _, heading := range documentHeading.FindAllStringSubmatch(string(page), -1) {
		text := notInAnchors.ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors[heading[2]] = strings.ReplaceAll(text, " ", "-")
	}
	// Worked out by hand.
	assert.Equal(t, "22-purge-request-request-body", anchors["2.2"])
	assert.Equal(t, "44-cache-purge-and-transactions", anchors["4.4"])
	assert.Equal(t, "8-limits", anchors["8"])
	return anchors
}

// A doc comment of an exported name links each section that it cites to the heading of that section. It cites none without
// a link.
func TestDocCommentsLinkToTheServiceDocument(t *testing.T) {
	t.Parallel()
	anchors := anchorsOfServiceDocument(t)
	links := 0
	for place, text := range exportedComments(t) {
		defined := map[string]bool{}
		for _, link := range sectionLink.FindAllStringSubmatch(text, -1) {
			links++
			defined[link[1]] = true
			require.Contains(t, anchors, link[1], "%s: the service document has no such section", place)
			assert.Equal(t, serviceDocument+anchors[link[1]], link[2], "%s: section %s", place, link[1])
		}
		text = sectionLink.ReplaceAllString(text, "")
		cited := map[string]bool{}
		for _, cite := range sectionCited.FindAllStringSubmatch(text, -1) {
			cited[cite[1]] = true
		}
		assert.Equal(t, defined, cited, "%s: sections that are linked, and sections that are cited", place)
		text = rfcSection.ReplaceAllString(sectionCited.ReplaceAllString(text, ""), "")
		assert.NotRegexp(t, sectionPlain, text, "%s cites a section without a link", place)
	}
	assert.Greater(t, links, 25, "the walk has lost its way")
}

// exportedComments returns the doc comments of the package and of its exported names, by their place.
func exportedComments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	comments := map[string]string{}
	set := token.NewFileSet()
	add := func(doc *ast.CommentGroup) {
		if doc != nil {
			comments[set.Position(doc.Pos()).String()] = doc.Text()
		}
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		add(file.Doc)
		ast.FileExports(file) // removes what is not exported
		for _, declared := range file.Decls {
			switch d := declared.(type) {
			case *ast.FuncDecl:
				add(d.Doc)
			case *ast.GenDecl:
				add(d.Doc)
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add(s.Doc)
					case *ast.ValueSpec:
						add(s.Doc)
					}
				}
			}
		}
	}
	return comments
}
