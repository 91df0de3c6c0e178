package batch

import (
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
)

// line is the callers who wait to be put into a request.
type line[Item comparable, Receipt any] struct {
	callers []*caller[Item, Receipt] // oldest first; one who has left stays until he is passed over, or too many have left
	left    int                      // of those, how many have left
	items   int                      // of the others
	room    *semaphore.Weighted      // for items
}

// add puts a caller at the end. There is room for his items already.
func (l *line[Item, Receipt]) add(c *caller[Item, Receipt]) {
	l.callers = append(l.callers, c)
	l.items += len(c.items)
}

// pass counts a caller out.
func (l *line[Item, Receipt]) pass(c *caller[Item, Receipt]) {
	l.items -= len(c.items)
	l.room.Release(int64(len(c.items)))
}

// leave takes a caller out who does not wait any longer.
func (l *line[Item, Receipt]) leave(c *caller[Item, Receipt]) {
	l.pass(c)
	c.items = nil // a permit may be long in coming
	if l.left++; 2*l.left > len(l.callers) {
		l.callers = slices.DeleteFunc(l.callers, func(c *caller[Item, Receipt]) bool { return c.gone })
		l.left = 0
	}
	if l.items == 0 {
		l.callers = nil
	}
}

// take takes the oldest callers out whose items fit into a load.
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

// clear takes all out, and returns those who wait.
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
