package webdelivery

import (
	"context"
	"fmt"
	"iter"

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
// For a collection, Path, Page and Reason are set: it changed while it was read, a page is not the requested one or
// repeats earlier ones, or the pages end too early or do not say where. (Open point 2.)
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

// eachItem returns the items of all pages. It prefetches up to ahead pages.
func eachItem[T any, P resourceOf[T]](ctx context.Context, f *conn, first call, ahead int) iter.Seq2[T, error] {
	collection := paging.Collection[T]{
		Query: first.Query, Ahead: min(ahead, 1_000),
		Read: func(ctx context.Context, query string) ([]T, paging.Page, error) {
			cl := first
			cl.Query = query
			ctx, join := apart(ctx)
			page, facts, err := readPage[T, P](ctx, f, cl)
			facts.Taken = join
			return page.Items, facts, err
		},
		Broken: func(pages int, reason string) error {
			return &IncompleteError{Path: f.secrets.Text(f.base.Path(first.Path)), Page: pages, Reason: f.secrets.Text(reason)}
		},
	}
	return collection.All(ctx)
}

func checkPaging(p *problems, page, count int) {
	p.addBelow0("page", int64(page))
	p.addBelow0("count", int64(count))
}

// pagedCall describes a GET of one page. It is not sent if there are problems.
func pagedCall(p *problems, operation, path string, options any) call {
	values, err := query.Values(options)
	if err != nil {
		p.add("options", "%v", err)
	}
	cl := getCall(operation, path, values.Encode())
	cl.invalid = p.err()
	return cl
}
