package suite_test

import (
	"maps"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What judges the SDK does not know it: the fake and the conformance suite are written from the service document alone.
func TestTheFakeDoesNotKnowTheSDK(t *testing.T) {
	t.Parallel()
	deps := goList(t, "-deps", "./internal/testserver", "./internal/conformance", "./internal/hostile")
	assert.NotContains(t, deps, "github.com/webdelivery/webdelivery-go")
}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	return strings.Fields(string(out))
}

// mayImport has the internal packages of the product, and which others each may import.
var mayImport = map[string][]string{
	"address": nil, "batch": {"outcomes"}, "filelock": nil, "lists": {"redact"}, "outcomes": nil, "pace": nil, "paging": nil,
	"redact": nil, "resume": nil, "rowjson": {"wire"}, "transport": {"address", "outcomes", "pace", "redact", "wire"}, "wire": nil,
}

// Each internal package of the product imports only these others, and only transport imports net/http. The compiler sees
// no wrong import as long as there is no circle. Nothing of them is in the public surface.
func TestImports(t *testing.T) {
	t.Parallel()
	const prefix = "github.com/webdelivery/webdelivery-go/internal/"
	imports := func(of string) []string { return goList(t, "-f", `{{join .Imports "\n"}}`, of) }
	for name, allowed := range mayImport {
		for _, of := range imports("./internal/" + name) {
			if inner, own := strings.CutPrefix(of, prefix); own {
				assert.Contains(t, allowed, inner, name)
			}
			assert.True(t, name == "transport" || of != "net/http", "%s imports %s", name, of)
			assert.NotEqual(t, path.Dir(path.Clean(prefix)), of, "%s imports the root", name)
		}
	}
	inside := slices.Sorted(maps.Keys(mayImport))
	for _, of := range imports(".") {
		if inner, own := strings.CutPrefix(of, prefix); own {
			assert.Contains(t, inside, inner, "add it here, and to docs/internals/architecture.md")
		}
	}
	shown := regexp.MustCompile(`\b(` + strings.Join(inside, "|") + `)\.[A-Z]`)
	assert.Empty(t, shown.FindAllString(readPage(t, "api/current.txt"), -1))
}
