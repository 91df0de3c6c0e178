package hostile

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// handler is a log Handler that runs a function for each record, and returns an error.
type handler struct {
	do func(context.Context, slog.Record)
}

func (h handler) Enabled(context.Context, slog.Level) bool { return true }
func (h handler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h handler) WithGroup(string) slog.Handler            { return h }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	h.do(ctx, r)
	return errors.New("no log today")
}

// withSessions also responds to logins (service document, section 5).
func withSessions(t *testing.T) *raw {
	t.Helper()
	return startRaw(t, answers(func(req *http.Request, nth int) string {
		switch {
		case strings.HasSuffix(req.URL.Path, "/sessions"):
			return response("201 Created", `{"id":"session-1"}`)
		case strings.HasSuffix(req.URL.Path, "/cache/purge"):
			return receipt(nth + 1)
		default:
			return task("t-1")
		}
	}))
}

func loggedBy(t *testing.T, service *raw, auth webdelivery.Auth, do func(context.Context, slog.Record)) *webdelivery.Client {
	t.Helper()
	c, err := webdelivery.NewClient("http://"+service.addr, "customer", auth, webdelivery.WithLogger(slog.New(handler{do})))
	require.NoError(t, err)
	return c
}

// A Handler calls the client with the context that it got. Within a login, that call would wait for the session of the
// same login, so it gets an error. Everywhere else it gets its result. No call hangs.
func TestHandlersThatCallTheClient(t *testing.T) {
	t.Parallel()
	service := withSessions(t)
	var c *webdelivery.Client
	var mu sync.Mutex
	within := map[string]error{}
	c = loggedBy(t, service, webdelivery.SessionAuth("alice", "correct-horse-battery"), func(ctx context.Context, r slog.Record) {
		if ctx.Value(innerKey{}) != nil {
			return
		}
		var path string
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "path" {
				path = a.Value.String()
			}
			return true
		})
		err := getTask(context.WithValue(ctx, innerKey{}, true), c)
		mu.Lock()
		defer mu.Unlock()
		within[path[strings.LastIndex(path, "/v1/")+len("/v1"):]] = err
	})
	ctx := bounded(t)
	require.True(t, ends(ctx, t, func() {
		assert.NoError(t, getTask(ctx, c))
		assert.NoError(t, submit(ctx, c))
		assert.NoError(t, addEntries(ctx, c))
	}))
	require.Len(t, within, 4)
	require.ErrorContains(t, within["/sessions"], "from within the login")
	assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(within["/sessions"]))
	delete(within, "/sessions")
	for path, err := range within {
		assert.NoError(t, err, path)
	}
}

type innerKey struct{}

// A Handler panics in the goroutine of a call: the panic reaches the caller, and the client keeps working. Purges lose
// no permit: after many such purges, the next one waits no longer than the pace of two per second.
func TestHandlersThatPanic(t *testing.T) {
	t.Parallel()
	service := withSessions(t)
	var quiet atomic.Bool
	c := loggedBy(t, service, webdelivery.BasicAuth("alice", "correct-horse-battery"), func(context.Context, slog.Record) {
		if !quiet.Load() {
			panic("no log today")
		}
	})
	ctx := bounded(t)
	for range 4 {
		for _, k := range kinds {
			assert.PanicsWithValue(t, "no log today", func() { _ = k.call(ctx, c) }, k.name)
		}
	}
	quiet.Store(true)
	for range 3 {
		for _, k := range kinds {
			assert.NoError(t, k.call(ctx, c), k.name)
		}
	}
}

// A Handler that blocks delays only the call whose record it has.
func TestHandlersThatBlock(t *testing.T) {
	t.Parallel()
	service := withSessions(t)
	release, blocked := make(chan struct{}), make(chan struct{})
	var seen atomic.Bool
	c := loggedBy(t, service, webdelivery.BasicAuth("alice", "correct-horse-battery"), func(context.Context, slog.Record) {
		if !seen.Swap(true) {
			close(blocked)
			<-release
		}
	})
	ctx := bounded(t)
	var held sync.WaitGroup
	held.Go(func() { assert.NoError(t, submit(ctx, c)) })
	<-blocked
	for range 3 {
		for _, k := range kinds {
			assert.NoError(t, k.call(ctx, c), k.name)
		}
	}
	close(release)
	held.Wait()
}

// Control characters in a response or a request do not split a log record.
func TestRecordsAreOneLine(t *testing.T) {
	t.Parallel()
	service := startRaw(t, answers(func(*http.Request, int) string { return "garbage \x1b[31m\x00\xff level=ERROR\r\n\r\n" }))
	var log bytes.Buffer
	c := client(t, "http://"+service.addr, quick(nil, webdelivery.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))...)
	require.Error(t, getTask(bounded(t), c))
	lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
	assert.Len(t, lines, 4+3, "4 attempts, 3 retries")
	for _, line := range lines {
		assert.True(t, strings.HasPrefix(line, "time="), line)
		assert.NotContains(t, line, "\x1b")
	}
}
