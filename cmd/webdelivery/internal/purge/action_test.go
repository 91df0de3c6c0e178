//go:build unix

package purge_test

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const action = "../../../../actions/purge/"

// step runs the step of actions/purge in a folder, as a runner of GitHub does, with more variables. It returns the exit
// code, the log, the outputs and what the step called. This test is the program of the release that gh downloads.
func step(t *testing.T, srv *webdeliverytest.Server, dir string, env []string, meanwhile ...func(*os.Process)) (code int, log, outputs, called string) {
	t.Helper()
	if _, err := exec.LookPath("jq"); err != nil && os.Getenv("REQUIRE_JQ") == "" {
		t.Skip(err)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	script, err := filepath.Abs(action + "purge.sh")
	require.NoError(t, err)
	bin, temporary := t.TempDir(), t.TempDir()
	for name, body := range map[string]string{
		"webdelivery": `echo "token <$GH_TOKEN>" >>"$CALLED"; PURGE_TEST=program exec '` + self + `' "$@"`,
		"uname":       `test "$1" = -m && echo x86_64 || echo Linux`,
		"gh":          `test "$2" = verify && exit "$PROVENANCE"; tar -czf "$9/$7" -C ` + bin + ` webdelivery`,
	} {
		text := "#!/bin/sh\necho " + name + ` "$@" >>"$CALLED"` + "\n" + body + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700))
	}
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", `exec "`+script+`"`)
	var text bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &text, &text
	cmd.Env = append([]string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "TMPDIR=" + temporary, "CALLED=" + bin + "/called", "PROVENANCE=0", "URIS=", "FILE=",
		"SINCE=", "DIRECTORY=.", "BASE_URL=", "FLAGS=--wait", "VERSION=1.2.3", "PROGRAM=", "GITHUB_OUTPUT=" + bin + "/output",
		"GH_TOKEN=token of the job", "WEBDELIVERY_BASE_URL=" + srv.URL, "WEBDELIVERY_CUSTOMER=" + srv.Customer,
		"WEBDELIVERY_USERNAME=" + srv.Username, "WEBDELIVERY_PASSWORD=" + srv.Password,
	}, env...)
	require.NoError(t, cmd.Start())
	for _, do := range meanwhile {
		do(cmd.Process)
	}
	_ = cmd.Wait() // the error is the exit code
	left, _ := filepath.Glob(temporary + "/*")
	assert.Empty(t, left)
	written, _ := os.ReadFile(bin + "/output") // missing if the step wrote none
	calls, _ := os.ReadFile(bin + "/called")
	return cmd.ProcessState.ExitCode(), text.String(), string(written), string(calls)
}

// The program of the release runs if the release workflow of this project has built it. A list of URIs is purged. What is
// refused is an output with its cause, and the step ends as the program does. No id is rounded, no argument is a
// secret, and no line of the program is a command to the runner.
func TestActionPurgesAList(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
	env := []string{"URIS=" + page + "a\nhttps://www.example.org/b\n", "FLAGS=--wait\n--timeout 1m\n"}
	code, log, outputs, called := step(t, srv, t.TempDir(), env)
	patterns, ids := sent(srv)
	assert.Equal(t, cli.Partly, code, log)
	assert.Equal(t, []string{page + "a"}, patterns)
	assert.Regexp(t, `^transactions=\["`+ids[0]+`"\]\nfailed=\[\{"uri":"https://www.example.org/b","outcome":"not applied","error":".* no configuration .*"\}\]\n$`, outputs)
	assert.Regexp(t, `(?s)\n::stop-commands::[0-9a-f]{32}\n.*"https://www\.example\.org/b": not applied: .*\n::[0-9a-f]{32}::\n$`, "\n"+log)
	const verified = `^uname -m\nuname -s\ngh release download v1.2.3 --repo webdelivery/webdelivery-go --pattern webdelivery_1.2.3_linux_amd64.tar.gz .*\n` +
		`gh attestation verify \S+/webdelivery_1.2.3_linux_amd64.tar.gz --repo webdelivery/webdelivery-go --source-ref refs/tags/v1.2.3 ` +
		`--signer-workflow webdelivery/webdelivery-go/.github/workflows/release.yml\n`
	assert.Regexp(t, verified+"webdelivery purge --wait --timeout 1m -o json -f .*\ntoken <>\n$", called)
	assert.NotContains(t, called+log, srv.Password)

	code, _, _, called = step(t, srv, t.TempDir(), append(env, "PROVENANCE=1"))
	assert.Equal(t, cli.Failed, code)
	assert.Regexp(t, verified+"$", called)
	text, err := os.ReadFile(action + "action.yml")
	require.NoError(t, err)
	assert.Contains(t, string(text), "default: "+webdelivery.Version+"\n", "the program is that of the action's own release")
}

