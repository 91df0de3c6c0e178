package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// What is measured panics where it fails.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(right bool) {
	if !right {
		panic("not what was asked for")
	}
}

// repeat does for as long as the benchmark takes.
func repeat(b *testing.B, do func()) {
	b.ReportAllocs()
	for b.Loop() {
		do()
	}
}

// inMemory is a service without a network.
type inMemory func(*http.Request) []byte

// RoundTrip implements [http.RoundTripper].
func (f inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	status := http.StatusOK
	if r.Body != nil {
		status = http.StatusCreated
		_ = must(io.Copy(io.Discard, r.Body))
		_ = r.Body.Close()
	}
	body := f(r)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}},
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

// always is a service that has one response.
func always(body []byte) inMemory { return func(*http.Request) []byte { return body } }

// unlimited lets every purge go at once, because the SDK is measured, not the limit of the service.
type unlimited struct{}

// Wait implements [webdelivery.Limiter].
func (unlimited) Wait(context.Context) error { return nil }

// newClient returns a client whose responses may have any size.
func newClient(base string, options ...webdelivery.Option) *webdelivery.Client {
	options = append(options, webdelivery.WithPurgeLimiter(unlimited{}), webdelivery.WithMaxResponseBytes(1<<40))
	return must(webdelivery.NewClient(base, "acme", webdelivery.BasicAuth("alice", "correct-horse-battery"), options...))
}

func clientOf(service inMemory) *webdelivery.Client {
	return newClient("https://api.example.com", webdelivery.WithHTTPClient(&http.Client{Transport: service}))
}

func read(r *http.Response, err error) []byte {
	body := must(r, err).Body
	defer func() { _ = body.Close() }()
	return must(io.ReadAll(body))
}

// taskBody is a task with every member except error_info (service document, section 2.1).
const taskBody = `{"id":"task-1","uri":"/tasks/task-1","operation":"deploy-property","status":"COMPLETE","complete":true,` +
	`"progress":100,"begin_time":"2026-11-20T08:30:00.000Z","end_time":"2026-11-20T08:31:00.000Z",` +
	`"last_updated":"2026-11-20T08:31:00.000Z","user":{"id":"user-1","uri":"/users/user-1"},` +
	`"target":{"id":"property-1","uri":"/properties/property-1"}}`

// getting returns a function that reads a task.
func getting() func() {
	client := clientOf(always([]byte(taskBody)))
	return func() { check(must(client.Tasks.Get(context.Background(), "task-1")).ID == "task-1") }
}

// plainGet sends what the SDK sends, with net/http and encoding/json.
func plainGet(client *http.Client) {
	const url = "https://api.example.com/acme/v1/tasks/task-1"
	r := must(http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil))
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "webdelivery-go/"+webdelivery.Version)
	r.SetBasicAuth("alice", "correct-horse-battery")
	var task webdelivery.Task // has the members that a user's own type has
	check(json.Unmarshal(read(client.Do(r)), &task) == nil && task.ID == "task-1")
}

// BenchmarkGet reads a task from memory: a network costs more than both clients, and varies by more than they differ.
// Noise only makes a call longer, so the shortest counts.
func BenchmarkGet(b *testing.B) {
	plain := &http.Client{Transport: always([]byte(taskBody))}
	measure := func(b *testing.B, get func()) {
		shortest := time.Hour
		repeat(b, func() {
			began := time.Now()
			get()
			shortest = min(shortest, time.Since(began))
		})
		b.ReportMetric(float64(shortest.Nanoseconds()), "min-ns/call")
	}
	b.Run("by=net-http", func(b *testing.B) { measure(b, func() { plainGet(plain) }) })
	b.Run("by=webdelivery", func(b *testing.B) { measure(b, getting()) })
}

func purgeOf(n int) webdelivery.PurgeRequest {
	request := webdelivery.PurgeRequest{Action: webdelivery.ActionPurge}
	for i := range n { // each is 77 bytes of JSON with its comma
		request.URIs = append(request.URIs, webdelivery.Exact(fmt.Sprintf("https://www.example.com/%05d", i)))
	}
	return request
}

// submitting returns a function that submits n URIs.
func submitting(n int) func() {
	const receipt = `{"code":201,"purge_response":{"transaction_status_uri":"/transactions/17"},"transaction_id":17}`
	request, client := purgeOf(n), clientOf(always([]byte(receipt)))
	return func() { must(client.Purge.Submit(context.Background(), request)) }
}

// BenchmarkSubmit submits 100,000 URIs. The reference only encodes the body, in memory.
func BenchmarkSubmit(b *testing.B) {
	body := map[string]webdelivery.PurgeRequest{"purge_request": purgeOf(100_000)}
	b.Run("by=json.Marshal", func(b *testing.B) { repeat(b, func() { must(json.Marshal(body)) }) })
	b.Run("by=webdelivery", func(b *testing.B) { repeat(b, submitting(100_000)) })
}

