package webdelivery

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/google/go-querystring/query"

	"github.com/webdelivery/webdelivery-go/internal/paging"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// IncompleteError means that a collection or the rows of a query could not be read to the end. What came before the
// error is valid; more exists or may exist.
//
// For rows, Got and Total are set: fewer arrived than match the query, up to its Limit and the size of a top-K. If Got
// is at least Total, the response has as many rows as All requested, so more may match: query again, or let the time
// range end in the past, where no rows are added.
//
// For a collection, Path, Page and Reason are set: the address of the next page is missing, leads elsewhere or in a
// circle; a page is not the requested one or has nothing new; the pages end before everything that they announced has
// arrived; three pages in a row are empty; or MaxPages is reached. (Open point 2.)
type IncompleteError struct {
	Got    int64  // rows in the response
	Total  int64  // total_results of the response
	Path   string // escaped path of the collection; "" for rows
	Page   int    // pages read so far
	Reason string // what is wrong with the next one
}

// Error returns one line with what is missing.
func (e *IncompleteError) Error() string {
	switch {
	case e.Reason != "":
		return fmt.Sprintf("webdelivery: %s: after page %d: %s", e.Path, e.Page, redact.Line(within(e.Reason)))
	case e.Got >= e.Total:
		return fmt.Sprintf("webdelivery: %s arrived, as many as requested, so more than %d may match", counted(e.Got, "row", "rows"), e.Total)
	default:
		return fmt.Sprintf("webdelivery: %s arrived, and %d match", counted(e.Got, "row", "rows"), e.Total)
	}
}

func (e *IncompleteError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

// collectionOf describes how to read a collection, and how many pages to prefetch.
func collectionOf[T any, P resourceOf[T]](f *conn, first call, maxPages, ahead int) *paging.Collection[T] {
	path, _ := cleanPath("path", first.Path) // spelled as resolve does, because a dialect may differ; its errors are those of send
	read := func(ctx context.Context, query string) ([]T, paging.Page, error) {
		cl := first
		cl.Query = query
		page, facts, err := readPage[T, P](ctx, f, cl)
		if err != nil {
			return nil, paging.Page{PastEnd: errors.Is(err, ErrNotFound) || errors.Is(err, ErrBadRequest)}, err
		}
		return page.Items, facts, nil
	}
	return &paging.Collection[T]{Path: path, Query: first.Query, MaxPages: maxPages, Ahead: ahead, Read: read}
}

// eachItem returns the items of all pages. It prefetches up to ahead pages.
func eachItem[T any, P resourceOf[T]](ctx context.Context, f *conn, first call, maxPages, ahead int) iter.Seq2[T, error] {
	if first.invalid != nil {
		return failing[T](first.invalid)
	}
	collection := collectionOf[T, P](f, first, maxPages, ahead)
	return func(yield func(T, error) bool) {
		for items, err := range collection.All(ctx) {
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if broken, ok := errors.AsType[*paging.Broken](err); ok {
				err = &IncompleteError{Path: f.secrets.Text(f.base.Path(collection.Path)), Page: broken.Pages, Reason: f.secrets.Text(broken.Reason)}
			}
			if err != nil {
				yield(*new(T), err)
			}
		}
	}
}

func checkPaging(p *problems, page, count, maxPages int) {
	p.addBelow0("page", int64(page))
	p.addBelow0("count", int64(count))
	p.addBelow0("MaxPages", int64(maxPages))
}

// getCall describes a GET of one address.
func getCall(path, query string) call {
	return describe(http.MethodGet, path, query)
}

// at describes a request to the address of the resource with these ids.
func at(method, template string, ids ...string) call {
	path, err := expand(template, ids...)
	cl := describe(method, path, "")
	cl.invalid = err
	return cl
}

// objectCall describes a GET of one object. The last of the ids is its own.
func objectCall(template, query string, ids ...string) call {
	cl := at(http.MethodGet, template, ids...)
	cl.Query, cl.id = query, ids[len(ids)-1]
	return cl
}

// pagedCall describes a GET of one page. It is not sent if there are problems.
func pagedCall(p *problems, path string, options any) call {
	values, err := query.Values(options)
	if err != nil {
		p.add("options", "%v", err)
	}
	cl := getCall(path, values.Encode())
	cl.invalid = p.err()
	return cl
}

// failing returns a sequence that yields one error.
func failing[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) { yield(*new(T), err) }
}
