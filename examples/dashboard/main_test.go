package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// call runs the program, and returns its exit code and output.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return programtest.Run("dashboard", program.Streams{}, func(s program.Streams) error { return run(t.Context(), args, s) })
}

// The report is one file. It refers to nothing else, and its policy forbids that, too.
func TestReport(t *testing.T) { //nolint:paralleltest // the environment is the process's
	programtest.NoService(t)
	name := filepath.Join(t.TempDir(), "report.html")
	code, stdout, stderr := call(t, "-o", name, "-since", "1h", "-filter", "client_country_code==CN")
	require.Equal(t, program.Done, code, stderr)
	assert.Empty(t, stdout)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	html := string(text)
	assert.Contains(t, html, "client_country_code==CN")
	assert.Contains(t, html, "default-src &#39;none&#39;")
	html, _, _ = strings.Cut(html, "<script>") // what follows is the library; the policy has its hash
	assert.Empty(t, regexp.MustCompile(`(src|href|action)="[^d]`).FindString(html))
	code, stdout, _ = call(t, "-o", "-", "-since", "1h")
	assert.Equal(t, program.Done, code)
	assert.Contains(t, stdout, "</html>")
	code, _, stderr = call(t, "-o", filepath.Join(name, "below"))
	assert.Equal(t, program.Failed, code)
	assert.Contains(t, stderr, "dashboard: "+filepath.Join(name, "below")+" cannot be written: not a directory\ndashboard: name a file in a folder that exists")
}

// What cannot be meant is wrong usage, told in one line.
func TestWrongUsage(t *testing.T) { //nolint:paralleltest // the environment is the process's
	srv := webdeliverytest.NewServer(t)
	programtest.UseService(t, srv)
	const listen = " is not a loopback address with a port, and the page asks for no password; use 127.0.0.1:8080"
	for _, tc := range []struct{ args, want string }{
		{"-o=", "-o is empty: set the variable that it comes from, or remove it"},
		{"-o=report.html -listen=127.0.0.1:0", "there are -o and -listen: with -o nothing is served; give only one of them"},
		{"-since=7d", "-since and -filter need -o; the page that is served has a form for them"},
		{"-filter=domain==example.com", "-since and -filter need -o; the page that is served has a form for them"},
		{"-listen=:8080", `-listen: ":8080"` + listen},
		{"-listen=127.0.0.1:http", `-listen: "127.0.0.1:http"` + listen},
		{"-listen=192.0.2.1:8080", `-listen: "192.0.2.1:8080"` + listen},
		{"-o=- -filter=nonsense", `The filter cannot be read: At character 1: no == or != in "nonsense".`},
		{"-o=- -since=1m", `The time range cannot be read: "1m": want a duration from 5m to 366d`},
	} {
		code, stdout, stderr := call(t, strings.Split(tc.args, " ")...)
		assert.Equal(t, program.Misuse, code, tc.args)
		assert.Empty(t, stdout)
		assert.Equal(t, "dashboard: "+tc.want+"\n", stderr)
	}
	assert.Empty(t, srv.Requests())
}

// The program prints where it serves, and an interrupt ends it without an error.
func TestServe(t *testing.T) { //nolint:paralleltest // the environment is the process's
	programtest.NoService(t)
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-listen", "127.0.0.1:0"}, program.Streams{Out: writer, Err: io.Discard})
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	require.NoError(t, err)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(line)
	resp, err := http.Get(address + "?since=1h")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Contains(t, string(body), `aria-current="true">1 hour`)
	assert.Contains(t, string(body), "</html>")
	cancel()
	require.NoError(t, <-ended)
}
