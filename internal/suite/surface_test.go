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

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

func sources(t *testing.T) map[string]string {
	t.Helper()
	all := texts(t, ".go")
	maps.DeleteFunc(all, func(name, _ string) bool { return strings.Contains(name, "/") || strings.HasSuffix(name, "_test.go") })
	return all
}

// Types and constants show nothing of the internal packages in go doc.
func TestNoDeclarationShowsAnInternalPackage(t *testing.T) {
	t.Parallel()
	inner := `.*\b(` + strings.Join(slices.Sorted(maps.Keys(mayImport)), "|") + `)\.[A-Z]`
	assert.Empty(t, regexp.MustCompile(inner).FindAllString(readPage(t, "api/current.txt"), -1))
	block, exported := regexp.MustCompile(`(?ms)^const (?:\(.*?^\)|.*?$)`), regexp.MustCompile(`(?m)^(?:const |\t)[A-Z]`+inner)
	for name, text := range sources(t) {
		for _, constants := range block.FindAllString(text, -1) {
			assert.Empty(t, exported.FindString(constants), name)
		}
	}
}

// Constants have the values of the internal packages that read them.
func TestConstantsAgree(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []int{int(outcomes.Unknown), int(outcomes.NotApplied), int(outcomes.Applied)},
		[]int{int(webdelivery.OutcomeUnknown), int(webdelivery.OutcomeNotApplied), int(webdelivery.OutcomeApplied)})
}

// The comment of a symbol has at most 15 lines. What is longer is a section of a page.
func TestCommentsAreShort(t *testing.T) {
	t.Parallel()
	symbol, line := regexp.MustCompile(`(?m)((?:^//.*\n)+)^((?:func|type) (?:\([^)]*\) )?[A-Z]\w*)`), regexp.MustCompile(`(?m)^// [^\[]`)
	for _, text := range sources(t) {
		for _, m := range symbol.FindAllStringSubmatch(text, -1) {
			assert.LessOrEqual(t, len(line.FindAllString(m[1], -1)), 15, m[2])
		}
	}
}

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
// no wrong import as long as there is no circle.
func TestImports(t *testing.T) {
	t.Parallel()
	const prefix = "github.com/webdelivery/webdelivery-go/internal/"
	imports := func(of string) []string { return goList(t, "-f", `{{join .Imports "\n"}}`, of) }
	for name, allowed := range mayImport {
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
			assert.Contains(t, slices.Collect(maps.Keys(mayImport)), inner, "add it here, and to docs/internals/architecture.md")
		}
	}
}
