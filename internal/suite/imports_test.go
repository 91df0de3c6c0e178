package suite_test

import (
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What judges the SDK does not know it: the fake and the conformance suite are written from the service document alone.
func TestTheFakeDoesNotKnowTheSDK(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./internal/testserver", "./internal/conformance", "./internal/hostile")
	list.Dir = root
	deps, err := list.Output()
	require.NoError(t, err)
	assert.NotContains(t, strings.Fields(string(deps)), "github.com/webdelivery/webdelivery-go")
}

// Each internal package of the product imports only these others, and only transport imports net/http. The compiler sees
// no wrong import as long as there is no circle.
func TestImports(t *testing.T) {
	t.Parallel()
	const prefix = "github.com/webdelivery/webdelivery-go/internal/"
	may := map[string][]string{
		"address": nil, "batch": {"outcomes"}, "filelock": nil, "lists": {"redact"}, "outcomes": nil, "pace": nil, "paging": nil,
		"redact": nil, "resume": nil, "rowjson": {"wire"}, "transport": {"address", "outcomes", "pace", "redact", "wire"}, "wire": nil,
	}
	imports := func(args ...string) []string {
		list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-f", `{{join .Imports "\n"}}`}, args...)...)
		list.Dir = root
		out, err := list.Output()
		require.NoError(t, err)
		return strings.Fields(string(out))
	}
	for name, allowed := range may {
		for _, of := range imports("./internal/" + name) {
			if inner, own := strings.CutPrefix(of, prefix); own {
				assert.Contains(t, allowed, inner, name)
			}
			assert.True(t, name == "transport" || path.Dir(of) != "net" || path.Base(of) != "http", "%s imports %s", name, of)
			assert.NotEqual(t, path.Dir(path.Clean(prefix)), of, "%s imports the root", name)
		}
	}
	for _, of := range imports(".") {
		if inner, own := strings.CutPrefix(of, prefix); own {
			assert.Contains(t, slices.Collect(maps.Keys(may)), inner, "add it here, and to docs/internals/architecture.md")
		}
	}
}
