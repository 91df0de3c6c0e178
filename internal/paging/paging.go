// Package paging reads all pages of a collection and checks that no item is missing. If the pages have numbers, they are
// read by number, and may be prefetched. Otherwise the query of next_uri leads on, and without one the next number.
// The package knows neither requests nor JSON nor the type of the items.
package paging

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"sync"
)

const maxEmptyPages = 3 // empty pages in a row after which reading stops although more are announced

// Collection describes a collection to read.
type Collection[T any] struct {
	Query string // of the first page
	Ahead int    // pages to prefetch

	// Read reads the page with this query. If Ahead is above 0, calls overlap.
	Read func(ctx context.Context, query string) ([]T, Page, error)
	// Broken returns the error that the collection cannot be read completely, after this number of pages.
	Broken func(pages int, reason string) error
}

// All yields the items, and compares their number with the total. It stops at the first error.
func (c *Collection[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		first := cmp.Or(NumberIn(c.Query, "page"), 1)
		r := &reader[T]{
			Collection: c, first: first, asked: NumberIn(c.Query, "count"), query: c.Query, more: true, number: first - 1,
			seed: maphash.MakeSeed(), seen: map[uint64]struct{}{},
		}
		defer r.underWay.Wait()
		defer cancel()
		for r.more {
			items, err := r.read(ctx)
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if err != nil {
				yield(*new(T), err)
				return
			}
		}
	}
}

// reader is the state of one iteration. After the first page it knows how to go on. If that page has its number and
// page_count, pages are read by number up to that count. Otherwise it reads on as long as a page announces another one;
// if none ever does, until the total is reached; and without a total, until a page is shorter than the first.
type reader[T any] struct {
	*Collection[T]

	first, asked int    // number of the first page, and the count that was asked for
	query        string // of the next page
	more         bool   // there is or may be a next page

	number     int   // of the last page read; first-1 before the first
	size, last int   // number of items on the first page, and on the last one
	empty      int   // empty pages in a row
	total      int64 // as the pages say; 0 if unknown
	count      int   // page_count as the pages say; 0 if unknown
	announced  bool  // a page said whether further pages exist
	numbered   bool  // the first page has its number and page_count, so pages are read by number

	seed     maphash.Seed
	seen     map[uint64]struct{} // hashes of IDs, about 1 MB for 50,000
	ready    []chan result[T]    // prefetched pages, in order
	underWay sync.WaitGroup
}

type result[T any] struct {
	items []T
	page  Page
	err   error
}

// read reads a page, or takes a prefetched one, checks it, and decides whether and how to go on.
func (r *reader[T]) read(ctx context.Context) ([]T, error) {
	var got result[T]
	if len(r.ready) > 0 {
		got = <-r.ready[0]
		r.ready = r.ready[1:]
	} else {
		got.items, got.page, got.err = r.Read(ctx, r.query)
	}
	if got.page.Taken != nil {
		got.page.Taken()
	}
	r.more = false
	switch left, _ := r.left(); {
	case got.err == nil:
	case got.page.Refused == "" || r.announced || r.number < r.first:
		return nil, got.err
	case left == 0 && r.last < r.asked: // a page shorter than requested is the last, and there is none after it
		return nil, nil
	default:
		return nil, r.broken("page %d was refused (%s), and nothing says that page %d is the last; a larger count may show the end",
			r.number+1, got.page.Refused, r.number)
	}
	if deliver, err := r.check(&got.page); !deliver {
		return nil, err
	}
	r.prefetch(ctx)
	return got.items, r.goOn(&got.page)
}

// prefetch starts reading pages after the last one, so that Ahead pages are in progress or ready.
func (r *reader[T]) prefetch(ctx context.Context) {
	for r.numbered && len(r.ready) < min(r.Ahead, r.count-r.number) {
		query, coming := withFilters(fmt.Sprint("page=", r.number+len(r.ready)+1), r.Query), make(chan result[T], 1)
		r.ready = append(r.ready, coming)
		r.underWay.Go(func() {
			items, page, err := r.Read(ctx, query)
			coming <- result[T]{items, page, err}
		})
	}
}