// With since, what has changed below the directory is purged: new, changed, renamed and deleted files, whatever their
// names are. If nothing has changed, nothing is sent.
func TestActionPurgesWhatADeployChanged(t *testing.T) {
	t.Parallel()
	deploys := exec.Command("sh", "-ec", `
		export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
		git init -q; mkdir -p public/docs; cd public
		for name in same.css app.css old.js gone.png ../main.go; do echo "$name" >"$name"; done
		git add -A ..; git commit -qm first
		git mv old.js new.js; git rm -q gone.png
		for name in app.css docs/index.html 'a "ü" (1).html' '# b ' HEAD ../main.go; do echo new >>"$name"; done
		git add -A ..; git commit -qm second`)
	deploys.Dir = t.TempDir()
	out, err := deploys.CombinedOutput()
	require.NoError(t, err, "%s", out)
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
	for since, want := range map[string]string{
		"HEAD":   "",
		"HEAD~1": "app.css old.js new.js gone.png a%20%22%C3%BC%22%20(1).html docs/index.html docs/ %23%20b%20 HEAD",
	} {
		code, log, outputs, _ := step(t, srv, deploys.Dir, []string{"SINCE=" + since, "DIRECTORY=public", "BASE_URL=" + page})
		assert.Equal(t, cli.Done, code, log)
		assert.Regexp(t, `^transactions=\[.*\]\nfailed=\[\]\n$`, outputs)
		assert.Equal(t, want == "", strings.Contains(outputs, "transactions=[]"))
		if patterns, _ := sent(srv); want != "" {
			assert.ElementsMatch(t, strings.Fields(want), strings.Fields(strings.ReplaceAll(strings.Join(patterns, " "), page, "")))
		}
	}
}

// A canceled job ends the wait. The log says how to wait again.
func TestActionIsCanceled(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(time.Hour))
	polled := make(chan struct{})
	srv.Fail(webdeliverytest.FaultRule{Path: "/transactions/*", Count: 1, Handler: func(http.ResponseWriter, *http.Request) { close(polled) }})
	self, err := os.Executable()
	require.NoError(t, err)
	env := []string{"URIS=" + page, "PROGRAM=" + self, "PURGE_TEST=program"}
	code, log, outputs, _ := step(t, srv, t.TempDir(), env, func(step *os.Process) {
		<-polled
		require.NoError(t, step.Signal(os.Interrupt))
	})
	_, ids := sent(srv)
	assert.Equal(t, cli.Failed, code, log)
	assert.Contains(t, log, "to wait again: webdelivery purge status "+ids[0]+" --wait")
	assert.Equal(t, `transactions=["`+ids[0]+"\"]\nfailed=[]\n", outputs)
}

// What is missing or wrong fails the job, and nothing is sent.
func TestActionRefusesWrongUse(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t)
	for want, env := range map[string][]string{
		"WEBDELIVERY_BASE_URL: is not set":  {"URIS=" + page, "WEBDELIVERY_BASE_URL="},
		"nothing to purge: set uris":        {"BASE_URL=" + page},
		"nothing to purge; put one URI":     {"FILE=/dev/null"},
		"set one of uris, file and since":   {"URIS=" + page, "SINCE=main"},
		"there is no folder public":         {"SINCE=main", "BASE_URL=" + page, "DIRECTORY=public"},
		"since needs base-url":              {"SINCE=main"},
		"the commit --output=x is not here": {"SINCE=--output=x", "BASE_URL=" + page},
		"the URL of Redis cannot be used":   {"URIS=" + page, "REDIS_URL=http://:hidden@redis.example.com"},
	} {
		code, log, _, _ := step(t, srv, t.TempDir(), env)
		assert.Equal(t, cli.Misuse, code)
		assert.Contains(t, log, want)
		assert.NotContains(t, log, "hidden")
	}
	assert.Empty(t, srv.Requests())
}
