package webdelivery

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"sync"
)

// ReadOption changes how a collection is read. One that makes no sense is a [*ValidationError], which the sequence yields.
type ReadOption func(*int) error

// ReadAhead fetches up to n pages ahead, at least 1, while the caller works on the ones before, in order and with at most
// n requests under way and n pages in memory. Default: each page when it is needed. It works by page number, once the
// first page has told how many there are; a page that disagrees with the first one on the total, or has another number
// than asked for, ends the reading with a [*PaginationError].
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

// aheadPage is one page on its way.
type aheadPage[T any] struct {
	page *Page[T]
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
		if head.PageIndex == 0 || head.PageCount == 0 && (head.HasMore || len(head.Items) > 0) {
			eachItemFrom(ctx, c, first, read, maxPages)(yield)
			return
		}
		if err := rightPage(c, first, head); err != nil {
			yield(*new(T), err)
			return
		}
		ahead = max(0, min(ahead, head.PageCount-head.PageIndex))
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
				page, err := fetchNumbered(ctx, c, first, head, index)
				result <- aheadPage[T]{page, err}
			})
		}
		for i := range ahead {
			fetch(head.PageIndex + 1 + i)
		}
		items := int64(0)
		for page, index := head, head.PageIndex; ; {
			items += int64(len(page.Items))
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			index++
			next, more := ready[index]
			if !more {
				if err := endedEarly(c, first, head, page, index-1, items); err != nil {
					yield(*new(T), err)
				}
				return
			}
			delete(ready, index)
			got := <-next
			if got.err != nil {
				yield(*new(T), got.err)
				return
			}
			page = got.page
			fetch(index + ahead)
		}
	}
}

// rightPage: the first page must be the one that was asked for, as the others are counted from it.
func rightPage[T any](c *Client, first call, head *Page[T]) error {
	values, err := url.ParseQuery(first.query)
	if err != nil {
		return err
	}
	asked, err := strconv.Atoi(cmp.Or(values.Get("page"), "1"))
	if err != nil || asked != head.PageIndex {
		return brokenPage(c, first, 0, "page %d was asked for, and page %d came", asked, head.PageIndex)
	}
	return nil
}

// fetchNumbered reads one page by its number and compares it with the first.
func fetchNumbered[T any](ctx context.Context, c *Client, first call, head *Page[T], index int) (*Page[T], error) {
	values, err := url.ParseQuery(first.query)
	if err != nil {
		return nil, err
	}
	values.Set("page", strconv.Itoa(index))
	first.query = values.Encode()
	page, err := fetchPage[T](ctx, c, first)
	switch {
	case err != nil:
		return nil, err
	case page.PageIndex != index:
		return nil, brokenPage(c, first, index-1, "page %d was asked for, and page %d came", index, page.PageIndex)
	case page.Total != head.Total || page.PageCount != head.PageCount:
		return nil, brokenPage(c, first, index-1, "the collection changed while it was read: %d items in %d pages became %d in %d",
			head.Total, head.PageCount, page.Total, page.PageCount)
	}
	return page, nil
}

// endedEarly is the error for a last page that is not the end.
func endedEarly[T any](c *Client, first call, head, last *Page[T], index int, items int64) error {
	switch {
	case index < head.PageCount:
		return brokenPage(c, first, index-head.PageIndex+1, "more pages follow than MaxPages allows")
	case last.HasMore:
		return brokenPage(c, first, index-head.PageIndex+1, "the last of %d pages says that there are more", head.PageCount)
	case head.PageIndex == 1 && items != head.Total:
		return brokenPage(c, first, index, "%d items came, and the collection has %d", items, head.Total)
	default:
		return nil
	}
}

func brokenPage(c *Client, first call, pages int, format string, args ...any) error {
	return &PaginationError{Path: c.base.path + first.path, Page: pages, Reason: fmt.Sprintf(format, args...)}
}
