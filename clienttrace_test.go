package webdelivery_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// The hooks of the caller's httptrace see each attempt once, whatever hooks the SDK adds for itself.
func TestTheCallersTraceSeesEachAttemptOnce(t *testing.T) {
	t.Parallel()
	const attempts = 4
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(server.Close)
	client, err := webdelivery.NewClient(server.URL, "acme", webdelivery.BasicAuth("jo", "secret"),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: attempts, MinWait: 1, MaxWait: 1}))
	require.NoError(t, err)
	calls := map[string]func(context.Context) error{
		"Tasks.Get": func(ctx context.Context) error {
			_, err := client.Tasks.Get(ctx, taskID)
			return err
		},
		"Purge.Submit": func(ctx context.Context) error {
			_, err := client.Purge.Submit(ctx, purgeOf("http://www.example.com/a"))
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked, got, wrote, first atomic.Int32
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				GetConn:              func(string) { asked.Add(1) },
				GotConn:              func(httptrace.GotConnInfo) { got.Add(1) },
				WroteRequest:         func(httptrace.WroteRequestInfo) { wrote.Add(1) },
				GotFirstResponseByte: func() { first.Add(1) },
			})
			require.ErrorIs(t, call(ctx), webdelivery.ErrServer)
			for hook, times := range map[string]*atomic.Int32{
				"GetConn": &asked, "GotConn": &got, "WroteRequest": &wrote, "GotFirstResponseByte": &first,
			} {
				assert.EqualValues(t, attempts, times.Load(), hook)
			}
		})
	}
}

// net/http may continue to dial after an attempt has ended, and then reads the hooks. The next attempt must not write
// to them: the race detector would see it.
func TestADialThatOutlivesItsAttemptKeepsItsTrace(t *testing.T) {
	t.Parallel()
	const attempts = 4
	retries, handshakes := make(chan struct{}, attempts), make(chan struct{}, attempts)
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		<-retries // the attempt is over, and the next has not begun
		client, server := net.Pipe()
		context.AfterFunc(t.Context(), func() { _ = server.Close() })
		return client, nil
	}}
	client, err := webdelivery.NewClient("https://www.example.com", "acme", webdelivery.BasicAuth("jo", "secret"),
		webdelivery.WithHTTPClient(&http.Client{Transport: transport}), webdelivery.WithAttemptTimeout(5*time.Millisecond),
		webdelivery.WithLogger(slog.New(whenRetrying(func() { retries <- struct{}{} }))),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: attempts, MinWait: 1, MaxWait: 1}))
	require.NoError(t, err)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{TLSHandshakeStart: func() { handshakes <- struct{}{} }})
	_, err = client.Tasks.Get(ctx, taskID)
	require.ErrorContains(t, err, "no connection within 5ms")
	retries <- struct{}{}
	<-handshakes // a dial has read its hooks
}

// whenRetrying is a log handler that calls back before each retry.
type whenRetrying func()

func (whenRetrying) Enabled(context.Context, slog.Level) bool { return true }
func (h whenRetrying) Handle(_ context.Context, record slog.Record) error {
	if record.Message == "webdelivery: retry" {
		h()
	}
	return nil
}
func (h whenRetrying) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h whenRetrying) WithGroup(string) slog.Handler      { return h }
