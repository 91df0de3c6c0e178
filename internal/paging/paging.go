// Package paging reads a collection from its first page to its last and checks that no item is missing. It follows
// next_uri. If no page says whether others follow, it counts pages itself. It can also prefetch pages by number.
//
// It knows addresses, page numbers and totals. It must not know requests, JSON, or what the items are.
//
// Entry points: [Collection.All], [Collection.Ahead] and [Page].
package paging

import (
	"context"
	"iter"
)

// Collection describes the collection to read. All fields except MaxPages and Expect must be set.
type Collection[T any] struct {
	Path     string // relative to the base, in canonical form
	Query    string // of the first page
	MaxPages int    // 0: no limit

	// Read reads the page with this query.
	Read func(ctx context.Context, query string) ([]T, Page, error)
	// Expect is called with the total of the first page before Ahead yields an item, unless that page has no total.
	Expect func(total int64)
	// Identity returns the id of an item.
	Identity func(*T) string
	// Resolve returns path and query of an address that the service sent in a member. It returns an error for an
	// address of another origin.
	Resolve func(member, address string) (path, query string, err error)
	// Refused reports whether an error of Read may mean that there is no such page.
	Refused func(error) bool
	// Broken builds the error for a collection that cannot be read to its end. pages is the number of pages read.
	Broken func(pages int, reason string) error
}

// All returns the items of all pages, one page after the other. At the end it compares the items with the announced
// totals. It stops at the first error.
func (c Collection[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) { c.newWalk(nil).run(ctx, nil, yield) }
}

// Counted returns the same collection. It adds 1 to n for each page that it requests, so read only one page at a time.
func (c Collection[T]) Counted(n *int) Collection[T] {
	read := c.Read
	c.Read = func(ctx context.Context, query string) ([]T, Page, error) {
		*n++
		return read(ctx, query)
	}
	return c
}

// arrived is one page with its items.
type arrived[T any] struct {
	Page

	items []T
	err   error
}

func (c *Collection[T]) read(ctx context.Context, query string) (*arrived[T], error) {
	items, page, err := c.Read(ctx, query)
	if err != nil {
		return nil, err
	}
	return &arrived[T]{Page: page, items: items}, nil
}

func (c *Collection[T]) newTrail() *trail {
	return newTrail(c.Path, c.Query, c.MaxPages, c.Resolve, c.Broken)
}

// walk reads a collection page by page.
type walk[T any] struct {
	*Collection[T]

	trail   *trail
	numbers pageNumbers
	steady  bool  // the collection must not change while it is read, as with prefetched pages
	total   int64 // the total that a steady collection must keep
}

// newWalk returns a walk. head is the first page if it has been read already, otherwise nil.
func (c *Collection[T]) newWalk(head *arrived[T]) *walk[T] {
	w := &walk[T]{Collection: c, trail: c.newTrail()}
	w.numbers = pageNumbers{trail: w.trail, count: NumberIn(c.Query, "count"), refused: c.Refused}
	if head != nil && head.Total >= 0 {
		w.steady, w.total = true, head.Total
	}
	return w
}

// run yields the items of all pages. It begins with head unless that is nil.
func (w *walk[T]) run(ctx context.Context, head *arrived[T], yield func(T, error) bool) {
	query, page := w.Query, head
	for more := true; more; page = nil {
		var err error
		if page == nil {
			if page, err = w.read(ctx, query); err != nil {
				if !w.numbers.endWith(err) {
					yield(*new(T), err)
				}
				return
			}
		}
		follows, err := w.take(page)
		if err != nil {
			yield(*new(T), err)
			return
		}
		if follows == end || !page.yield(yield) {
			return
		}
		if query, more, err = w.next(query, &page.Page, follows); err != nil {
			yield(*new(T), err)
			return
		}
	}
}

// yield yields the items. It returns false if the caller stops.
func (a *arrived[T]) yield(yield func(T, error) bool) bool {
	for _, item := range a.items {
		if !yield(item, nil) {
			return false
		}
	}
	return true
}

// take checks a page and returns what follows it.
func (w *walk[T]) take(page *arrived[T]) (follows step, err error) {
	t := w.trail
	if err := t.arrive(&page.Page); err != nil {
		return end, err
	}
	if w.steady && differ(page.Total, w.total) {
		return end, t.broken("the collection changed while it was read: %d items became %d", w.total, page.Total)
	}
	known, begins := compare(&t.items, page.items, w.Identity)
	if t.announced {
		follows, err = onward, t.checkNew(&page.Page, known, begins)
	} else {
		follows, err = w.numbers.judge(page.Items, known, begins)
	}
	if err != nil || follows == end {
		return end, err
	}
	t.deliver(len(page.items))
	if w.steady && t.delivered > w.total {
		return end, t.broken("received %d items, but the total is %d", t.delivered, w.total)
	}
	return follows, nil
}

// next returns the query of the next page, or false at the end of the collection.
func (w *walk[T]) next(query string, page *Page, follows step) (next string, more bool, err error) {
	switch {
	case w.trail.announced:
		return w.trail.follow(page)
	case follows == onward:
		next, err = w.numbers.next(query, page.Index)
		return next, true, err
	default:
		return "", false, nil
	}
}
