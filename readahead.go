package webdelivery

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"sync"
)

// ReadOption changes how a collection is read. One that makes no sense is a [*ValidationError], which the sequence yields.
type ReadOption func(*int) error

// ReadAhead fetches up to n pages ahead while the caller works on the ones before. The pages come in order, with at most
// n requests under way and n pages in memory. n is at least 1; above 1,000 it means 1,000. Default: each page is fetched
// when it is needed.
//
// ReadAhead asks for pages by number, once the first page has said how many there are. If a page has another number than
// the one that was asked for, or another total or page_count than the first page, the sequence ends with a
// [*PaginationError]. A total that a page leaves out is not compared.
func ReadAhead(n int) ReadOption {
	return func(ahead *int) error {
		if n < 1 {
			return invalid("ReadAhead", "%d is below 1", n)
		}
		*ahead = n
		return nil
	}
}

func pagesAhead(options []ReadOption) (ahead int, err error) {
	for _, option := range options {
		if option == nil {
			return 0, invalid("options", "one is nil")
		}
		if err := option(&ahead); err != nil {
			return 0, err
		}
	}
	return ahead, nil
}

// maxAhead bounds how many requests a page_count can cause at once, whatever n.
const maxAhead = 1_000

// aheadPage is one page on its way.
type aheadPage[T any] struct {
	read pageRead[T]
	err  error
}

// eachItemAhead reads a collection like eachItem, with pages fetched ahead. A service that does not count its pages is
// read one by one.
func eachItemAhead[T any](ctx context.Context, c *Client, first call, maxPages, ahead int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		read, err := readPage[T](ctx, c, first)
		if err != nil {
			yield(*new(T), err)
			return
		}
		head := read.page
		if head.PageIndex == 0 || read.count < 0 || read.count == 0 && head.HasMore {
			eachItemFrom(ctx, c, first, read, maxPages)(yield)
			return
		}
		trail := newTrail(c, first.Path, first.Query, maxPages)
		if trail.number+1 != head.PageIndex {
			yield(*new(T), trail.broken("page %d was asked for, and page %d came", trail.number+1, head.PageIndex))
			return
		}
		ahead := max(0, min(ahead, maxAhead, head.PageCount-head.PageIndex)) // of this loop
		ctx, cancel := context.WithCancel(ctx)
		var underWay sync.WaitGroup
		defer underWay.Wait()
		defer cancel()

		ready := map[int]chan aheadPage[T]{}
		fetch := func(index int) {
			if index > head.PageCount || maxPages > 0 && index-head.PageIndex >= maxPages {
				return
			}
			result := make(chan aheadPage[T], 1)
			ready[index] = result
			underWay.Go(func() {
				var page aheadPage[T]
				c.caught(func() (err error) {
					page.read, err = readNumbered[T](ctx, c, first, index)
					return err
				}, func(failed *failure) {
					page.err = failed.cause()
					result <- page
				})
			})
		}
		for i := range ahead {
			fetch(head.PageIndex + 1 + i)
		}
		for page, index := read, head.PageIndex; ; {
			if err := takeNumbered(trail, &read, &page, index); err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range page.page.Items {
				if !yield(item, nil) {
					return
				}
			}
			index++
			next, more := ready[index]
			if !more {
				if err := trail.checkCounted(page.position(), head.PageCount); err != nil {
					yield(*new(T), err)
				}
				return
			}
			if trail.tooManyEmpty(len(page.page.Items)) {
				yield(*new(T), trail.broken("%d pages in a row are empty, and page_count is %d", trail.empty, head.PageCount))
				return
			}
			delete(ready, index)
			got := <-next
			if got.err != nil {
				yield(*new(T), got.err)
				return
			}
			page = got.read
			fetch(index + ahead)
		}
	}
}

// readNumbered reads one page by its number.
func readNumbered[T any](ctx context.Context, c *Client, first call, index int) (read pageRead[T], err error) {
	values, err := url.ParseQuery(first.Query)
	if err != nil {
		return read, err
	}
	values.Set("page", strconv.Itoa(index))
	first.Query = values.Encode()
	return readPage[T](ctx, c, first)
}

// takeNumbered notes a page, and refuses one that does not fit what came before it.
func takeNumbered[T any](t *trail, head, read *pageRead[T], index int) error {
	page := read.page
	known, begins := compare(&t.items, page.Items)
	switch {
	case page.PageIndex != index:
		return t.broken("page %d was asked for, and page %d came", index, page.PageIndex)
	case differ(read.total, head.total) || differ(read.count, head.count):
		return t.broken("the collection changed while it was read: %d items in %d pages became %d in %d",
			head.page.Total, head.page.PageCount, page.Total, page.PageCount)
	}
	if err := t.arrive(read.position()); err != nil {
		return err
	}
	if err := t.checkNew(read.position(), known, begins); err != nil {
		return err
	}
	t.items.add()
	t.delivered += int64(len(page.Items))
	return nil
}

// differ compares two numbers, unless one of them is unsaid, which is -1.
func differ[N int | int64](a, b N) bool { return a >= 0 && b >= 0 && a != b }

// checkCounted refuses a last page that is not the end. All pages say the same total, so it must be the number of items.
func (t *trail) checkCounted(last position, pages int) error {
	switch {
	case t.number < pages:
		return t.broken("more pages follow than MaxPages allows")
	case t.more(last):
		return t.broken("the last of %d pages says that there are more", pages)
	case differ(t.total, t.delivered):
		return t.broken("%d items came, and the collection has %d", t.delivered, t.total)
	default:
		return t.checkEnd(last)
	}
}
