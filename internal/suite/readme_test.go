package suite_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// root is the folder of the repository.
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
