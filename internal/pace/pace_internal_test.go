package pace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// step asks a limiter for a permit at a time, and expects it after a wait.
type step struct {
	at, wait time.Duration
	end      time.Duration // arrival of the request, reported at once. -1: on its way, -2: not sent
}

const never = time.Duration(-1)

// The first and the third of three requests are more than a second apart (service document, section 8). A slot becomes free
// 1.05 s after the arrival of its request, however long the request took.
func TestSlots(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, steps := range map[string][]step{
		"two at once, then 1.05 s after each arrival": {
			{0, 0, 10 * ms}, {0, 0, 30 * ms}, {40 * ms, 1020 * ms, 1060 * ms}, {1060 * ms, 20 * ms, 0}, {1080 * ms, 0, 0},
		},
		"a request on the way keeps its slot":        {{0, 0, -1}, {0, 0, 0}, {time.Hour, 0, -1}, {2 * time.Hour, never, 0}},
		"a permit that was not used is free at once": {{0, 0, -2}, {0, 0, -2}, {0, 0, -1}, {0, 0, -1}, {0, never, 0}},
		"an arrival in the future":                   {{0, 0, 5000 * ms}, {0, 0, 1000 * ms}, {0, 2050 * ms, -1}, {2050 * ms, 4000 * ms, 0}},
		"what was not taken does not pile up":        {{time.Hour, 0, time.Hour}, {time.Hour, 0, time.Hour}, {time.Hour, Hold, 0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, start := New(), time.Now()
			for i, s := range steps {
				time.Sleep(s.at - time.Since(start))
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Hour, cancel)
				permit, _ := l.Acquire(ctx, patient())
				if s.wait == never {
					assert.Nil(t, permit, "%s: step %d", name, i)
					return
				}
				require.Equal(t, s.at+s.wait, time.Since(start), "%s: step %d", name, i)
				switch s.end {
				case -1:
				case -2:
					permit.End(time.Time{})
				default:
					permit.End(start.Add(s.end))
				}
			}
		})
	}
}

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
