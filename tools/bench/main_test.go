package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

func TestRunSome(t *testing.T) {
	t.Parallel()
	o := tiny()
	o.only = regexp.MustCompile("^(purge|queue)$")
	var out bytes.Buffer
	require.NoError(t, run(&out, o))
	assert.Equal(t, 4+2, strings.Count(out.String(), "\n"), out.String()) // the machine, a blank line, the head, and three lines
	o.markdown = "performance.md"
	require.ErrorIs(t, run(&out, o), errMarkdownOfSome)
}

func TestRunNothing(t *testing.T) {
	t.Parallel()
	o := tiny()
	o.only = regexp.MustCompile("^row$")
	var out bytes.Buffer
	err := run(&out, o)
	require.ErrorIs(t, err, errNoTopic)
	assert.ErrorContains(t, err, "the topics are rows, memory, get, ")
	assert.Empty(t, out.String())
}

func TestInsertWantsMarkers(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(page, []byte("<!-- end of bench:goals -->\n<!-- bench:goals -->\n"), 0o600))
	require.ErrorContains(t, goalTable().insert(page, ""), "lacks <!-- bench:goals -->")
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

// The CPU time of a process grows while it works.
func TestCPUTime(t *testing.T) {
	t.Parallel()
	before := cpuTime()
	for cpuTime() == before {
		kept = bytes.Repeat([]byte("x"), 1<<20)
	}
	assert.Greater(t, cpuTime(), before)
}

// Every area can be profiled.
func TestProfile(t *testing.T) { //nolint:paralleltest // a process can write only one profile at a time
	dir := t.TempDir()
	for _, a := range areas {
		var out bytes.Buffer
		require.NoError(t, profile(&out, dir, a.name, tiny()), a.name)
		path := filepath.Join(dir, a.name+".prof")
		assert.Contains(t, out.String(), "go tool pprof -http=: "+path+"\n")
		file, err := os.Open(path)
		require.NoError(t, err)
		unzipped, err := gzip.NewReader(file)
		require.NoError(t, err, a.name)
		text, err := io.ReadAll(unzipped)
		require.NoError(t, err, a.name)
		assert.Contains(t, string(text), "nanoseconds", a.name) // the unit of a CPU profile
		require.NoError(t, file.Close())
	}

	var out bytes.Buffer
	require.NoError(t, profile(&out, dir, "", tiny()))
	assert.Equal(t, areaNames(), out.String())
	assert.Contains(t, out.String(), "make profile AREA=rows ")
	err := profile(&out, dir, "row", tiny())
	require.ErrorIs(t, err, errNoArea)
	assert.ErrorContains(t, err, areaNames())
}

// A child process with wrong arguments says so.
func TestWrongRoles(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"nothing", "get", "get url", "wait", "wait callers", "wait nobody 3"} {
		assert.Error(t, beChild(role, nil, io.Discard), role)
	}
}

// Goroutines that wait need memory, and end when they may go on.
func TestMemoryOfWaiting(t *testing.T) { //nolint:paralleltest // other tests would count
	for name, start := range waiters {
		const n = 3000
		used, err := memoryOfWaiting(start, n)
		require.NoError(t, err, name)
		assert.Greater(t, used, float64(n<<10), name)
	}
}

// The measured data are those of docs/performance.md: these rows, and URIs of 77 bytes with their comma.
func TestData(t *testing.T) {
	t.Parallel()
	assert.JSONEq(t, `{"query":{},"columns":[{"name":"event_timestamp_ms"},{"name":"client_ip"},{"name":"client_country_code"},`+
		`{"name":"client_asn"},{"name":"rule_id"},{"name":"event_action"},{"name":"hits"}],"rows":[`+
		`["2026-11-20T00:00:00.000","192.0.2.0","CN",64496,"942100","BLOCK",0],`+
		`["2026-11-20T00:00:00.001","192.0.2.1","DE",64497,"942101","WARN",1]],"total_results":2}`, string(shapes[0].body(7, 2)))
	uri, err := json.Marshal(object(17))
	require.NoError(t, err)
	assert.Equal(t, 77, len(uri)+len(","), string(uri))
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

func TestGoals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		goal          goal
		text, verdict string
	}{
		{goal{}, "", ""},
		{atMost(2, 2, "times"), "at most 2 times", "met"},
		{atMost(2, 2.01, "times"), "at most 2 times", "missed"},
		{timesFaster(5, 5), "at least 5 times faster", "met"},
		{timesFaster(5, 4.99), "at least 5 times faster", "missed"},
	} {
		assert.Equal(t, test.text, test.goal.text)
		assert.Equal(t, test.verdict, test.goal.verdict())
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for d, shown := range map[time.Duration]string{
		72 * time.Second: "72 s", 1500 * time.Millisecond: "1.50 s", 228 * time.Millisecond: "228 ms", 129 * time.Microsecond: "129 µs", 80: "0.08 µs",
	} {
		assert.Equal(t, shown, inTime(d))
	}
	for n, shown := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		assert.Equal(t, shown, count(n))
	}
	assert.Equal(t, "1.5 MiB", inBytes(3<<19))
	assert.Equal(t, "1.5 KiB", inBytes(3<<9))
}

