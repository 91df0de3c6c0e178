package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
)

// The test binary is also a small curl, for machines without curl.
const role = "EMULATOR_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "curl" {
		os.Exit(curl(os.Args[1:]))
	}
	programtest.Main(m, "emulator", run)
}

// curl supports the flags in the lines that the emulator prints.
func curl(args []string) int {
	var user, method, body, address string
	header, show := http.Header{}, false
	for i := 0; i < len(args); i++ {
		value := func() string { i++; return args[i] }
		switch args[i] {
		case "-sS":
		case "-i":
			show = true
		case "-u":
			user = value()
		case "-X":
			method = value()
		case "-d":
			method, body = http.MethodPost, value()
		case "-H":
			name, content, _ := strings.Cut(value(), ": ")
			header.Set(name, content)
		default:
			address = args[i]
		}
	}
	r, err := http.NewRequestWithContext(context.Background(), method, address, strings.NewReader(body))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	r.Header = header
	if name, password, ok := strings.Cut(user, ":"); ok {
		r.SetBasicAuth(name, password)
	}
	resp, err := http.DefaultTransport.RoundTrip(r) // follows no redirect, as curl
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 7
	}
	defer func() { _ = resp.Body.Close() }()
	if show {
		fmt.Println(resp.Proto, resp.Status)
		_ = resp.Header.Write(os.Stdout)
		fmt.Println()
	}
	_, _ = io.Copy(os.Stdout, resp.Body)
	return 0
}

// emulator is an emulator that runs in the test.
type emulator struct {
	url     string
	lines   []string      // the curl lines that it printed
	exports []string      // its export lines
	log     *bytes.Buffer // complete after stop
	stop    func()        // ends it and waits
}

// start runs the emulator on a free port until the test ends.
func start(t *testing.T, args ...string) emulator {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	printed, stdout := io.Pipe()
	e, ended := emulator{log: new(bytes.Buffer)}, make(chan int, 1)
	go func() {
		err := run(ctx, append([]string{"-listen", "127.0.0.1:0"}, args...), program.Streams{Out: stdout, Err: e.log})
		code := program.Code("emulator", e.log, err)
		_ = stdout.Close()
		ended <- code
	}()
	lines := bufio.NewScanner(printed)
	for e.url == "" && lines.Scan() {
		switch tool, _, _ := strings.Cut(lines.Text(), " "); tool {
		case "curl":
			e.lines = append(e.lines, lines.Text())
		case "export":
			e.exports = append(e.exports, lines.Text())
		}
		_, rest, _ := strings.Cut(lines.Text(), "The fake service is at ") // its last line of greeting
		e.url, _, _ = strings.Cut(rest, ",")
	}
	require.NotEmpty(t, e.url, e.log)
	go func() { _, _ = io.Copy(io.Discard, printed) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		assert.Equal(t, program.Done, <-ended)
	})
	t.Cleanup(e.stop)
	return e
}

// shell runs a line as it was printed.
func shell(t *testing.T, env []string, line string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env = append(os.Environ(), env...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s", line, &problems)
	assert.Empty(t, problems.String(), line)
	return string(out)
}

const everythingElse = `{"dialect": {
	"tasks_prefix": "/operations", "starttimeparam": "startime", "EntryKey": "value", "session_reply": "cookie",
	"purge_reply": "303-location", "entries_reply": "empty"
}}`

// Every printed line works in a shell, also if names need quoting and the dialect differs.
func TestLines(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for _, tool := range []string{"curl", "stand-in"} {
		for name, args := range map[string][]string{
			"as it is":       nil,
			"different":      {"-customer", "O'Neil & sons", "-user", "bo b:it's:\"$HOME\"", "-config", write(t, everythingElse), "-events", "3"},
			"other sessions": {"-config", write(t, `{"dialect": {"SessionReply": "text", "PurgeReply": "303-body"}}`)},
		} {
			t.Run(tool+"/"+name, func(t *testing.T) {
				t.Parallel()
				var env []string
				if tool == "curl" {
					if _, err := exec.LookPath("curl"); err != nil {
						t.Skip("curl is not installed")
					}
				} else {
					bin := t.TempDir()
					require.NoError(t, os.Symlink(self, filepath.Join(bin, "curl")))
					env = []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), role + "=curl", "GORACE=atexit_sleep_ms=0"}
				}
				e := start(t, append([]string{"-purge-rate", "0"}, args...)...)
				sent := 0
				for _, line := range e.lines {
					out := shell(t, env, line)
					sent += strings.Count(line, "curl ")
					assert.NotContains(t, out, `"total_results":0`, line)
				}
				e.stop()

				log := e.log.String()
				statuses := regexp.MustCompile(` status=(\d+) user=(.*)`).FindAllStringSubmatch(log, -1)
				assert.Len(t, statuses, sent, "%s", log)
				for _, s := range statuses {
					assert.Contains(t, []string{"200", "201", "204", "303"}, s[1], "%s", log)
					assert.NotEqual(t, `""`, s[2], "%s", log)
				}
				for _, path := range []string{
					"/v1(/operations)?/tasks[ \"]", "/v1(/operations)?/tasks/", "/v1/stats/security/events/data", "/v1/stats/security/waf/topk/",
					"/v1/cache/purge", `/v1/transactions/\d+`, "/v1/sessions", `/v1/config/networklists[ "]`, `/v1/config/networklists/[^/]+/entries`,
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
}

func write(t *testing.T, text string) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "emulator.json")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// The export lines make the other programs work with the emulator. The file of -env is there while it runs.
func TestExports(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "emulator.env")
	e := start(t, "-customer", "O'Neil & sons", "-user", "bo b:it's:\"$HOME\"", "-env", file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode(), "it has a password")
	assert.Equal(t, string(text), strings.Join(e.exports, "\n")+"\n", "what is printed is what is in the file")

	set := shell(t, []string{"WEBDELIVERY_AUTH=session"}, `. "`+file+`"; env | grep ^WEBDELIVERY_ | sort`)
	assert.Equal(t, "WEBDELIVERY_AUTH=basic\nWEBDELIVERY_BASE_URL="+e.url+"\nWEBDELIVERY_CUSTOMER=O'Neil & sons\n"+
		"WEBDELIVERY_PASSWORD=it's:\"$HOME\"\nWEBDELIVERY_USERNAME=bo b\n", set)
	assert.Equal(t, set, shell(t, []string{"WEBDELIVERY_AUTH=session"}, `eval "$(cat "`+file+`")"; env | grep ^WEBDELIVERY_ | sort`))
	e.stop()
	assert.NoFileExists(t, file)

	require.NoError(t, os.WriteFile(file, []byte("of one that was killed"), 0o600))
	err = run(t.Context(), []string{"-listen", "192.0.2.1:1", "-env", file}, program.Streams{Out: io.Discard, Err: io.Discard})
	require.Error(t, err)
	assert.NoFileExists(t, file)
}
