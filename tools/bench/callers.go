package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// closedUntil is a limiter that gives no permit until the channel is closed.
type closedUntil chan struct{}

// Wait implements [webdelivery.Limiter].
func (open closedUntil) Wait(ctx context.Context) error {
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// calls are goroutines that wait. open lets them go on, and finish waits for their end.
type calls struct {
	wg     sync.WaitGroup
	open   chan struct{}
	finish func() error
}

// purgeCallers starts callers of a purge queue with one URI each.
func purgeCallers(n int) (*calls, error) {
	c := &calls{open: make(chan struct{})}
	client, err := inMemoryClient(acceptingPurges, webdelivery.WithPurgeLimiter(closedUntil(c.open)))
	if err != nil {
		return nil, err
	}
	queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{MaxPending: n}) // each of them waits to be sent, none for room
	if err != nil {
		return nil, err
	}
	errs := make([]error, n+1) // the last is that of Close
	for i := range n {
		c.wg.Go(func() { _, errs[i] = queue.Purge(context.Background(), object(i)) })
	}
	c.finish = func() error {
		c.wg.Wait()
		errs[n] = queue.Close(context.Background())
		return errors.Join(errs...)
	}
	return c, nil
}

// plainGoroutines starts goroutines that do nothing but wait.
func plainGoroutines(n int) (*calls, error) {
	c := &calls{open: make(chan struct{})}
	for range n {
		c.wg.Go(func() { <-c.open })
	}
	c.finish = func() error {
		c.wg.Wait()
		return nil
	}
	return c, nil
}

// queueing returns a subject: many callers purge one URI each. They get no permit before all of them were started.
func queueing(n int) (subject, error) {
	return func() error {
		c, err := purgeCallers(n)
		if err != nil {
			return err
		}
		close(c.open)
		return c.finish()
	}, nil
}

// waiters are the goroutines whose memory a child process measures.
var waiters = map[string]func(n int) (*calls, error){"callers": purgeCallers, "goroutines": plainGoroutines}

// measureWaiting is the work of that process. The arguments are the name of a waiter and the number of goroutines.
func measureWaiting(arguments string, out io.Writer) error {
	var name string
	var n int
	if _, err := fmt.Sscan(arguments, &name, &n); err != nil {
		return err
	}
	start, ok := waiters[name]
	if !ok {
		return fmt.Errorf("no goroutines wait as %q", name)
	}
	bytes, err := memoryOfWaiting(start, n)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, bytes)
	return err
}

// memoryOfWaiting returns the memory of this process, heap in use and stacks, that n goroutines need while all of them
// wait.
func memoryOfWaiting(start func(int) (*calls, error), n int) (bytes float64, err error) {
	before := memoryInUse()
	c, err := start(n)
	if err != nil {
		return 0, err
	}
	if err := allWait(n); err != nil {
		return 0, err
	}
	bytes = memoryInUse() - before
	close(c.open)
	return bytes, c.finish()
}

// memoryInUse collects the garbage first, twice, because the first collection also shrinks stacks.
func memoryInUse() float64 {
	runtime.GC()
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	return float64(now.HeapInuse + now.StackInuse)
}

var errNotWaiting = errors.New("not all goroutines wait")

// allWait waits until n goroutines of this process wait, and none can run.
func allWait(n int) error {
	now := []metrics.Sample{{Name: "/sched/goroutines/waiting:goroutines"}, {Name: "/sched/goroutines/runnable:goroutines"}}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		metrics.Read(now)
		if now[0].Value.Uint64() >= uint64(n) && now[1].Value.Uint64() == 0 { //nolint:gosec // not negative
			return nil
		}
	}
	return errNotWaiting
}

// growingQueues measures the callers that wait in a purge queue. The memory is that of processes that do nothing else.
func (b *bench) growingQueues() error {
	for _, n := range b.sizes.growth.callers {
		together, err := queueing(n)
		if err != nil {
			return err
		}
		m, err := b.alone(together)
		if err != nil {
			return err
		}
		each := map[string]float64{}
		for who := range waiters {
			var bytes float64
			if err := runChild(fmt.Sprintf("wait %s %d", who, n), &bytes); err != nil {
				return err
			}
			each[who] = bytes / float64(n)
		}
		b.grown("PurgeQueue.Purge: waiting callers, one URI each", n, m,
			fmt.Sprintf("%s per caller, of which a goroutine that only waits needs %s", inBytes(each["callers"]), inBytes(each["goroutines"])))
	}
	return nil
}
