package pace

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const forever = untilWoken

// step asks a limiter for a permit at a time, and expects the permit or how long to wait for it.
type step struct {
	at, wait time.Duration
	end      time.Duration // arrival of the request, reported at once. -1: on its way, -2: not sent
}

// The first and the third of three requests are more than a second apart (service document, section 8). A slot becomes free
// 1.05 s after the arrival of its request, however long the request took.
func TestSlots(t *testing.T) {
	t.Parallel()
	ms := time.Millisecond
	tests := []struct {
		name  string
		steps []step
	}{
		{"two at once, then 1.05 s after each arrival", []step{
			{0, 0, 10 * ms}, {0, 0, 30 * ms}, {40 * ms, 1020 * ms, 0}, {1060 * ms, 0, 1060 * ms}, {1060 * ms, 20 * ms, 0}, {1080 * ms, 0, 0},
		}},
		{"a request on the way keeps its slot", []step{
			{0, 0, -1}, {0, 0, 0}, {time.Hour, 0, -1}, {2 * time.Hour, forever, 0},
		}},
		{"a permit that was not used is free at once", []step{{0, 0, -2}, {0, 0, -2}, {0, 0, -1}, {0, 0, -1}, {0, forever, 0}}},
		{"an arrival in the future", []step{{0, 0, 5000 * ms}, {0, 0, 1000 * ms}, {0, 2050 * ms, 0}, {2050 * ms, 0, -1}, {2050 * ms, 4000 * ms, 0}}},
		{"what was not taken does not pile up", []step{{time.Hour, 0, time.Hour}, {time.Hour, 0, time.Hour}, {time.Hour, Hold, 0}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, start := New(), time.Now()
			for i, s := range tt.steps {
				permit, wait := l.take(&Caller{}, start.Add(s.at))
				require.Equal(t, s.wait, wait, "step %d", i)
				if permit == nil {
					continue
				}
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
	tests := []struct {
		arrive string // lower case: a new caller; upper case: a caller that was refused before
		served string
	}{
		{"abc", "abc"},
		{"ABC", "ABC"},
		{"aB", "aB"},
		{"abcD", "aDbc"},
		{"abcdEF", "aEbFcd"},
		{"AbC", "AbC"},
		{"AbcDeF", "AbDcFe"},
		{"abCDe", "aCbDe"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			held, err := l.Acquire(t.Context(), patient())
			require.NoError(t, err)
			_, err = l.Acquire(t.Context(), patient())
			require.NoError(t, err)
			waiting := map[rune]chan any{}
			for _, name := range tt.arrive {
				c := patient()
				if name < 'a' {
					c.refused = time.Now()
				}
				waiting[name] = acquire(t.Context(), l, c)
			}
			served := ""
			for range tt.arrive {
				held.End(time.Time{})
				synctest.Wait()
				for name, done := range waiting {
					select {
					case p := <-done:
						held = p.(*Permit)
						served += string(name)
						delete(waiting, name)
					default:
					}
				}
			}
			assert.Equal(t, tt.served, served)
		})
	}
}

// A bubble of testing/synctest begins in the year 2000. What purges in real time or in an earlier bubble left behind does
// not hold up its purges, and a permit that has not ended stays taken.
func TestAnotherClock(t *testing.T) {
	t.Parallel()
	l := New()
	held, err := l.Acquire(t.Context(), patient())
	require.NoError(t, err)
	p, err := l.Acquire(t.Context(), patient())
	require.NoError(t, err)
	p.Refused(20 * time.Hour)
	p.End(time.Now())
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for range 3 {
			p, err := l.Acquire(t.Context(), patient())
			require.NoError(t, err)
			p.End(time.Now())
			p.Accepted()
		}
		assert.Equal(t, 2*Hold, time.Since(began), "one slot, because a request is on its way in the other")
	})
	held.End(time.Time{})
}

// Without slots, a limiter leaves the spacing to the one behind it, however many permits it grants in a row.
func TestPaceAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, began := NewPace(), time.Now()
		for range 10 * most {
			p, err := l.Acquire(t.Context(), patient())
			require.NoError(t, err)
			p.End(time.Now())
		}
		assert.Zero(t, time.Since(began))
	})
}
