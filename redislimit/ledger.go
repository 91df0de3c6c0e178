package redislimit

import (
	"slices"
	"sync"
	"time"
)

const (
	maxWithdrawn = 1000 // how many withdrawn questions unknown to Redis a process remembers
	reportAtOnce = 256  // how many leases one script reports; Redis remembers as many ended ids
)

// lease is a permit of this process, or a question whose answer it does not know.
type lease struct {
	free     time.Time // from then on the slot may be free
	end      time.Time // by then the slot is free, whatever happens
	done     bool      // the purge has arrived, or never will
	reported bool      // Redis knows that it is done
}

// over returns whether the ledger can forget the lease.
func (e lease) over(now time.Time) bool {
	if e.reported {
		return !now.Before(e.free)
	}
	return !now.Before(e.end)
}

// ledger holds what Redis must learn after an outage. Redis may then have lost leases, or missed the end of some.
type ledger struct {
	mu      sync.Mutex
	leases  map[string]lease
	outages int       // how many outages began
	settled int       // how many of them came before the last time that Redis got all leases
	owed    time.Time // the end of a pause that Redis does not know
}

// granted adds a permit.
func (l *ledger) granted(id string, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(id, lease{free: end, end: end})
}

// withdrawn adds a question of a caller that has left. It may have got a lease or a ticket, until end.
func (l *ledger) withdrawn(id string, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	unreported := 0
	for _, e := range l.leases {
		if e.done && !e.reported {
			unreported++
		}
	}
	if unreported < maxWithdrawn {
		l.add(id, lease{free: time.Now(), end: end, done: true})
	}
}

func (l *ledger) add(id string, e lease) {
	if l.leases == nil {
		l.leases = map[string]lease{}
	}
	l.forget()
	l.leases[id] = e
}

// forget removes the leases that are over.
func (l *ledger) forget() {
	now := time.Now()
	for id, e := range l.leases {
		if e.over(now) {
			delete(l.leases, id)
		}
	}
}

// done ends a lease; its slot is free from free on. It returns what reportScript needs to know, or nil if the lease has
// ended by itself.
func (l *ledger) done(id string, free time.Time) []any {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget()
	e, ok := l.leases[id]
	if !ok {
		return nil
	}
	if free.Before(e.end) {
		e.free = free
	}
	e.done = true
	l.leases[id] = e
	return e.args(id)
}

// open returns what reportScript needs to know of all leases after an outage, and what to pass to settle once Redis knows
// it. It returns no leases if there was no outage.
func (l *ledger) open() (leases []any, outages int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.settled == l.outages {
		return nil, l.outages
	}
	l.forget()
	for id, e := range l.leases {
		leases = append(leases, e.args(id)...)
	}
	return leases, l.outages
}

// settledAll returns whether Redis knows all that it must know.
func (l *ledger) settledAll() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled == l.outages && !time.Now().Before(l.owed)
}

// unsettled returns whether there was an outage after which Redis has not yet got all leases that may hold a slot.
func (l *ledger) unsettled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.settled == l.outages {
		return false
	}
	now := time.Now()
	for _, e := range l.leases {
		if now.Before(e.free) {
			return true
		}
	}
	return false
}

func (e lease) args(id string) []any {
	done := 0
	if e.done {
		done = 1
	}
	return []any{id, micros(time.Until(e.free)), done}
}

// reported records that Redis knows these leases, which args returned. It returns whether one of them has ended since.
func (l *ledger) reported(leases []any) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for args := range slices.Chunk(leases, 3) {
		id, ends := args[0].(string), args[2] == 1
		e, ok := l.leases[id]
		switch {
		case ok && ends:
			e.reported = true
			l.leases[id] = e
		case ok && e.done && !e.reported:
			again = true
		}
	}
	return again
}

// settle records that Redis got the leases after that many outages.
func (l *ledger) settle(outages int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled = max(l.settled, outages)
}

// outage records an outage. A purge that Redis does not know and another run of Redis count as outages too.
func (l *ledger) outage() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outages++
}

// owe records a pause that Redis does not know.
func (l *ledger) owe(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.owed) {
		l.owed = until
	}
}

// debt returns the end of that pause.
func (l *ledger) debt() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owed
}

// paid records that Redis knows it.
func (l *ledger) paid(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owed.Equal(until) {
		l.owed = time.Time{}
	}
}

// leavers are the withdrawn ids that wait for their sender. There is one sender, so thousands of callers that leave
// together ask Redis only a few questions.
type leavers struct {
	mu      sync.Mutex
	ids     []string
	sending bool
}

// add adds an id, and returns whether the caller must start the sender.
func (l *leavers) add(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = append(l.ids, id)
	start := !l.sending
	l.sending = true
	return start
}

// take returns all waiting ids, as reportScript needs them. If it returns nothing, the sender must end.
func (l *leavers) take() (leases []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.ids {
		leases = append(leases, id, 0, 1)
	}
	l.ids, l.sending = nil, len(leases) > 0
	return leases
}