// check records a page. It returns an error if the page has a wrong number or no new items, or if the collection
// changed. deliver is false with an error, and if the collection ended before this page.
func (r *reader[T]) check(page *Page) (deliver bool, err error) {
	r.number++
	total, count := cmp.Or(page.Total, r.total), cmp.Or(page.Count, r.count)
	switch {
	case page.Index > 0 && page.Index != r.number:
		return false, r.broken("requested page %d, but got page %d", r.number, page.Index)
	case total != cmp.Or(r.total, total) || count != cmp.Or(r.count, count):
		return false, r.broken("the collection changed while it was read: %d items in %d pages became %d in %d; read it again",
			r.total, r.count, total, count)
	}
	r.total, r.count = total, count
	if r.number == r.first {
		r.size, r.numbered = len(page.IDs), page.Index > 0 && count > 0
	}
	_, said := page.More(r.number)
	r.announced = r.announced || said
	before, items := len(r.seen), len(page.IDs)
	for _, id := range page.IDs { // other members do not count, because those of a task change while it runs
		r.seen[maphash.String(r.seed, id)] = struct{}{}
	}
	switch {
	case len(r.seen) > before, r.announced && items == 0:
	case items == 0, !r.announced && r.number == r.first+1 && items == r.size && items != r.asked: // the second page is the first, so it ignores numbers
		return false, r.checkEnd(page)
	default:
		return false, r.broken("the page repeats earlier ones")
	}
	r.last = items
	if r.empty++; items > 0 {
		r.empty = 0
	}
	if r.total > 0 && int64(len(r.seen)) > r.total {
		return false, r.broken("received %d items, but the total is %d", len(r.seen), r.total)
	}
	return true, nil
}

// goOn decides whether there is a next page, and with which query.
func (r *reader[T]) goOn(page *Page) error {
	more, said := page.More(r.number)
	left, certain := r.left()
	switch {
	case r.numbered:
		more = r.number < r.count
	case r.announced: // a page that says nothing is the last, because some services omit false and null
		more = more && said
	case certain:
		more = left > 0
	default: // a page shorter than the first is the last
		more = r.last >= r.size
	}
	switch {
	case !more:
		return r.checkEnd(page)
	case r.empty >= maxEmptyPages:
		return r.broken("%d pages in a row are empty, but more are announced", r.empty)
	}
	next := fmt.Sprint("page=", r.number+1)
	if page.Next != nil && !r.numbered {
		next = *page.Next
	}
	r.more, r.query = true, withFilters(next, r.Query)
	return nil
}

// left returns how many items of the total have not come yet. Pages before the first one that was read count as full.
// certain is false if there is no total, or if the first page may be the last and not full.
func (r *reader[T]) left() (left int64, certain bool) {
	if r.total == 0 || r.first > 1 && (r.size == 0 || r.size >= len(r.seen) && r.size != r.asked) {
		return 0, false
	}
	return max(r.total-int64(r.first-1)*int64(r.size)-int64(len(r.seen)), 0), true
}

// checkEnd returns an error if the end contradicts the last page or an earlier one.
func (r *reader[T]) checkEnd(page *Page) error {
	left, certain := r.left()
	switch {
	case r.number < r.count:
		return r.broken("page %d of %d announces no further page", r.number, r.count)
	case left > 0:
		return r.broken("%d of %d items are missing, but no further page is announced", left, r.total)
	case !certain && (page.Next != nil && !r.numbered || page.HasMore != nil && *page.HasMore): // else all items have arrived
		return r.broken("page %d is the last, but has a next_uri or announces more", r.number)
	default:
		return nil
	}
}

func (r *reader[T]) broken(format string, args ...any) error {
	return r.Broken(r.number-r.first+1, fmt.Sprintf(format, args...))
}
