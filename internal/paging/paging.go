// Package paging reads all pages of a collection and checks that no item is missing. If the pages are numbered, they
// are read by their numbers, and may be prefetched. Otherwise the query of next_uri leads on, and without one the next
// number.
//
// The package must not depend on requests, JSON, or the type of the items.
package paging

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"net/url"
	"strconv"
	"sync"
)

const (
	maxEmptyPages = 3     // empty pages in a row after which reading stops although more are announced
	maxAhead      = 1_000 // upper bound of prefetched pages
)

// Collection describes a collection to read.
type Collection[T any] struct {
	Query    string // of the first page
	MaxPages int    // 0 means no limit
	Ahead    int    // pages to prefetch

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
			Collection: c, first: first, number: first - 1, asked: NumberIn(c.Query, "count"),
			seed: maphash.MakeSeed(), seen: map[uint64]bool{},
		}
		defer r.underWay.Wait()
		defer cancel()
		for query, more := c.Query, true; more; {
			var items []T
			var err error
			items, query, more, err = r.read(ctx, query)
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

// reader is the state of one iteration.
type reader[T any] struct {
	*Collection[T]

	first, asked int // number of the first page, and the count that was asked for
	pages        int // number of pages read so far
	number       int // number of the last page
	size, last   int // number of items on the first page that was not empty, and on the last page
	empty        int // empty pages in a row
	delivered    int64
	total        int64           // as the pages say; 0 if unknown
	count        int             // page_count as the pages say; 0 if unknown
	announced    bool            // a page said whether further pages exist
	numbered     bool            // the first page has its number and page_count, so pages are read by number
	followed     bool            // a next_uri was followed
	seed         maphash.Seed    // of the hashes in seen
	seen         map[uint64]bool // hashes of IDs, about 1 MB for 50,000; true if a page begins with this item

	ready    []chan result[T] // prefetched pages, in order
	underWay sync.WaitGroup
}

type result[T any] struct {
	items []T
	page  Page
	err   error
}

// read reads a page, or takes a prefetched one, and checks it. It also returns the query for the next page; more is
// false at the end of the collection.
func (r *reader[T]) read(ctx context.Context, query string) (items []T, next string, more bool, err error) {
	var got result[T]
	if len(r.ready) > 0 {
		got = <-r.ready[0]
		r.ready = r.ready[1:]
	} else {
		got.items, got.page, got.err = r.Read(ctx, query)
	}
	switch left, _ := r.left(); {
	case got.err == nil:
	case got.page.Refused == "" || r.announced || r.pages == 0:
		return nil, "", false, got.err
	case left == 0 && r.last < r.asked: // a page shorter than requested is the last, and there is none after it
		return nil, "", false, nil
	default:
		return nil, "", false, r.broken("page %d was refused (%s), and nothing says that page %d is the last; a larger count may show the end",
			r.number+1, got.page.Refused, r.number)
	}
	if deliver, err := r.check(&got.page); !deliver {
		return nil, "", false, err
	}
	r.prefetch(ctx)
	next, more, err = r.next(&got.page)
	return got.items, next, more, err
}

// prefetch starts reading pages after the last one, so that Ahead pages are in progress or ready.
func (r *reader[T]) prefetch(ctx context.Context) {
	n := 0
	if r.numbered {
		n = min(r.Ahead, maxAhead, r.count-r.number)
	}
	if r.MaxPages > 0 {
		n = min(n, r.MaxPages-r.pages)
	}
	for len(r.ready) < n {
		query, coming := r.withPage(r.number+len(r.ready)+1), make(chan result[T], 1)
		r.ready = append(r.ready, coming)
		r.underWay.Go(func() {
			items, page, err := r.Read(ctx, query)
			coming <- result[T]{items, page, err}
		})
	}
}

// withPage returns the query of the first request with the given page number.
func (r *reader[T]) withPage(number int) string {
	values, _ := url.ParseQuery(r.Query)
	values.Set("page", strconv.Itoa(number))
	return values.Encode()
}

// check records a page. It returns an error if the page has a wrong number or no new items, or if the collection
// changed. deliver is false with an error, and if the collection ended before this page.
func (r *reader[T]) check(page *Page) (deliver bool, err error) {
	r.pages++
	r.number++
	if r.pages == 1 {
		r.numbered = page.Index > 0 && page.Count > 0
	}
	switch {
	case page.Index > 0 && page.Index != r.number:
		return false, r.broken("requested page %d, but got page %d", r.number, page.Index)
	case differ(page.Total, r.total) || differ(page.Count, r.count):
		return false, r.broken("the collection changed while it was read: %d items in %d pages became %d in %d; read it again",
			r.total, r.count, page.Total, page.Count)
	}
	r.total, r.count = max(r.total, page.Total), max(r.count, page.Count)
	more, said := page.More(r.number)
	r.announced = r.announced || said
	known, begins := r.knows(page.IDs)
	items := len(page.IDs)
	moved := known && !begins && items < r.size
	switch {
	case !known && !begins, r.announced && (items == 0 || moved && !(more && said)):
	case !r.announced && (items == 0 || moved || known && r.pages == 2 && items == r.size && items != r.asked):
		return false, r.checkEnd(page) // in the last case, the service ignores the page number
	default:
		return false, r.broken("the page repeats an earlier one")
	}
	r.size, r.last, r.delivered = cmp.Or(r.size, items), items, r.delivered+int64(items)
	if r.empty++; items > 0 {
		r.empty = 0
	}
	if r.total > 0 && r.delivered > r.total {
		return false, r.broken("received %d items, but the total is %d", r.delivered, r.total)
	}
	return true, nil
}

// knows reports whether earlier pages had all of the items, and whether one of them began with the same item: then the
// read goes in a circle. It compares only IDs, because the other members of a task change while it runs. A new item may
// move known ones to the next page, so a page may contain some known items, and a short last page may contain nothing
// else.
func (r *reader[T]) knows(ids []string) (known, begins bool) {
	known = true
	for i, id := range ids {
		hash := maphash.String(r.seed, id)
		began, seen := r.seen[hash]
		known, begins = known && seen, begins || began && i == 0
		r.seen[hash] = began || i == 0
	}
	return known, begins
}

// next returns the query for the next page. more is false at the end of the collection.
func (r *reader[T]) next(page *Page) (query string, more bool, err error) {
	more, said := page.More(r.number)
	left, known := r.left()
	switch {
	case r.numbered:
		more = r.number < r.count
	case r.announced: // a page that says nothing is the last, because some services omit false and null
		more = more && said
	case known:
		more = left > 0
	default: // a page shorter than the first is the last
		more = r.last >= r.size
	}
	switch {
	case !more:
		return "", false, r.checkEnd(page)
	case r.empty >= maxEmptyPages:
		return "", false, r.broken("%d pages in a row are empty, but more are announced", r.empty)
	case r.MaxPages > 0 && r.pages >= r.MaxPages:
		return "", false, r.broken("more pages follow or may follow, but MaxPages allows at most %d", r.MaxPages)
	case !r.numbered && page.Next != nil:
		r.followed = true
		return withFilters(*page.Next, r.Query), true, nil
	case r.followed: // its pages may have another size, so a number could lead anywhere
		return "", false, r.broken("more pages are announced, but there is no next_uri")
	default:
		return r.withPage(r.number + 1), true, nil
	}
}

// left returns how many items of the total have not come yet. Pages before the first one that was read count as full.
// known is false if there is no total, or if it is not clear how many items a full page has.
func (r *reader[T]) left() (left int64, known bool) {
	if r.total == 0 || r.first > 1 && (r.size == 0 || r.pages == 1 && r.size != r.asked) {
		return 0, false
	}
	return max(r.total-int64(r.first-1)*int64(r.size)-r.delivered, 0), true
}

// checkEnd returns an error if the end contradicts the last page or an earlier one.
func (r *reader[T]) checkEnd(page *Page) error {
	left, known := r.left()
	more, said := page.More(r.number)
	switch {
	case r.number < r.count:
		return r.broken("page %d of %d announces no further page", r.number, r.count)
	case left > 0:
		return r.broken("%d of %d items are missing, but no further page is announced", left, r.total)
	case !known && (more && said || page.Next != nil): // if all items have arrived, this is the end
		return r.broken("page %d is the last, but has a next_uri or announces more", r.number)
	default:
		return nil
	}
}

func (r *reader[T]) broken(format string, args ...any) error {
	return r.Broken(r.pages, fmt.Sprintf(format, args...))
}

// differ reports whether two known numbers differ.
func differ[N int | int64](a, b N) bool { return a > 0 && b > 0 && a != b }
