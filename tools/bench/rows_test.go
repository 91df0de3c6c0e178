package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go"
)

// shape is a kind of rows. What a reader of rows costs depends on them: how long the texts are, how often they come again,
// where they differ.
type shape struct {
	name    string
	n       int    // rows of a response
	columns string // separated by blanks
	row     func(b []byte, i int) []byte
	scan    func(iter.Seq2[webdelivery.Row, error]) int
}

// event is a row of the first shape. It has on average 76 bytes, including its comma.
type event struct {
	Time    time.Time  `stats:"event_timestamp_ms"`
	IP      netip.Addr `stats:"client_ip"`
	Country string     `stats:"client_country_code"`
	ASN     int64      `stats:"client_asn"`
	Rule    string     `stats:"rule_id"`
	Action  string     `stats:"event_action"`
	Hits    int64      `stats:"hits"`
}

// mixedEvent has texts of columns with 2, 300, 5,000 and any number of different ones.
type mixedEvent struct {
	Time    time.Time  `stats:"event_timestamp_ms"`
	IP      netip.Addr `stats:"client_ip"`
	Action  string     `stats:"event_action"`
	Rule    string     `stats:"rule_id"`
	Policy  string     `stats:"policy_id"`
	Request string     `stats:"request_id"`
	Hits    int64      `stats:"hits"`
}

type longEvent struct {
	Time  time.Time `stats:"event_timestamp_ms"`
	Path  string    `stats:"path"`
	Agent string    `stats:"user_agent"`
	Hits  int64     `stats:"hits"`
}

var shapes = []*shape{
	{
		name: "short", n: 100_000, scan: scanRows[event],
		columns: "event_timestamp_ms client_ip client_country_code client_asn rule_id event_action hits",
		row: func(b []byte, i int) []byte {
			return fmt.Appendf(b, `["%s","192.0.2.%d","%s",%d,"%d","%s",%d]`, timestamp(i, ".000"), i%256,
				[...]string{"CN", "DE", "US", "BR"}[i%4], 64496+i%1000, 942100+i%50, [...]string{"BLOCK", "WARN"}[i%2], i)
		},
	},
	{
		name: "mixed", n: 50_000, scan: scanRows[mixedEvent],
		columns: "event_timestamp_ms client_ip event_action rule_id policy_id request_id hits",
		row: func(b []byte, i int) []byte {
			at := random(i)
			address := [...]string{"198.18.%d.%d", "2001:db8:%x:%x:4a1b:9c2d:17e3:8f60", "198.19.%d.%d", "2001:db8::7d:%x:%x"}[at%4]
			return fmt.Appendf(b, `["%s","%s","%s","94%03d0000","policy-1000%04d2000","7700%012d0077",%d]`,
				timestamp(i, [...]string{"", ".000"}[at>>2%2]), fmt.Sprintf(address, at>>8&255, at>>16&255),
				[...]string{"BLOCK", "WARN"}[at>>3%2], at>>24%300, at>>12%5_000, at%1e12, at>>32%10_000)
		},
	},
	{
		name: "long", n: 5_000, scan: scanRows[longEvent], columns: "event_timestamp_ms path user_agent hits",
		row: func(b []byte, i int) []byte {
			return fmt.Appendf(b, `["%s","%s","%s",%d]`, timestamp(i, ".000"), long(2*i), long(2*i+1), i%10_000)
		},
	},
}

func timestamp(milliseconds int, fraction string) string {
	return eventsQuery.Start.Add(time.Duration(milliseconds) * time.Millisecond).Format("2006-01-02T15:04:05" + fraction)
}

// random is the i-th number of a sequence that looks random.
func random(i int) uint64 { return uint64(i) * 0x9e3779b97f4a7c15 >> 8 }

// long returns a text of 200 to 2,000 bytes of JSON. Of four texts one has escapes, and one is not only ASCII.
func long(i int) string {
	piece := [...]string{"/assets?login=item", `/login?search=cat\"alog-item&assets\u00e9-item`, "/search-catalog", "/login?é=item-日本&search"}[i%4]
	return strings.Repeat(piece, (200+int(random(i)%1_800))/len(piece)) + fmt.Sprint(i)
}

// body returns a response with n rows (service document, section 2.4).
func (s *shape) body(n int) []byte {
	out := fmt.Appendf(nil, `{"query":{},"columns":[{"name":"%s"}],"rows":[`, strings.ReplaceAll(s.columns, " ", `"},{"name":"`))
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = s.row(out, i)
	}
	return fmt.Appendf(out, `],"total_results":%d}`, n)
}

// scanRows scans all rows of a response.
func scanRows[T any](rows iter.Seq2[webdelivery.Row, error]) int {
	return count(webdelivery.Scan[T](rows))
}

// count reads a sequence to its end.
func count[T any](all iter.Seq2[T, error]) (n int) {
	for item, err := range all {
		_ = must(item, err)
		n++
	}
	return n
}

func allRows(client *webdelivery.Client) iter.Seq2[webdelivery.Row, error] {
	return client.Stats.Events.All(context.Background(), eventsQuery)
}

