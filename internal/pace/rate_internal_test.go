package pace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// constant is a random number that is always the same.
func constant(x float64) func() float64 { return func() float64 { return x } }

// A refusal pauses everybody, at random for about as long as the rate says, or for as long as the service asks.
func TestARefusalPausesEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			random       float64
			asked, pause time.Duration
		}{
			{0, 0, 500 * time.Millisecond},
			{0.999, 0, 1499 * time.Millisecond},
			{0, 30 * time.Second, 30 * time.Second},
			{0.5, time.Millisecond, time.Second},
			{0.5, 2 * time.Hour, time.Hour}, // the caller's patience
		} {
			l, began := NewPace(), time.Now()
			l.random = constant(tt.random)
			r := granted(t, l, patient()).Refused(tt.asked)
			assert.Equal(t, Refusal{Wait: tt.pause, Everybody: true, Since: began}, r)
			granted(t, l, patient())
			assert.Equal(t, tt.pause, time.Since(began))
		}
	})
}

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
		assert.InDelta(t, most, l.rate, 0)
		p.Refused(0)
		time.Sleep(rest + 1)
		granted(t, l, patient())
		assert.InDelta(t, most, l.rate, 0, "there was nothing to send")
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
		time.Sleep(busy)
		grant(poison)
		assert.True(t, p.Refused(0).Everybody, "nothing was accepted since")
		before := l.rate
		grant(patient())
		p.Accepted()
		grant(poison)
		r := p.Refused(time.Minute)
		assert.Equal(t, time.Minute, r.Wait)
		assert.False(t, r.Everybody)
		assert.False(t, l.Pausing())
		assert.InDelta(t, (before+gain)*keep, l.rate, 1e-9, "while there is a rate, it counts")
	})
}

// The service refuses purges from its first refusal until it accepts one. For a purge that came later, it does since then.
func TestRefusing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, began := NewPace(), time.Now()
		p := granted(t, l, patient())
		assert.Equal(t, began, p.Refused(0).Since)
		time.Sleep(time.Minute)
		assert.Equal(t, began, p.Refused(0).Since)
		came := time.Now()
		assert.Equal(t, came, granted(t, l, patient()).Refused(0).Since)
		assert.True(t, l.Refusing())
		p.Accepted()
		assert.False(t, l.Refusing())
		assert.Equal(t, time.Now(), p.Refused(0).Since)
	})
}
