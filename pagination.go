package webdelivery

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"github.com/google/go-querystring/query"
)

// Page is one page of a collection (service-interface section 2.6, paged collection envelope). It is read by List and
// Entries; the sequences of All and AllEntries follow the pages by themselves.
type Page[T any] struct {
	URI       string `json:"uri"`                // the request's address, with its count and page
	Items     []T    `json:"items"`              // items of this page, never nil
	Total     int64  `json:"total"`              // items of the whole collection
	HasMore   bool   `json:"has_more"`           // further pages exist
	PageCount int    `json:"page_count"`         // pages of the whole collection for the count used
	PageIndex int    `json:"page_index"`         // this page, from 1; 0 when the reply does not say
	PrevURI   string `json:"prev_uri,omitempty"` // previous page, empty on the first
	NextURI   string `json:"next_uri,omitempty"` // next page, empty on the last
}

// wirePage is the envelope as it is sent. Pointers tell an item that is null from one that is empty.
type wirePage[T any] struct {
	URI       string  `json:"uri"`
	Items     []*T    `json:"items"`
	Tasks     []*T    `json:"tasks"` // also read, open point 2
	Total     int64   `json:"total"`
	HasMore   *bool   `json:"has_more"`
	PageCount int     `json:"page_count"`
	PageIndex int     `json:"page_index"`
	PrevURI   *string `json:"prev_uri"`
	NextURI   *string `json:"next_uri"`
}

// PaginationError is a collection that cannot be read to its end, because the address of the next page is missing, leads
// elsewhere, or leads in a circle, because pages do not follow one another, or because MaxPages is reached
// (service-interface section 2.6). The items before it have been delivered; that it is an error means that others exist.
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

// fetchPage reads one page: the envelope, or a bare array (open point 2). Where has_more is missing, the rest tells.
func fetchPage[T any](ctx context.Context, c *Client, cl call) (*Page[T], error) {
	r, err := c.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	if err := r.checkJSON(); err != nil {
		return nil, err
	}
	var w wirePage[T]
	if bytes.TrimSpace(r.body)[0] == '[' {
		err = r.unmarshal(&w.Items)
		w.Total, w.PageCount, w.PageIndex = int64(len(w.Items)), 1, 1
	} else {
		err = r.decodeObject(&w)
	}
	if err != nil {
		return nil, err
	}
	p := &Page[T]{
		URI: w.URI, Total: w.Total, PageCount: w.PageCount, PageIndex: w.PageIndex,
		PrevURI: deref(w.PrevURI), NextURI: deref(w.NextURI), Items: make([]T, 0, len(w.Items)+len(w.Tasks)),
	}
	p.HasMore = p.NextURI != "" || p.PageIndex < p.PageCount
	if w.HasMore != nil {
		p.HasMore = *w.HasMore
	}
	for i, item := range append(w.Items, w.Tasks...) {
		if item == nil {
			return nil, r.bad(fmt.Sprintf("items[%d] is null", i), nil)
		}
		p.Items = append(p.Items, *item)
	}
	return p, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// maxEmptyPages bounds how many pages without an item may follow one another while more are announced.
const maxEmptyPages = 3

// eachItem reads a collection from its first page to its last, following next_uri. It ends with the first error.
func eachItem[T any](ctx context.Context, c *Client, first call, maxPages int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		path, err := cleanPath("path", first.path) // as resolve spells it; a dialect may spell it otherwise
		if err != nil {
			yield(*new(T), err)
			return
		}
		trail := trail{client: c, path: path}
		trail.visit(path, first.query)
		for cl, more := first, true; more; {
			page, err := fetchPage[T](ctx, c, cl)
			if err != nil {
				yield(*new(T), err)
				return
			}
			here := position{page.URI, page.NextURI, page.HasMore, page.PageIndex, page.PageCount, len(page.Items)}
			if err := trail.arrive(here); err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if cl.query, more, err = trail.follow(here, maxPages); err != nil {
				yield(*new(T), err)
				return
			}
		}
	}
}

// trail remembers the pages of one collection that were read, to know a circle when it comes.
type trail struct {
	client *Client
	path   string
	seen   map[string]bool // sorted queries
	pages  int
	index  int // page_index of the last page
	empty  int // pages without an item in a row
}

// position is what a page says of itself and of the one after it.
type position struct {
	uri, next string
	hasMore   bool
	index     int
	count     int // pages of the collection
	items     int
}

// arrive notes a page, also by the address it gives for itself, and refuses one that should have come before.
func (t *trail) arrive(here position) error {
	t.pages++
	if here.index != 0 && t.index != 0 && here.index != t.index+1 {
		return t.broken("page_index %d follows %d", here.index, t.index)
	}
	t.index = here.index
	if path, query, err := t.client.resolveSent("uri", here.uri); err == nil {
		t.visit(path, query)
	}
	return nil
}

// follow gives the query of the next page, or false at the end of the collection. Only the query may differ from page
// to page: an address of another path, let alone another origin, is never asked for.
func (t *trail) follow(here position, maxPages int) (query string, more bool, err error) {
	if !here.hasMore {
		if here.index != 0 && here.index < here.count {
			return "", false, t.broken("has_more is false on page %d of %d", here.index, here.count)
		}
		return "", false, nil
	}
	if here.next == "" {
		return "", false, t.broken("has_more is true, but there is no next_uri")
	}
	path, query, err := t.client.resolveSent("next_uri", here.next)
	if err != nil {
		return "", false, t.broken("%v", err)
	}
	if here.items > 0 {
		t.empty = 0
	} else {
		t.empty++
	}
	switch {
	case path != t.path:
		return "", false, t.broken("next_uri leads to another collection, %s", path)
	case t.empty == maxEmptyPages:
		return "", false, t.broken("%d pages in a row are empty, and more are announced", t.empty)
	case maxPages > 0 && t.pages >= maxPages:
		return "", false, t.broken("more pages follow than MaxPages allows, %d", maxPages)
	case !t.visit(path, query):
		return "", false, t.broken("next_uri leads in a circle, to %s", path)
	}
	return query, true, nil
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
	return &PaginationError{Path: t.client.base.path + t.path, Page: t.pages, Reason: t.client.auth.text(fmt.Sprintf(format, args...))}
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
	return call{method: http.MethodGet, path: path, query: query, enveloped: true}
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
