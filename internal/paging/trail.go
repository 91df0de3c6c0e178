package paging

import (
	"cmp"
	"fmt"
	"net/url"
)

// maxEmptyPages is the number of empty pages in a row that ends the reading although more are announced.
const maxEmptyPages = 3

// trail records the pages that were read: to detect a circle, and to detect announced items that never arrived.
type trail struct {
	path      string
	query     string // of the first request
	maxPages  int
	resolve   func(member, address string) (path, query string, err error)
	stop      func(pages int, reason string) error
	announced bool            // at least one page said whether further pages exist
	seen      map[string]bool // sorted queries
	items     itemSet
	pages     int
	number    int   // number of the last page, counted from the requested one
	index     int   // page_index of the last page
	empty     int   // empty pages in a row
	delivered int64 // items

	// From the last page that had the member: the collection may grow and shrink while it is read.
	total     int64 // items, or Unknown; always Unknown if the first page is not page 1
	count     int   // pages, or Unknown
	fromPage1 bool
}

func newTrail(path, query string, maxPages int, resolve func(member, address string) (string, string, error), stop func(int, string) error) *trail {
	first := cmp.Or(NumberIn(query, "page"), 1)
	t := &trail{
		path: path, query: query, maxPages: maxPages, resolve: resolve, stop: stop,
		number: first - 1, total: Unknown, count: Unknown, fromPage1: first == 1,
	}
	t.visit(path, query)
	return t
}

// arrive records a page, also under the address that it gives for itself. It refuses a page with a wrong number.
func (t *trail) arrive(here *Page) error {
	t.pages++
	t.number++
	switch {
	case here.Index == 0 || here.Index == t.number:
	case t.index != 0:
		return t.broken("page_index %d follows %d", here.Index, t.index)
	default:
		return t.broken("requested page %d, but got page %d", t.number, here.Index)
	}
	if t.index = here.Index; t.index != 0 {
		t.number = t.index
	}
	if here.Total >= 0 && t.fromPage1 {
		t.total = here.Total
	}
	if here.Count >= 0 {
		t.count = here.Count
	}
	t.announced = t.announced || here.Announces
	if path, query, err := t.resolve("uri", here.URI); err == nil {
		if kept, changed := keepFilters(t.query, query); changed == "" {
			query = kept // the form in which follow visits a next_uri
		}
		t.visit(path, query)
	}
	return nil
}

// checkNew refuses a page that repeats earlier items. A new item may move known ones to the next page. So a page may
// hold some known items, and a short last page nothing else.
func (t *trail) checkNew(here *Page, known, begins bool) error {
	switch {
	case here.Items == 0:
		return nil
	case begins:
		return t.broken("the page repeats an earlier one")
	case known && (here.more(t.number) || here.Items >= t.items.size):
		return t.broken("the page has no new item")
	default:
		return nil
	}
}

// follow returns the query of the next page, or false at the end of the collection. Only the query may differ between
// pages: follow refuses an address with another path or another origin.
func (t *trail) follow(here *Page) (query string, more bool, err error) {
	if !here.more(t.number) {
		return "", false, t.checkEnd(here)
	}
	switch {
	case here.Next != "":
	case here.HasMore != nil:
		return "", false, t.broken("has_more is true, but there is no next_uri")
	default:
		return "", false, t.broken("this is page %d of %d, but there is no next_uri", t.number, here.Count)
	}
	path, query, err := t.resolve("next_uri", here.Next)
	if err != nil {
		return "", false, t.broken("%v", err)
	}
	query, changed := keepFilters(t.query, query)
	switch {
	case path != t.path:
		return "", false, t.broken("next_uri leads to another collection, %s", path)
	case changed != "":
		return "", false, t.broken("next_uri changes %s, by which the first page was selected", changed)
	case t.tooManyEmpty(here.Items):
		return "", false, t.broken("%d pages in a row are empty, but more are announced", t.empty)
	case t.maxPages > 0 && t.pages >= t.maxPages:
		return "", false, t.broken("more pages follow than MaxPages allows (%d)", t.maxPages)
	case !t.visit(path, query):
		return "", false, t.broken("next_uri leads in a circle, to %s", path)
	}
	return query, true, nil
}

// tooManyEmpty counts a page, and reports whether too many pages in a row were empty.
func (t *trail) tooManyEmpty(items int) bool {
	if items > 0 {
		t.empty = 0
	} else {
		t.empty++
	}
	return t.empty >= maxEmptyPages
}

// checkEnd refuses an end that contradicts this page or an earlier one. A collection may grow while it is read, so more
// items than the total are no contradiction.
func (t *trail) checkEnd(here *Page) error {
	switch {
	case here.Next != "" && (t.total < 0 || t.delivered < t.total): // if all items arrived, has_more is right
		return t.broken("has_more is false, but there is a next_uri")
	case t.number < t.count:
		return t.broken("page %d of %d announces no further page", t.number, t.count)
	case t.delivered < t.total:
		return t.broken("received %d items, but the total is %d", t.delivered, t.total)
	default:
		return nil
	}
}

// visit records an address. It returns false if the same address was visited before, in any order of its parameters.
func (t *trail) visit(path, query string) bool {
	key := path + "?" + query
	if values, err := url.ParseQuery(query); err == nil {
		key = path + "?" + values.Encode()
	}
	if t.seen[key] {
		return false
	}
	if t.seen == nil {
		t.seen = map[string]bool{}
	}
	t.seen[key] = true
	return true
}

// deliver records that the n items of the last page are being yielded.
func (t *trail) deliver(n int) {
	t.items.add()
	t.delivered += int64(n)
}

func (t *trail) broken(format string, args ...any) error {
	return t.stop(t.pages, fmt.Sprintf(format, args...))
}

// checkCounted refuses a last page that is not the end. All prefetched pages give the same total, so it must be exact.
func (t *trail) checkCounted(last *Page, pages int) error {
	switch {
	case t.number < pages:
		return t.broken("more pages follow than MaxPages allows")
	case last.more(t.number):
		return t.broken("the last of %d pages announces more", pages)
	case differ(t.total, t.delivered):
		return t.broken("received %d items, but the total is %d", t.delivered, t.total)
	default:
		return t.checkEnd(last)
	}
}
