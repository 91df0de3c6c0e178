package webdelivery

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-querystring/query"

	"github.com/webdelivery/webdelivery-go/internal/paging"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// IncompleteError means that a collection or the rows of a query could not be read to the end. What came before the
// error is valid; more exists or may exist. Of rows, fewer arrived than match the query; if Got is at least Total,
// they are as many as were requested, so more may match: let the time range end in the past, where no rows are added.
// A collection changed while it was read, or its pages contradict each other or end too early.
type IncompleteError struct {
	Got    int64  // rows in the response, or those of the export so far
	Total  int64  // how many there should be
	Reason string // of a collection: its path, and what is wrong after which page; "" for rows
}

// Error returns one line with what is missing.
func (e *IncompleteError) Error() string {
	switch {
	case e.Reason != "":
		return prefix + redact.Line(within(e.Reason))
	case e.Got >= e.Total:
		return fmt.Sprintf("webdelivery: %s arrived, as many as requested, so more than %d may match", counted(e.Got, "row", "rows"), e.Total)
	default:
		return fmt.Sprintf("webdelivery: %s arrived, and %d match", counted(e.Got, "row", "rows"), e.Total)
	}
}

func (e *IncompleteError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

// eachItem returns the items of all pages. It prefetches up to ahead pages.
func eachItem[T any, P resourceOf[T]](ctx context.Context, c *conn, first call, ahead int) iter.Seq2[T, error] {
	collection := paging.Collection[T]{
		Query: first.Query, Ahead: min(ahead, 1_000),
		Read: func(ctx context.Context, query string) ([]T, paging.Page, error) {
			cl := first
			cl.Query = query
			ctx, join := branch(ctx)
			page, facts, err := readPage[T, P](ctx, c, cl)
			facts.Taken = join
			return page.Items, facts, err
		},
		Broken: func(pages int, reason string) error {
			return c.incomplete(first.Path, fmt.Sprintf("after page %d: %s", pages, reason))
		},
	}
	return collection.All(ctx)
}

// incomplete returns the error that the collection at a path cannot be read to its end.
func (c *conn) incomplete(path, reason string) error {
	return &IncompleteError{Reason: c.secrets.Text(c.base.Path(path) + ": " + reason)}
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
	cl := describe(operation, http.MethodGet, path, values.Encode())
	cl.invalid = p.err()
	return cl
}

// Page is one page of a collection.
//
// A response may be a bare array or omit members. Then Total, PageCount and PageIndex are 0. If the response does not
// say whether more pages exist, HasMore is true. It is false if the page is empty, or if Total says that this first
// page has everything.
type Page[T any] struct {
	Items     []T   `json:"items"`      // items of this page, never nil
	Total     int64 `json:"total"`      // items of the whole collection; 0 if the response does not say
	HasMore   bool  `json:"has_more"`   // more pages exist, or may exist if the response does not say
	PageCount int   `json:"page_count"` // pages of the whole collection at this count; 0 if the response does not say
	PageIndex int   `json:"page_index"` // number of this page, from 1; 0 if the response does not say
}

// fetchPage reads one page.
func fetchPage[T any, P resourceOf[T]](ctx context.Context, c *conn, cl call) (*Page[T], error) {
	page, _, err := readPage[T, P](ctx, c, cl)
	if err != nil {
		return nil, err
	}
	return &page, nil
}

// readPage reads an envelope, an object with tasks, or a bare array (open point 2). It also returns what the page says
// of others.
func readPage[T any, P resourceOf[T]](ctx context.Context, c *conn, cl call) (page Page[T], facts paging.Page, err error) {
	r, err := c.send(ctx, cl)
	if e, ok := errors.AsType[*Error](err); ok && (errors.Is(e, ErrNotFound) || errors.Is(e, ErrBadRequest)) {
		return page, paging.Page{Refused: fmt.Sprint(e.status(), " ", e.Description)}, err
	}
	if err != nil {
		return page, facts, err
	}
	if err = r.checkText(); err != nil {
		return page, facts, err
	}
	body := pageBody[T]{NextURI: new(missingAddress)}
	if bytes.TrimSpace(r.Body)[0] == '[' {
		err = r.unmarshal(&body.Items)
	} else if err = r.decodeObject(&body); err == nil {
		if problem := body.problem(r.Body); problem != "" {
			err = r.bad(problem, nil)
		}
	}
	if err != nil {
		return page, facts, err
	}
	page, facts = body.page()
	for i, item := range append(body.Items, body.Tasks...) {
		if item == nil {
			return page, facts, r.bad(fmt.Sprintf("items[%d] is null", i), nil)
		}
		if missing := P(item).lacks(); missing != "" {
			return page, facts, r.bad(fmt.Sprintf("items[%d]: no %s", i, missing), nil)
		}
		page.Items, facts.IDs = append(page.Items, *item), append(facts.IDs, P(item).identity())
	}
	page.HasMore, _ = facts.More(cmp.Or(paging.NumberIn(cl.Query, "page"), 1))
	return page, facts, nil
}

// pageBody is a page in JSON, with what a Page does not tell apart.
type pageBody[T any] struct {
	Page[T] // the other members

	Items   []*T    `json:"items"` // null is nil, in the list and for the list
	Tasks   []*T    `json:"tasks"` // another name for items
	HasMore *bool   `json:"has_more"`
	NextURI *string `json:"next_uri"` // set it to missingAddress before decoding: null, as on the last page, makes it nil
}

const missingAddress = "\x00" // marks a missing next_uri

// problem returns why a decoded object is not a page, or "". Some services write null for an empty list of items: such
// an object is a page if it has another member of a page.
func (b *pageBody[T]) problem(object []byte) string {
	switch {
	case b.Items != nil && b.Tasks != nil:
		return "both items and tasks"
	case b.Items != nil || b.Tasks != nil:
		return ""
	}
	var members map[string]json.RawMessage
	_ = wire.Decode(object, &members) // was decoded before
	isSaid := func(name string) bool { return members[name] != nil && string(members[name]) != "null" }
	if (members["items"] != nil || members["tasks"] != nil) && slices.ContainsFunc([]string{"has_more", "total", "page_count", "page_index"}, isSaid) {
		return ""
	}
	return "not a page: it has neither items nor tasks"
}

// page returns the page, without its items, and what it says of others. Only the query of next_uri counts, because a
// service behind a proxy may write an origin or a path that is not that of the base URL (open point 29).
func (b *pageBody[T]) page() (Page[T], paging.Page) {
	page, items := b.Page, len(b.Items)+len(b.Tasks)
	page.Items, page.Total, page.PageCount, page.PageIndex = make([]T, 0, items), max(b.Total, 0), max(b.PageCount, 0), max(b.PageIndex, 0)
	facts := paging.Page{IDs: make([]string, 0, items), HasMore: b.HasMore, Index: page.PageIndex, Count: page.PageCount}
	if page.Total >= int64(items) { // a smaller number cannot be the total
		facts.Total = page.Total
	}
	switch {
	case b.NextURI == nil || *b.NextURI == "":
		facts.Ends = true
	case *b.NextURI != missingAddress:
		_, query, _ := strings.Cut(*b.NextURI, "?")
		query, _, _ = strings.Cut(query, "#")
		facts.Next = &query
	}
	return page, facts
}

const pageOfEntries = 1_000 // entries per page when the SDK reads all

// largePages returns the items of all pages, 1,000 per page. The document names no largest count (open point 49), so a
// service may refuse that one with 400. Then the pages have the size that the service chooses.
func largePages[T any, P resourceOf[T]](ctx context.Context, c *conn, pagesOf func(count int) call, ahead int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		// read yields all items, unless the first page is refused. refused is the error of the large one.
		read := func(count int, refused error) error {
			first := true
			for item, err := range eachItem[T, P](ctx, c, pagesOf(count), ahead) {
				if e, ok := errors.AsType[*Error](err); first && refused == nil && ok && e.StatusCode == http.StatusBadRequest {
					return err
				}
				if first && err != nil {
					err = cmp.Or(refused, err)
				}
				if first = false; !yield(item, err) {
					break
				}
			}
			return nil
		}
		if refused := read(pageOfEntries, nil); refused != nil {
			_ = read(0, refused)
		}
	}
}
