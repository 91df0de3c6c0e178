package webdelivery_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// peakMemoryOf names the address that a child process of a benchmark is to stream from.
const peakMemoryOf = "WEBDELIVERY_BENCH_URL"

// TestMain makes the test binary its own measured process: peak memory is that of a whole process.
func TestMain(m *testing.M) {
	if url := os.Getenv(peakMemoryOf); url != "" {
		if err := reportPeakMemory(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// benchEvent is a row of the benchmarks: seven columns, 77 bytes.
type benchEvent struct {
	Time    time.Time  `stats:"event_timestamp_ms"`
	IP      netip.Addr `stats:"client_ip"`
	Country string     `stats:"client_country_code"`
	ASN     int64      `stats:"client_asn"`
	Rule    string     `stats:"rule_id"`
	Action  string     `stats:"event_action"`
	Hits    int64      `stats:"hits"`
}

// writeRows writes a reply of n rows.
func writeRows(w io.Writer, n int) {
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.WriteString(`{"query":{},"columns":[{"name":"event_timestamp_ms"},{"name":"client_ip"},{"name":"client_country_code"},` +
		`{"name":"client_asn"},{"name":"rule_id"},{"name":"event_action"},{"name":"hits"}],"rows":[`)
	at := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	countries, actions := []string{"CN", "DE", "US", "BR"}, []string{"BLOCK", "WARN"}
	for i := range n {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		_, _ = fmt.Fprintf(out, `["%s","192.0.2.%d","%s",%d,"%d","%s",%d]`, at.Add(time.Duration(i)*time.Millisecond).Format("2006-01-02T15:04:05.000"),
			i%256, countries[i%4], 64496+i%1000, 942100+i%50, actions[i%2], i)
	}
	_, _ = fmt.Fprintf(out, `],"total_results":%d}`, n)
	_ = out.Flush()
}

var benchQuery = webdelivery.EventsQuery{
	Dimensions: webdelivery.DimensionsOf[benchEvent](), Limit: 1 << 30,
	Start: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
}

// reportPeakMemory streams a reply and prints the rows and the most memory that the process had, in KiB.
func reportPeakMemory(url string) error {
	client, err := webdelivery.NewClient(url, customer, webdelivery.BasicAuth(username, password))
	if err != nil {
		return err
	}
	rows := 0
	for _, err := range webdelivery.Scan[benchEvent](client.Stats.Events.Rows(context.Background(), benchQuery)) {
		if err != nil {
			return err
		}
		rows++
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	peak, _, _ = strings.Cut(strings.TrimSpace(peak), " ")
	fmt.Println(rows, peak)
	return nil
}

// Peak memory of a process that scans so many rows over HTTP; it is to be the same for all of them, below 40 MiB.
func BenchmarkPeakMemory(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000, 4_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeRows(w, n) }))
			defer srv.Close()
			for b.Loop() {
				child := exec.CommandContext(b.Context(), os.Args[0])
				child.Env = append(os.Environ(), peakMemoryOf+"="+srv.URL)
				child.Stderr = os.Stderr
				out, err := child.Output()
				require.NoError(b, err)
				var rows int
				var peak float64
				_, err = fmt.Sscan(string(out), &rows, &peak)
				require.NoError(b, err)
				require.Equal(b, n, rows)
				b.ReportMetric(peak/1024, "peak-MiB")
			}
		})
	}
}

