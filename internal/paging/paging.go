// Package paging reads all pages of a collection and checks that no item is missing. It follows next_uri, or counts
// pages by itself if no page says whether others follow. It can also prefetch pages by number.
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
	Path     string // relative to the base URL, in canonical form
	Query    string // of the first page
	MaxPages int    // 0 means no limit
	Ahead    int    // pages to prefetch; above 0, the collection must not change while it is read

	// Read reads the page with this query. If Ahead is above 0, calls overlap.
	Read func(ctx context.Context, query string) ([]T, Page, error)
}

// Broken means that a collection cannot be read completely.
type Broken struct {
	Pages  int // pages read so far
	Reason string
}

// Error returns the reason.
func (e *Broken) Error() string { return e.Reason }

// All yields the items page by page, and compares their number with the announced totals. It stops at the first error.
// With Ahead, it prefetches pages by number if the first page contains its number and page_count. Otherwise it reads
// the page that next_uri points to, or the page with the next number if no page says whether more follow.
func (c *Collection[T]) All(ctx context.Context) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		r := &reader[T]{
			Collection: c, number: cmp.Or(NumberIn(c.Query, "page"), 1) - 1, total: Unknown, count: Unknown,
			asked: map[string]bool{}, seed: maphash.MakeSeed(), seen: map[uint64]bool{},
		}
		r.ask(c.Query)
		defer r.underWay.Wait()
		defer cancel()
		for query, more := c.Query, true; more; {
			items, page, err := r.read(ctx, query)
			if err == nil && (page == nil || !yield(items, nil)) {
				return
			}
			if err == nil {
				query, more, err = r.next(page)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// reader is the state of one iteration.
type reader[T any] struct {
	*Collection[T]

	head      Page // the first page
	pages     int  // number of pages read so far
	number    int  // number of the last page
	size      int  // number of items on the first page that was not empty
	last      int  // number of items on the last page
	empty     int  // empty pages in a row
	delivered int64
	announced bool            // a page said whether further pages exist
	numbered  bool            // pages are prefetched by number
	asked     map[string]bool // queries so far, with sorted parameters
	seed      maphash.Seed
	seen      map[uint64]bool // hashes of IDs, about 1 MB for 50,000; true if a page begins with this item
	total     int64           // as of the last page that had it; Unknown unless the first page is page 1
	count     int             // page_count of the last page that had it, or Unknown

	ready    []chan result[T] // prefetched pages, in order
	underWay sync.WaitGroup
}

type result[T any] struct {
	items []T
	page  Page
	err   error
}

// read reads a page, or takes a prefetched one, and checks it. If page and err are nil, the collection ended before
// this page.
func (r *reader[T]) read(ctx context.Context, query string) (items []T, page *Page, err error) {
	var got result[T]
	if r.numbered {
		got = <-r.ready[0]
		r.ready = r.ready[1:]
	} else {
		got.items, got.page, got.err = r.Read(ctx, query)
	}
	if got.err != nil {
		// A service may refuse a page past the end. The last page was shorter than requested, and no item is missing.
		if got.page.PastEnd && !r.announced && r.pages > 0 && r.last < NumberIn(r.Query, "count") && r.delivered >= r.total {
			return nil, nil, nil
		}
		return nil, nil, got.err
	}
	if deliver, err := r.check(&got.page); !deliver || err != nil {
		return nil, nil, err
	}
	if r.numbered {
		r.prefetch(ctx)
	}
	return got.items, &got.page, nil
}

// prefetch starts reading pages after the last one, so that Ahead pages are in progress or ready.
func (r *reader[T]) prefetch(ctx context.Context) {
	n := min(r.Ahead, maxAhead, r.head.Count-r.number)
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

// ask records a query. It returns false if the query was sent before, in any order of its parameters.
func (r *reader[T]) ask(query string) bool {
	if values, err := url.ParseQuery(query); err == nil {
		query = values.Encode()
	}
	before := r.asked[query]
	r.asked[query] = true
	return !before
}

// check records a page. It returns an error if the page has a wrong number or no new items, or if the collection
// changed. deliver is false if the collection ended before this page.
func (r *reader[T]) check(page *Page) (deliver bool, err error) {
	r.pages++
	r.number++
	items, steady := len(page.IDs), r.Ahead > 0
	if r.pages == 1 {
		r.head = *page
		r.numbered = steady && page.Index > 0 && page.Count >= 0 && (page.Count > 0 || !page.more(page.Index))
	} else if steady && items == 0 { // on an empty page, some services count only that page
		page.Total, page.Count = cmp.Or(page.Total, Unknown), cmp.Or(page.Count, Unknown)
	}
	switch {
	case page.Index != r.number && (page.Index != 0 || r.numbered):
		return false, r.broken("requested page %d, but got page %d", r.number, page.Index)
	case steady && (differ(page.Total, r.head.Total) || r.numbered && differ(page.Count, r.head.Count)):
		return false, r.broken("the collection changed while it was read: %d items in %d pages became %d in %d",
			max(r.head.Total, 0), max(r.head.Count, 0), max(page.Total, 0), max(page.Count, 0))
	}
	if page.Total >= 0 && r.number == r.pages { // the first page is page 1
		r.total = page.Total
	}
	if page.Count >= 0 {
		r.count = page.Count
	}
	r.announced = r.announced || page.Announces
	if deliver, err = r.judge(page); !deliver || err != nil {
		return false, err
	}
	r.size, r.last, r.delivered = cmp.Or(r.size, items), items, r.delivered+int64(items)
	if r.empty++; items > 0 {
		r.empty = 0
	}
	if steady && r.total >= 0 && r.delivered > r.total {
		return false, r.broken("received %d items, but the total is %d", r.delivered, r.total)
	}
	return true, nil
}

// judge decides whether a page may follow the earlier ones. It compares only the IDs of the items, because the other
// members of a task change while it runs. A new item may move known ones to the next page, so a page may contain some
// known items, and a short last page may contain nothing else.
func (r *reader[T]) judge(page *Page) (deliver bool, err error) {
	known, begins := true, false // whether no item is new; whether the first item began an earlier page
	for i, id := range page.IDs {
		hash := maphash.String(r.seed, id)
		began, seen := r.seen[hash]
		known, begins = known && seen, begins || began && i == 0
		r.seen[hash] = began || i == 0
	}
	items := len(page.IDs)
	moved := known && !begins && items < r.size
	switch {
	case !known && !begins, r.announced && (items == 0 || moved && !page.more(r.number)):
		return true, nil
	case r.announced && !begins:
		return false, r.broken("the page has no new item")
	case r.announced, !known:
		return false, r.broken("the page repeats an earlier one")
	case r.delivered < r.total:
		return false, r.broken("received %d of %d items, but this page has no new one", r.delivered, r.total)
	case items == 0, moved, r.pages == 2 && items == r.size && items != NumberIn(r.Query, "count"):
		return false, nil // in the last case, the service ignores the page number
	default:
		return false, r.broken("the page repeats an earlier one")
	}
}

// next returns the query for the next page. more is false at the end of the collection.
func (r *reader[T]) next(page *Page) (query string, more bool, err error) {
	switch {
	case r.numbered:
		more = r.number < r.head.Count
	case r.announced:
		more = page.more(r.number)
	case r.total >= 0:
		more = r.delivered < r.total
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
	case r.numbered || !r.announced:
		return r.withPage(r.number + 1), true, nil
	case page.Next == nil && page.HasMore != nil:
		return "", false, r.broken("has_more is true, but there is no next_uri")
	case page.Next == nil:
		return "", false, r.broken("this is page %d of %d, but there is no next_uri", r.number, page.Count)
	case page.Next.Err != nil:
		return "", false, r.broken("%v", page.Next.Err)
	case page.Next.Path != r.Path:
		return "", false, r.broken("next_uri leads to another collection, %s", page.Next.Path)
	}
	if own := page.Own; own != nil && own.Path == r.Path {
		r.ask(withFilters(own.Query, r.Query))
	}
	if query = withFilters(page.Next.Query, r.Query); !r.ask(query) {
		return "", false, r.broken("next_uri leads in a circle, to %s", r.Path)
	}
	return query, true, nil
}

// checkEnd returns an error if the end contradicts the last page or an earlier one. A collection may grow while it is
// read, so more items than the total are not a contradiction.
func (r *reader[T]) checkEnd(page *Page) error {
	switch {
	case r.numbered && page.more(r.number):
		return r.broken("the last of %d pages announces more", r.number)
	case page.Next != nil && (r.total < 0 || r.delivered < r.total): // if all items have arrived, has_more is right
		return r.broken("has_more is false, but there is a next_uri")
	case r.number < r.count:
		return r.broken("page %d of %d announces no further page", r.number, r.count)
	case r.delivered < r.total:
		return r.broken("received %d items, but the total is %d", r.delivered, r.total)
	default:
		return nil
	}
}

func (r *reader[T]) broken(format string, args ...any) error {
	return &Broken{r.pages, fmt.Sprintf(format, args...)}
}

// differ reports whether two numbers differ. It returns false if one of them is Unknown.
func differ[N int | int64](a, b N) bool { return a >= 0 && b >= 0 && a != b }
