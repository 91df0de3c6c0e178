package emulator

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
)

// emulator is one that runs in the test.
type emulator struct {
	lines   []string      // the curl lines that it printed
	exports string        // its export lines
	log     *bytes.Buffer // complete after stop
	stop    func()        // ends it and waits
}

// begin runs the emulator on a free port until the test ends. The text is that of --config.
func begin(t *testing.T, text string, args ...string) emulator {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	printed, stdout := io.Pipe()
	app, _, stderr := clitest.App(nil, text)
	app.Out = stdout
	e, ended := emulator{log: stderr}, make(chan int, 1)
	go func() {
		ended <- app.Run(ctx, append([]string{"emulator", "--listen", "127.0.0.1:0", "--config", "-"}, args...), Command)
		_ = stdout.Close()
	}()
	for lines := bufio.NewScanner(printed); lines.Scan() && !strings.HasPrefix(lines.Text(), "The fake service is at "); {
		switch word, _, _ := strings.Cut(lines.Text(), " "); word {
		case "curl":
			e.lines = append(e.lines, lines.Text())
		case "export":
			e.exports += lines.Text() + "\n"
		}
	}
	require.NotEmpty(t, e.exports, stderr)
	go func() { _, _ = io.Copy(io.Discard, printed) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		assert.Equal(t, cli.Done, <-ended)
	})
	t.Cleanup(e.stop)
	return e
}

// shell runs a line as it was printed.
func shell(t *testing.T, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), "WEBDELIVERY_AUTH=session", "WEBDELIVERY_PASSWORD_FILE=/of/another")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, out)
	return string(out)
}

const different = `{"dialect": {"tasks_prefix": "/operations", "starttimeparam": "startime", "EntryKey": "value",
	"session_reply": "cookie", "purge_reply": "303-location", "entries_reply": "empty"},
	"faults": [{"path": "/operations/tasks/task-2", "status": 503, "delay": "1ms", "count": 1}]}`

// Every printed line works in a shell, also if names need quoting and the dialect differs.
func TestLines(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil && os.Getenv("REQUIRE_CURL") == "" {
		t.Skip("curl is not installed")
	}
	for text, args := range map[string][]string{
		"{}":      nil,
		different: {"--customer", "O'Neil & sons", "--user", "bo b:it's:\"$HOME\"", "--events", "3"},
		`{"dialect": {"SessionReply": "text", "PurgeReply": "303-body"}}`: nil,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			e := begin(t, text, append([]string{"--purge-rate", "0"}, args...)...)
			sent := 0
			for _, line := range e.lines {
				assert.NotContains(t, shell(t, line), `"total_results":0`, line)
				sent += strings.Count(line, "curl ")
			}
			e.stop()
			log := e.log.String()
			assert.Equal(t, sent, strings.Count(log, "\n"), log)
			assert.Len(t, regexp.MustCompile(`(?m)^\S+ \S+ (200|201|204|303) user="[^"]`).FindAllString(log, -1), sent, log)
			for _, path := range []string{
				`/v1(/operations)?/tasks\?`, "/v1(/operations)?/tasks/", "/v1/stats/security/events/data", "/v1/stats/security/waf/topk/",
				"/v1/cache/purge", `/v1/transactions/\d+`, "/v1/sessions", `/v1/config/networklists\n`, `/v1/config/networklists/[^/]+/entries`,
			} {
				assert.Regexp(t, path, log)
			}
			for _, secret := range []string{"correct-horse", "it's", "Basic", "authtoken"} {
				assert.NotContains(t, log, secret)
			}
			assert.NotRegexp(t, `[A-Z2-7]{26}`, log, "the id of a session")
		})
	}
}

// The export lines make the other commands work with the emulator. The file of --env is there while it runs.
func TestExports(t *testing.T) { //nolint:paralleltest // it sets environment variables
	file := filepath.Join(t.TempDir(), "emulator.env")
	e := begin(t, different, "--customer", "O'Neil & sons", "--user", "bo b:it's:\"$HOME\"", "--env", file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode(), "it has a password")
	assert.Equal(t, string(text), e.exports, "what is printed is what is in the file")
	for line := range strings.Lines(shell(t, `. "`+file+`"; env | grep ^WEBDELIVERY_`)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		t.Setenv(name, value)
	}
	client, err := webdelivery.NewClientFromEnv()
	require.NoError(t, err)
	_, err = client.Tasks.Get(t.Context(), "task-2")
	require.NoError(t, err)
	e.stop()
	assert.Contains(t, e.log.String(), " 503 user=", "the fault of the file")
	assert.NoFileExists(t, file)
	require.NoError(t, os.WriteFile(file, []byte("of one that was killed"), 0o600))
	assert.Equal(t, cli.Failed, clitest.Run(t, nil, Command, "", "emulator", "--listen", "192.0.2.1:1", "--env", file).Code)
	assert.NoFileExists(t, file)
}

// What cannot be right is told with its place.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"/faults/0/x: unknown object member name; --help lists the members": {`{"faults": [{"x": 1}]}`},
		"/faults/0/count: a value of this type cannot be here":              {`{"faults": [{"count": "1"}]}`},
		"/faults/0/delay: want a duration such as":                          {`{"faults": [{"delay": 12}]}`},
		`/faults/0/cut: "x" is unknown; use before-read`:                    {`{"faults": [{"cut": "x"}]}`},
		"/faults/1: Probability is 3: use 0 to 1":                           {`{"faults": [{}, {"probability": 3}]}`},
		`webdelivery: unknown Dialect.Errors "x"`:                           {`{"dialect": {"errors": "x"}}`},
		`webdelivery: Users: user "bob" needs a name and a password`:        {"{}", "--user", "bob"},
		"webdelivery: Events: -1 events per second":                         {"{}", "--events=-1"},
		"webdelivery: --listen: address 8190: missing port":                 {"{}", "--listen", "8190"},
		"webdelivery: --env: /dev/null is not a regular file; name another": {"{}", "--env", "/dev/null"},
	} {
		line := append([]string{"emulator", "--listen", "127.0.0.1:0", "--config", "-"}, args[1:]...)
		got := clitest.Run(t, nil, Command, args[0], line...)
		assert.Equal(t, cli.Misuse, got.Code, want)
		assert.Contains(t, got.Stderr, want)
		assert.Empty(t, got.Stdout)
	}
}
