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
	return fmt.Sprintf("webdelivery: %s: after page %d: %s", e.Path, e.Page, redact.Line(redact.Within(prefix, e.Reason)))
}

func (e *PaginationError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

// pageRead is a page with what the response says of its place in the collection.
type pageRead[T any] struct {
	*Page[T]

	said paging.Page
}

// fetchPage reads one page: the envelope, an object with tasks, or a bare array (open point 2).
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
	if err := r.checkJSON(); err != nil {
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

// eachItem returns the items of all pages, with so many pages fetched ahead.
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

// collectionOf describes how a collection is read from its first page to its last.
func collectionOf[T any, P interface {
	*T
	resource
}](f *funnel, first call, maxPages int) (paging.Collection[T], error) {
	path, err := cleanPath("path", first.Path) // as resolve spells it; a dialect may spell it otherwise
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
		Guard: func(read func() error, done func(error)) {
			f.caught(read, func(failed *failure) { done(failed.cause()) })
		},
	}, err
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

// failing is a sequence of one error.
func failing[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) { yield(*new(T), err) }
}
