package webdelivery_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// The wait before the second attempt. TestRetryAfter of internal/transport has every form of the header.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const stops = -1 * time.Second
	jitter := func(d time.Duration) bool { return d >= 0 && d <= 500*time.Millisecond }
	tests := []struct {
		name   string
		header http.Header
		want   time.Duration // 0: the backoff of the policy
	}{
		{"seconds", http.Header{"Retry-After": {"7"}}, 7 * time.Second},
		{"at the cap", http.Header{"Retry-After": {"20"}}, 20 * time.Second},
		{"above the cap", http.Header{"Retry-After": {"21"}}, stops},
		{"none", nil, 0},
		{"more than 64 bits", http.Header{"Retry-After": {"99999999999999999999"}}, stops},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
				f.AddFault(testserver.Fault{Status: 429, Count: 1, Header: tt.header})
				began := time.Now()
				err := fixture.GetTask.Call(f.Context(), f.Client)
				waited := time.Since(began)
				switch tt.want {
				case stops:
					require.ErrorIs(f, err, webdelivery.ErrRateLimited)
					assert.Zero(f, waited)
					assert.Equal(f, 1, f.Requests(fixture.GetTask))
				case 0:
					require.NoError(f, err)
					assert.True(f, jitter(waited), "waited %v", waited)
				default:
					require.NoError(f, err)
					assert.Equal(f, tt.want, waited)
				}
			})
		})
	}
}

// Without Retry-After each wait is random, between 0 and a ceiling that doubles: 0.5, 1, 2 s.
func TestBackoffHasFullJitterUnderAnExponentialCeiling(t *testing.T) {
	t.Parallel()
	ceilings := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}
	var longest [3]time.Duration
	fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 503})
		const calls = 25
		for range calls {
			_ = fixture.GetTask.Call(f.Context(), f.Client)
		}
		seen := f.Srv.Requests()
		require.Len(f, seen, 4*calls)
		for i := range seen {
			if n := i % 4; n > 0 {
				wait := seen[i].Time.Sub(seen[i-1].Time)
				assert.LessOrEqual(f, wait, ceilings[n-1])
				longest[n-1] = max(longest[n-1], wait)
			}
		}
	})
	for i, d := range longest {
		assert.Greater(t, d, ceilings[i]/2, "all of 25 random waits are in the lower half")
	}
}

func TestMaxWaitBoundsTheBackoff(t *testing.T) {
	t.Parallel()
	policy := webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 10, MinWait: time.Second, MaxWait: 3 * time.Second})
	fixture.InService(t, fixture.Setup{Options: []webdelivery.Option{policy}}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 503})
		_ = fixture.GetTask.Call(f.Context(), f.Client)
		seen := f.Srv.Requests()
		require.Len(f, seen, 10)
		for i := 1; i < len(seen); i++ {
			assert.LessOrEqual(f, seen[i].Time.Sub(seen[i-1].Time), 3*time.Second)
		}
	})
}

// The client does not begin a wait that would pass the caller's deadline: it returns the error of the response at
// once.
func TestNoWaitPastTheDeadline(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 503, Header: http.Header{"Retry-After": {"15"}}})
		ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		err := fixture.GetTask.Call(ctx, f.Client)
		require.ErrorIs(f, err, webdelivery.ErrServer)
		require.NotErrorIs(f, err, context.DeadlineExceeded)
		assert.Zero(f, time.Since(began))
	})
}

// The cause of a context, as golang.org/x/sync/errgroup sets it, may be the error of another call. net/http returns
// it, also from a body. The error of this call contains it in its text, but errors.Is finds only the context's error
// and the user's own.
func TestCancelledBecauseOfAnotherCall(t *testing.T) {
	t.Parallel()
	transports := map[string]func(r *http.Request) (*http.Response, error){
		"no response": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		},
		"half a body": func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Request: r, Body: io.NopCloser(causeReader{r.Context()})}, nil
		},
	}
	for name, other := range map[string]error{
		"invalid":  &webdelivery.ValidationError{Field: "task_id", Reason: "is empty"},
		"rejected": &webdelivery.Error{StatusCode: 404, Method: "GET", Path: "/tasks/other"},
		"task":     &webdelivery.TaskError{Task: &webdelivery.Task{ID: "other"}},
		"sentinel": webdelivery.ErrNotFound,
	} {
		for where, transport := range transports {
			t.Run(name+", "+where, func(t *testing.T) {
				t.Parallel()
				fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{
					webdelivery.WithHTTPClient(&http.Client{Transport: fixture.RoundTripper(transport)}),
				}}, func(f *fixture.Fixture) {
					ctx, cancel := context.WithCancelCause(f.Context())
					cause := fmt.Errorf("%w: %w", assert.AnError, other)
					time.AfterFunc(time.Second, func() { cancel(cause) })
					saysNothingOf(f, fixture.Submit.Call(ctx, f.Client), cause)
				})
			})
		}
	}
}

// saysNothingOf checks the error of a purge that ended by a cause which contains the error of another call.
func saysNothingOf(f *fixture.Fixture, err, cause error) {
	f.Helper()
	require.ErrorIs(f, err, context.Canceled)
	require.NotErrorIs(f, err, cause, "it may be the error of another call")
	require.ErrorContains(f, err, strings.ReplaceAll(cause.Error(), ": webdelivery: ", ": "), "the outermost says whose error it is")
	require.NotErrorIs(f, err, webdelivery.ErrInvalid)
	require.NotErrorIs(f, err, webdelivery.ErrNotFound)
	var failed *webdelivery.Error
	require.ErrorAs(f, err, &failed)
	assert.Equal(f, "/acme/v1/cache/purge", failed.Path)
	assert.NotEqual(f, 404, failed.StatusCode)
	var invalid *webdelivery.ValidationError
	require.NotErrorAs(f, err, &invalid)
	var task *webdelivery.TaskError
	require.NotErrorAs(f, err, &task)
}

// causeReader is a body that ends with its context, as those of net/http do.
type causeReader struct{ ctx context.Context }

func (r causeReader) Read([]byte) (int, error) {
	<-r.ctx.Done()
	return 0, context.Cause(r.ctx)
}

// Calls share no retries: while statistics answer 503 to 20 calls a second, calls for tasks, one in ten of which gets a
// 503, are retried as ever.
func TestPartsOfTheServiceShareNoRetries(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/stats/**", Status: 503})
		var all sync.WaitGroup
		for i := range 600 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				_, err := f.Client.Stats.Events.Dimensions(f.Context())
				assert.ErrorIs(f, err, webdelivery.ErrServer)
			})
			all.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				if i%10 == 0 {
					f.AddFault(testserver.Fault{Path: "/tasks/*", Status: 503, Count: 1})
				}
				assert.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
			})
		}
		all.Wait()
	})
}

// An attempt that timed out can be recognized, as the timeouts of package net can. It is not the end of the caller's
// context.
func TestAttemptTimeoutsAreRecognized(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithAttemptTimeout(time.Second)}}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Delay: time.Hour})
		err := fixture.GetTask.Call(f.Context(), f.Client)
		require.ErrorIs(f, err, os.ErrDeadlineExceeded)
		require.NotErrorIs(f, err, context.DeadlineExceeded)
		var timeout net.Error
		require.ErrorAs(f, err, &timeout)
		assert.True(f, timeout.Timeout())
	})
}
