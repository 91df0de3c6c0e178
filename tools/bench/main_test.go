package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain runs the tests, or becomes one of the processes that a measurement starts.
func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		exit(beChild(role, os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// tiny are options for a short run of everything that does not take long.
func tiny() options {
	return options{
		rounds: 1, round: time.Millisecond, profiled: time.Millisecond, only: regexp.MustCompile(""),
		sizes: sizes{
			rows: 100, manyRows: 200, uris: 10, callers: 20, alone: 1, entries: 3_000, calls: 30, requests: 200,
			growth:  growthSizes{rows: []int{10, 20}, entries: []int{100}, tasks: []int{2_500}, uris: []int{7}, callers: []int{9}, goroutines: []int{1, 3}},
			sharing: sharingSizes{uris: 12, goroutines: 2, perCall: []int{3, 6}},
		},
	}
}

// A run measures everything, and each line of its tables is complete.
func TestRun(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "performance.md")
	const goals, growth = "<!-- bench:goals -->\nold\n<!-- end of bench:goals -->", "<!-- bench:growth -->\n<!-- end of bench:growth -->"
	const rows = "<!-- bench:rows -->\n<!-- end of bench:rows -->"
	const queues = "<!-- bench:queue -->\n<!-- end of bench:queue -->"
	require.NoError(t, os.WriteFile(page, []byte("# Before\n"+goals+"\nbetween\n"+rows+"\n"+queues+"\n"+growth+"\nafter\n"), 0o600))
	o := tiny()
	o.markdown = page
	var out bytes.Buffer
	require.NoError(t, run(&out, o))

	text, err := os.ReadFile(page)
	require.NoError(t, err)
	written := string(text)
	assert.True(t, strings.HasPrefix(written, "# Before\n<!-- bench:goals -->\n"), written)
	assert.True(t, strings.HasSuffix(written, "<!-- end of bench:growth -->\nafter\n"), written)
	assert.NotContains(t, written, "old")
	for _, what := range []string{
		"| Rows | short | mixed | long |", "| rows in memory | 100 of ", "| Scan | ", "| Query | ", "| jsontext IsValid | ", "| json.Unmarshal | ",
		"| Scan, times IsValid | ", "| at most 1.6, long 1.3 | ", "| Scan, times faster than json.Unmarshal | ", "| Scan, allocations per row | ",
		"| Query, times json.Unmarshal | ", "| Scan over HTTP, peak memory of the process | ", "| the same with 2 times as many rows | ",
		"| Query, times the peak memory of json.Unmarshal | ", "time to the first row", "Tasks.Get over loopback: CPU time of the client process, reference net/http with the same headers", "Tasks.Get: allocations",
		"64 goroutines", "Submit of 10 URIs, Content-Length set, reference json.Marshal |", "json.Marshal: memory", "20 callers with one URI each",
		"Plan of 3,000 against 3,000 entries, pages from memory", "Plan of 3,000 against 3,000 entries: comparing", "AllEntries of 3,000",
		"modules needed to build", "go list -m all", "binary, reference the same calls with net/http |", `(-ldflags="-s -w")`,
		"| URIs per call | Calls | Requests |", "| 3 | 4 | ", "| 6 | 2 | ",
		"| Scan: rows | 10 |", "| Scan: rows | 20 |", "| AllEntries: entries | 100 |", "desired, reading included | 100 |", "| Tasks.All: tasks | 2,500 |",
		"| Submit: URIs | 7 |", "| PurgeQueue.Purge: waiting callers, one URI each | 9 |", "KiB per caller, of which a goroutine that only waits needs ",
		"| Tasks.Get: goroutines | 3 |",
	} {
		assert.Equal(t, 1, strings.Count(written, what), "%s in\n%s", what, written)
	}
	for line := range strings.Lines(written) {
		if strings.HasPrefix(line, "|") {
			assert.Equal(t, 7, strings.Count(line, "|"), line) // six columns in every table
		}
	}
	assert.Contains(t, out.String(), "\nWhat  ")
	assert.NotContains(t, out.String(), " | ")
}

// The reference of a small GET sends the same bytes as the SDK, and reads the same task.
func TestSameRequest(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	requests := make(chan string, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test has ended
			}
			head := ""
			for in := bufio.NewReader(conn); !strings.HasSuffix(head, "\r\n\r\n") && err == nil; {
				var line string
				line, err = in.ReadString('\n')
				head += line
			}
			requests <- head
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
				len(taskBody), taskBody)
			_ = conn.Close()
		}
	}()
	url := "http://" + listener.Addr().String()
	names, subjects, err := getters(url, false)
	require.NoError(t, err)
	require.Equal(t, []string{"net/http and encoding/json", "webdelivery-go"}, names)
	sent := make([]string, len(subjects))
	for i, get := range subjects {
		require.NoError(t, get(), names[i])
		sent[i] = <-requests
	}
	assert.Contains(t, sent[0], "GET /acme/v1/tasks/task-1 HTTP/1.1\r\n")
	assert.Contains(t, sent[0], "\r\nAuthorization: Basic ")
	assert.Equal(t, sent[0], sent[1])
}

// Each shape has what its name says, and the same rows for the same seed.
func TestShapes(t *testing.T) {
	t.Parallel()
	columns := map[string][][]any{}
	for _, s := range shapes {
		const n = 2_000
		body := s.body(7, n)
		assert.Equal(t, body, s.body(7, n), s.name)
		if s.name != "short" { // which has no random values
			assert.NotEqual(t, body, s.body(8, n), s.name)
		}
		var response struct {
			Columns []any   `json:"columns"`
			Rows    [][]any `json:"rows"`
		}
		require.NoError(t, json.Unmarshal(body, &response), s.name)
		assert.Len(t, response.Rows, n, s.name)
		columns[s.name] = make([][]any, len(response.Columns))
		for _, row := range response.Rows {
			for i, value := range row {
				columns[s.name][i] = append(columns[s.name][i], value)
			}
		}
		client, err := alwaysResponding(body)
		require.NoError(t, err)
		rows, err := s.scan(client)
		require.NoError(t, err)
		assert.Equal(t, n, rows, s.name)
	}
	different := func(values []any) int {
		known := map[any]bool{}
		for _, value := range values {
			known[value] = true
		}
		return len(known)
	}
	texts := columns["mixed"][2:6]
	assert.Equal(t, 2, different(texts[0]))
	assert.InDelta(t, 300, different(texts[1]), 5)
	assert.InDelta(t, 1650, different(texts[2]), 100) // of 5,000, in 2,000 rows
	assert.Equal(t, 2_000, different(texts[3]))
	for _, column := range columns["long"][1:3] {
		longest, escaped := 0, 0
		for _, value := range column {
			text, _ := value.(string)
			longest = max(longest, len(text))
			if strings.ContainsAny(text, "\"\n\\") {
				escaped++
			}
		}
		assert.InDelta(t, 2_000, longest, 30)
		assert.InDelta(t, 500, escaped, 100)
	}
}
