package webdelivery_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// One record per attempt at Debug and one per retry at Warn, with the documented fields and no others.
func TestLogging(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	fixture.InService(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithLogger(logger)}}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 503, Count: 1, Header: http.Header{"Retry-After": {"2"}}, Body: "busy"})
		f.AddFault(testserver.Fault{Skip: 1, Delay: 30 * time.Millisecond})
		var response json.RawMessage
		require.NoError(f, f.Client.Do(f.Context(), http.MethodGet, "/tasks?operation=secret-operation", nil, &response))
		f.TakeSlots()
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))

		want := fmt.Sprintf(`time=2000-01-01T00:00:00.000Z level=DEBUG msg="webdelivery: attempt" operation="Do GET" method=GET path=/acme/v1/tasks status=503 duration=0s attempt=1 wait=0s bytes=4 request_id=request-1
time=2000-01-01T00:00:00.000Z level=WARN msg="webdelivery: retry" operation="Do GET" method=GET path=/acme/v1/tasks attempt=1 status=503 wait=2s
time=2000-01-01T00:00:02.030Z level=DEBUG msg="webdelivery: attempt" operation="Do GET" method=GET path=/acme/v1/tasks status=200 duration=30ms attempt=2 wait=0s bytes=%d request_id=request-2
`, len(response))
		got := log.String()
		require.True(f, strings.HasPrefix(got, want), "want\n%s\ngot\n%s", want, got)
		// The third purge waits for the slot of the first, which is free 1.05 s after its response; the second took
		// 30 ms.
		assert.Regexp(f, `method=POST path=/acme/v1/cache/purge status=201 duration=30ms attempt=1 wait=1.02s bytes=\d+ request_id=request-\d+\n$`, got)
		assert.NotContains(f, got, "secret-operation")

		log.Reset() // the record of a stream comes at its end
		for range f.Client.Stats.Events.All(f.Context(), fixture.FirstRows) {
			continue
		}
		assert.Regexp(f, `path=/acme/v1/stats/\S+ status=200 duration=30ms attempt=1 wait=0s bytes=[1-9]\d* request_id=request-\d+\n$`, log.String())
	})
}

// Middleware sees each attempt, logins included, the first one outermost, with the operation in the context. It keeps the
// limits of the transport below.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	var seen []string
	see := func(name string) webdelivery.Option {
		return webdelivery.WithMiddleware(func(next http.RoundTripper) http.RoundTripper {
			return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				operation, attempt := webdelivery.OperationFromContext(r.Context())
				seen = append(seen, fmt.Sprint(name, " ", operation, " ", attempt))
				return next.RoundTrip(r)
			})
		})
	}
	s := fixture.BySession
	s.Options = append(slices.Clone(s.Options), see("outer"), see("inner"))
	fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/tasks", Count: 1, Status: http.StatusServiceUnavailable})
		_, err := f.Client.Tasks.List(f.Context(), webdelivery.TaskListOptions{})
		require.NoError(f, err)
		require.NoError(f, f.Client.Do(f.Context(), http.MethodGet, "/tasks", nil, nil))
		assert.Equal(f, []string{
			"outer Sessions.Create 1", "inner Sessions.Create 1", "outer Tasks.List 1", "inner Tasks.List 1", "outer Tasks.List 2", "inner Tasks.List 2",
			"outer Do GET 1", "inner Do GET 1",
		}, seen)
	})
	operation, attempt := webdelivery.OperationFromContext(t.Context())
	assert.Equal(t, " 0", fmt.Sprint(operation, " ", attempt), "no request")
	_, err := webdelivery.NewClient("https://api.example.com", "acme", webdelivery.BasicAuth("alice", "secret"), webdelivery.WithMiddleware(nil))
	assert.Equal(t, []string{"WithMiddleware"}, invalidFields(err))
}
