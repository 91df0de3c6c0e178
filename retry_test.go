package webdelivery_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
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
	for asked, want := range map[string]time.Duration{
		"7": 7 * time.Second, "20": 20 * time.Second,
		"21": -1, "99999999999999999999": -1, // above the cap: no retry
	} {
		fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Status: 429, Count: 1, Header: http.Header{"Retry-After": {asked}}})
			began := time.Now()
			err := fixture.GetTask.Call(f.Context(), f.Client)
			if want < 0 {
				require.ErrorIs(f, err, webdelivery.ErrRateLimited, asked)
				assert.Equal(f, 1, f.Requests(fixture.GetTask))
			} else {
				require.NoError(f, err, asked)
			}
			assert.Equal(f, max(0, want), time.Since(began))
		})
	}
}

// Without Retry-After each wait is random, between 0 and a ceiling that doubles from MinWait to MaxWait.
func TestBackoffHasFullJitterUnderAnExponentialCeiling(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy   webdelivery.RetryPolicy
		attempts int
		ceilings []time.Duration // the last one is that of all further waits
	}{
		"by default":                             {webdelivery.RetryPolicy{}, 4, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}},
		"up to less than the default of MinWait": {webdelivery.RetryPolicy{MaxWait: 100 * time.Millisecond}, 4, []time.Duration{100 * time.Millisecond}},
		"up to 3 s":                              {webdelivery.RetryPolicy{MaxAttempts: 100, MinWait: time.Second, MaxWait: 3 * time.Second}, 100, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}},
	} {
		const calls = 25
		longest := make([]time.Duration, len(tt.ceilings))
		for range calls {
			fixture.InService(t, fixture.Setup{Options: []webdelivery.Option{webdelivery.WithRetry(tt.policy)}}, func(f *fixture.Fixture) {
				f.AddFault(testserver.Fault{Status: 503})
				_ = fixture.GetTask.Call(f.Context(), f.Client)
				seen := f.Srv.Requests()
				require.Len(f, seen, tt.attempts)
				for i := range seen[1:] {
					n := min(i, len(tt.ceilings)-1)
					wait := seen[i+1].Time.Sub(seen[i].Time)
					assert.Less(f, wait, tt.ceilings[n], name)
					longest[n] = max(longest[n], wait)
				}
			})
		}
		for i, d := range longest {
			assert.Greater(t, d, tt.ceilings[i]/2, "all of 25 random waits are in the lower half")
		}
	}
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
// it, also from a body. The error of this call contains it in its text, but errors.Is finds only the context's error.
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
	cause := errors.Join(
		&webdelivery.ValidationError{Field: "task_id", Reason: "is empty"},
		&webdelivery.Error{StatusCode: 404, Method: "GET", Path: "/tasks/other"},
		&webdelivery.TaskError{Task: &webdelivery.Task{ID: "other"}},
	)
	for where, transport := range transports {
		s := fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{Transport: fixture.RoundTripper(transport)})}}
		fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
			ctx, cancel := context.WithCancelCause(f.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			err := fixture.Submit.Call(ctx, f.Client)
			require.ErrorIs(f, err, context.Canceled, where)
			require.ErrorContains(f, err, "task_id: is empty")
			require.NotErrorIs(f, err, cause, "it may be the error of another call")
			require.NotErrorIs(f, err, webdelivery.ErrInvalid)
			require.NotErrorIs(f, err, webdelivery.ErrNotFound)
			var task *webdelivery.TaskError
			require.NotErrorAs(f, err, &task)
			var failed *webdelivery.Error
			require.ErrorAs(f, err, &failed)
			assert.Equal(f, "/acme/v1/cache/purge", failed.Path)
			assert.NotEqual(f, 404, failed.StatusCode)
		})
	}
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
