//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func TestMain(m *testing.M) { programtest.Main(m, "purge", run) }

const action = "../../actions/purge/"

// runner is a runner of GitHub: what it gives a step of actions/purge, and what the step left.
type runner struct {
	env    map[string]string
	dir    string // the checkout
	bin    string // comes first in PATH
	called string // has a line for each program that the step called: its name and arguments
}

// newRunner returns a runner with an empty checkout. The test is the program, behind a script that notes its arguments.
func newRunner(t *testing.T, srv *webdeliverytest.Server) *runner {
	t.Helper()
	for _, tool := range []string{"bash", "git", "jq"} {
		if _, err := exec.LookPath(tool); err != nil && os.Getenv("REQUIRE_JQ") == "" {
			t.Skip(err)
		}
	}
	self, err := os.Executable()
	require.NoError(t, err)
	r := &runner{dir: t.TempDir(), bin: t.TempDir()}
	r.called = filepath.Join(r.bin, "called")
	r.script(t, "webdelivery-purge", `echo "token <$GH_TOKEN>" >>`+r.called+"\nPROGRAMTEST_ROLE=purge exec '"+self+`' "$@"`)
	r.env = map[string]string{
		"PATH": r.bin + ":" + os.Getenv("PATH"), "HOME": r.dir, "TMPDIR": r.bin, "GITHUB_OUTPUT": filepath.Join(r.bin, "output"),
		"URIS": "", "FILE": "", "SINCE": "", "DIRECTORY": ".", "BASE_URL": "", "FLAGS": "-wait", "VERSION": webdelivery.Version,
		"PROGRAM": filepath.Join(r.bin, "webdelivery-purge"), "GH_TOKEN": "token of the job",
		"WEBDELIVERY_BASE_URL": srv.URL, "WEBDELIVERY_CUSTOMER": srv.Customer,
		"WEBDELIVERY_USERNAME": srv.Username, "WEBDELIVERY_PASSWORD": srv.Password,
	}
	return r
}

// script writes a program that notes that it was called.
func (r *runner) script(t *testing.T, name, body string) {
	t.Helper()
	text := "#!/bin/sh\necho " + name + ` "$@" >>` + r.called + "\n" + body + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(r.bin, name), []byte(text), 0o700))
}

// git runs git in the checkout.
func (r *runner) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// command returns the step with more variables.
func (r *runner) command(t *testing.T, env map[string]string) *exec.Cmd {
	t.Helper()
	script, err := filepath.Abs(action + "purge.sh")
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(stop)
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", `exec "`+script+`"`)
	cmd.Dir = r.dir
	all := maps.Clone(r.env)
	maps.Copy(all, env)
	for name, value := range all {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// step runs the step with more variables, and returns its exit code, its log and its outputs.
func (r *runner) step(t *testing.T, env map[string]string) (code int, log string, outputs map[string]string) {
	t.Helper()
	cmd := r.command(t, env)
	text, _ := cmd.CombinedOutput() // the error is the exit code
	return cmd.ProcessState.ExitCode(), string(text), r.outputs()
}

func (r *runner) outputs() map[string]string {
	outputs := map[string]string{}
	written, _ := os.ReadFile(r.env["GITHUB_OUTPUT"]) // missing if the step wrote none
	for lines := bufio.NewScanner(bytes.NewReader(written)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		outputs[name] = value
	}
	return outputs
}

// calls returns what the step called.
func (r *runner) calls() string {
	text, _ := os.ReadFile(r.called) // missing if it called nothing
	return string(text)
}

func newService(t *testing.T) *webdeliverytest.Server {
	t.Helper()
	return webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0), webdeliverytest.WithHostPatterns("*.example.com"))
}

// A list of URIs is purged. An id above 2^53 is not rounded. What is refused is an output with its cause, and the step ends as the program does. The log
// has no command of the runner in between, and no argument is a secret.
func TestActionPurgesAList(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	r := newRunner(t, srv)
	code, log, outputs := r.step(t, map[string]string{
		"URIS": "https://www.example.com/a\nhttps://www.example.org/b\n", "FLAGS": "-wait\n-timeout 1m\n",
	})
	assert.Equal(t, program.Partly, code, log)
	assert.Equal(t, [][]string{{"https://www.example.com/a"}}, sent(srv))
	assert.Equal(t, `["9007199254740993"]`, outputs["transactions"])
	assert.Regexp(t, `^\[\{"uri":"https://www.example.org/b","outcome":"not applied","error":".* no configuration for a specified path: .*"\}\]$`, outputs["failed"])
	assert.Regexp(t, `(?s)^::stop-commands::([0-9a-f]{32})\n.*"https://www\.example\.org/b": not applied: .*\n::([0-9a-f]{32})::\n$`, log)
	for _, text := range []string{r.calls(), log} {
		assert.NotContains(t, text, srv.Password)
	}
	assert.Contains(t, r.calls(), "webdelivery-purge -json -wait -timeout 1m -base  -file ")
	assert.Contains(t, r.calls(), "token <>\n")
}

