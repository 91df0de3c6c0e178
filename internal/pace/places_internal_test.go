package pace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// What a refusal and an accepted purge at place 5 change.
func TestWhatAPlaceTeaches(t *testing.T) {
	t.Parallel()
	const five, six = 1 << 5, 1 << 6
	lost := func(p *pace) { p.lost(cycle+5, time.Unix(1000, 0)) }
	won := func(p *pace) { p.won(cycle + 5) }
	for name, tt := range map[string]struct {
		chance float64
		own    uint16
		jitter float64
		what   func(*pace)
		want   float64
		places uint16
	}{
		"the first refusal":               {1, 0, 0.9, lost, 1. / 2, 0},
		"a refusal without places":        {1. / 2, 0, 0.9, lost, 11. / 24, 0},
		"a refusal elsewhere":             {1. / 2, six, 0.9, lost, 1. / 4, six},
		"a refusal at an own place":       {1. / 8, five | six, 0.9, lost, 1. / 8, six},
		"a refusal at the last own place": {1. / 8, five, 0.9, lost, 1. / 2, 0},
		"a place won":                     {1. / 16, six, 0.9, won, 1. / 4, five | six},
		"a place won with a high chance":  {1. / 4, 0, 0.9, won, 1. / 2, five},
		"a place kept":                    {1. / 16, five, 0.125, won, 1. / 16, five},
		"a place given up":                {1. / 16, five | six, 0.124, won, 1. / 16, six},
		"no places":                       {1, 0, 0.9, won, 1, 0},
	} {
		p := newPace(constant(tt.jitter))
		p.chance, p.own = tt.chance, tt.own
		tt.what(&p)
		assert.InDelta(t, tt.want, p.chance, 1e-9, name)
		assert.Equal(t, tt.places, p.own, name)
	}
}

// The next permit comes at the next own place, or at another one that gets a chance, which is the smaller the more places
// there are.
func TestTheNextPlace(t *testing.T) {
	t.Parallel()
	place := time.Unix(0, 0).Add(1600 * apart) // place 0 of the cycle
	for name, tt := range map[string]struct {
		chance float64
		own    uint16
		jitter float64
		after  time.Duration // the place before which the process chooses
		want   time.Duration
	}{
		"no places":                                {1, 0, 0.9, time.Minute, time.Minute},
		"the next own one":                         {0.5, 1<<3 | 1<<9, 0.9, 0, 3 * apart},
		"the own one of the next cycle":            {0.5, 1 << 3, 0.9, 3 * apart, (3 + cycle) * apart},
		"the nearest place is the current one":     {0.5, 1 << 3, 0.9, apart*5/2 - 1, 3 * apart},
		"not the current one again":                {0.5, 1 << 3, 0.9, apart * 5 / 2, (3 + cycle) * apart},
		"another one, with its chance":             {0.5, 1 << 3, 0.33, 0, apart},
		"a smaller chance with one place":          {0.5, 1 << 3, 0.34, 0, 3 * apart},
		"a smaller chance with all places but one": {0.5, 1<<cycle - 2, 0.06, 15 * apart, (1 + cycle) * apart},
		"another one beside all others":            {0.5, 1<<cycle - 2, 0.058, 15 * apart, cycle * apart},
		"at the latest after 24 places":            {0.5, 0, 0.9, 0, 25 * apart},
		"without places, at a random moment":       {0.5, 0, 0.25, 0, apart + apart/4},
	} {
		p := newPace(constant(tt.jitter))
		p.chance, p.own, p.refused = tt.chance, tt.own, place
		p.choose(place.Add(tt.after), false)
		assert.Equal(t, tt.want, p.next.Sub(place), name)
	}
}

// A request leaves as long before its place as half of the last refused one took, so that it arrives there.
func TestRequestsArriveAtTheirPlace(t *testing.T) {
	t.Parallel()
	for took, lead := range map[time.Duration]time.Duration{
		0: 0, 200 * time.Millisecond: 100 * time.Millisecond, time.Hour: apart / 2,
	} {
		l, now := New(), time.Unix(0, 0).Add(1600*apart)
		l.jitter = constant(0.9)
		p, _ := l.take(&Caller{}, now)
		l.refuse(p, now.Add(took), 0)
		l.own = 1 << 7
		l.choose(now.Add(took), false)
		assert.Zero(t, (l.next.Add(lead).Sub(now)-7*apart)%(cycle*apart), took)
		assert.Equal(t, uint64(7), l.placeAt(l.next)%cycle)
	}
}

// There are no places a minute after the last refusal, or after a cycle for a process that had nothing to send.
func TestPlacesEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		unused time.Duration
		busy   bool // another purge waits
		want   bool
	}{
		{cycle * apart, false, true},
		{cycle*apart + 1, false, false},
		{cycle*apart + 1, true, true},
		{busy, true, true},
		{busy + 1, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := New()
			l.jitter = constant(0.9)
			p := granted(t, l, patient())
			p.Refused(0)
			if !tt.busy {
				p.End(time.Time{})
			}
			time.Sleep(tt.unused)
			l.next, l.resume, l.own = time.Time{}, time.Time{}, 1<<3
			granted(t, l, patient())
			assert.Equal(t, tt.want, l.chance < 1)
			assert.Equal(t, tt.want, l.own != 0)
		})
	}
}

// A process that uses the whole limit for longer than 24 permits sends at places, so that others have a chance there.
func TestALongQueueKeepsToPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, began := New(), time.Now()
		for i := range 3 * most {
			p := granted(t, l, patient())
			if i < most {
				assert.Zero(t, time.Since(began)%Hold)
			} else if i > most+2 {
				assert.Zero(t, time.Now().UnixNano()%int64(apart), i)
			}
			p.End(time.Now())
			p.Accepted()
		}
		time.Sleep(2 * Hold)
		for range 2 {
			began := time.Now()
			granted(t, l, patient())
			assert.Zero(t, time.Since(began), "two at once again")
		}
	})
}
