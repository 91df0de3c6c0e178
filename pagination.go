package webdelivery

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/go-querystring/query"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Page is one page of a collection (service-interface section 2.6, paged collection envelope). It is read by List and
// Entries; the sequences of All and AllEntries follow the pages by themselves.
//
// A reply may be a bare array or leave members out (open point 2). Then Total, PageCount and PageIndex are 0 and the
// addresses are empty. If the reply says nothing of further pages, HasMore means that there may be some: it is true
// unless the page is empty, or Total says that this first page is all.
type Page[T any] struct {
	URI       string `json:"uri"`                // the request's address, with its count and page
	Items     []T    `json:"items"`              // items of this page, never nil
	Total     int64  `json:"total"`              // items of the whole collection; 0 also when the reply does not say
	HasMore   bool   `json:"has_more"`           // further pages exist, or may exist when the reply does not say
	PageCount int    `json:"page_count"`         // pages of the whole collection for the count used; 0 when the reply does not say
	PageIndex int    `json:"page_index"`         // this page, from 1; 0 when the reply does not say
	PrevURI   string `json:"prev_uri,omitempty"` // previous page, empty on the first
	NextURI   string `json:"next_uri,omitempty"` // next page, empty on the last
}

// wirePage is the envelope as it is sent. Pointers tell an item that is null from one that is empty.
type wirePage[T any] struct {
	URI       string         `json:"uri"`
	Items     []*pageItem[T] `json:"items"`
	Tasks     []*pageItem[T] `json:"tasks"` // also read, open point 2
	Total     int64          `json:"total"`
	HasMore   *bool          `json:"has_more"`
	PageCount int            `json:"page_count"`
	PageIndex int            `json:"page_index"`
	PrevURI   *string        `json:"prev_uri"`
	NextURI   *string        `json:"next_uri"`

	next string // what NextURI points to
}

// A number and an address that no collection has. A reply with a number below 0 does not say it either.
const (
	unsaid        = -1
	unsaidAddress = "\x00"
)

// newWirePage fills in what decoding leaves alone where a member is missing. A next_uri of null, as on the last page,
// makes the pointer nil.
func newWirePage[T any]() *wirePage[T] {
	w := &wirePage[T]{Total: unsaid, PageCount: unsaid, next: unsaidAddress}
	w.NextURI = &w.next
	return w
}

// PaginationError means that a collection cannot be read to its end (service-interface section 2.6, open point 2).
// Reasons:
//   - The address of the next page is missing, leads elsewhere, leads in a circle, or has another value of a parameter
//     by which the first page was selected. A parameter that it leaves out is sent all the same.
//   - The first page is not the one that was asked for, pages do not follow one another, or a page repeats an earlier one.
//   - The pages end before what they announced: fewer items than total, fewer pages than page_count, or a next_uri beside
//     a has_more of false.
//   - Three pages in a row are empty, and more are announced.
//   - MaxPages is reached.
//
// The items before it have been delivered. Others exist or may exist.
type PaginationError struct {
	Path   string // escaped path of the collection
	Page   int    // pages read so far
	Reason string // what is wrong with the next one
}

// Error gives path, page and reason on one line.
func (e *PaginationError) Error() string {
	return fmt.Sprintf("webdelivery: %s: after page %d: %s", e.Path, e.Page, printable(e.Reason))
}

func (e *PaginationError) outcomeOfWrite() Outcome { return NotApplied }

// pageRead is a page with what the reply says of its place in the collection.
type pageRead[T any] struct {
	page    *Page[T]
	said    bool  // whether further pages exist
	hasMore *bool // the member has_more, nil when the reply does not have it
	total   int64 // items of the whole collection, -1 when the reply does not say
	count   int   // pages of the whole collection, -1 when the reply does not say
}

// fetchPage reads one page: the envelope, an object with tasks, or a bare array (open point 2).
func fetchPage[T any](ctx context.Context, c *Client, cl call) (*Page[T], error) {
	read, err := readPage[T](ctx, c, cl)
	if err != nil {
		return nil, err
	}
	return read.page, nil
}

