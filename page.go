package webdelivery

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/webdelivery/webdelivery-go/internal/paging"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Page is one page of a collection. List and Entries return it; the sequences of All and AllEntries read all pages.
//
// A response may be a bare array or omit members (open point 2). Then Total, PageCount and PageIndex are 0 and the
// addresses are empty. If the response does not say whether more pages exist, HasMore is true. It is false if the
// page is empty, or if Total says that this first page has everything. (Service document, [section 2.6].)
//
// [section 2.6]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#26-network-list
type Page[T any] struct {
	URI       string `json:"uri"`                // address of this page, with its count and page
	Items     []T    `json:"items"`              // items of this page, never nil
	Total     int64  `json:"total"`              // items of the whole collection; 0 if the response does not say
	HasMore   bool   `json:"has_more"`           // more pages exist, or may exist if the response does not say
	PageCount int    `json:"page_count"`         // pages of the whole collection at this count; 0 if the response does not say
	PageIndex int    `json:"page_index"`         // number of this page, from 1; 0 if the response does not say
	PrevURI   string `json:"prev_uri,omitempty"` // previous page, empty on the first
	NextURI   string `json:"next_uri,omitempty"` // next page, empty on the last
}

// fetchPage reads one page: an envelope, an object with tasks, or a bare array (open point 2).
func fetchPage[T any, P resourceOf[T]](ctx context.Context, f *conn, cl call) (*Page[T], error) {
	page, _, err := readPage[T, P](ctx, f, cl)
	return page, err
}

// readPage also returns what the page announces.
func readPage[T any, P resourceOf[T]](ctx context.Context, f *conn, cl call) (*Page[T], paging.Page, error) {
	r, err := f.send(ctx, cl)
	if err != nil {
		return nil, paging.Page{}, err
	}
	if err := r.checkText(); err != nil {
		return nil, paging.Page{}, err
	}
	missing := missingAddress
	body := pageBody[T]{NextURI: &missing}
	if bytes.TrimSpace(r.Body)[0] == '[' {
		err = r.unmarshal(&body.Items)
	} else if err = r.decodeObject(&body); err == nil {
		if problem := body.problem(r.Body); problem != "" {
			err = r.bad(problem, nil)
		}
	}
	if err != nil {
		return nil, paging.Page{}, err
	}
	page, facts := body.page(f, cl.Query)
	for i, item := range append(body.Items, body.Tasks...) {
		if item == nil {
			return nil, paging.Page{}, r.bad(fmt.Sprintf("items[%d] is null", i), nil)
		}
		if missing := P(item).lacks(); missing != "" {
			return nil, paging.Page{}, r.bad(fmt.Sprintf("items[%d]: no %s", i, missing), nil)
		}
		page.Items, facts.IDs = append(page.Items, *item), append(facts.IDs, P(item).identity())
	}
	return page, facts, nil
}

// pageBody is a page in JSON. Pointers tell a missing or null member from a zero one.
type pageBody[T any] struct {
	URI       string  `json:"uri"`
	Items     []*T    `json:"items"`
	Tasks     []*T    `json:"tasks"` // another name for items (open point 2)
	Total     *int64  `json:"total"`
	HasMore   *bool   `json:"has_more"`
	PageCount *int    `json:"page_count"`
	PageIndex int     `json:"page_index"`
	PrevURI   string  `json:"prev_uri"`
	NextURI   *string `json:"next_uri"` // set it to missingAddress before decoding: null, as on the last page, makes it nil
}

// missingAddress marks a missing next_uri. No collection has this address.
const missingAddress = "\x00"

// problem returns why a decoded object is not a page, or "". Some services write null for an empty list of items: such
// an object is a page if it has another member of a page.
func (b *pageBody[T]) problem(object []byte) string {
	if b.Items != nil && b.Tasks != nil {
		return "both items and tasks"
	}
	if b.Items != nil || b.Tasks != nil {
		return ""
	}
	var members map[string]json.RawMessage
	_ = wire.Decode(object, &members) // was decoded before
	hasItems := members["items"] != nil || members["tasks"] != nil
	if !hasItems || b.HasMore == nil && b.Total == nil && b.PageCount == nil && b.PageIndex <= 0 {
		return "not a page: it has neither items nor tasks"
	}
	return ""
}

// page returns the page, without its items, and what it announces. query is the query of its request.
func (b *pageBody[T]) page(f *conn, query string) (*Page[T], paging.Page) {
	items := len(b.Items) + len(b.Tasks)
	total, count := int64(paging.Unknown), paging.Unknown
	if b.Total != nil && *b.Total >= int64(items) { // a smaller number cannot be the total
		total = *b.Total
	}
	if b.PageCount != nil && (*b.PageCount > 0 || *b.PageCount == 0 && items == 0) { // 0 cannot be right on a page with items
		count = *b.PageCount
	}
	next := *cmp.Or(b.NextURI, new(string))
	hasNext := next != missingAddress
	if !hasNext {
		next = ""
	}
	facts := paging.Page{
		IDs: make([]string, 0, items), Own: linkTo(f, "uri", b.URI), Next: linkTo(f, "next_uri", next),
		HasMore: b.HasMore, Index: max(b.PageIndex, 0), Count: count, Total: total,
	}
	page := &Page[T]{
		URI: b.URI, Total: max(*cmp.Or(b.Total, new(int64)), 0), PageCount: max(*cmp.Or(b.PageCount, new(int)), 0), PageIndex: facts.Index,
		PrevURI: b.PrevURI, NextURI: next, Items: make([]T, 0, items),
	}
	facts.Announces, page.HasMore = hasMore(&facts, query, items, hasNext)
	return page, facts
}

// linkTo resolves an address of a page; nil if the page does not have it.
func linkTo(f *conn, field, address string) *paging.Link {
	if address == "" {
		return nil
	}
	path, query, err := f.resolve(field, address)
	return &paging.Link{Path: path, Query: query, Err: err}
}

// hasMore reports whether the page announces further pages or their absence, and whether further pages exist or may
// exist. has_more takes precedence over the rest, and a total over a next_uri of null, because it is more exact.
func hasMore(p *paging.Page, query string, items int, hasNext bool) (announces, more bool) {
	number := cmp.Or(p.Index, paging.NumberIn(query, "page"), 1) // of this page
	switch {
	case p.HasMore != nil:
		return true, *p.HasMore
	case p.Next != nil:
		return true, true
	case p.Count >= 0:
		return true, number < p.Count
	case hasNext && p.Total < 0:
		return true, false
	case number == 1 && p.Total >= 0:
		return false, p.Total > int64(items)
	default:
		return false, items > 0 && !hasNext
	}
}
