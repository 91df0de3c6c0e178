package pace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patient is a caller with unlimited patience.
func patient() *Caller { return &Caller{Patience: time.Hour} }

// granted waits for a permit, which must come.
func granted(t *testing.T, l *Limiter, c *Caller) *Permit {
	t.Helper()
	p, err := l.Acquire(t.Context(), c)
	require.NoError(t, err)
	return p
}

// acquire waits in a goroutine. It returns the channel for the result.
func acquire(ctx context.Context, l *Limiter, c *Caller) chan any {
	done := make(chan any, 1)
	go func() {
		if p, err := l.Acquire(ctx, c); err != nil {
			done <- err
		} else {
			done <- p
		}
	}()
	synctest.Wait()
	return done
}

// Callers get permits in the order of their calls. Those that were refused before get every second permit, in the order
// of the refusals.
func TestOrder(t *testing.T) {
	t.Parallel()
	for arrive, want := range map[string]string{ // lower case: new callers; upper case: callers that were refused before
		"abc": "abc", "ABC": "ABC", "aB": "aB", "abcD": "aDbc", "abcdEF": "aEbFcd", "AbC": "AbC", "AbcDeF": "AbDcFe", "abCDe": "aCbDe",
	} {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			held := granted(t, l, patient())
			granted(t, l, patient())
			waiting := map[rune]chan any{}
			for _, name := range arrive {
				c := patient()
				if name < 'a' {
					c.refused = time.Now()
				}
				waiting[name] = acquire(t.Context(), l, c)
			}
			for i, name := range want {
				held.End(time.Time{})
				synctest.Wait()
				require.Len(t, waiting[name], 1, "%s: another caller got permit %d", arrive, i)
				held = (<-waiting[name]).(*Permit)
			}
		})
	}
}

// A bubble of testing/synctest begins in the year 2000. What purges in real time or in an earlier bubble left behind does
// not hold up its purges, and a permit that has not ended stays taken.
func TestAnotherClock(t *testing.T) {
	t.Parallel()
	l := New()
	held := granted(t, l, patient())
	p := granted(t, l, patient())
	p.Refused(20 * time.Hour)
	p.End(time.Now())
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for range 3 {
			p := granted(t, l, patient())
			p.End(time.Now())
			p.Accepted()
		}
		assert.Equal(t, 2*Hold, time.Since(began), "one slot, because a request is on its way in the other")
	})
	held.End(time.Time{})
}

// constant is a random number that is always the same.
func constant(x float64) func() float64 { return func() float64 { return x } }

// The rate falls with each refusal and grows with each accepted purge, within bounds. It ends a minute after the last
// refusal.
func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewPace()
		for _, want := range []float64{first, first * keep, first * keep * keep} {
			granted(t, l, patient()).Refused(0)
			assert.InDelta(t, want, l.rate, 1e-9)
		}
		p := granted(t, l, patient())
		for range 100 {
			p.Refused(0)
		}
		assert.InDelta(t, lowest, l.rate, 0)
		p.Accepted()
		assert.InDelta(t, lowest+gain, l.rate, 1e-9)
		for range 100 {
			p.Accepted()
		}
		assert.InDelta(t, highest, l.rate, 0)
		p.Refused(0)
		time.Sleep(rest + 1)
		granted(t, l, patient())
		assert.InDelta(t, highest, l.rate, 0, "there was nothing to send")
		time.Sleep(busy)
		granted(t, l, patient())
		assert.Zero(t, l.rate)
	})
}

// A purge that is refused again while others are accepted does not stop the others, whatever wait the service asks for.
// Only this purge waits, each time longer: from half to all of 0.5, 1, 2 and up to 16 s, at random.
func TestARefusalThatIsNotAboutThePace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		l.random = constant(0.999)
		poison, p := &Caller{Patience: time.Hour}, &Permit{}
		grant := func(c *Caller) {
			p = granted(t, l, c)
			p.End(time.Now())
		}
		grant(poison)
		assert.True(t, p.Refused(0).Everybody)
		for _, want := range []float64{0.5, 1, 2, 4, 8, 16, 16} {
			time.Sleep(busy) // only the slots limit
			grant(patient())
			p.Accepted()
			grant(poison)
			r := p.Refused(0)
			assert.False(t, r.Everybody)
			assert.InDelta(t, want, r.Wait.Seconds(), 0.01)
			assert.Zero(t, l.rate)
			assert.False(t, l.Pausing())
		}
		p.Refused(0)
		before := l.rate
		assert.Positive(t, before, "nothing was accepted since")
		grant(patient())
		p.Accepted()
		grant(poison)
		assert.Equal(t, Refusal{Wait: time.Minute, Since: time.Now()}, p.Refused(time.Minute))
		assert.InDelta(t, (before+gain)*keep, l.rate, 1e-9, "while there is a rate, it counts")
	})
}