func readPage[T any](ctx context.Context, c *Client, cl call) (read pageRead[T], err error) {
	r, err := c.send(ctx, cl)
	if err != nil {
		return read, err
	}
	if err := r.checkJSON(); err != nil {
		return read, err
	}
	w := newWirePage[T]()
	if bytes.TrimSpace(r.Body)[0] == '[' {
		err = r.unmarshal(&w.Items)
	} else if err = r.decodeObject(w); err == nil {
		err = r.checkMembers(w.Items != nil, w.Tasks != nil, w.HasMore != nil || w.Total >= 0 || w.PageCount >= 0 || w.PageIndex > 0)
	}
	if err != nil {
		return read, err
	}
	saidNext := w.NextURI == nil || *w.NextURI != unsaidAddress
	if !saidNext {
		w.NextURI = nil
	}
	p := &Page[T]{
		URI: w.URI, Total: max(w.Total, 0), PageCount: max(w.PageCount, 0), PageIndex: max(w.PageIndex, 0), // below 0: unsaid
		PrevURI: deref(w.PrevURI), NextURI: deref(w.NextURI),
		Items: make([]T, 0, len(w.Items)+len(w.Tasks)),
	}
	for i, item := range append(w.Items, w.Tasks...) {
		if item == nil {
			return read, r.bad(fmt.Sprintf("items[%d] is null", i), nil)
		}
		if item.problem != "" {
			return read, r.bad(fmt.Sprintf("items[%d]: %s", i, item.problem), nil)
		}
		p.Items = append(p.Items, item.value)
	}
	read = pageRead[T]{page: p, hasMore: w.HasMore, total: unsaid, count: unsaid}
	if w.Total >= int64(len(p.Items)) {
		read.total = w.Total // a smaller one is no total
	}
	if w.PageCount > 0 || w.PageCount == 0 && len(p.Items) == 0 {
		read.count = w.PageCount // 0 on a page with items is no count
	}
	read.said, p.HasMore = w.more(&read, cl.Query, saidNext)
	return read, nil
}

// more tells whether further pages exist, and whether the reply says so. has_more counts most. A next_uri of null says
// nothing beside a total, which is more exact.
func (w *wirePage[T]) more(read *pageRead[T], query string, saidNext bool) (said, more bool) {
	p, asked := read.page, 0
	if w.HasMore == nil { // the query is not read for nothing
		asked = cmp.Or(p.PageIndex, numberIn(query, "page"), 1)
	}
	switch {
	case w.HasMore != nil:
		return true, *w.HasMore
	case p.NextURI != "":
		return true, true
	case read.count >= 0:
		return true, asked < read.count
	case saidNext && read.total < 0:
		return true, false
	case asked == 1 && read.total >= 0:
		return false, read.total > int64(len(p.Items))
	default:
		return false, len(p.Items) > 0 && !saidNext
	}
}

// pageMembers are the members of a page. The first two hold its items.
var pageMembers = [...]string{"items", "tasks", "uri", "total", "has_more", "page_count", "page_index", "prev_uri", "next_uri"}

// checkMembers refuses a page that can be read in more than one way, or that is none. A member that comes twice, in
// whatever letter case, is an example: decoding takes the last of them, and the items of the first would be lost. Some
// services write null for no items: that is a page if it says something else of itself.
func (r *reply) checkMembers(items, tasks, saysMore bool) error {
	var has [len(pageMembers)]bool
	holdsItems := false
	for text := range wire.Members(r.Body) {
		name := string(text)
		holdsItems = holdsItems || name == pageMembers[0] || name == pageMembers[1]
		for i, known := range pageMembers {
			if !strings.EqualFold(name, known) {
				continue
			}
			if has[i] {
				return r.bad(known+" comes twice", nil)
			}
			has[i] = true
		}
	}
	switch {
	case items && tasks:
		return r.bad("both items and tasks", nil)
	case !items && !tasks && (!holdsItems || !saysMore):
		return r.bad("no page: neither items nor tasks", nil)
	default:
		return nil
	}
}

