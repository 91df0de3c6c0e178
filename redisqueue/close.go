package redisqueue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// closeGrace is how long Close waits for the goroutines of the queue after its context has ended.
const closeGrace = 100 * time.Millisecond

// Close refuses new calls, and waits until the calls of Purge of this process have ended. URIs of Enqueue that no
// process has taken stay in Redis for the other processes. Give Close its own context: the context of a job may have
// ended when the job closes its queue.
//
// If ctx ends first, Close cancels the requests of this process and returns the context's error. Other processes then
// send the URIs of their callers again. Callers of this process get webdelivery.ErrQueueClosed; the outcome is not
// applied if no process had taken their URIs.
//
// When Close returns, no goroutine of the queue runs. There are two exceptions. If Redis does not answer, some end up to
// 10 s later. If your transport, limiter, log handler or OnStats ignores the end of its context, some end with it.
//
// You may call Close again, also from several goroutines. If one of them drops URIs, all others return an error that
// matches webdelivery.ErrQueueClosed and says how many.
func (q *Queue) Close(ctx context.Context) error {
	if err := q.usable(ctx); err != nil {
		return err
	}
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.closing)
	}
	q.restLocked()
	q.mu.Unlock()
	select {
	case <-q.quiet:
	default:
		select {
		case <-q.quiet:
		case <-ctx.Done():
			return q.giveUp(ctx)
		}
	}
	return q.end(ctx)
}

// end stops the goroutines after all calls have ended.
func (q *Queue) end(ctx context.Context) error {
	q.cancel()
	err := q.local.Close(ctx)
	dropped := q.stop() //nolint:contextcheck // the context of Close may have ended
	if err == nil && dropped > 0 {
		return fmt.Errorf("%w: another Close dropped %d URIs", webdelivery.ErrQueueClosed, dropped)
	}
	return err
}

// giveUp ends everything, because the context of Close has ended.
func (q *Queue) giveUp(ctx context.Context) error {
	q.mu.Lock()
	stored, all := q.storedLocked(), slices.Collect(maps.Values(q.waiting))
	for _, c := range all {
		q.dropped += c.entry.count
	}
	q.mu.Unlock()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	q.leaveAll(within, stored, webdelivery.ErrQueueClosed)
	_ = q.local.Close(ctx) // its error is that of the context
	q.cancel()
	for _, c := range all {
		q.deliver(c.entry.number, result{err: failed(c.uris, webdelivery.ErrQueueClosed, webdelivery.OutcomeUnknown)})
	}
	q.stop() //nolint:contextcheck // the context of Close has ended
	return ctx.Err()
}

// stop gives the turn back and waits for the goroutines of the queue, but not for longer than closeGrace if they do not
// end. It returns how many URIs a Close has dropped.
func (q *Queue) stop() (dropped int) {
	q.mu.Lock()
	first, reading := !q.stopped, q.reading
	q.stopped = true
	if first {
		q.idleLocked()
	}
	dropped = q.dropped
	q.mu.Unlock()
	var last sync.WaitGroup
	if first {
		last.Go(func() { q.giveBack("", true) })
	}
	if reading {
		last.Go(func() {
			ctx, cancel := q.untilAnswered()
			defer cancel()
			_ = q.store.wake(ctx) // otherwise the read ends by itself
		})
	}
	last.Wait()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-q.idle:
	case <-timer.C:
	}
	return dropped
}
