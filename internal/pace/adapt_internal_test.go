package pace

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// constant is a jitter that never changes.
func constant(x float64) func() float64 { return func() float64 { return x } }

// A refusal pauses everybody until the next place, or for as long as the service asks.
func TestARefusalPausesEverybody(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0).Add(1000 * apart) // a place
	for _, tt := range []struct {
		jitter       float64
		asked, pause time.Duration
	}{
		{0.49, 0, apart + 49*apart/100}, // the next place is tried, at a random moment
		{0.51, 0, (most + 1) * apart},   // no place gets a chance until the last
		{0.49, 30 * time.Second, 30 * time.Second},
		{0.51, time.Millisecond, (most + 1) * apart},
	} {
		l := NewPace()
		l.jitter = constant(tt.jitter)
		permit, _ := l.take(&Caller{}, start)
		r := l.refuse(permit, start, tt.asked)
		assert.InDelta(t, tt.pause, r.Wait, float64(time.Microsecond))
		r.Wait = 0
		assert.Equal(t, Refusal{Everybody: true, Since: start}, r)
		_, wait := l.take(&Caller{}, start)
		assert.InDelta(t, tt.pause, wait, float64(time.Microsecond))
	}
}

// A purge that is refused again while others are accepted does not slow the others down. Only this purge waits, each
// time longer: from half to all of 0.5, 1, 2 and up to 16 s, at random.
func TestARefusalThatIsNotAboutThePace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		l.jitter = constant(0.999)
		poison, p := &Caller{Patience: time.Hour}, &Permit{}
		grant := func(c *Caller) {
			p = granted(t, l, c)
			p.End(time.Now())
		}
		grant(poison)
		assert.True(t, p.Refused(0).Everybody)
		for _, want := range []float64{0.5, 1, 2, 4, 8, 16, 16} {
			time.Sleep(busy) // there are no places
			grant(patient())
			p.Accepted()
			grant(poison)
			before := l.pace
			r := p.Refused(0)
			assert.False(t, r.Everybody)
			assert.InDelta(t, want, r.Wait.Seconds(), 0.01)
			assert.Equal(t, before.own, l.own)
			assert.InDelta(t, 1, l.chance, 0)
			assert.False(t, l.Pausing())
		}
		time.Sleep(busy)
		grant(poison)
		assert.True(t, p.Refused(0).Everybody, "nothing was accepted since")
		grant(patient())
		p.Accepted()
		grant(poison)
		r := p.Refused(time.Minute)
		assert.True(t, r.Everybody, "the service asks for a pause")
		assert.Equal(t, time.Minute, r.Wait)
	})
}

// Whether a refusal is about the pace or not, it pauses nobody if others were accepted. At a place that was only tried,
// it counts, and at the process's own, it does not.
func TestARefusalAtAPlace(t *testing.T) {
	t.Parallel()
	for mine, want := range map[bool]float64{true: 0.5, false: 0.25} {
		l, now := New(), time.Unix(1000, 0)
		l.jitter = constant(0.999)
		l.chance, l.accepted, l.refused = first, now, now
		l.own = 1 << ((l.placeAt(now) + 1) % cycle)
		if mine {
			l.own |= 1 << (l.placeAt(now) % cycle)
		}
		before := l.own
		r := l.refuse(&Permit{limiter: l, caller: &Caller{refused: now.Add(-1)}, place: l.placeAt(now)}, now, 0)
		assert.False(t, r.Everybody)
		assert.InDelta(t, want, l.chance, 0)
		assert.Equal(t, before, l.own)
		assert.True(t, l.resume.IsZero())
	}
}

// While the service accepts no purge, each waiting caller fails when its own patience ends, not one after the other.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New()
		var wg sync.WaitGroup
		began := time.Now()
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				asked := time.Now()
				c := &Caller{Patience: 5 * time.Minute}
				for {
					p, err := l.Acquire(t.Context(), c)
					var refused *RefusedError
					if errors.As(err, &refused) {
						assert.Equal(t, 5*time.Minute, refused.After)
						break
					}
					if !assert.NoError(t, err) {
						return
					}
					p.End(time.Now())
					if time.Since(p.Refused(0).Since) >= 5*time.Minute {
						break
					}
				}
				assert.GreaterOrEqual(t, time.Since(asked), 5*time.Minute)
			})
		}
		wg.Wait()
		assert.Less(t, time.Since(began), 6*time.Minute)
		assert.True(t, l.Refusing())
		p := granted(t, l, patient())
		p.Accepted()
		assert.False(t, l.Refusing())
	})
}
