package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// framing is the way in which a response of HTTP marks the end of its body.
type framing struct {
	name string
	head string                             // before the body: of this status, and so many bytes
	body func(whole string, cut int) string // what is sent of it
	// closeDelimited means that only the end of the connection ends the body, so a cut body looks complete.
	closeDelimited bool
}

func framings() []framing {
	beginning := func(whole string, cut int) string { return whole[:cut] }
	// The last chunk, of no bytes, follows only if the body is complete.
	chunked := func(whole string, cut int) string {
		text := ""
		if cut > 0 {
			text = fmt.Sprintf("%x\r\n%s\r\n", cut, whole[:cut])
		}
		if cut == len(whole) {
			text += "0\r\n\r\n"
		}
		return text
	}
	return []framing{
		{"no length", "HTTP/1.1 %[1]s\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n", beginning, true},
		{"a length", "HTTP/1.1 %[1]s\r\nContent-Type: application/json\r\nContent-Length: %[2]d\r\n\r\n", beginning, false},
		{"chunked", "HTTP/1.1 %[1]s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", chunked, false},
	}
}

// cutServer sends the same body to every request. For the first few requests, it sends only the beginning and closes
// the connection.
type cutServer struct {
	framing  framing
	status   string
	whole    string
	cut      int
	first    int64 // so many
	requests atomic.Int64
}

const all = 1 << 30

func (s *cutServer) client(t *testing.T) *webdelivery.Client {
	t.Helper()
	return client(t, "http://"+startRaw(t, s.serve).addr, nil)
}

func (s *cutServer) serve(conn net.Conn, _ int) {
	if !request(bufio.NewReader(conn)) {
		return
	}
	cut := s.cut
	if s.requests.Add(1) > s.first {
		cut = len(s.whole)
	}
	_, _ = fmt.Fprintf(conn, s.framing.head, s.status, len(s.whole))
	_, _ = io.WriteString(conn, s.framing.body(s.whole, cut))
}

const events = `{"query":{"limit":10},"columns":[{"name":"client_ip"},{"name":"client_asn"}],` +
	`"rows":[["192.0.2.1",1],["192.0.2.2",2]],"total_results":2}`

func query() webdelivery.EventsQuery {
	return webdelivery.EventsQuery{
		Dimensions: []string{webdelivery.DimClientIP}, Start: time.Now().Add(-time.Hour), End: time.Now(), Limit: 10,
	}
}

// A call whose body is cut is retried as often as docs/guarantees.md says, and fails with an unexpected end. The
// status has arrived, but the outcome of a write is unknown. If a later attempt gets the complete body, the call
// succeeds. A 303 to a purge is cut like a 201, because its body is the receipt.
func TestBodiesThatAreCut(t *testing.T) {
	t.Parallel()
	result := kind{"result", 4, webdelivery.OutcomeNotApplied, func(ctx context.Context, c *webdelivery.Client) error {
		_, err := c.Stats.Events.Query(ctx, query())
		return err
	}}
	for _, f := range framings() {
		for _, tt := range []struct {
			kind
			status, whole string
			needsNone     bool // a success without a body is one, too
		}{
			{read, "200 OK", good, false},
			{result, "200 OK", events, false},
			{purge, "201 Created", good, false},
			{purge, "303 See Other", good, false},
			{write, "200 OK", good, true},
			{deletion, "200 OK", good, true},
			{login, "200 OK", `{"id":"5e5510n"}`, false},
		} {
			n := len(tt.whole)
			for _, cut := range []int{0, n / 2, n - 1} {
				t.Run(fmt.Sprint(f.name, "/", tt.name, "/", tt.status[:3], "/", cut), func(t *testing.T) {
					t.Parallel()
					always := &cutServer{framing: f, status: tt.status, whole: tt.whole, cut: cut, first: all}
					err := tt.call(t.Context(), always.client(t))
					if f.closeDelimited { // nobody can tell that it was cut, so a retry would get the same
						if !tt.needsNone {
							require.ErrorIs(t, err, webdelivery.ErrBadResponse)
						}
						assert.Equal(t, int64(1), always.requests.Load())
						return
					}
					require.ErrorIs(t, err, io.ErrUnexpectedEOF)
					assert.Equal(t, int64(tt.attempts), always.requests.Load())
					assert.Equal(t, tt.outcome, webdelivery.OutcomeOf(err))
					if tt.attempts > 1 {
						once := &cutServer{framing: f, status: tt.status, whole: tt.whole, cut: cut, first: 1}
						require.NoError(t, tt.call(t.Context(), once.client(t)))
						assert.Equal(t, int64(2), once.requests.Load())
					}
				})
			}
		}
	}
}

// If the rows are cut before the first one is complete, the query is retried. After the caller has received a row, the
// sequence ends with the error, once. If only the end of the connection ends the body, there is no retry, but the same
// rows and an error.
func TestRowsThatAreCut(t *testing.T) {
	t.Parallel()
	const rowsFirst = `{"rows":[["192.0.2.1",1],["192.0.2.2",2]],"columns":[{"name":"client_ip"},{"name":"client_asn"}],"total_results":2}`
	ends := map[string][2]int{ // of the rows
		events:    {strings.Index(events, `,["192.0.2.2"`), strings.Index(events, `],"total`)},
		rowsFirst: {len(rowsFirst), len(rowsFirst)}, // rows wait for their columns
	}
	for _, f := range framings() {
		for whole, ends := range ends {
			for cut := 0; cut < len(whole); cut += 7 {
				t.Run(fmt.Sprint(f.name, "/", whole[2:6], "/", cut), func(t *testing.T) {
					t.Parallel()
					rows, attempts := 0, int64(1)
					for _, end := range ends {
						if cut >= end {
							rows++
						}
					}
					if rows == 0 && !f.closeDelimited {
						attempts = 4
						once := &cutServer{framing: f, status: "200 OK", whole: whole, cut: cut, first: 1}
						got, err := countRows(t, once)
						require.NoError(t, err)
						assert.Equal(t, 2, got)
					}
					always := &cutServer{framing: f, status: "200 OK", whole: whole, cut: cut, first: all}
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
	for _, err := range s.client(t).Stats.Events.All(t.Context(), query()) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