// BenchmarkQueue measures 10,000 callers with one URI each, under the service's limit of two requests per second. One by
// one they would need 83 minutes.
func BenchmarkQueue(b *testing.B) {
	requests := 0
	repeat(b, func() {
		srv := webdeliverytest.NewServer(b, webdeliverytest.WithPurgeDuration(0))
		defer srv.Close()
		queue := must(srv.Client(b).Purge.NewQueue(webdelivery.QueueOptions{}))
		var all sync.WaitGroup
		for _, uri := range purgeOf(10_000).URIs {
			all.Go(func() { must(queue.Purge(context.Background(), uri)) })
		}
		all.Wait()
		requests += srv.Count(http.MethodPost, "/cache/purge")
		check(queue.Close(context.Background()) == nil)
	})
	b.ReportMetric(float64(requests)/float64(b.N), "requests/op")
}

const listID = "5e1f0d2c-0000-4000-9000-000000000000"

// planning returns a client of a service with a list of n entries, and a function that plans as many, of which half are
// equal. The fake makes each response once, before it is measured.
func planning(tb testing.TB, n int) (client *webdelivery.Client, plan func()) {
	texts := make([]string, n+n/2)
	for i := range texts {
		texts[i] = fmt.Sprintf("198.%d.%d.%d", 18+i>>16, i>>8&255, i&255)
	}
	fake := webdeliverytest.NewServer(tb, webdeliverytest.InMemory())
	fake.AddNetworkList(webdeliverytest.NetworkListSpec{ID: listID, Entries: texts[:n]})
	var bodies sync.Map
	client = clientOf(func(r *http.Request) []byte {
		address := r.URL.RequestURI()
		body, known := bodies.Load(address)
		if !known {
			copied := r.Clone(r.Context())
			copied.URL = must(r.URL.Parse(fake.URL + address))
			body = read(fake.HTTPClient().Transport.RoundTrip(copied))
			bodies.Store(address, body)
		}
		return body.([]byte)
	})
	return client, func() {
		p := must(client.NetworkLists.Plan(context.Background(), listID, texts[n/2:], webdelivery.PlanOptions{MaxRemove: -1}))
		check(len(p.Add) == n/2 && len(p.Remove) == n/2)
	}
}

// BenchmarkPlan plans 50,000 entries against as many. The reference only reads the list, in the same way.
func BenchmarkPlan(b *testing.B) {
	const n = 50_000
	client, plan := planning(b, n)
	b.Run("by=AllEntries", func(b *testing.B) {
		options := webdelivery.EntryOptions{Count: 1000, ReadAhead: 4}
		repeat(b, func() { check(count(client.NetworkLists.AllEntries(b.Context(), listID, options)) == n) })
	})
	b.Run("by=Plan", func(b *testing.B) { repeat(b, plan) })
}

// Allocations are the same in every run, unlike times. So one more for each call, row or URI fails here, in the change
// that adds it: if it is meant, change the number and say why in the commit.
func TestAllocations(t *testing.T) { //nolint:paralleltest // what other tests allocate would be counted, too
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties pools
	scanning := func(s *shape, n int) func() {
		client := clientOf(always(s.body(n)))
		return func() { check(s.scan(allRows(client)) == n) }
	}
	rows := clientOf(always(shapes[0].body(1_000)))
	list, plan := planning(t, 2_000)
	for _, tt := range []struct {
		name string
		most float64
		call func()
	}{
		{"Scan of 1,000 short rows", 284, scanning(shapes[0], 1_000)},
		{"Scan of 10,000 short rows", 296, scanning(shapes[0], 10_000)},
		{"Scan of 10,000 mixed rows", 15_475, scanning(shapes[1], 10_000)},
		{"Scan of 1,000 long rows", 2_212, scanning(shapes[2], 1_000)},
		{"Query of 1,000 rows", 161, func() { check(queryAll(rows) == 1_000) }},
		{"Tasks.Get", 46, getting()},
		{"Submit of 1 URI", 67, submitting(1)},
		{"Submit of 1,000 URIs", 67, submitting(1_000)},
		{"Entries: a page of 100", 406, func() {
			must(list.NetworkLists.Entries(context.Background(), listID, webdelivery.EntryOptions{Count: 100}))
		}},
		{"Plan of 2,000 against 2,000 entries", 8_506, plan}, // 100 more than usual: pages are read in goroutines
	} {
		got := testing.AllocsPerRun(10, tt.call)
		if got > tt.most {
			t.Errorf("%s: %.0f allocations, and at most %.0f are allowed", tt.name, got, tt.most)
		}
		t.Logf("%s: %.0f of %.0f", tt.name, got, tt.most)
	}
}
