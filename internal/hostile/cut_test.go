package hostile

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
)

// cutFraming is the way in which an HTTP response marks the end of its body.
type cutFraming struct {
	name string
	head string                             // before the body: of this status, and so many bytes
	body func(whole string, cut int) string // what is sent of it
	// closeDelimited means that only the end of the connection ends the body, so a cut body looks complete.
	closeDelimited bool
}

func beginningOf(whole string, cut int) string { return whole[:cut] }

// chunked sends the beginning in one chunk. The last chunk, of no bytes, follows only if the body is complete.
func chunked(whole string, cut int) string {
	text := ""
	if cut > 0 {
		text = fmt.Sprintf("%x\r\n%s\r\n", cut, whole[:cut])
	}
	if cut == len(whole) {
		text += "0\r\n\r\n"
	}
	return text
}

func cutFramings() []cutFraming {
	return []cutFraming{
		{"no length", "HTTP/1.1 %[1]s\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n", beginningOf, true},
		{"a length", "HTTP/1.1 %[1]s\r\nContent-Type: application/json\r\nContent-Length: %[2]d\r\n\r\n", beginningOf, false},
		{"chunked", "HTTP/1.1 %[1]s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", chunked, false},
	}
}

// cutServer sends the same body to every request. For the first few requests, it sends only the beginning and closes
// the connection.
type cutServer struct {
	framing  cutFraming
	status   string
	whole    string
	cut      int
	first    int64 // so many; below 0: all
	requests atomic.Int64
}

// start returns a client of the server, whose retries wait for a millisecond.
func (s *cutServer) start(t *testing.T) *webdelivery.Client {
	t.Helper()
	return client(t, "http://"+startRaw(t, s.serve).addr, quick(nil)...)
}

func (s *cutServer) serve(conn net.Conn, _ int) {
	if _, ok := request(bufio.NewReader(conn)); !ok {
		return
	}
	cut := s.cut
	if n := s.requests.Add(1); s.first >= 0 && n > s.first {
		cut = len(s.whole)
	}
	_, _ = fmt.Fprintf(conn, s.framing.head, s.status, len(s.whole))
	_, _ = io.WriteString(conn, s.framing.body(s.whole, cut))
}

// cutCall is an operation whose response is cut, with the promise of docs/internals/reliability.md for it.
type cutCall struct {
	operations.Operation

	whole    string // its response (service document, section 2)
	attempts int64
	outcome  webdelivery.Outcome
	mayBeNil bool // a response without a body is a success
}

func (c cutCall) call(ctx context.Context, client *webdelivery.Client) error {
	use := &operations.Use{Task: "t-1", List: "l1", Entry: "e1", Transaction: 7, Poll: time.Second, Show: func(...any) {}}
	return c.Run(ctx, client, use)
}

const (
	aPage   = `{"items":[%s],"total":1,"has_more":false,"page_count":1,"page_index":1,"prev_uri":null,"next_uri":null}`
	aTask   = `{"id":"t-1","uri":"/tasks/t-1","operation":"o","status":"s","complete":true,"progress":100}`
	aList   = `{"uri":"/config/networklists/l1","id":"l1","type":"IP","list":["192.0.2.1"],"name":"ü","deprecated":false}`
	anEntry = `{"uri":"/config/networklists/l1/entries/e1","id":"e1","entry":"192.0.2.1","added_by":"a"}`
	aResult = `{"query":{"limit":10},"columns":[{"name":"client_ip"},{"name":"client_asn"}],"rows":[["192.0.2.1",1],["192.0.2.2",2]],"total_results":2}`
	aPurge  = `{"code":201,"description":"d","transaction_id":7,"purge_response":{"transaction_status_uri":"/transactions/7"}}`
)

