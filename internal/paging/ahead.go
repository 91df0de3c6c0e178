package paging

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"sync"
)

// maxAhead bounds how many requests a page_count can cause at once, whatever n.
const maxAhead = 1_000

// Ahead returns the items like All, and fetches up to n pages ahead of the one that is handed out. It asks for pages by
// number, once the first page has said how many there are. A collection that does not count its pages is read one by one.
func (c Collection[T]) Ahead(ctx context.Context, n int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		head, err := c.read(ctx, c.Query)
		if err != nil {
			yield(*new(T), err)
			return
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

// ahead reads a collection with pages fetched ahead.
type ahead[T any] struct {
	*Collection[T]

	trail    *trail
	head     *arrived[T]
	ready    map[int]chan arrived[T] // pages on their way, by number
	underWay sync.WaitGroup
}

// run yields the items of all pages. It returns nil also when the caller wants no more.
func (a *ahead[T]) run(ctx context.Context, n int, yield func(T, error) bool) error {
	if want := a.trail.number + 1; want != a.head.Index {
		return a.trail.broken("page %d was asked for, and page %d came", want, a.head.Index)
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
			return a.trail.broken("%d pages in a row are empty, and page_count is %d", a.trail.empty, a.head.Count)
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

// fetch begins to read a page by its number, unless there is none or it is not to be read.
func (a *ahead[T]) fetch(ctx context.Context, index int) {
	if index > a.head.Count || a.MaxPages > 0 && index-a.head.Index >= a.MaxPages {
		return
	}
	result := make(chan arrived[T], 1)
	a.ready[index] = result
	a.underWay.Go(func() {
		var page arrived[T]
		a.Guard(func() error {
			read, err := a.readNumbered(ctx, index)
			if err == nil {
				page = *read
			}
			return err
		}, func(err error) {
			page.err = err
			result <- page
		})
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

// take notes a page, and refuses one that does not fit what came before it.
func (a *ahead[T]) take(page *arrived[T], index int) error {
	t, head := a.trail, a.head
	known, begins := compare(&t.items, page.items, a.Identity)
	switch {
	case page.Index != index:
		return t.broken("page %d was asked for, and page %d came", index, page.Index)
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
