package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// framing is the way in which a server marks the end of a body.
type framing string

const (
	byLength framing = "Content-Length"
	byChunks framing = "chunks of a byte"
	byEnd    framing = "the end of the connection"
)

// serveBody listens on loopback and writes, by hand, a response with status 200 and this body to every request.
func serveBody(t *testing.T, f framing, body string) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	answer := func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		in := bufio.NewReader(conn)
		out := bufio.NewWriter(conn)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
			switch f {
			case byLength:
				_, _ = fmt.Fprintf(out, "Content-Length: %d\r\n\r\n%s", len(body), body)
			case byChunks:
				_, _ = io.WriteString(out, "Transfer-Encoding: chunked\r\n\r\n")
				for _, c := range []byte(body) {
					_, _ = fmt.Fprintf(out, "1\r\n%c\r\n", c)
				}
				_, _ = io.WriteString(out, "0\r\n\r\n")
			case byEnd:
				_, _ = io.WriteString(out, "\r\n"+body)
				_ = out.Flush()
				return
			}
			if out.Flush() != nil {
				return
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answer(conn)
		}
	}()
	return listener.Addr().String()
}

// onePoll is a context that ends with the first poll of a wait, which would otherwise continue.
func onePoll(ctx context.Context) (context.Context, webdelivery.WaitOption) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, webdelivery.OnProgress(func(webdelivery.Progress) { cancel() })
}

// If the body is not the expected resource, a call returns an error at once, whatever the framing of the body.
func TestBodiesThatAreSomethingElse(t *testing.T) {
	t.Parallel()
	const list = "5e1f0d2c-0000-4000-8000-000000000001"
	now := time.Now()
	query := webdelivery.EventsQuery{Dimensions: []string{webdelivery.DimClientIP}, Start: now.Add(-time.Hour), End: now}
	reads := map[string]func(t *testing.T, c *webdelivery.Client) error{
		"Tasks.Get": func(t *testing.T, c *webdelivery.Client) error {
			_, err := c.Tasks.Get(t.Context(), "t1")
			return err
		},
		"Tasks.Wait": func(t *testing.T, c *webdelivery.Client) error {
			ctx, once := onePoll(t.Context())
			_, err := c.Tasks.Wait(ctx, "t1", once)
			return err
		},
		"Tasks.All": func(t *testing.T, c *webdelivery.Client) error {
			for _, err := range c.Tasks.All(t.Context(), webdelivery.TaskListOptions{Status: "failed"}) {
				return err
			}
			return nil
		},
		"NetworkLists.Get": func(t *testing.T, c *webdelivery.Client) error {
			_, err := c.NetworkLists.Get(t.Context(), list)
			return err
		},
		"AllEntries with ReadAhead": func(t *testing.T, c *webdelivery.Client) error {
			for _, err := range c.NetworkLists.AllEntries(t.Context(), list, webdelivery.EntryOptions{}, webdelivery.ReadAhead(3)) {
				return err
			}
			return nil
		},
		"Plan": func(t *testing.T, c *webdelivery.Client) error {
			_, err := c.NetworkLists.Plan(t.Context(), list, []string{"192.0.2.1"}, webdelivery.PlanOptions{})
			return err
		},
		"Events.Rows": func(t *testing.T, c *webdelivery.Client) error {
			for _, err := range c.Stats.Events.Rows(t.Context(), query) {
				return err
			}
			return nil
		},
		"Events.Query": func(t *testing.T, c *webdelivery.Client) error {
			_, err := c.Stats.Events.Query(t.Context(), query)
			return err
		},
		"Purge.Wait": func(t *testing.T, c *webdelivery.Client) error {
			ctx, once := onePoll(t.Context())
			_, err := c.Purge.Wait(ctx, 7, once)
			return err
		},
	}
	long := strings.Repeat("under maintenance. ", 1000)
	for body, is := range map[string]error{
		`{}`:                                 webdelivery.ErrBadReply,
		`{"message":"under maintenance"}`:    webdelivery.ErrBadReply,
		`{"status":"maintenance"}`:           webdelivery.ErrBadReply,
		`<html>under maintenance</html>`:     webdelivery.ErrBadReply,
		``:                                   webdelivery.ErrBadReply,
		`null`:                               webdelivery.ErrBadReply,
		`{"code":503,"description":"later"}`: webdelivery.ErrServer,
		`{"description":"` + long + `","\u0063ode":"503"}`: webdelivery.ErrServer,
	} {
		for _, f := range []framing{byLength, byChunks, byEnd} {
			want := is
			if body == "" && f == byEnd {
				want = io.ErrUnexpectedEOF // like a body that was cut before its first byte
			}
			for name, read := range reads {
				t.Run(fmt.Sprint(name, " ", f, " ", body[:min(len(body), 40)]), func(t *testing.T) {
					t.Parallel()
					client, err := webdelivery.NewClient("http://"+serveBody(t, f, body), "acme", webdelivery.BasicAuth("alice", "correct-horse-battery"),
						webdelivery.WithRetry(webdelivery.RetryPolicy{MinWait: time.Millisecond, MaxWait: time.Millisecond}))
					require.NoError(t, err)
					assert.ErrorIs(t, read(t, client), want)
				})
			}
		}
	}
}
