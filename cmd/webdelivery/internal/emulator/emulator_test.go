package emulator

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
)

// begin runs the emulator on a free port. The text is that of --config. It returns what was printed at the start; stop ends
// it, and returns its log.
func begin(t *testing.T, text string, args ...string) (printed string, stop func() string) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	app, _, log := clitest.App(nil, text)
	app.Out = in
	ended := make(chan int, 1)
	args = append([]string{"emulator", "--listen", "127.0.0.1:0", "--config", "-"}, args...)
	go func() {
		ended <- app.Run(ctx, args, Command)
		_ = in.Close()
	}()
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.HasPrefix(lines.Text(), "The fake service is at "); {
		printed += lines.Text() + "\n"
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return printed, func() string {
		cancel()
		assert.Equal(t, cli.Done, <-ended)
		return log.String()
	}
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

// Every printed line works in a shell, also if names need quoting and the dialect differs. They make the other commands
// work with the emulator, and are in the file of --env while it runs. The log has no credentials.
func TestLines(t *testing.T) { //nolint:paralleltest // it sets environment variables
	const different = `{"dialect": {"tasks_prefix": "/operations", "starttimeparam": "startime", "EntryKey": "value",
		"session_reply": "cookie", "purge_reply": "303-location", "entries_reply": "empty"},
		"faults": [{"path": "/operations/tasks/task-2", "status": 503, "delay": "1ms", "count": 1}]}`
	for text, args := range map[string][]string{
		"{}":      {"--listen", "0.0.0.0:0"},
		different: {"--customer", "O'Neil & sons", "--user", "bo b:it's:\"$HOME\"", "--events", "3"},
	} {
		file := filepath.Join(t.TempDir(), "emulator.env")
		printed, stop := begin(t, text, append([]string{"--purge-rate", "0", "--env", file}, args...)...)
		for line := range strings.Lines(shell(t, `. "`+file+`"; env | grep ^WEBDELIVERY_`)) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			assert.Contains(t, printed, "\nexport "+name+"=")
			t.Setenv(name, value)
		}
		client, err := webdelivery.NewClientFromEnv()
		require.NoError(t, err)
		_, err = client.Tasks.Get(t.Context(), "task-2")
		require.NoError(t, err)
		_, err = http.Get(os.Getenv("WEBDELIVERY_BASE_URL") + "/?\u202e")
		require.NoError(t, err)
		dialect := "export WEBDELIVERY_DIALECT='TasksPrefix=/operations,StartTimeParam=startime,EntryKey=value'\n"
		assert.Equal(t, text == different, strings.Contains(printed, dialect))
		log := stop()
		assert.NoFileExists(t, file)
		good := regexp.MustCompile(`(?m)^\S+ \S+ (200|201|204|303) user="[^"]`).FindAllString(log, -1)
		assert.Len(t, good, 1, log)
		assert.Equal(t, text == different, strings.Contains(log, " 503 user="), "the fault of the file")
		assert.Equal(t, text == "{}", strings.Contains(log, "warning: other machines can reach 0.0.0.0:0, and passwords"), log)
		assert.NotRegexp(t, `correct-horse|it's|Basic|authtoken|[A-Z2-7]{26}|\x{202e}`, log)
	}
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
		"webdelivery: --listen: address 8190: missing port":                 {"{}", "--listen", "8190"},
	} {
		line := append([]string{"emulator", "--listen", "127.0.0.1:0", "--config", "-"}, args[1:]...)
		got := clitest.Run(t, nil, Command, args[0], line...)
		assert.Equal(t, cli.Misuse, got.Code, want)
		assert.Contains(t, got.Stderr, want)
		assert.Empty(t, got.Stdout)
	}
}
