package batch

import (
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
)

// line holds the callers whose items wait for a request.
type line[Item comparable, Receipt any] struct {
	callers []*caller[Item, Receipt] // oldest first; those that have left are removed later, together
	left    int                      // callers that have left
	items   int                      // items of the other callers
	room    *semaphore.Weighted      // free room, in items
}

// add appends a caller. room has been acquired for its items already.
func (l *line[Item, Receipt]) add(c *caller[Item, Receipt]) {
	l.callers = append(l.callers, c)
	l.items += len(c.items)
}

// pass releases the room for the items of a caller.
func (l *line[Item, Receipt]) pass(c *caller[Item, Receipt]) {
	l.items -= len(c.items)
	l.room.Release(int64(len(c.items)))
}

// leave removes a caller that has stopped waiting.
func (l *line[Item, Receipt]) leave(c *caller[Item, Receipt]) {
	l.pass(c)
	c.items = nil // frees memory, because the caller may stay in the slice until the next permit
	if l.left++; 2*l.left > len(l.callers) {
		l.callers = slices.DeleteFunc(l.callers, func(c *caller[Item, Receipt]) bool { return c.gone })
		l.left = 0
	}
	if l.items == 0 {
		l.callers = nil
	}
}

// take removes the oldest callers whose items fit into a load.
func (l *line[Item, Receipt]) take(into *load[Item]) (taken []*caller[Item, Receipt]) {
	for len(l.callers) > 0 {
		c := l.callers[0]
		if c.gone {
			l.left--
		} else {
			if !into.add(c.items) {
				break
			}
			l.pass(c)
			taken = append(taken, c)
		}
		l.callers[0] = nil
		l.callers = l.callers[1:]
	}
	return taken
}

// clear removes all callers, and returns those that still wait.
func (l *line[Item, Receipt]) clear() (waiting []*caller[Item, Receipt]) {
	for _, c := range l.callers {
		if !c.gone {
			l.pass(c)
			waiting = append(waiting, c)
		}
	}
	l.callers, l.left = nil, 0
	return waiting
}

// oldest returns how long the oldest caller has waited.
func (l *line[Item, Receipt]) oldest() time.Duration {
	for _, c := range l.callers {
		if !c.gone {
			return time.Since(c.since)
		}
	}
	return 0
}
