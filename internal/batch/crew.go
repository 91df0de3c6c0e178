package batch

import (
	"context"
	"sync"
)

// crew manages the goroutines of a queue. It is idle when it is closed and all of them have ended.
type crew struct {
	mu    *sync.Mutex // the queue's lock; guards the fields below
	catch func(f func() error, done func(*Failure))

	closing context.Context //nolint:containedctx // ends when Close begins
	close   context.CancelFunc
	active  int
	idle    chan struct{}
}

func newCrew(mu *sync.Mutex, catch func(func() error, func(*Failure))) crew {
	c := crew{mu: mu, catch: catch, idle: make(chan struct{})}
	c.closing, c.close = context.WithCancel(context.Background())
	return c
}

// startLocked calls f in a goroutine. It then calls doneLocked with the error of f, under the lock, even if user code
// in f panics or ends the goroutine. The lock is held.
func (c *crew) startLocked(f func() error, doneLocked func(*Failure)) {
	c.active++
	go func() {
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.active--
			c.restLocked()
		}()
		c.catch(f, func(failed *Failure) {
			c.mu.Lock()
			defer c.mu.Unlock()
			doneLocked(failed)
		})
	}()
}

// closeLocked closes the crew. The lock is held.
func (c *crew) closeLocked() {
	c.close()
	c.restLocked()
}

// closed reports whether the crew is closed, so that the queue accepts no caller.
func (c *crew) closed() bool { return c.closing.Err() != nil }

// restLocked closes idle if nothing is left to do. The lock is held.
func (c *crew) restLocked() {
	if c.closed() && c.active == 0 {
		select {
		case <-c.idle:
		default:
			close(c.idle)
		}
	}
}
