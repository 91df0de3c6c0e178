package batch

import (
	"cmp"
	"container/list"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	shortTurn = 3500 * time.Millisecond // while requests leave callers behind, this often the shortest ones come first
	maxMisses = 1000                    // so many callers that do not fit end the search for others that do
)

// pending holds the callers whose URIs wait for a request, oldest first.
type pending struct {
	callers list.List
	uris    int                 // of these callers
	room    *semaphore.Weighted // free room, in URIs
}

func (p *pending) remove(c *caller) {
	p.callers.Remove(c.element)
	p.uris -= len(c.uris)
	p.room.Release(int64(len(c.uris)))
}

// in yields the callers for which lane returns true, oldest first. The loop may remove them.
func (p *pending) in(lane func(*caller) bool) iter.Seq[*caller] {
	return func(yield func(*caller) bool) {
		for next := p.callers.Front(); next != nil; {
			c := next.Value.(*caller) // nothing else is added
			next = next.Next()
			if lane(c) && !yield(c) {
				return
			}
		}
	}
}

// first returns the oldest of these, or nil.
func (p *pending) first(lane func(*caller) bool) *caller {
	for c := range p.in(lane) {
		return c
	}
	return nil
}

func anybody(*caller) bool { return true }

// take removes and returns callers in a lane whose URIs fit into one request: the oldest one in any case, and then the
// next oldest that still fit. Now and then the shortest come first, so that they need not wait for all long ones.
//
// behind is since when requests have left callers of the lane behind and the shortest did not come first; zero if they
// have not.
func (p *pending) take(limits Options, lane func(*caller) bool, behind *time.Time) (taken []*caller) {
	next, callers, misses := newLoad(), p.in(lane), 0
	if !behind.IsZero() && time.Since(*behind) >= shortTurn {
		callers, *behind = slices.Values(slices.SortedStableFunc(callers, shorter)), time.Time{}
	}
	for c := range callers {
		if len(taken) > 0 && !next.fits(c.uris, limits) {
			if misses++; misses == maxMisses {
				break
			}
			continue
		}
		next.add(c.uris)
		p.remove(c)
		taken = append(taken, c)
	}
	if misses == 0 {
		*behind = time.Time{}
	} else if behind.IsZero() {
		*behind = time.Now()
	}
	return taken
}

// shorter compares callers by the number of their URIs.
func shorter(a, b *caller) int { return cmp.Compare(len(a.uris), len(b.uris)) }

// load collects the distinct URIs of one request.
type load struct {
	uris    []URI
	bytes   int
	results map[URI]*uriResult
}

func newLoad() load { return load{results: map[URI]*uriResult{}} }

func (l *load) add(uris []URI) {
	for _, uri := range uris {
		if l.results[uri] == nil {
			l.results[uri] = &uriResult{}
			l.uris = append(l.uris, uri)
			l.bytes += uri.Size
		}
	}
}

// fits reports whether the load stays within the limits if uris are added.
func (l *load) fits(uris []URI, limits Options) bool {
	count, bytes := len(l.uris), l.bytes
	for _, uri := range uris {
		if l.results[uri] == nil {
			count, bytes = count+1, bytes+uri.Size
		}
		if count > limits.MaxURIs || bytes > limits.MaxBytes {
			return false
		}
	}
	return true
}