// numberIn reads a number of a query; 0 without one.
func numberIn(query, name string) int {
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(values.Get(name))
	if err != nil {
		return 0
	}
	return n
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// maxEmptyPages bounds how many pages without an item may follow one another while more are announced.
const maxEmptyPages = 3

// eachItem reads a collection from its first page to its last. It follows next_uri, or counts the pages by itself where
// the replies say nothing of further ones. It compares the end with what was announced. It ends with the first error.
func eachItem[T any](ctx context.Context, c *Client, first call, maxPages int) iter.Seq2[T, error] {
	return eachItemFrom(ctx, c, first, pageRead[T]{}, maxPages)
}

// eachItemFrom is eachItem for a caller that has read the first page already, unless that is nil. Then the collection must
// not change while it is read, as with pages that are fetched ahead.
func eachItemFrom[T any](ctx context.Context, c *Client, first call, head pageRead[T], maxPages int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		path, err := cleanPath("path", first.Path) // as resolve spells it; a dialect may spell it otherwise
		if err != nil {
			yield(*new(T), err)
			return
		}
		trail := newTrail(c, path, first.Query, maxPages)
		steady := head.page != nil && head.total >= 0
		numbers := pageNumbers{trail: trail, count: numberIn(first.Query, "count")}
		for cl, read, more := first, head, true; more; read.page = nil {
			if read.page == nil {
				if read, err = readPage[T](ctx, c, cl); err != nil {
					if !numbers.endWith(err) {
						yield(*new(T), err)
					}
					return
				}
			}
			items, here := read.page.Items, read.position()
			if err := trail.arrive(here); err != nil {
				yield(*new(T), err)
				return
			}
			if steady && differ(here.total, head.total) {
				yield(*new(T), trail.broken("the collection changed while it was read: %d items became %d", head.total, here.total))
				return
			}
			known, begins := compare(&trail.items, items)
			fresh := true
			if trail.announced {
				err = trail.checkNew(here, known, begins)
			} else {
				fresh, more, err = numbers.judge(here.items, known, begins)
			}
			if err != nil {
				yield(*new(T), err)
				return
			}
			if !fresh {
				return
			}
			trail.items.add()
			trail.delivered += int64(len(items))
			if steady && trail.delivered > head.total {
				yield(*new(T), trail.broken("%d items came, and the collection has %d", trail.delivered, head.total))
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			switch {
			case trail.announced:
				cl.Query, more, err = trail.follow(here)
			case more:
				cl.Query, err = numbers.next(cl.Query, here.index)
			}
			if err != nil {
				yield(*new(T), err)
				return
			}
		}
	}
}

// trail remembers the pages of one collection that were read: to know a circle when it comes, and to know at the end
// what was announced and did not come.
type trail struct {
	client    *Client
	path      string
	query     string // of the first request
	maxPages  int
	announced bool            // a reply said whether further pages exist
	seen      map[string]bool // sorted queries
	items     itemSet
	pages     int
	number    int   // of the last page, counted from the one that was asked for
	index     int   // page_index of the last page
	empty     int   // pages without an item in a row
	delivered int64 // items

	// What the last reply with such a member says of the whole collection; it may grow and shrink while it is read.
	total     int64 // items; -1 without one, or when the first page is not page 1
	count     int   // pages; -1 without one
	fromPage1 bool
}

func newTrail(c *Client, path, query string, maxPages int) *trail {
	first := cmp.Or(numberIn(query, "page"), 1)
	t := &trail{client: c, path: path, query: query, maxPages: maxPages, number: first - 1, total: -1, count: -1, fromPage1: first == 1}
	t.visit(path, query)
	return t
}

// position is what a page says of itself and of the one after it.
type position struct {
	uri, next string
	said      bool // whether further pages exist
	hasMore   *bool
	index     int
	count     int   // pages of the collection, -1 unsaid
	total     int64 // items of the collection, -1 unsaid
	items     int
}

func (r *pageRead[T]) position() position {
	p := r.page
	return position{p.URI, p.NextURI, r.said, r.hasMore, p.PageIndex, r.count, r.total, len(p.Items)}
}

// arrive notes a page, also by the address it gives for itself, and refuses one that should have come before.
func (t *trail) arrive(here position) error {
	t.pages++
	t.number++
	switch {
	case here.index == 0 || here.index == t.number:
	case t.index != 0:
		return t.broken("page_index %d follows %d", here.index, t.index)
	default:
		return t.broken("page %d was asked for, and page %d came", t.number, here.index)
	}
	if t.index = here.index; t.index != 0 {
		t.number = t.index
	}
	if here.total >= 0 && t.fromPage1 {
		t.total = here.total
	}
	if here.count >= 0 {
		t.count = here.count
	}
	t.announced = t.announced || here.said
	if path, query, err := t.client.resolveSent("uri", here.uri); err == nil {
		if kept, changed := keepFilters(t.query, query); changed == "" {
			query = kept // as next_uri has it
		}
		t.visit(path, query)
	}
	return nil
}

// more tells whether the page announces another one. A reply that says nothing after others did leaves out what would be
// false and null.
func (t *trail) more(here position) bool {
	switch {
	case here.hasMore != nil:
		return *here.hasMore
	case here.next != "":
		return true
	default:
		return t.number < here.count
	}
}

// checkNew refuses a page of which the items came before. A new item may move known ones to the next page, so some known
// ones prove nothing, nor does a short last page of known ones alone.
func (t *trail) checkNew(here position, known, begins bool) error {
	switch {
	case here.items == 0:
		return nil
	case begins:
		return t.broken("it repeats an earlier page")
	case known && (t.more(here) || here.items >= t.items.size):
		return t.broken("none of its items is new")
	default:
		return nil
	}
}

// follow gives the query of the next page, or false at the end of the collection. Only the query may differ from page
// to page: an address of another path, let alone another origin, is never asked for.
func (t *trail) follow(here position) (query string, more bool, err error) {
	if !t.more(here) {
		return "", false, t.checkEnd(here)
	}
	switch {
	case here.next != "":
	case here.hasMore != nil:
		return "", false, t.broken("has_more is true, but there is no next_uri")
	default:
		return "", false, t.broken("this is page %d of %d, but there is no next_uri", t.number, here.count)
	}
	path, query, err := t.client.resolveSent("next_uri", here.next)
	if err != nil {
		return "", false, t.broken("%v", err)
	}
	query, changed := keepFilters(t.query, query)
	switch {
	case path != t.path:
		return "", false, t.broken("next_uri leads to another collection, %s", path)
	case changed != "":
		return "", false, t.broken("next_uri changes %s, by which the first page was selected", changed)
	case t.tooManyEmpty(here.items):
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
func (t *trail) checkEnd(here position) error {
	switch {
	case here.next != "" && (t.total < 0 || t.delivered < t.total): // where all has come, has_more is believed
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

func (t *trail) broken(format string, args ...any) error {
	return &PaginationError{
		Path: t.client.secrets.Text(t.client.base.Path(t.path)), Page: t.pages, Reason: t.client.secrets.Text(fmt.Sprintf(format, args...)),
	}
}

// checkPaging refuses page numbers and counts that no collection has.
func checkPaging(p *problems, page, count, maxPages int) {
	for _, v := range []struct {
		field string
		value int
	}{{"page", page}, {"count", count}, {"MaxPages", maxPages}} {
		if v.value < 0 {
			p.add(v.field, "%d is below 0", v.value)
		}
	}
}

// getCall is a read of one address.
func getCall(path, query string) call {
	cl := describe(http.MethodGet, path, query)
	cl.HasBody = true
	return cl
}

// objectCall is a read of one object, by its id.
func objectCall(path, query, id string) call {
	cl := getCall(path, query)
	cl.id = id
	return cl
}

// pagedCall is a read of a collection, unless there are problems.
func pagedCall(p *problems, path string, options any) (call, error) {
	if err := p.err(); err != nil {
		return call{}, err
	}
	values, err := query.Values(options)
	if err != nil {
		return call{}, invalid("options", "%v", err)
	}
	return getCall(path, values.Encode()), nil
}
