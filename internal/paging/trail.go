package paging

import (
	"cmp"
	"fmt"
	"net/url"
)

// maxEmptyPages bounds how many pages without an item may follow one another while more are announced.
const maxEmptyPages = 3

// trail remembers the pages of one collection that were read: to know a circle when it comes, and to know at the end
// what was announced and did not come.
type trail struct {
	path      string
	query     string // of the first request
	maxPages  int
	resolve   func(member, address string) (path, query string, err error)
	stop      func(pages int, reason string) error
	announced bool            // a page said whether further pages exist
	seen      map[string]bool // sorted queries
	items     itemSet
	pages     int
	number    int   // of the last page, counted from the one that was asked for
	index     int   // page_index of the last page
	empty     int   // pages without an item in a row
	delivered int64 // items

	// What the last page with such a member says of the whole collection; it may grow and shrink while it is read.
	total     int64 // items; -1 without one, or when the first page is not page 1
	count     int   // pages; -1 without one
	fromPage1 bool
}

func newTrail(path, query string, maxPages int, resolve func(member, address string) (string, string, error), stop func(int, string) error) *trail {
	first := cmp.Or(NumberIn(query, "page"), 1)
	t := &trail{
		path: path, query: query, maxPages: maxPages, resolve: resolve, stop: stop,
		number: first - 1, total: Unsaid, count: Unsaid, fromPage1: first == 1,
	}
	t.visit(path, query)
	return t
}

// arrive notes a page, also by the address it gives for itself, and refuses one that should have come before.
func (t *trail) arrive(here *Page) error {
	t.pages++
	t.number++
	switch {
	case here.Index == 0 || here.Index == t.number:
	case t.index != 0:
		return t.broken("page_index %d follows %d", here.Index, t.index)
	default:
		return t.broken("page %d was asked for, and page %d came", t.number, here.Index)
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
	t.announced = t.announced || here.Said
	if path, query, err := t.resolve("uri", here.URI); err == nil {
		if kept, changed := keepFilters(t.query, query); changed == "" {
			query = kept // as next_uri has it
		}
		t.visit(path, query)
	}
	return nil
}

// checkNew refuses a page of which the items came before. A new item may move known ones to the next page, so some known
// ones prove nothing, nor does a short last page of known ones alone.
func (t *trail) checkNew(here *Page, known, begins bool) error {
	switch {
	case here.Items == 0:
		return nil
	case begins:
		return t.broken("it repeats an earlier page")
	case known && (here.more(t.number) || here.Items >= t.items.size):
		return t.broken("none of its items is new")
	default:
		return nil
	}
}

// follow gives the query of the next page, or false at the end of the collection. Only the query may differ from page
// to page: an address of another path, let alone another origin, is never asked for.
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
		return "", false, t.broken("%d pages in a row are empty, and more are announced", t.empty)
	case t.maxPages > 0 && t.pages >= t.maxPages:
		return "", false, t.broken("more pages follow than MaxPages allows, %d", t.maxPages)
	case !t.visit(path, query):
		return "", false, t.broken("next_uri leads in a circle, to %s", path)
	}
	return query, true, nil
}

// tooManyEmpty counts the pages without an item that follow one another.
func (t *trail) tooManyEmpty(items int) bool {
	if items > 0 {
		t.empty = 0
	} else {
		t.empty++
	}
	return t.empty >= maxEmptyPages
}

// checkEnd refuses an end that contradicts what this page or an earlier one announced. A collection may grow while it is
// read, so more items than the total are no contradiction.
func (t *trail) checkEnd(here *Page) error {
	switch {
	case here.Next != "" && (t.total < 0 || t.delivered < t.total): // where all has come, has_more is believed
		return t.broken("has_more is false, but there is a next_uri")
	case t.number < t.count:
		return t.broken("page %d of %d announces no other", t.number, t.count)
	case t.delivered < t.total:
		return t.broken("%d items came, and the collection has %d", t.delivered, t.total)
	default:
		return nil
	}
}

// visit notes an address; false when it was visited before, whatever the order of its parameters.
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

// deliver notes that the items of the last page, of which there are n, are handed out.
func (t *trail) deliver(n int) {
	t.items.add()
	t.delivered += int64(n)
}

func (t *trail) broken(format string, args ...any) error {
	return t.stop(t.pages, fmt.Sprintf(format, args...))
}

// checkCounted refuses a last page that is not the end. All pages say the same total, so it must be the number of items.
func (t *trail) checkCounted(last *Page, pages int) error {
	switch {
	case t.number < pages:
		return t.broken("more pages follow than MaxPages allows")
	case last.more(t.number):
		return t.broken("the last of %d pages says that there are more", pages)
	case differ(t.total, t.delivered):
		return t.broken("%d items came, and the collection has %d", t.delivered, t.total)
	default:
		return t.checkEnd(last)
	}
}
