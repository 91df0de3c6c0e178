package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/pace"
	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// If the service says that requests come too fast, the pace slows down, and the user's limiter is called once for each
// refusal. The request is retried without using up its attempts.
func TestTooFast(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer exchange
	}{
		{"429", answer(429, "")},
		{"503", answer(503, "")},
		{"503 in a body", answer(200, `{"code":503}`)},
		{"429 whose body says so, too", answer(429, `{"code":429}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, nil, func(f *fixture) {
				l := &lender{}
				gate := l.gate()
				f.succeeds(limited(gate))
				assert.Equal(f, 8, f.count())
				assert.Len(f, l.paused(), 7)
				times := f.times()
				for i, pause := range l.paused() {
					assert.Equal(f, times[i]+pause, times[i+1])
					assert.GreaterOrEqual(f, pause, 750*time.Millisecond)
					assert.LessOrEqual(f, pause, 20*time.Second)
				}
				assert.Len(f, l.endings(), 8)
				assert.False(f, gate.Refusing())
				assert.Equal(f, 7, strings.Count(f.log.String(), `msg="webdelivery: retry"`))
				assert.NotContains(f, f.log.String(), "not paused")
			}, tt.answer, tt.answer, tt.answer, tt.answer, tt.answer, tt.answer, tt.answer, answer(200, ""))
		})
	}
	inFakeTime(t, nil, func(f *fixture) { // as long as the service asks for
		l := &lender{}
		f.succeeds(limited(l.gate()))
		assert.Equal(f, []time.Duration{30 * time.Second}, l.paused())
		assert.Equal(f, []time.Duration{0, 30 * time.Second}, f.times())
		assert.Contains(f, f.log.String(), `level=WARN msg="webdelivery: retry" method=POST path=/acme/v1/things attempt=1 status=429 wait=30s`)
	}, answer(429, "", "Retry-After", "30"), answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // a limiter that cannot pause, and one that fails to
		l := &lender{failing: errLost}
		f.succeeds(limited(l.gate()))
		assert.Contains(f, f.log.String(), `level=WARN msg="webdelivery: purge limiter not paused" method=POST path=/acme/v1/things attempt=1 error="connection lost"`)
		cannot := l.limiter()
		cannot.Pause = nil
		f.seen = nil
		f.succeeds(limited(transport.NewGate(pace.NewPace(), cannot, time.Minute)))
		f.seen = nil
		f.succeeds(limited(transport.NewGate(pace.NewPace(), nil, time.Minute)))
		assert.Len(f, l.paused(), 1)
	}, answer(429, ""), answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // what is not limited follows the policy
		failure := f.fails(aRepeated)
		assert.False(f, failure.TooFast)
		assert.Equal(f, 4, failure.Attempts)
	}, answer(429, ""))
	inFakeTime(t, nil, func(f *fixture) { // and other failures of what is limited do, too
		l := &lender{}
		failure := f.fails(limited(l.gate()))
		assert.False(f, failure.TooFast)
		assert.Equal(f, 4, failure.Attempts)
		assert.Empty(f, l.paused())
	}, answer(500, ""))
	inFakeTime(t, func(c *transport.Config) { c.Policy.MaxAttempts = 1 }, func(f *fixture) { // retries are off
		l := &lender{}
		gate := l.gate()
		failure := f.fails(limited(gate))
		assert.True(f, failure.TooFast)
		assert.Equal(f, transport.Unknown, failure.Outcome)
		require.NoError(f, failure.Cause)
		assert.True(f, gate.Refusing())
		assert.Len(f, l.paused(), 1)
	}, answer(503, ""))
}

// A status that is no success of the request does not speed the pace up, and its refusal is noted before its body
// arrives.
func TestARefusalIsNotedBeforeItsBody(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		l := &lender{}
		gate := l.gate()
		done := make(chan error)
		go func() {
			_, err := f.send(limited(gate))
			done <- err
		}()
		time.Sleep(time.Second / 2)
		assert.True(f, gate.Refusing())
		assert.Len(f, l.paused(), 1)
		assert.Equal(f, []ending{{0, 0}}, l.endings())
		require.NoError(f, <-done)
		assert.Len(f, l.paused(), 1)
	}, withBody(503, func(context.Context) io.Reader { return pausing{time.Second} }), answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // a refusal of another kind accepts nothing
		gate := (&lender{}).gate()
		f.fails(limited(gate))
		assert.True(f, gate.Refusing())
	}, answer(503, ""), answer(400, ""))
}

// If others were accepted since a request was refused last, the refusal is its own: it alone waits, and no limiter is
// called.
func TestARefusalOfOneRequestAlone(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		l := &lender{}
		gate := l.gate()
		var faults []time.Duration
		f.script = []exchange{func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/acme/v1/fault" {
				return answer(200, "")(r)
			}
			if faults = append(faults, time.Since(f.began)); len(faults) > 6 {
				return answer(200, "")(r)
			}
			return answer(503, "")(r)
		}}
		done := make(chan error)
		go func() {
			r := limited(gate)
			r.Path = "/fault"
			_, err := f.send(r)
			done <- err
		}()
		for range 60 {
			time.Sleep(700 * time.Millisecond)
			f.succeeds(limited(gate))
		}
		require.NoError(f, <-done)
		assert.Len(f, faults, 7)
		assert.Less(f, len(l.paused()), 4, "the first refusals are taken for everybody's")
		assert.NotEmpty(f, l.paused())
		// Alone it waits between 250 and 500 ms, then twice, and four times as long.
		assert.GreaterOrEqual(f, faults[6]-faults[3], 1750*time.Millisecond)
	})
}

// A limited request that is refused to the end comes again until its ThrottleTimeout, and not before.
func TestTheThrottleTimeout(t *testing.T) {
	t.Parallel()
	const gaveUp = "refused as too fast, and not retried past the ThrottleTimeout of 5m0s"
	for range 5 { // the pace is drawn at random
		inFakeTime(t, nil, func(f *fixture) {
			l := &lender{}
			failure := f.fails(limited(l.gate()))
			require.EqualError(f, failure.Cause, gaveUp)
			assert.True(f, failure.TooFast)
			assert.Equal(f, 503, failure.Status)
			assert.Equal(f, transport.Unknown, failure.Outcome)
			assert.Greater(f, time.Since(f.began), 5*time.Minute-20*time.Second)
			assert.LessOrEqual(f, time.Since(f.began), 5*time.Minute)
			assert.Greater(f, failure.Attempts, 10)
			assert.Len(f, l.endings(), failure.Attempts)
		}, answer(503, ""))
		inFakeTime(t, nil, func(f *fixture) { // the caller's deadline comes before
			ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
			defer cancel()
			failure := f.failsWith(ctx, limited((&lender{}).gate()))
			require.ErrorIs(f, failure, context.DeadlineExceeded)
			assert.NotContains(f, failure.Cause.Error(), "ThrottleTimeout")
			assert.Contains(f, failure.Cause.Error(), "the service refuses purges as too fast")
			assert.Less(f, time.Since(f.began), time.Minute)
		}, answer(503, ""))
	}
	inFakeTime(t, nil, func(f *fixture) { // the service asks for as much, and for more
		f.succeeds(limited((&lender{}).gate()))
		assert.Equal(f, []time.Duration{0, 5 * time.Minute}, f.times())
	}, answer(503, "", "Retry-After", "300"), answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) {
		failure := f.fails(limited((&lender{}).gate()))
		require.EqualError(f, failure.Cause, gaveUp)
		assert.Equal(f, []time.Duration{0}, f.times())
	}, answer(503, "", "Retry-After", "301"), answer(200, ""))
	slow := &lender{acquire: func(ctx context.Context, n int) error {
		if n == 1 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	inFakeTime(t, nil, func(f *fixture) { // the limiter has no second permit
		failure := f.fails(limited(slow.gate()))
		require.EqualError(f, failure.Cause, "waiting for a purge permit: "+gaveUp)
		assert.Equal(f, 5*time.Minute, time.Since(f.began))
		assert.NotErrorIs(f, failure, context.DeadlineExceeded)
	}, answer(503, ""))
	for deadline, want := range map[time.Duration]string{
		4 * time.Minute: "waiting for a purge permit: context deadline exceeded",
		6 * time.Minute: "waiting for a purge permit: " + gaveUp,
	} {
		inFakeTime(t, nil, func(f *fixture) { // the same, and the caller has a deadline
			slow.lent = nil
			ctx, cancel := context.WithTimeout(f.Context(), deadline)
			defer cancel()
			failure := f.failsWith(ctx, limited(slow.gate()))
			require.EqualError(f, failure.Cause, want)
			assert.Equal(f, min(deadline, 5*time.Minute), time.Since(f.began))
		}, answer(503, ""))
	}
	foresees := &lender{acquire: func(_ context.Context, n int) error { // that it will be late, as rate.Limiter does
		if n == 1 {
			return nil
		}
		return context.DeadlineExceeded
	}}
	for deadline, want := range map[time.Duration]string{
		4 * time.Minute: "waiting for a purge permit: context deadline exceeded",
		6 * time.Minute: "waiting for a purge permit: " + gaveUp,
	} {
		inFakeTime(t, nil, func(f *fixture) {
			foresees.lent = nil
			ctx, cancel := context.WithTimeout(f.Context(), deadline)
			defer cancel()
			failure := f.failsWith(ctx, limited(foresees.gate()))
			require.EqualError(f, failure.Cause, want)
			assert.Less(f, time.Since(f.began), 3*time.Second)
		}, answer(503, ""))
	}
	inFakeTime(t, nil, func(f *fixture) { // the caller leaves, and the limiter speaks of a deadline
		foresees := &lender{acquire: func(ctx context.Context, n int) error {
			if n > 1 {
				<-ctx.Done()
				return context.DeadlineExceeded
			}
			return nil
		}}
		ctx, cancel := context.WithCancel(f.Context())
		time.AfterFunc(time.Minute, cancel)
		failure := f.failsWith(ctx, limited(foresees.gate()))
		require.EqualError(f, failure.Cause, "context canceled: waiting for a purge permit: context deadline exceeded")
		assert.Equal(f, time.Minute, time.Since(f.began))
	}, answer(503, ""))
	inFakeTime(t, nil, func(f *fixture) { // with a context of the user's own nothing stays behind
		_, err := f.transport.Send(forever{f.Context(), make(chan struct{})}, limited((&lender{}).gate()))
		require.NoError(f, err)
	}, answer(503, ""), answer(200, ""))
	inFakeTime(t, nil, func(f *fixture) { // the same, and it fails in its own way
		other := &lender{acquire: func(_ context.Context, n int) error {
			if n == 1 {
				return nil
			}
			return errLost
		}}
		require.EqualError(f, f.fails(limited(other.gate())).Cause, "waiting for a purge permit: connection lost")
	}, answer(503, ""))
}

// forever is a context of the user's own that never ends. What waits for its end waits in a goroutine.
type forever struct {
	context.Context
	done chan struct{}
}

func (f forever) Done() <-chan struct{} { return f.done }

// Who waits for a permit while the service refuses everybody waits no longer than the gate's patience.
func TestPatience(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		l := &lender{}
		gate := transport.NewGate(pace.NewPace(), l.limiter(), time.Minute)
		ctx, cancel := context.WithCancel(f.Context())
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { f.failsWith(ctx, limited(gate)) })
		synctest.Wait()
		wg.Go(func() {
			failure := f.fails(limited(gate))
			assert.EqualError(f, failure.Cause, "waiting for a purge permit: webdelivery: rate limited: the service has refused all purges as too fast for 1m0s")
			assert.ErrorIs(f, failure, transport.ErrRateLimited)
			assert.Equal(f, transport.NotApplied, failure.Outcome)
		})
		time.Sleep(time.Minute)
		_, _ = gate.Acquire(canceledSoon(f.Context())) // somebody else comes
		cancel()
		wg.Wait()
	}, answer(503, "", "Retry-After", "120"))
}

func canceledSoon(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(time.Millisecond, cancel)
	return ctx
}

// A permit that was acquired while the service refused another request is returned: no request is sent during a pause.
func TestAPermitThatComesDuringAPause(t *testing.T) {
	t.Parallel()
	inFakeTime(t, nil, func(f *fixture) {
		l := &lender{acquire: func(_ context.Context, n int) error {
			if n == 2 {
				time.Sleep(2 * time.Second) // the first request is refused meanwhile
			}
			return nil
		}}
		gate := l.gate()
		f.script = []exchange{answer(200, "")}
		f.succeeds(aRead) // no purge waits for the first response
		f.script = []exchange{answer(200, ""), after(time.Second, answer(429, "", "Retry-After", "20")), answer(200, "")}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				_, err := f.send(limited(gate))
				assert.NoError(f, err)
			})
			synctest.Wait()
		}
		wg.Wait()
		times := f.times()
		require.Len(f, times, 4)
		assert.GreaterOrEqual(f, times[2], 21*time.Second)
		assert.GreaterOrEqual(f, times[3], 21*time.Second)
		assert.Contains(f, l.endings(), ending{0, unsent})
		assert.Equal(f, 4, l.count())
	})
}
