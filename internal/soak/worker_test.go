package soak

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// worker is one goroutine with its own random choices.
type worker struct {
	*soak
	*rand.Rand
}

// operation uses a client. It counts and checks its own outcome.
type operation struct {
	weight int
	do     func(w *worker, ctx context.Context, c *webdelivery.Client) error
	of     []string // the entries of internal/suite/operations that it covers more closely than anyOther
}

// lines are drawn by weight: what many workers do to the same objects, and what must arrive completely. anyOther draws
// the operations without their own line.
func lines() []operation {
	return []operation{
		{2, (*worker).submitPurge, []string{"Purge.Submit", "Purge.SubmitAndWait"}},
		{4, (*worker).queuePurge, []string{"PurgeQueue.Purge"}},
		{1, (*worker).closeQueue, []string{"PurgeQueue.Close"}},
		{8, (*worker).eventRows, []string{"Stats.Events.All"}},
		{3, (*worker).allEntries, []string{"NetworkLists.AllEntries"}},
		{14, (*worker).addEntries, []string{"NetworkLists.AddEntries"}},
		{14, (*worker).deleteEntry, []string{"NetworkLists.DeleteEntry", "Do"}},
		{4, (*worker).planAndApply, []string{"NetworkLists.Plan", "NetworkLists.Apply"}},
		{2, (*worker).createSession, []string{"Sessions.Create"}},
		{60, (*worker).anyOther, nil},
	}
}

func (w *worker) draw(all []operation) operation {
	total := 0
	for _, op := range all {
		total += op.weight
	}
	n := w.IntN(total)
	for _, op := range all {
		if n -= op.weight; n < 0 {
			return op
		}
	}
	panic("unreachable: n is below the total")
}

func (w *worker) operate() {
	ctx, cancel := w.context()
	defer cancel()
	if err := w.draw(w.operations).do(w, ctx, w.client(w.Rand)); err != nil {
		// A client whose logins cool down returns an error at once. Without a pause, the worker would do nothing else.
		time.Sleep(w.upTo(20 * time.Millisecond))
	}
}

func (w *worker) upTo(d time.Duration) time.Duration { return time.Duration(w.Int64N(int64(d))) }

// context returns the context of an operation. One in ten is canceled at some step of its requests, one in ten at some
// time.
func (w *worker) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), operationTimeout)
	switch w.IntN(10) {
	case 0:
		steps := &countdown{cancel: cancel}
		steps.left.Store(1 + int64(w.IntN(15)))
		return context.WithValue(ctx, countdownKey{}, steps), cancel
	case 1:
		timer := time.AfterFunc(w.upTo(time.Second)>>w.IntN(12), cancel)
		return ctx, func() { timer.Stop(); cancel() }
	default:
		return ctx, cancel
	}
}

// countdown cancels a context after so many steps of its requests. A step is the sending of a request, the end of the
// headers, or a read of the body. In fake time requests take no time, so no timer could fire at these points.
type countdown struct {
	left   atomic.Int64
	cancel context.CancelFunc
}

type countdownKey struct{}

func step(ctx context.Context) {
	if c, ok := ctx.Value(countdownKey{}).(*countdown); ok && c.left.Add(-1) == 0 {
		c.cancel()
	}
}
