// Package examples_test runs each program as its reader would.
package examples_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

var folder string // of the programs

func TestMain(m *testing.M) {
	folder, _ = os.MkdirTemp("", "examples")
	code := 1
	if out, err := exec.Command("go", "build", "-ldflags=-w", "-o", folder+"/", "./...").CombinedOutput(); err != nil {
		fmt.Printf("go build: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	os.RemoveAll(folder)
	os.Exit(code)
}

// program returns a command in a folder of its own, with the settings for a service or without any.
func program(t *testing.T, srv *webdeliverytest.Server, line string) (command *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	words := strings.Fields(line)
	command = exec.CommandContext(t.Context(), filepath.Join(folder, words[0]), words[1:]...)
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	command.Dir, command.Stdout, command.Stderr = t.TempDir(), stdout, stderr
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "WEBDELIVERY_") })
	if srv != nil {
		command.Env = append(command.Env, "WEBDELIVERY_BASE_URL="+srv.URL, "WEBDELIVERY_CUSTOMER="+srv.Customer,
			"WEBDELIVERY_USERNAME="+srv.Username, "WEBDELIVERY_PASSWORD="+srv.Password)
	}
	return command, stdout, stderr
}

// service starts one with tasks, lists and the events of yesterday.
func service(t *testing.T) *webdeliverytest.Server {
	t.Helper()
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0), webdeliverytest.WithDeployDuration(0))
	srv.AddTask(webdeliverytest.TaskSpec{ID: "ok", Operation: "deploy"})
	srv.AddTask(webdeliverytest.TaskSpec{ID: "bad", Operation: "deploy", Error: &webdeliverytest.TaskError{Message: "disk full"}})
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "blocked", Entries: []string{"192.0.2.0/28", "198.51.100.0/24", "2001:db8::/48"}})
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "odd", Entries: []string{"192.0.2.1-192.0.2.9"}})
	event := webdeliverytest.Event{Time: time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1), Type: webdeliverytest.EventTypeWAF, RuleID: "1"}
	srv.AddEvents(slices.Repeat([]webdeliverytest.Event{event}, 5)...) // of an unknown country
	for i := range 10 {
		event.CountryCode = fmt.Sprint("C", i)
		srv.AddEvents(slices.Repeat([]webdeliverytest.Event{event}, 2*(i+1))...)
	}
	return srv
}

// Each program does what its comment says, and fails if that fails. Without the arguments that it needs, it says which.
func TestPrograms(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&many, "https://www.example.com/%d\n", i)
	}
	for _, tt := range []struct {
		program, input string // on stdin and in feed.txt
		code           int
		stdout, stderr string // patterns
	}{
		{"quickstart", "", 0, `^Logged in\. Purging https://.*\nThe purge is COMPLETE \(.*\)\.\nTask bad \(deploy\) is FAILED\.\nTask ok .*\n$`, `^$`},
		{"purge https://www.example.com/a https://www.example.com/b", "", 0, `^Purging 2 URIs, and waiting .*\n$`, `^$`},
		{"purge https://www.example.com/ https://www.example.org/", "", 1, `\nNot purged: https://www\.example\.org/: .* 400 .*\n$`, `1 of 2 URIs failed`},
		{"purge www.example.com", "", 1, ``, `invalid uris\[0\]`},
		{"queue", many.String(), 0, `^The service has accepted 2500 URIs in \d requests\.\n$`, `^$`},
		{"queue", many.String() + "/\nhttps://www.example.org/\n", 1, `has accepted 2500 URIs `, `"/", not applied: .*(?s:.*)2 lines failed`},
		{"blocklist blocked feed.txt", "192.0.2.7\n198.51.100.0/24\n2001:db8::/48\n", 0, `add 1, remove 1, (?s:.*)\nAdded 1 and removed 1; .* 3 entries`, `^$`},
		{"blocklist blocked feed.txt", "203.0.113.1\n", 1, `\+ 203\.0\.113\.1\n`, `Never`},
		{"blocklist blocked feed.txt", "192.0.2.7\n192.0.2.x\n", 1, `^$`, `desired\[1\]: "192\.0\.2\.x"`},
		{"whyblocked 192.0.2.7", "", 0, `^The list "blocked" has 192\.0\.2\.0/28, added by operator on 20.*\nThe list "odd" has "192\.0\.2\.1-192\.0\.2\.9", `, `^$`},
		{"whyblocked 203.0.113.1", "", 0, `^No list has it\.\n`, `^$`},
		{"topten", "", 0, `^ +COUNTRY +HITS\n +1 +C9 +20\n(?s:.*)\n +8 +C2 +6\n +9 +unknown +5\n +10 +C1 +4\n$`, `^$`},
		{"waittask ok", "", 0, `^COMPLETE, 100 %\nTask ok \(deploy\) has ended: COMPLETE\.\n$`, `^$`},
		{"waittask bad", "", 1, `^FAILED, 100 %\n$`, `task bad failed: disk full`},
		{"purge", "", 1, `^$`, `usage: purge `},
		{"blocklist", "", 1, `^$`, `usage: blocklist `},
		{"whyblocked", "", 1, `^$`, `usage: whyblocked `},
		{"events", "", 1, `^$`, `usage: events `},
		{"waittask", "", 1, `^$`, `usage: waittask `},
	} {
		t.Run(tt.program, func(t *testing.T) {
			t.Parallel()
			command, stdout, stderr := program(t, service(t), tt.program)
			command.Stdin = strings.NewReader(tt.input)
			require.NoError(t, os.WriteFile(filepath.Join(command.Dir, "feed.txt"), []byte(tt.input), 0o600))
			_ = command.Run()
			assert.Equal(t, tt.code, command.ProcessState.ExitCode())
			assert.Regexp(t, tt.stdout, stdout.String())
			assert.Regexp(t, tt.stderr, stderr.String())
		})
	}
}