// 10,000 goroutines with one URI each through the queue, against the fake with its limit enforced; and the time that as
// many submissions one by one take, extrapolated from 20.
func BenchmarkPurgeQueue(b *testing.B) {
	const callers, sample = 10_000, 20
	newClient := func(b *testing.B) (*testserver.Server, *webdelivery.Client) {
		srv := testserver.New(testserver.Config{})
		url, err := srv.ListenTCP()
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, srv.Close()) })
		client, err := webdelivery.NewClient(url, customer, webdelivery.BasicAuth(username, password))
		require.NoError(b, err)
		return srv, client
	}
	var queued, alone time.Duration
	b.Run("queue", func(b *testing.B) {
		for b.Loop() {
			srv, client := newClient(b)
			queue := client.Purge.NewQueue(webdelivery.QueueOptions{})
			began := time.Now()
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					_, err := queue.Purge(b.Context(), webdelivery.Exact(object(i)))
					assert.NoError(b, err)
				})
			}
			wg.Wait()
			queued = time.Since(began)
			require.NoError(b, queue.Close(b.Context()))
			for _, r := range srv.Requests() {
				require.Equal(b, http.StatusCreated, r.Status)
			}
			b.ReportMetric(float64(len(srv.Requests())), "requests")
			b.ReportMetric(queued.Seconds(), "s/10000")
		}
	})
	b.Run("one-by-one", func(b *testing.B) {
		for b.Loop() {
			_, client := newClient(b)
			began := time.Now()
			for i := range sample {
				_, err := client.Purge.Submit(b.Context(), purgeOf(object(i)))
				require.NoError(b, err)
			}
			alone = time.Since(began) * callers / sample
			b.ReportMetric(alone.Seconds(), "s/10000")
			b.ReportMetric(alone.Seconds()/queued.Seconds(), "times-the-queue")
		}
	})
}

// Comparing 50,000 desired entries with a list of as many, half of which are the same; reading the list included.
func BenchmarkPlan(b *testing.B) {
	srv := testserver.New(testserver.Config{})
	url, err := srv.ListenTCP()
	require.NoError(b, err)
	defer func() { require.NoError(b, srv.Close()) }()
	all := addresses(75_000)
	id := srv.AddNetworkList(testserver.NetworkListSpec{Entries: all[:50_000]})
	client, err := webdelivery.NewClient(url, customer, webdelivery.BasicAuth(username, password))
	require.NoError(b, err)
	for _, aggregated := range []bool{false, true} {
		b.Run(fmt.Sprintf("aggregate=%t", aggregated), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := client.NetworkLists.Plan(b.Context(), id, all[25_000:], webdelivery.PlanOptions{MaxRemove: 1, Aggregate: aggregated})
				require.NoError(b, err)
			}
		})
	}
}

// Scanning, against the time that only checking the same bytes takes, and against what a user would write.
func BenchmarkRows(b *testing.B) {
	const n = 100_000
	var body bytes.Buffer
	writeRows(&body, n)
	transport := roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body.Bytes()))}, nil
	})
	client, err := webdelivery.NewClient("https://api.example.com", customer, webdelivery.BasicAuth(username, password),
		webdelivery.WithHTTPClient(&http.Client{Transport: transport}))
	require.NoError(b, err)
	run := func(name string, once func(b *testing.B) int) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(body.Len()))
			b.ReportAllocs()
			for b.Loop() {
				require.Equal(b, n, once(b))
			}
		})
	}
	run("IsValid", func(b *testing.B) int {
		require.True(b, jsontext.Value(body.Bytes()).IsValid())
		return n
	})
	run("Rows", func(b *testing.B) (rows int) {
		for _, err := range client.Stats.Events.Rows(b.Context(), benchQuery) {
			if err != nil {
				b.Fatal(err)
			}
			rows++
		}
		return rows
	})
	run("Scan", func(b *testing.B) (rows int) {
		for _, err := range webdelivery.Scan[benchEvent](client.Stats.Events.Rows(b.Context(), benchQuery)) {
			if err != nil {
				b.Fatal(err)
			}
			rows++
		}
		return rows
	})
	run("Query", func(b *testing.B) int {
		result, err := client.Stats.Events.Query(b.Context(), benchQuery)
		require.NoError(b, err)
		return len(result.Rows)
	})
	run("encoding-json", func(b *testing.B) int {
		var reply struct {
			Rows [][]any `json:"rows"`
		}
		require.NoError(b, json.Unmarshal(body.Bytes(), &reply))
		return len(reply.Rows)
	})
}