// wholes are the complete responses by method and path. A change without an entry gets the changed object as its
// response.
func wholes() map[string]string {
	const some = `[{"name":"client_ip"}]`
	return map[string]string{
		"GET /tasks/{task}": aTask, "GET /tasks": fmt.Sprintf(aPage, aTask),
		"GET /config/networklists": fmt.Sprintf(aPage, aList), "GET /config/networklists/{list}": aList,
		"GET /config/networklists/{list}/entries":         fmt.Sprintf(aPage, anEntry),
		"GET /config/networklists/{list}/entries/{entry}": `{"id":"e1","type":"IP","network_list_uri":"/config/networklists/l1"}`,
		"GET /transactions/{transaction}":                 `{"code":200,"transaction_id":7,"transaction_response":{"begin_ts":1,"end_ts":2,"transaction_status":"DONE"}}`,
		"GET /stats/security/events/data":                 aResult, "GET /stats/security/events/dimensions": some,
		"GET /stats/security/waf/trends/metrics": some, "GET /stats/security/waf/trends/groupings": `[["client_ip"]]`,
		"DELETE /config/networklists/{list}": `{"task_id":"t1"}`, "DELETE /config/networklists/{list}/{entry}": `{"task_id":"t1"}`,
		"POST /config/networklists/{list}/entries": `{"task_id":"t1"}`,
		"POST /sessions": `{"id":"5e5510n"}`,
	}
}

// cutCalls are the operations with one request that has a response. Purges and rows have their own tests.
func cutCalls(t *testing.T) (calls []cutCall) {
	t.Helper()
	all := wholes()
	for _, op := range operations.Distinct() {
		if op.Polls || slices.Contains([]string{"NetworkLists.GetByName", "NetworkLists.Find"}, op.Name) || // they poll on, or send two requests
			op.Before > 0 || op.Method == http.MethodHead || op.Kind == operations.Purges || op.Kind == operations.Streams {
			continue
		}
		call := cutCall{Operation: op, whole: cmp.Or(all[op.Method+" "+op.Path], all["GET "+op.Path]), attempts: 4, outcome: webdelivery.OutcomeNotApplied}
		require.NotEmpty(t, call.whole, "%s: wholes lacks the response to %s %s", op, op.Method, op.Path)
		if op.Waits || op.Changes() {
			call.outcome = webdelivery.OutcomeUnknown
		}
		call.mayBeNil = op.Name == "Do" || op.Kind == operations.Deletes || op.Kind == operations.Writes
		if op.Kind == operations.Writes {
			call.attempts = 1
		}
		calls = append(calls, call)
	}
	return calls
}

// A call whose response body is cut is retried as often as docs/internals/reliability.md says, and fails with an unexpected end.
// If a later attempt gets the complete body, the call succeeds.
func TestBodiesThatAreCut(t *testing.T) {
	t.Parallel()
	for _, f := range cutFramings() {
		if f.closeDelimited {
			continue // TestBadBodiesThatAreNotCut
		}
		for _, call := range cutCalls(t) {
			n := len(call.whole)
			for _, cut := range []int{0, n / 2, n - 1} {
				t.Run(fmt.Sprint(f.name, "/", call, "/", cut), func(t *testing.T) {
					t.Parallel()
					once := &cutServer{framing: f, status: "200 OK", whole: call.whole, cut: cut, first: 1}
					err := call.call(t.Context(), once.start(t))
					if call.attempts > 1 {
						require.NoError(t, err)
					}
					always := &cutServer{framing: f, status: "200 OK", whole: call.whole, cut: cut, first: -1}
					err = call.call(t.Context(), always.start(t))
					require.ErrorIs(t, err, io.ErrUnexpectedEOF)
					require.NotErrorIs(t, err, webdelivery.ErrBadResponse)
					assert.Equal(t, call.attempts, always.requests.Load())
					assert.Equal(t, call.outcome, webdelivery.OutcomeOf(err))
				})
			}
		}
	}
}

// A body that is compressed is cut, too, if it ends before its length.
func TestGzipThatIsCut(t *testing.T) {
	t.Parallel()
	framing := cutFraming{name: "gzip", head: "HTTP/1.1 %[1]s\r\nContent-Encoding: gzip\r\nContent-Length: %[2]d\r\n\r\n", body: beginningOf}
	var zipped strings.Builder
	to := gzip.NewWriter(&zipped)
	_, err := to.Write([]byte(aTask + strings.Repeat(" ", 100)))
	require.NoError(t, err)
	require.NoError(t, to.Close())
	for _, cut := range []int{0, 5, zipped.Len() / 2, zipped.Len() - 1} { // nothing, within the header, the data, the checksum
		once := &cutServer{framing: framing, status: "200 OK", whole: zipped.String(), cut: cut, first: 1}
		require.NoError(t, getTask(t.Context(), once.start(t)), cut)
		always := &cutServer{framing: framing, status: "200 OK", whole: zipped.String(), cut: cut, first: -1}
		require.ErrorIs(t, getTask(t.Context(), always.start(t)), io.ErrUnexpectedEOF, cut)
		assert.Equal(t, int64(4), always.requests.Load(), cut)
	}
}