// Without settings, quickstart says that it uses a fake service, and the others fail.
func TestWithoutSettings(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"purge https://www.example.com/", "queue", "blocklist blocked feed.txt", "whyblocked 192.0.2.7",
		"events http://127.0.0.1/ cursor.json", "topten", "waittask ok",
	} {
		command, stdout, stderr := program(t, nil, line)
		assert.Error(t, command.Run(), line)
		assert.Empty(t, stdout.String(), line)
		assert.Contains(t, stderr.String(), "invalid WEBDELIVERY_BASE_URL: is not set", line)
	}
	command, stdout, stderr := program(t, nil, "quickstart")
	require.NoError(t, command.Run(), stderr)
	assert.Regexp(t, `(?s)^Using a fake service.*The purge is COMPLETE.*Task task-2 (\S+ )?is COMPLETE\.`, stdout.String())
}

// What the collector has not taken comes again with the same keys, and ^C ends the program when it has taken a batch.
func TestEventsComeUntilTheyAreTaken(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted")
	}
	srv := webdeliverytest.NewServer(t)
	for i := range 3 {
		srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(time.Duration(i-20) * time.Minute), RuleID: fmt.Sprint(i)})
	}
	status, batches := make(chan int, 2), make(chan string, 2)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(<-status)
		batches <- string(body)
	}))
	defer collector.Close()
	line := "events " + collector.URL + " " + filepath.Join(t.TempDir(), "cursor.json")

	status <- http.StatusServiceUnavailable
	command, _, stderr := program(t, srv, line)
	assert.Error(t, command.Run())
	assert.Contains(t, stderr.String(), "the collector answered 503 Service Unavailable")
	refused := <-batches
	assert.Len(t, regexp.MustCompile(`(?m)^\{"key":"\w+","time":"20.*Z","client":null\}$`).FindAllString(refused, -1), 3)

	status <- http.StatusOK
	command, _, stderr = program(t, srv, line)
	require.NoError(t, command.Start())
	assert.Equal(t, refused, <-batches)
	require.NoError(t, command.Process.Signal(os.Interrupt))
	assert.NoError(t, command.Wait(), stderr)
	stored, err := webdelivery.OpenCursorFile(command.Args[2])
	require.NoError(t, err)
	defer stored.Close()
	assert.EqualValues(t, 3, stored.Cursor.Count())
}

// Each program fits on a page.
func TestProgramsAreShort(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("*/main.go")
	more, _ := filepath.Glob("integrations/*/main.go")
	require.NotEmpty(t, more)
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.LessOrEqual(t, bytes.Count(text, []byte("\n")), 80, file)
	}
}
