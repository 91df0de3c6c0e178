package webdelivery_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mayKnow lists the packages of this module that each of its packages may import, except in tests. A package that is
// not here may import none. So each new import is a decision, and no package that the SDK imports can import the SDK.
var mayKnow = map[string][]string{
	".": {
		"internal/address", "internal/batch", "internal/lists", "internal/pace", "internal/paging", "internal/redact",
		"internal/resume", "internal/rowjson", "internal/transport", "internal/waiting", "internal/wire", "filters",
	},
	"internal/batch":       {"internal/transport"},
	"internal/lists":       {"internal/redact"},
	"internal/paging":      {"internal/wire"},
	"internal/rowjson":     {"internal/wire"},
	"internal/transport":   {"internal/address", "internal/pace", "internal/redact", "internal/wire"},
	"internal/waiting":     {"internal/pace"},
	"internal/conformance": {}, // plain net/http, so that it can test the fake
	"internal/testserver":  {}, // written from the service document alone
	"internal/hostile":     {},
	"filters":              {},
	"internal/operations":  {".", "internal/testserver"}, // for tests only
	"webdeliverytest":      {".", "internal/testserver"},
}

// Imports go one way (docs/architecture.md). Between packages the compiler forbids cycles; this test keeps the
// direction.
func TestKnowledgeGoesOneWay(t *testing.T) {
	t.Parallel()
	const module = "github.com/webdelivery/webdelivery-go"
	for folder, imports := range importsOfPackages(t) {
		for _, imported := range imports {
			inside, found := strings.CutPrefix(imported, module)
			if !found {
				continue
			}
			inside = strings.TrimPrefix(inside, "/")
			if inside == "" {
				inside = "."
			}
			assert.Contains(t, mayKnow[folder], inside, "%s imports %s: it must not, or mayKnow should say that it may", folder, imported)
		}
	}
}

// CONTRIBUTING.md names every package of the module.
func TestEveryRoomIsInTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("CONTRIBUTING.md")
	require.NoError(t, err)
	for folder := range importsOfPackages(t) {
		assert.True(t, folder == "." || strings.Contains(string(page), "`"+folder+"/`"), "CONTRIBUTING.md has no line for %s", folder)
	}
}

// importsOfPackages returns the imports of this module's packages, except those of tests and programs.
func importsOfPackages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".":
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || d.Name() == "testdata" || d.Name() == "examples" || strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		if found[folder] == nil {
			found[folder] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			found[folder][name] = true
		}
		return nil
	})
	require.NoError(t, err)
	require.Contains(t, found, "internal/transport", "the walk does not find the packages")
	imports := map[string][]string{}
	for folder, names := range found {
		imports[folder] = slices.Sorted(maps.Keys(names))
	}
	return imports
}
