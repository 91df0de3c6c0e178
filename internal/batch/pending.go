package batch

import (
	"container/list"

	"golang.org/x/sync/semaphore"
)

// pending holds the callers whose URIs wait for a request, oldest first.
type pending struct {
	callers list.List
	uris    int                 // of these callers
	room    *semaphore.Weighted // free room, in URIs
}

// add appends a caller. Room for its URIs must have been acquired.
func (p *pending) add(c *caller) {
	c.place = p.callers.PushBack(c)
	p.uris += len(c.uris)
}

func (p *pending) remove(c *caller) {
	p.callers.Remove(c.place)
	p.uris -= len(c.uris)
	p.room.Release(int64(len(c.uris)))
}

// first returns the oldest caller, or nil if there is none.
func (p *pending) first() *caller {
	if place := p.callers.Front(); place != nil {
		return place.Value.(*caller) //nolint:forcetypeassert // add adds nothing else
	}
	return nil
}

// take removes and returns the oldest callers whose URIs fit into one request. Those of the first caller always fit.
func (p *pending) take(limits Options) (taken []*caller, next load) {
	next = newLoad()
	for c := p.first(); c != nil && (len(taken) == 0 || next.fits(c.uris, limits)); c = p.first() {
		next.add(c.uris)
		p.remove(c)
		taken = append(taken, c)
	}
	return taken, next
}

// fail ends all callers with err. Their URIs will not be sent.
func (p *pending) fail(err error) {
	for c := p.first(); c != nil; c = p.first() {
		p.remove(c)
		c.end(c.unsent(err))
	}
}

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
	}
	return count <= limits.MaxURIs && bytes <= limits.MaxBytes
}
