package suite_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What judges the SDK does not know it: the fake and the conformance suite are written from the service document alone.
// That nothing below the root imports it, the compiler knows.
func TestTheFakeDoesNotKnowTheSDK(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./internal/testserver", "./internal/conformance", "./internal/hostile")
	list.Dir = root
	deps, err := list.Output()
	require.NoError(t, err)
	assert.NotContains(t, strings.Fields(string(deps)), "github.com/webdelivery/webdelivery-go")
}