var eventsQuery = webdelivery.EventsQuery{
	Dimensions: []string{"rule_id"}, Limit: 1 << 30, // whatever the query asks for, the response has the columns of its shape
	Start: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
}

// repeatRows reads n rows for as long as the benchmark takes.
func repeatRows(b *testing.B, n int, read func() (rows int)) {
	repeat(b, func() { check(read() == n) })
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
}

// BenchmarkRows reads rows from memory. IsValid of jsontext only checks that they are JSON, which every reader must do.
func BenchmarkRows(b *testing.B) {
	for _, s := range shapes {
		body := s.body(s.n)
		client := clientOf(always(body))
		isValid := func() int {
			check(jsontext.Value(body).IsValid())
			return s.n
		}
		for _, reader := range []struct {
			by   string
			read func() (rows int)
		}{
			{"IsValid", isValid},
			{"Scan", func() int { return s.scan(allRows(client)) }},
			{"Query", func() int { return queryAll(client) }},
			{"Unmarshal", func() int { return unmarshalAll(body) }},
		} {
			b.Run(fmt.Sprintf("rows=%s/by=%s", s.name, reader.by), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				repeatRows(b, s.n, reader.read)
			})
		}
	}
}

func queryAll(client *webdelivery.Client) (rows int) {
	return len(must(client.Stats.Events.Query(context.Background(), eventsQuery)).Rows)
}

// unmarshalAll reads rows as a user of encoding/json does.
func unmarshalAll(body []byte) (rows int) {
	var response struct {
		Rows [][]any `json:"rows"`
	}
	check(json.Unmarshal(body, &response) == nil)
	return len(response.Rows)
}

// BenchmarkExport reads 1,000 events a second with a Lookback of 30 minutes, beside All, and stores and reads its cursor.
func BenchmarkExport(b *testing.B) {
	const n = 1_800_000
	body, one := shapes[0].body(n), shapes[0].body(1)
	one = bytes.Replace(one, []byte(`"total_results":1}`), fmt.Appendf(nil, `"total_results":%d}`, n), 1)
	client := clientOf(func(r *http.Request) []byte {
		if r.URL.Query().Get("limit") == "1" {
			return one
		}
		return body
	})
	query := webdelivery.EventsQuery{Dimensions: eventsQuery.Dimensions, Start: eventsQuery.Start, End: eventsQuery.End}
	b.Run("by=All", func(b *testing.B) {
		repeatRows(b, n, func() int { return scanRows[event](client.Stats.Events.All(b.Context(), query)) })
	})
	var export *webdelivery.Export
	before := heap()
	b.Run("by=Export", func(b *testing.B) {
		repeatRows(b, n, func() int {
			export = client.Stats.NewExport(query, webdelivery.Cursor{}, webdelivery.ExportOptions{Lookback: 30 * time.Minute})
			return scanRows[event](export.All(b.Context()))
		})
		b.ReportMetric(heap()-before, "heap-B")
	})
	text := must(json.Marshal(export.Cursor()))
	b.Run("by=Marshal", func(b *testing.B) {
		repeat(b, func() { must(json.Marshal(export.Cursor())) })
		b.ReportMetric(float64(len(text)), "B")
	})
	b.Run("by=Unmarshal", func(b *testing.B) {
		repeat(b, func() { check(json.Unmarshal(text, new(webdelivery.Cursor)) == nil) })
	})
}

func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

const manyRows = 1_000_000

// readers read many rows over HTTP.
var readers = map[string]func(url string) (rows int){
	"Scan":      func(url string) int { return scanRows[event](allRows(newClient(url))) },
	"Query":     func(url string) int { return queryAll(newClient(url)) },
	"Unmarshal": func(url string) int { return unmarshalAll(read(http.Get(url))) },
}

// TestMain runs the tests, or as a child of BenchmarkPeakMemory one of the readers.
func TestMain(m *testing.M) {
	if len(os.Args) != 3 || readers[os.Args[1]] == nil {
		os.Exit(m.Run())
	}
	check(readers[os.Args[1]](os.Args[2]) == manyRows)
	_, peak, _ := strings.Cut(string(must(os.ReadFile("/proc/self/status"))), "VmHWM:")
	fmt.Println(strings.Fields(peak)[0])
}

// BenchmarkPeakMemory measures the peak memory of a process that reads a million rows over HTTP. It starts itself again
// for each, because the peak is that of a whole process.
func BenchmarkPeakMemory(b *testing.B) {
	body := shapes[0].body(manyRows)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	b.Cleanup(srv.Close)
	for _, by := range []string{"Unmarshal", "Scan", "Query"} {
		b.Run("by="+by, func(b *testing.B) {
			var peak, sum int
			repeat(b, func() {
				child := exec.CommandContext(b.Context(), must(os.Executable()), by, srv.URL)
				must(fmt.Sscan(string(must(child.Output())), &peak))
				sum += peak
			})
			b.ReportMetric(float64(sum)/1024/float64(b.N), "MiB-peak")
		})
	}
}
