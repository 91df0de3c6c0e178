package redislimit

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// lease waits for a permit of Redis.
func (l *Limiter) lease(ctx context.Context) (webdelivery.Permit, error) {
	for {
		if err := ended(ctx); err != nil {
			return webdelivery.Permit{}, err
		}
		id := rand.Text()
		expires, err := l.queue(ctx, id)
		if err != nil {
			return webdelivery.Permit{}, err
		}
		if l.ledger.unsettled() { // Redis may not have known the leases of this process when it gave the permit
			l.ledger.withdrawn(id, l.endOf(expires))
			continue
		}
		l.ledger.granted(id, l.endOf(expires))
		l.fallback.granted()
		permit := webdelivery.Permit{Expires: expires, Done: func(ctx context.Context, arrived time.Time) {
			if lease := l.ledger.done(id, l.freeAfter(arrived)); lease != nil {
				l.report(ctx, lease)
			}
		}}
		if time.Until(expires) > l.budget.sendWithin/2 {
			return permit, nil
		}
		permit.Done(ctx, time.Time{}) // this process was stopped before it read the answer: little is left of the permit
	}
}

// queue waits until the id has a lease, and returns when its permit expires. If queue returns an error, the id loses its
// lease and its ticket.
func (l *Limiter) queue(ctx context.Context, id string) (expires time.Time, err error) {
	if err := l.settle(ctx); err != nil {
		return time.Time{}, err
	}
	asked, turns := false, l.budget.turns
	for ; ; turns = l.budget.again {
		a, err := l.budget.askIn(ctx, turns, id)
		asked = asked || !a.sent.IsZero()
		l.heard(err)
		switch {
		case err == nil && a.granted:
			return a.sent.Add(l.budget.sendWithin), nil
		case err == nil && a.refused:
			return time.Time{}, tooLate(a.wait)
		case err == nil && beyond(ctx, a.wait+time.Since(a.sent)): // the next question takes as long as this one
			err = tooLate(a.wait)
		case err == nil:
			if err = sleep(ctx, a.wait); err == nil {
				err = l.settle(ctx)
			}
		}
		if err != nil {
			if asked {
				l.withdraw(ctx, id, err)
			}
			return time.Time{}, err
		}
	}
}

// withdraw ends a question with its lease and its ticket. It does not wait for Redis. If Redis is down, settle reports
// it later.
func (l *Limiter) withdraw(ctx context.Context, id string, why error) {
	l.ledger.withdrawn(id, time.Now().Add(l.budget.longest()))
	if !isUnavailable(why) && l.leavers.add(id) {
		go func() {
			for leases := l.leavers.take(); len(leases) > 0; leases = l.leavers.take() {
				_, _ = l.reportAll(context.WithoutCancel(ctx), leases)
			}
		}()
	}
}

// report reports to Redis that a lease is done. It returns when Redis has answered or ctx ends; the question then goes
// on. If Redis does not answer, settle sends it again.
func (l *Limiter) report(ctx context.Context, lease []any) {
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = l.reportAll(context.WithoutCancel(ctx), lease)
	}()
	select {
	case <-answered:
	case <-ctx.Done():
	}
}

// reportAll reports leases to Redis, up to reportAtOnce in one question. It stops at the first error. It returns
// whether a lease has ended meanwhile.
func (l *Limiter) reportAll(ctx context.Context, leases []any) (again bool, err error) {
	for batch := range slices.Chunk(leases, 3*reportAtOnce) {
		err := l.budget.report(ctx, batch)
		l.heard(err)
		if err != nil {
			return false, err
		}
		again = l.ledger.reported(batch) || again
	}
	return again, nil
}

// settle reports to Redis what it may not know after an outage: the leases of this process, then a pause.
func (l *Limiter) settle(ctx context.Context) error {
	if err := ended(ctx); err != nil || l.ledger.settledAll() {
		return err
	}
	if err := l.budget.turn(ctx, l.settling); err != nil {
		l.heard(err)
		return err
	}
	defer func() { <-l.settling }()
	for again := true; again; {
		leases, outages := l.ledger.open() // another caller may have settled meanwhile
		var err error
		if again, err = l.reportAll(ctx, leases); err != nil {
			return err
		}
		if !again {
			l.ledger.settle(outages)
		}
	}
	owed := l.ledger.debt()
	if d := time.Until(owed); d > 0 {
		err := l.budget.pause(ctx, d)
		l.heard(err)
		if err != nil {
			return err
		}
		l.ledger.paid(owed)
	}
	return nil
}

// local returns a permit of the share of this process. Redis learns of its purge when it is reachable again, and of the
// end of the purge if that comes later.
func (l *Limiter) local() webdelivery.Permit {
	id, expires := rand.Text(), time.Now().Add(l.budget.sendWithin)
	l.ledger.granted(id, l.endOf(expires))
	l.ledger.outage()
	return webdelivery.Permit{Expires: expires, Done: func(ctx context.Context, arrived time.Time) {
		if lease := l.ledger.done(id, l.freeAfter(arrived)); lease != nil && !l.fallback.rules() {
			l.report(ctx, lease)
		}
	}}
}

// endOf returns when the slot of a permit is free if no one ends it earlier.
func (l *Limiter) endOf(expires time.Time) time.Time {
	return expires.Add(l.budget.stall + l.budget.hold)
}

// freeAfter returns when a slot is free whose purge has arrived at that time.
func (l *Limiter) freeAfter(arrived time.Time) time.Time {
	now := time.Now()
	switch {
	case arrived.IsZero():
		return now // nothing was sent
	case arrived.Before(now):
		arrived = now
	}
	return arrived.Add(l.budget.hold)
}
