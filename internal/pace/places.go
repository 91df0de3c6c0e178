package pace

import (
	"math/bits"
	"time"
)

const (
	cycle = 16                     // places of a cycle
	apart = 530 * time.Millisecond // between two places, so that Hold is over two places later
	busy  = time.Minute            // after this time without a refusal, there are no places
	most  = 24                     // places in a row that a process with something to send leaves out

	// Chances of a place that is not the process's own, and how they change.
	first  = 1. / 2   // chance after the first refusal, and the highest
	win    = 4        // with each place won
	lose   = 1. / 2   // with each refusal
	poor   = 11. / 12 // with each refusal while the process has no place: halved by eight
	giveUp = 1. / 8   // chance to give up a place after its use
)

// pace remembers the places where the service accepted a purge. They are the process's own for as long as the service
// accepts purges there. The limiter's lock guards it.
//
// Places are counted from the beginning of Unix time, and requests leave so that they arrive on time. So processes whose
// clocks agree compete for the same places, whether they are near the service or far away. If clocks differ, places
// overlap, and more purges are refused.
type pace struct {
	jitter   func() float64 // returns a number between 0 and 1; tests replace it
	clock    time.Duration  // by how much the clock is slow; only tests set it
	lead     time.Duration  // how long a request is on its way: half the time of the last refusal
	chance   float64        // of a place that is not the process's own; 1 if there are no places
	own      uint16         // the process's own places, one bit for each place of the cycle
	next     time.Time      // no permit before this time
	steady   int            // permits in a row that came as soon as the slots allowed, without places
	refused  time.Time      // when a purge was last refused because of the pace
	accepted time.Time      // when a purge was last accepted
	refusing time.Time      // when the service began to refuse purges; zero while it accepts them
	active   time.Time      // last activity of any purge
}

func newPace(jitter func() float64) pace { return pace{jitter: jitter, chance: 1} }

// placeAt returns the number of the place that is nearest to a request that leaves at t.
func (p *pace) placeAt(t time.Time) uint64 {
	return uint64(t.Add(p.clock+p.lead+apart/2).UnixNano()) / uint64(apart)
}

// timeOf returns when a request for a place leaves. It keeps the monotonic clock reading of now.
func (p *pace) timeOf(place uint64, now time.Time) time.Time {
	return now.Add(time.Duration(place*uint64(apart) - uint64(now.Add(p.clock+p.lead).UnixNano()))) //nolint:gosec // wraps
}

func (p *pace) owns(place uint64) bool { return p.own>>(place%cycle)&1 == 1 }

// choose sets the time of the permit after the one at now. prompt reports whether that one came as soon as the slots
// allowed; without slots, another limiter spaces the permits.
func (p *pace) choose(now time.Time, prompt bool) {
	if p.chance < 1 && now.Sub(p.refused) > busy {
		p.free()
	}
	if p.steady++; p.chance < 1 || !prompt {
		p.steady = 0
	}
	if p.chance == 1 && p.steady <= most {
		p.next = now
		return
	}
	// A process that has long used the whole limit uses every place: others that try one may arrive there first. They
	// would hardly find the few milliseconds between the end of a slot and its next request.
	place := p.placeAt(now) + 1
	chance := p.chance / (1 + float64(bits.OnesCount16(p.own))/2) // smaller the more places it has
	for last := place + most; p.chance < 1 && place < last && !p.owns(place) && p.jitter() >= chance; {
		place++
	}
	p.next = p.timeOf(place, now)
	if p.chance < 1 && p.own == 0 && p.jitter() < 0.5 { // in case that clocks differ
		p.next = p.next.Add(time.Duration(p.jitter() * float64(apart)))
	}
}

// free ends the use of places.
func (p *pace) free() { p.chance, p.own, p.next = 1, 0, time.Time{} }

// lost learns from a refusal at a place.
func (p *pace) lost(place uint64, now time.Time) {
	p.refused = now
	mine := p.owns(place)
	p.own &^= 1 << (place % cycle)
	switch {
	case p.chance == 1, mine && p.own == 0:
		p.chance = first
	case mine:
	case p.own == 0:
		p.chance *= poor
	default:
		p.chance *= lose
	}
	p.choose(now, false)
}

// won learns from an accepted purge at a place.
func (p *pace) won(place uint64) {
	if p.chance == 1 {
		return
	}
	if !p.owns(place) {
		p.chance = min(first, p.chance*win)
	}
	if p.own |= 1 << (place % cycle); p.jitter() < giveUp {
		p.own &^= 1 << (place % cycle) // so that others find room
	}
}
