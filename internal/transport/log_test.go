package transport_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// Each attempt has a record, and each retry; no record has a secret.
func TestTheLog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		request transport.Request
		script  []exchange
		want    []string
	}{
		{"a success", aRead, []exchange{after(3*time.Second, answer(200, `{}`))}, []string{
			`level=DEBUG msg="webdelivery: attempt" method=GET path=/acme/v1/things status=200 duration=3s attempt=1 wait=0s bytes=2`,
		}},
		{"a refusal", aWrite, []exchange{answer(404, `{"description":"words"}`)}, []string{
			`level=DEBUG msg="webdelivery: attempt" method=POST path=/acme/v1/things status=404 duration=0s attempt=1 wait=0s bytes=23`,
		}},
		{"a retry", aRead, []exchange{answer(503, `down`, "Retry-After", "7"), answer(200, ``)}, []string{
			`level=DEBUG msg="webdelivery: attempt" method=GET path=/acme/v1/things status=503 duration=0s attempt=1 wait=0s bytes=4`,
			`level=WARN msg="webdelivery: retry" method=GET path=/acme/v1/things attempt=1 status=503 wait=7s`,
			`level=DEBUG msg="webdelivery: attempt" method=GET path=/acme/v1/things status=200 duration=0s attempt=2 wait=0s bytes=0`,
		}},
		{"an error with a secret", aWrite, []exchange{func(*http.Request) (*http.Response, error) {
			return nil, errors.New("lost " + password + "\nBasic " + basicPair)
		}}, []string{
			`level=DEBUG msg="webdelivery: attempt" method=POST path=/acme/v1/things status=0 duration=0s attempt=1 wait=0s bytes=0 error="\"lost [redacted]\\n[redacted]\""`,
		}},
		{"a path with a secret", transport.Request{Method: "GET", Path: "/" + password, Query: "token=abcdef"}, []exchange{answer(200, ``)}, []string{
			`level=DEBUG msg="webdelivery: attempt" method=GET path=/acme/v1/[redacted] status=200 duration=0s attempt=1 wait=0s bytes=0`,
		}},
		{"a body that is taken", transport.Request{Method: "GET", Path: "/a", Take: func(io.Reader) (int, error) { return 0, nil }}, []exchange{answer(200, `{"a":1}`)}, []string{
			`level=DEBUG msg="webdelivery: attempt" method=GET path=/acme/v1/a status=200 duration=0s attempt=1 wait=0s bytes=7`,
		}},
		{"a refusal in a stream", transport.Request{Method: "GET", Path: "/a", Begin: begins(400, nil)}, []exchange{answer(200, `{"code":400}`)}, []string{
			`level=DEBUG msg="webdelivery: attempt" method=GET path=/acme/v1/a status=200 duration=0s attempt=1 wait=0s bytes=12`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				_, _ = f.send(tt.request)
				assert.Equal(f, strings.Join(tt.want, "\n")+"\n", f.log.String())
			}, tt.script...)
		})
	}
}

// The record of a stream is written when it is closed, once, and has all that was read.
func TestTheLogOfAStream(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		stream := f.succeeds(aStream()).Stream
		_, _ = io.Copy(io.Discard, stream)
		time.Sleep(3 * time.Second)
		assert.Empty(f, f.log.String())
		for range 2 {
			stream.Close()
			assert.Equal(f, `level=DEBUG msg="webdelivery: attempt" method=GET path=/acme/v1/things status=200 duration=3s attempt=1 wait=0s bytes=8`+"\n", f.log.String())
		}
	}, inParts(0, io.EOF, "abc", "defgh"))
}

// What the handler does not want is not written; without a logger nothing is.
func TestTheLogHasALevel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		level          slog.Level
		attempts, more int
	}{{slog.LevelDebug, 2, 1}, {slog.LevelInfo, 0, 1}, {slog.LevelWarn, 0, 1}, {slog.LevelError, 0, 0}} {
		handler := &countingHandler{level: tt.level, records: map[slog.Level]int{}}
		inFakeTime(t, func(c *transport.Config) { c.Logger = slog.New(handler) }, func(f *fixture) {
			f.succeeds(aRead)
		}, answer(500, ""), answer(200, ""))
		assert.Equal(t, tt.attempts, handler.records[slog.LevelDebug])
		assert.Equal(t, tt.more, handler.records[slog.LevelWarn])
	}
	inFakeTime(t, func(c *transport.Config) { c.Logger = nil }, func(f *fixture) {
		f.succeeds(aRead)
		f.succeeds(aStream()).Stream.Close()
	}, answer(500, ""), answer(200, "abcd"))
}

// countingHandler takes what is at its level, and relies on being asked first.
type countingHandler struct {
	level   slog.Level
	records map[slog.Level]int
}

func (h *countingHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *countingHandler) Handle(_ context.Context, r slog.Record) error {
	h.records[r.Level]++
	return nil
}

func (h *countingHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *countingHandler) WithGroup(string) slog.Handler      { return h }