// With since, what has changed below the directory is purged: new, changed, renamed and deleted files, whatever their
// names are. If nothing has changed, nothing is sent.
func TestActionPurgesWhatADeployChanged(t *testing.T) {
	t.Parallel()
	srv := newService(t)
	r := newRunner(t, srv)
	commit := func(remove []string, write ...string) (id string) {
		for _, name := range remove {
			require.NoError(t, os.Remove(filepath.Join(r.dir, name)))
		}
		for _, name := range write {
			file := filepath.Join(r.dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
			old, _ := os.ReadFile(file)
			require.NoError(t, os.WriteFile(file, append(old, name...), 0o600))
		}
		r.git(t, "add", "--all", ".")
		r.git(t, "commit", "-qm", "a commit")
		return r.git(t, "rev-parse", "HEAD")
	}
	r.git(t, "init", "-q")
	before := commit(nil, "public/same.css", "public/app.css", "public/old.js", "public/gone.png", "main.go")
	require.NoError(t, os.Rename(filepath.Join(r.dir, "public/old.js"), filepath.Join(r.dir, "public/new.js")))
	last := commit([]string{"public/gone.png"}, "public/app.css", "public/docs/index.html", `public/a "ü" (1).html`, "main.go",
		"public/# b ", "public/HEAD")

	site := map[string]string{"SINCE": before, "DIRECTORY": "public", "BASE_URL": "https://www.example.com/site/"}
	code, log, outputs := r.step(t, site)
	assert.Equal(t, program.Done, code, log)
	assert.Equal(t, map[string]string{"transactions": `["9007199254740993"]`, "failed": "[]"}, outputs)
	assert.ElementsMatch(t, []string{
		"https://www.example.com/site/app.css", "https://www.example.com/site/old.js", "https://www.example.com/site/new.js",
		"https://www.example.com/site/gone.png", "https://www.example.com/site/a%20%22%C3%BC%22%20(1).html",
		"https://www.example.com/site/docs/index.html", "https://www.example.com/site/docs/",
		"https://www.example.com/site/%23%20b%20", "https://www.example.com/site/HEAD",
	}, slices.Concat(sent(srv)...))

	site["SINCE"] = last
	code, log, outputs = r.step(t, site)
	assert.Equal(t, program.Done, code, log)
	assert.Equal(t, map[string]string{"transactions": "[]", "failed": "[]"}, outputs)
	assert.Len(t, srv.Purged(), 1)
}

// A canceled job ends the wait. The log says how to wait again, and nothing is left in the temporary folder.
func TestActionIsCanceled(t *testing.T) {
	t.Parallel()
	polled := make(chan struct{}, 100)
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(time.Hour), webdeliverytest.WithRequestLog(func(r webdeliverytest.Request) {
		if r.Method == http.MethodGet {
			polled <- struct{}{}
		}
	}))
	r := newRunner(t, srv)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "list"), []byte("https://www.example.com/a\n"), 0o600))
	temporary := t.TempDir()
	cmd := r.command(t, map[string]string{"FILE": "list", "TMPDIR": temporary})
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	<-polled
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Error(t, cmd.Wait())
	assert.Equal(t, program.Failed, cmd.ProcessState.ExitCode(), &log)
	assert.Contains(t, log.String(), "to wait again: purge -resume 9007199254740993")
	assert.Equal(t, map[string]string{"transactions": `["9007199254740993"]`, "failed": "[]"}, r.outputs())
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// What is missing or wrong fails the job, and nothing is sent; above all without settings, where the program would use a
// fake service.
func TestActionRefusesWrongUse(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]map[string]string{
		"set WEBDELIVERY_BASE_URL":                {"URIS": "https://www.example.com/", "WEBDELIVERY_BASE_URL": ""},
		"nothing to purge: set uris":              {"BASE_URL": "https://www.example.com/"},
		"set one of uris, file and since":         {"URIS": "https://www.example.com/", "SINCE": "main"},
		"there is no folder public":               {"SINCE": "main", "BASE_URL": "https://www.example.com/", "DIRECTORY": "public"},
		"since needs base-url":                    {"SINCE": "main"},
		"the commit 0000000 is not here":          {"SINCE": "0000000", "BASE_URL": "https://www.example.com/"},
		"the commit --output=x is not here":       {"SINCE": "--output=x", "BASE_URL": "https://www.example.com/"},
		"flag provided but not defined: -no-such": {"URIS": "https://www.example.com/", "FLAGS": "-wait -no-such"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			r := newRunner(t, srv)
			r.git(t, "init", "-q")
			code, log, _ := r.step(t, env)
			assert.Equal(t, program.Misuse, code)
			assert.Contains(t, log, want)
			assert.Zero(t, srv.Count("", ""))
		})
	}
}

// Without a program, that of the release runs, if the release workflow of this project has built it.
func TestActionVerifiesTheProgram(t *testing.T) {
	t.Parallel()
	for name, provenance := range map[string]int{"of the release workflow": 0, "of somebody else": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newService(t)
			r := newRunner(t, srv)
			r.script(t, "uname", `test "$1" = -m && echo x86_64 || echo Linux`)
			r.script(t, "gh", `test "$2" = verify && exit `+string(rune('0'+provenance))+`
				cd "${9}" && tar -czf "${7}" -C '`+r.bin+`' webdelivery-purge`)
			code, log, _ := r.step(t, map[string]string{"URIS": "https://www.example.com/a", "VERSION": "1.2.3", "PROGRAM": ""})
			assert.Equal(t, provenance, code, log)
			assert.Len(t, srv.Purged(), 1-provenance)
			assert.Contains(t, r.calls(), "gh release download v1.2.3 --repo webdelivery/webdelivery-go --pattern webdelivery_1.2.3_linux_amd64.tar.gz ")
			assert.Regexp(t, `gh attestation verify \S+/webdelivery_1.2.3_linux_amd64.tar.gz --repo webdelivery/webdelivery-go`+
				` --source-ref refs/tags/v1.2.3 --signer-workflow webdelivery/webdelivery-go/.github/workflows/release.yml\n`, r.calls())
		})
	}
}

// The action of a release runs the program of that release.
func TestActionKnowsTheVersion(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(action + "action.yml")
	require.NoError(t, err)
	assert.Contains(t, string(text), "default: "+webdelivery.Version+"\n")
}
