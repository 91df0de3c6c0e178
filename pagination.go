package webdelivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/google/go-querystring/query"

	"github.com/webdelivery/webdelivery-go/internal/objects"
	"github.com/webdelivery/webdelivery-go/internal/paging"
	"github.com/webdelivery/webdelivery-go/internal/redact"
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

// PaginationError means that a collection cannot be read to its end. The items before the error were delivered;
// others exist or may exist. Reasons:
//   - The address of the next page is missing, leads elsewhere, leads in a circle, or has another value of a
//     parameter of the first request. A parameter that the address omits is sent anyway.
//   - The first page is not the requested one, page numbers have a gap, or a page repeats an earlier one.
//   - The pages end too early: fewer items than total, fewer pages than page_count, or a next_uri beside a has_more
//     of false.
//   - Three pages in a row are empty, and more are announced.
//   - MaxPages is reached.
//
// (Open point 2.)
type PaginationError struct {
	Path   string // escaped path of the collection
	Page   int    // pages read so far
	Reason string // what is wrong with the next one
}

// Error returns one line with path, page and reason.
func (e *PaginationError) Error() string {
	return fmt.Sprintf("webdelivery: %s: after page %d: %s", e.Path, e.Page, redact.Line(within(e.Reason)))
}

func (e *PaginationError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

// pageRead is a page together with what the response says about its place in the collection.
type pageRead[T any] struct {
	*Page[T]

	said paging.Page
}

// fetchPage reads one page: an envelope, an object with tasks, or a bare array (open point 2).
func fetchPage[T any](ctx context.Context, f *funnel, cl call) (*Page[T], error) {
	read, err := readPage[T](ctx, f, cl)
	if err != nil {
		return nil, err
	}
	return read.Page, nil
}

func readPage[T any](ctx context.Context, f *funnel, cl call) (read pageRead[T], err error) {
	r, err := f.send(ctx, cl)
	if err != nil {
		return read, err
	}
	if err := r.checkText(); err != nil {
		return read, err
	}
	w := objects.NewPage[pageItem[T]]()
	if bytes.TrimSpace(r.Body)[0] == '[' {
		err = r.unmarshal(&w.Items)
	} else if err = r.decodeObject(w); err == nil {
		if problem := w.Problem(r.Body); problem != "" {
			err = r.bad(problem, nil)
		}
	}
	if err != nil {
		return read, err
	}
	facts := w.Facts(cl.Query)
	p := &Page[T]{
		URI: w.URI, Total: facts.Total, HasMore: facts.HasMore, PageCount: facts.PageCount, PageIndex: facts.PageIndex,
		PrevURI: facts.PrevURI, NextURI: facts.NextURI, Items: make([]T, 0, facts.Page.Items),
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
	return pageRead[T]{p, facts.Page}, nil
}

// eachItem returns the items of all pages. It prefetches as many pages as ahead says.
func eachItem[T any, P interface {
	*T
	resource
}](ctx context.Context, f *funnel, first call, maxPages, ahead int) iter.Seq2[T, error] {
	collection, err := collectionOf[T, P](f, first, maxPages)
	switch {
	case err != nil:
		return failing[T](err)
	case ahead > 0:
		return collection.Ahead(ctx, ahead)
	default:
		return collection.All(ctx)
	}
}

// collectionOf describes to package paging how to read a collection.
func collectionOf[T any, P interface {
	*T
	resource
}](f *funnel, first call, maxPages int) (paging.Collection[T], error) {
	path, err := cleanPath("path", first.Path) // spelled as resolve does, because a dialect may differ
	return paging.Collection[T]{
		Path: path, Query: first.Query, MaxPages: maxPages,
		Read: func(ctx context.Context, query string) ([]T, paging.Page, error) {
			cl := first
			cl.Query = query
			read, err := readPage[T](ctx, f, cl)
			if err != nil {
				return nil, paging.Page{}, err
			}
			return read.Items, read.said, nil
		},
		Identity: func(item *T) string { return P(item).identity() },
		Resolve:  f.resolveSent,
		Refused:  func(err error) bool { return errors.Is(err, ErrNotFound) || errors.Is(err, ErrBadRequest) },
		Broken: func(pages int, reason string) error {
			return &PaginationError{Path: f.secrets.Text(f.base.Path(path)), Page: pages, Reason: f.secrets.Text(reason)}
		},
		Guard: func(read func() error, done func(error)) { done(read()) },
	}, err
}

// checkPaging adds a problem for each number below 0.
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

// getCall describes a GET of one address.
func getCall(path, query string) call {
	return describe(http.MethodGet, path, query)
}

// objectCall describes a GET of one object by its id.
func objectCall(path, query, id string) call {
	cl := getCall(path, query)
	cl.id = id
	return cl
}

// pagedCall describes a GET of one page, or returns the problems.
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

// failing returns a sequence that yields one error.
func failing[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) { yield(*new(T), err) }
}
