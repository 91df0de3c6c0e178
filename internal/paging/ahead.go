package paging

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"sync"
)

// maxAhead bounds the requests under way, however large n and the page_count of the service are.
const maxAhead = 1_000

// Ahead returns the items like All, and prefetches up to n pages behind the one whose items it yields. It requests
// pages by number after the first page has given their count. If the first page has no count, Ahead reads one page at a
// time.
func (c Collection[T]) Ahead(ctx context.Context, n int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		head, err := c.read(ctx, c.Query)
		if err != nil {
			yield(*new(T), err)
			return
		}
		if c.Expect != nil && head.Total >= 0 {
			c.Expect(head.Total)
		}
		if head.Index == 0 || head.Count < 0 || head.Count == 0 && head.more(head.Index) {
			c.newWalk(head).run(ctx, head, yield)
			return
		}
		a := &ahead[T]{Collection: &c, trail: c.newTrail(), head: head, ready: map[int]chan arrived[T]{}}
		if err := a.run(ctx, n, yield); err != nil {
			yield(*new(T), err)
		}
	}
}

// ahead reads a collection with prefetched pages.
type ahead[T any] struct {
	*Collection[T]

	trail    *trail
	head     *arrived[T]
	ready    map[int]chan arrived[T] // prefetched pages, by number
	underWay sync.WaitGroup
}

// run yields the items of all pages. It also returns nil if the caller stops.
func (a *ahead[T]) run(ctx context.Context, n int, yield func(T, error) bool) error {
	if want := a.trail.number + 1; want != a.head.Index {
		return a.trail.broken("requested page %d, but got page %d", want, a.head.Index)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer a.underWay.Wait()
	defer cancel()
	n = max(0, min(n, maxAhead, a.head.Count-a.head.Index))
	for i := range n {
		a.fetch(ctx, a.head.Index+1+i)
	}
	for page, index := a.head, a.head.Index; ; {
		if err := a.take(page, index); err != nil {
			return err
		}
		if !page.yield(yield) {
			return nil
		}
		index++
		coming, more := a.ready[index]
		if !more {
			return a.trail.checkCounted(&page.Page, a.head.Count)
		}
		if a.trail.tooManyEmpty(page.Items) {
			return a.trail.broken("%d pages in a row are empty, but page_count is %d", a.trail.empty, a.head.Count)
		}
		delete(a.ready, index)
		next := <-coming
		if next.err != nil {
			return next.err
		}
		page = &next
		a.fetch(ctx, index+n)
	}
}

// fetch begins to read the page with this number, unless it is beyond the last page or MaxPages.
func (a *ahead[T]) fetch(ctx context.Context, index int) {
	if index > a.head.Count || a.MaxPages > 0 && index-a.head.Index >= a.MaxPages {
		return
	}
	result := make(chan arrived[T], 1)
	a.ready[index] = result
	a.underWay.Go(func() {
		page, err := a.readNumbered(ctx, index)
		if err != nil {
			page = &arrived[T]{err: err}
		}
		result <- *page
	})
}

func (a *ahead[T]) readNumbered(ctx context.Context, index int) (*arrived[T], error) {
	values, err := url.ParseQuery(a.Query)
	if err != nil {
		return nil, err
	}
	values.Set("page", strconv.Itoa(index))
	return a.read(ctx, values.Encode())
}

// take records a page. It refuses a page that contradicts the earlier ones.
func (a *ahead[T]) take(page *arrived[T], index int) error {
	t, head := a.trail, a.head
	known, begins := compare(&t.items, page.items, a.Identity)
	switch {
	case page.Index != index:
		return t.broken("requested page %d, but got page %d", index, page.Index)
	case differ(page.Total, head.Total) || differ(page.Count, head.Count):
		return t.broken("the collection changed while it was read: %d items in %d pages became %d in %d",
			max(head.Total, 0), max(head.Count, 0), max(page.Total, 0), max(page.Count, 0))
	}
	if err := t.arrive(&page.Page); err != nil {
		return err
	}
	if err := t.checkNew(&page.Page, known, begins); err != nil {
		return err
	}
	t.deliver(len(page.items))
	return nil
}
