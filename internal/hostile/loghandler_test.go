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

func loggedBy(t *testing.T, service *raw, do func(context.Context, slog.Record)) *webdelivery.Client {
	t.Helper()
	return client(t, "http://"+service.addr, webdelivery.WithLogger(slog.New(handler{do})))
}

// A Handler panics in the goroutine of a call: the panic reaches the caller, and the client keeps working. Purges lose
// no permit: after many such purges, the next one waits no longer than the pace of two per second.
func TestHandlersThatPanic(t *testing.T) {
	t.Parallel()
	service := startRaw(t, wellBehaved())
	var quiet atomic.Bool
	c := loggedBy(t, service, func(context.Context, slog.Record) {
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
	service := startRaw(t, wellBehaved())
	release, blocked := make(chan struct{}), make(chan struct{})
	var seen atomic.Bool
	c := loggedBy(t, service, func(context.Context, slog.Record) {
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