// A ratio is the median of the rounds' ratios, not the ratio of medians.
func TestRatios(t *testing.T) {
	t.Parallel()
	a := measured{rounds: []time.Duration{10, 40, 90}, allocs: 7, bytes: 9}
	b := measured{rounds: []time.Duration{10, 10, 30}, allocs: 4, bytes: 5}
	assert.InDelta(t, 3, a.ratio(b), 0)
	assert.Equal(t, time.Duration(40), a.time())
	assert.Equal(t, measured{rounds: []time.Duration{0, 30, 60}, allocs: 3, bytes: 4}, a.minus(b))
}

var kept []byte

func TestInterleave(t *testing.T) {
	t.Parallel()
	var turns []string
	subjectOf := func(name string) subject {
		return func() error {
			turns = append(turns, name)
			kept = make([]byte, 1<<20)
			return nil
		}
	}
	o := options{rounds: 2}
	results, err := o.interleave(subjectOf("a"), subjectOf("b"))
	require.NoError(t, err)
	assert.Equal(t, "a a b b a b b a", strings.Join(turns, " ")) // each subject is warmed up and calibrated first
	assert.Len(t, results[0].rounds, 2)
	assert.GreaterOrEqual(t, results[0].bytes, float64(1<<20))
	assert.GreaterOrEqual(t, results[0].allocs, 1.0)

	fails := errors.New("fails")
	_, err = o.interleave(func() error { return fails })
	require.ErrorIs(t, err, fails)
}

// The guard names the operation with more allocations, the growth, and what to do.
func TestCheckAllocs(t *testing.T) { //nolint:paralleltest // counts what the process allocates
	allocating := func(name string, n, slack int) counted {
		return counted{name, 10, slack, func() (subject, error) {
			return func() error {
				for range n {
					kept = make([]byte, 100)
				}
				return nil
			}, nil
		}}
	}
	path := filepath.Join(t.TempDir(), "allocs.txt")
	require.NoError(t, writeAllocs(path, []counted{allocating("Tasks.Get", 5, 0), allocating("Plan", 7, 2)}))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, allocsHead+"Tasks.Get\t5\nPlan\t7\n", string(text))

	check := func(get, plan int) (string, error) {
		var out bytes.Buffer
		err := checkAllocs(&out, path, []counted{allocating("Tasks.Get", get, 0), allocating("Plan", plan, 2)})
		return out.String(), err
	}
	out, err := check(5, 7)
	require.NoError(t, err)
	assert.Contains(t, out, "Tasks.Get: 5 allocations, 5 committed; ")
	_, err = check(3, 9)
	require.NoError(t, err)
	_, err = check(8, 10)
	require.ErrorIs(t, err, errGrown)
	require.ErrorContains(t, err, "Tasks.Get: 8 allocations, 3 more than the 5 committed\nPlan: 10 allocations, 3 more than the 7 committed\n")
	require.ErrorContains(t, err, "make bench-allocs ALLOCS=-write")

	for text, wrong := range map[string]string{"Tasks.Get\tmany\n": "is not a name", "Tasks.Get\t70\n": `lacks "Plan"`} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := check(5, 7)
		require.ErrorContains(t, err, wrong)
	}
}

// All subjects of the guard can be measured.
func TestGuarded(t *testing.T) {
	t.Parallel()
	for _, c := range guarded {
		s, err := c.make()
		require.NoError(t, err, c.name)
		require.NoError(t, s(), c.name)
	}
}
