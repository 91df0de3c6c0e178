package webdelivery_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// A wait ends by itself when nothing could be read for 10 minutes, or for what WaitMaxOutage says. It then has the error
// of the last poll, and no deadline.
func TestAnOutageEndsAWait(t *testing.T) {
	t.Parallel()
	down := testserver.Fault{Method: http.MethodGet, Status: 500}
	for name, tt := range map[string]struct {
		options []webdelivery.WaitOption
		ends    time.Duration // 0: with the context, after 2 hours
	}{
		"by default":    {nil, 10 * time.Minute},
		"sooner":        {[]webdelivery.WaitOption{webdelivery.WaitMaxOutage(time.Minute)}, time.Minute},
		"never":         {[]webdelivery.WaitOption{webdelivery.WaitMaxOutage(0)}, 0},
		"first timeout": {[]webdelivery.WaitOption{webdelivery.WaitTimeout(time.Minute)}, time.Minute},
	} {
		forTaskAndTransaction(t, 24*time.Hour, func(f *fixture, w waitable) {
			ctx, cancel := context.WithTimeout(f.Context(), 2*time.Hour)
			defer cancel()
			f.fail(down)
			began := time.Now()
			err := w.wait(ctx, tt.options...)
			require.ErrorIs(f, err, webdelivery.ErrServer, name)
			assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
			if tt.ends == 0 {
				assert.Equal(f, 2*time.Hour, time.Since(began), name)
				require.ErrorIs(f, err, context.DeadlineExceeded)
				return
			}
			assert.GreaterOrEqual(f, time.Since(began), tt.ends, name)
			assert.LessOrEqual(f, time.Since(began), tt.ends+time.Minute, name) // a poll makes up to 4 attempts
			if name != "first timeout" {
				assert.NotErrorIs(f, err, context.DeadlineExceeded)
				assert.ErrorContains(f, err, "nothing could be read for")
			}
		})
	}
}

// A wait honors Retry-After up to the end of an outage, polls once more then, and says what the service asked for.
func TestAWaitHonorsRetryAfter(t *testing.T) {
	t.Parallel()
	for _, asked := range []string{"15", "120", "3600"} {
		forTaskAndTransaction(t, 24*time.Hour, func(f *fixture, w waitable) {
			f.fail(testserver.Fault{Method: http.MethodGet, Status: 503, Header: http.Header{"Retry-After": {asked}}})
			requests := len(f.srv.Requests())
			ctx, cancel := context.WithTimeout(f.Context(), 6*time.Hour)
			defer cancel()
			began := time.Now()
			err := w.wait(ctx)
			require.NotErrorIs(f, err, context.DeadlineExceeded)
			require.ErrorIs(f, err, webdelivery.ErrServer)
			every, _ := time.ParseDuration(asked + "s")
			require.ErrorContains(f, err, "nothing could be read for 10m")
			require.ErrorContains(f, err, "the service asked to wait for another "+every.String())
			assert.GreaterOrEqual(f, time.Since(began), 10*time.Minute)
			assert.Less(f, time.Since(began), 11*time.Minute)
			assert.LessOrEqual(f, len(f.srv.Requests())-requests, int(10*time.Minute/every)+5, "the last poll may be tried 4 times")
		})
	}
}
