package hostile

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
)

// raw is a server in the process of the test, which serves the connections by hand.
type raw struct {
	addr     string
	accepted atomic.Int64 // connections
}

// startRaw calls serve for each connection, with its number from 0, and closes the connection afterwards.
func startRaw(t *testing.T, serve func(conn net.Conn, n int)) *raw {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &raw{addr: listener.Addr().String()}
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			n := int(s.accepted.Add(1)) - 1
			all.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				serve(conn, n)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		end()
		all.Wait()
	})
	return s
}

// request reads a complete request. It returns false if there is none.
func request(r *bufio.Reader) (*http.Request, bool) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return req, err == nil
}

// answers returns a server that reads one request after the other, and writes the text of each response.
func answers(answer func(req *http.Request, nth int) string) func(net.Conn, int) {
	var count atomic.Int64
	return func(conn net.Conn, _ int) {
		r := bufio.NewReader(conn)
		for {
			req, ok := request(r)
			if !ok {
				return
			}
			text := answer(req, int(count.Add(1))-1)
			if _, err := io.WriteString(conn, text); err != nil || text == "" {
				return
			}
		}
	}
}

// task returns a response with the task of an id (service document, section 2.1).
func task(id string) string { return response("200 OK", taskBody(id)) }

func taskBody(id string) string {
	return fmt.Sprintf(`{"id":%q,"operation":"o","status":"done","complete":true,"progress":100}`, id)
}

// receipt returns the response to a purge (service document, section 2.3).
func receipt(id int) string {
	_, body := Action("").response(id)
	return response("201 Created", body)
}

func response(status, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// quick are settings with which a call fails fast. The timeout of an attempt is generous, because other tests keep the
// machine busy.
func quick(transport http.RoundTripper, more ...webdelivery.Option) []webdelivery.Option {
	options := []webdelivery.Option{
		webdelivery.WithRetry(webdelivery.RetryPolicy{MinWait: time.Millisecond, MaxWait: time.Second}),
		webdelivery.WithAttemptTimeout(20 * time.Second),
	}
	if transport != nil {
		options = append(options, webdelivery.WithHTTPClient(&http.Client{Transport: transport}))
	}
	return append(options, more...)
}

// transport returns a transport that trusts the authority, and uses HTTP/2 if the service does.
func (a *authority) transport(t *testing.T) *http.Transport {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.roots(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// client returns a client of the service at an address. Without a scheme, it uses HTTP.
func client(t *testing.T, base string, options ...webdelivery.Option) *webdelivery.Client {
	t.Helper()
	c, err := webdelivery.NewClient(base, "customer", webdelivery.BasicAuth("alice", "correct-horse-battery"), options...)
	require.NoError(t, err)
	return c
}

// bounded returns a context that ends long after everything here should have ended.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// ends runs f. It fails the test if f has not returned when the context ends, because a call may ignore its context.
func ends(ctx context.Context, t *testing.T, f func()) bool {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return assert.Fail(t, "the call hangs")
	}
}

// The three kinds of calls for which a fault has different consequences.
var kinds = []struct {
	name string
	call func(context.Context, *webdelivery.Client) error
}{
	{"read", getTask},
	{"purge", submit},
	{"write", addEntries},
}

var (
	getTask    = operation("Tasks.Get")
	submit     = operation("Purge.Submit")
	addEntries = operation("Do POST")
)

func operation(name string) func(context.Context, *webdelivery.Client) error {
	all := operations.All()
	i := slices.IndexFunc(all, func(op operations.Operation) bool { return op.String() == name })
	return func(ctx context.Context, c *webdelivery.Client) error {
		return all[i].Run(ctx, c, &operations.Use{Task: "t-1", List: "l", Show: func(...any) {}})
	}
}

func attemptsOf(err error) int {
	if e, ok := errors.AsType[*webdelivery.Error](err); ok {
		return e.Attempts
	}
	return 0
}