// A purge whose response is cut is sent again. This holds for a 303 as well, because its body is the receipt.
func TestReceiptsThatAreCut(t *testing.T) {
	t.Parallel()
	for _, f := range cutFramings() {
		for _, status := range []string{"201 Created", "303 See Other"} {
			if f.closeDelimited {
				continue
			}
			t.Run(f.name+"/"+status, func(t *testing.T) {
				t.Parallel()
				once := &cutServer{framing: f, status: status, whole: aPurge, cut: len(aPurge) / 2, first: 1}
				require.NoError(t, submit(t.Context(), once.start(t)))
				assert.Equal(t, int64(2), once.requests.Load())

				always := &cutServer{framing: f, status: status, whole: aPurge, cut: len(aPurge) / 2, first: -1}
				err := submit(t.Context(), always.start(t))
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				assert.Equal(t, int64(4), always.requests.Load())
				assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
			})
		}
	}
}

// If the rows are cut before the first one is complete, the query is retried. After the caller has received a row, the
// sequence ends with the error, once. If only the end of the connection ends the body, there is no retry, but the same
// rows and an error.
func TestRowsThatAreCut(t *testing.T) {
	t.Parallel()
	const rowsFirst = `{"rows":[["192.0.2.1",1],["192.0.2.2",2]],"columns":[{"name":"client_ip"},{"name":"client_asn"}],"total_results":2}`
	for _, f := range cutFramings() {
		for whole, ends := range map[string][2]int{
			aResult:   {strings.Index(aResult, `,["192.0.2.2"`), strings.Index(aResult, `],"total`)}, // of the rows
			rowsFirst: {len(rowsFirst), len(rowsFirst)},                                              // rows wait for their columns
		} {
			for cut := 0; cut < len(whole); cut += 7 {
				t.Run(fmt.Sprint(f.name, "/", whole[2:6], "/", cut), func(t *testing.T) {
					t.Parallel()
					rows := 0
					for _, end := range ends {
						if cut >= end {
							rows++
						}
					}
					attempts := int64(1)
					if rows == 0 && !f.closeDelimited {
						attempts = 4
						once := &cutServer{framing: f, status: "200 OK", whole: whole, cut: cut, first: 1}
						got, err := countRows(t, once)
						require.NoError(t, err)
						assert.Equal(t, 2, got)
					}
					always := &cutServer{framing: f, status: "200 OK", whole: whole, cut: cut, first: -1}
					got, err := countRows(t, always)
					assert.Equal(t, rows, got)
					assert.Equal(t, attempts, always.requests.Load())
					require.Error(t, err)
					if !f.closeDelimited {
						require.ErrorIs(t, err, io.ErrUnexpectedEOF)
						require.NotErrorIs(t, err, webdelivery.ErrBadResponse)
					}
				})
			}
		}
	}
}

func countRows(t *testing.T, s *cutServer) (n int, err error) {
	t.Helper()
	for _, err := range s.start(t).Stats.Events.All(t.Context(), operations.Events(time.Now(), 10)) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// A body that is complete by HTTP is what the service meant to send. If it is not JSON, a retry would get the same body,
// so there is none. The same holds for a body that only the end of the connection ends: nobody can tell if it was cut.
func TestBadBodiesThatAreNotCut(t *testing.T) {
	t.Parallel()
	for _, f := range cutFramings() {
		for _, body := range []string{`{"id":]`, `{"id":"t1"}}`, `<html><body>`, `{"id":"t1"`, ``, `null`} {
			t.Run(f.name+"/"+body, func(t *testing.T) {
				t.Parallel()
				for _, call := range cutCalls(t) {
					if call.mayBeNil || call.Kind == operations.LogsIn {
						continue
					}
					s := &cutServer{framing: f, status: "200 OK", whole: body, cut: len(body), first: -1}
					err := call.call(t.Context(), s.start(t))
					require.ErrorIs(t, err, webdelivery.ErrBadResponse, call)
					assert.Equal(t, int64(1), s.requests.Load(), call)
				}
			})
		}
	}
}
