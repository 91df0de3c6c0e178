package soak

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// worker is one goroutine with random choices of its own.
type worker struct {
	*soak
	*rand.Rand
}

// operation is something to do with a client. It counts and checks for itself what came of it.
type operation struct {
	weight int
	do     func(w *worker, ctx context.Context, c *webdelivery.Client) error
}

// operations are drawn by weight. Cheap ones come often; purging waits for permits, and large lists take time.
func operations() []operation {
	return []operation{
		{8, (*worker).getTask},
		{4, (*worker).getMissingTask},
		{6, (*worker).listTasks},
		{3, (*worker).allTasks},
		{5, (*worker).waitForTask},
		{4, (*worker).doTask},

		{2, (*worker).submitPurge},
		{4, (*worker).queuePurge},
		{1, (*worker).closeQueue},
		{4, (*worker).purgeStatus},
		{2, (*worker).waitForPurge},

		{5, (*worker).queryEvents},
		{4, (*worker).eventRows},
		{2, (*worker).everyEvent},
		{3, (*worker).scanEvents},
		{4, (*worker).trends},
		{4, (*worker).topK},
		{3, (*worker).names},

		{4, (*worker).listLists},
		{3, (*worker).allLists},
		{3, (*worker).getList},
		{3, (*worker).listEntries},
		{2, (*worker).allEntries},
		{3, (*worker).getEntry},
		{14, (*worker).addEntries},
		{14, (*worker).deleteEntry},
		{6, (*worker).addByDo},
		{4, (*worker).clearList},
		{6, (*worker).deleteList},
		{4, (*worker).planAndApply},
		{1, (*worker).addManyEntries},

		{2, (*worker).createSession},
	}
}

// draw picks by weight.
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

// operate does one operation.
func (w *worker) operate() {
	ctx, cancel := w.context()
	defer cancel()
	if err := w.draw(w.operations).do(w, ctx, w.client(w.Rand)); err != nil {
		// A client whose logins cool down refuses at once; without a pause it would do nothing else.
		time.Sleep(w.upTo(20 * time.Millisecond))
	}
}

// upTo is an even draw.
func (w *worker) upTo(d time.Duration) time.Duration { return time.Duration(w.Int64N(int64(d))) }

// context of an operation: one in ten is cancelled at some step of its requests, one in ten at some time.
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

// countdown cancels a context after so many steps of its requests: before one is sent, after the headers, and at each
// read of the body. In fake time, where requests take none, no timer could strike there.
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
