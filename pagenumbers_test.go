package webdelivery_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// pager is a collection whose pages contain nothing about further pages, or too little.
type pager struct {
	shape        string // around the array of items; "": nothing
	items        int    // of the collection
	most         int    // most items per page; 0: no limit. Without a count it is 10
	ignoresPage  bool
	ignoresCount bool // answers with everything
	past         int  // status of a page behind the end; 0: a page without items
	clamps       bool // answers with the last page in place of one behind the end
}

func (p pager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, size := 1, 10
	if n, err := strconv.Atoi(r.URL.Query().Get("page")); err == nil && !p.ignoresPage {
		page = n
	}
	if n, err := strconv.Atoi(r.URL.Query().Get("count")); err == nil {
		size = n
	}
	if p.most > 0 {
		size = min(size, p.most)
	}
	if p.ignoresCount {
		size = p.items
	}
	if p.clamps {
		page = min(page, (p.items+size-1)/size)
	}
	items := []json.RawMessage{}
	for i := (page - 1) * size; i < min(page*size, p.items); i++ {
		items = append(items, json.RawMessage(anyItem(fmt.Sprint("i", i))))
	}
	w.Header().Set("Content-Type", "application/json")
	if len(items) == 0 && page > 1 && p.past != 0 {
		w.WriteHeader(p.past)
		return
	}
	text, _ := json.Marshal(items)
	if p.shape != "" {
		text = []byte(strings.ReplaceAll(p.shape, "@", string(text)))
	}
	_, _ = w.Write(text)
}

// anyItem is an item that every collection can have.
func anyItem(id string) string {
	return fmt.Sprintf(`{"id":%q,"status":"s","name":"n","entry":"192.0.2.1"}`, id)
}

// paging is what the caller requests of a collection.
type paging struct{ page, count int }

// reader reads one of the collections.
type reader struct {
	path string
	read func(ctx context.Context, c *webdelivery.Client, o paging) iter.Seq2[string, error]
}

func idsOf[T any](all iter.Seq2[T, error], id func(T) string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for item, err := range all {
			if !yield(id(item), err) {
				return
			}
		}
	}
}

// readers returns all the ways to read a collection to its end.
func readers() map[string]reader {
	entries := func(ahead int) reader {
		return reader{"/config/networklists/" + fixture.ListID + "/entries", func(ctx context.Context, c *webdelivery.Client, o paging) iter.Seq2[string, error] {
			options := webdelivery.EntryOptions{Page: o.page, Count: o.count, ReadAhead: ahead}
			return idsOf(c.NetworkLists.AllEntries(ctx, fixture.ListID, options), func(e webdelivery.NetworkListEntry) string { return e.ID })
		}}
	}
	return map[string]reader{
		"Tasks.All": {"/tasks", func(ctx context.Context, c *webdelivery.Client, o paging) iter.Seq2[string, error] {
			options := webdelivery.TaskListOptions{Page: o.page, Count: o.count}
			return idsOf(c.Tasks.All(ctx, options), func(t webdelivery.Task) string { return t.ID })
		}},
		"NetworkLists.All": {"/config/networklists", func(ctx context.Context, c *webdelivery.Client, o paging) iter.Seq2[string, error] {
			options := webdelivery.NetworkListOptions{Page: o.page, Count: o.count}
			return idsOf(c.NetworkLists.All(ctx, options), func(l webdelivery.NetworkList) string { return l.ID })
		}},
		"AllEntries":                entries(0),
		"AllEntries with ReadAhead": entries(4),
	}
}

// If no response says whether further pages exist, All yields every item once, or an error. A missing item is always
// an error, and the sequence always ends.
func TestPagesThatSayNothingOfFurtherOnes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		service  pager
		ask      paging
		from, to int // items that All yields
		requests int
		is       error // nil: none
		broken   bool  // a *IncompleteError
		pages    int   // of the *IncompleteError; 0: as many as requests
	}{
		{name: "a short last page", service: pager{items: 25}, to: 25, requests: 3},
		{name: "a full last page", service: pager{items: 20}, to: 20, requests: 3},
		{name: "one short page", service: pager{items: 7}, to: 7, requests: 2},
		{name: "no item", service: pager{}, requests: 1},
		{name: "a count", service: pager{items: 25}, ask: paging{count: 8}, to: 25, requests: 4},
		{name: "less than the count", service: pager{items: 25}, ask: paging{count: 100}, to: 25, requests: 2},
		{name: "a count above what the service allows", service: pager{items: 25, most: 10}, ask: paging{count: 1000}, to: 25, requests: 3},
		{name: "from a later page", service: pager{items: 25}, ask: paging{page: 2}, from: 10, to: 25, requests: 2},
		{name: "from a page behind the end", service: pager{items: 25}, ask: paging{page: 9}, from: 25, to: 25, requests: 1},

		{name: "everything, whatever page is requested", service: pager{items: 25, ignoresPage: true, ignoresCount: true}, to: 25, requests: 2},
		{name: "everything in place of 10", service: pager{items: 25, ignoresPage: true, ignoresCount: true}, ask: paging{count: 10}, to: 25, requests: 2},
		{name: "everything, less than the count", service: pager{items: 25, ignoresPage: true}, ask: paging{count: 100}, to: 25, requests: 2},
		{name: "the first 10, whatever page is requested", service: pager{items: 25, ignoresPage: true}, ask: paging{count: 10}, to: 10, requests: 2, broken: true},
		{name: "the last page again", service: pager{items: 20, clamps: true}, to: 20, requests: 3, broken: true},

		{name: "404 past the end", service: pager{items: 20, past: 404}, to: 20, requests: 3, broken: true, pages: 2},
		{name: "400 past the end", service: pager{items: 20, past: 400}, to: 20, requests: 3, broken: true, pages: 2},
		{name: "404 after a full page", service: pager{items: 20, past: 404}, ask: paging{count: 10}, to: 20, requests: 3, broken: true, pages: 2},
		{name: "404 after less than the count", service: pager{items: 20, past: 404}, ask: paging{count: 100}, to: 20, requests: 2},
		{name: "400 after less than the count", service: pager{items: 20, past: 400}, ask: paging{count: 100}, to: 20, requests: 2},
		{name: "404 after pages below the count", service: pager{items: 20, most: 10, past: 404}, ask: paging{count: 100}, to: 20, requests: 3},
		{name: "403 after less than the count", service: pager{items: 20, past: 403}, ask: paging{count: 100}, to: 20, requests: 2, is: webdelivery.ErrForbidden},
		{name: "404 on the first request", service: pager{items: 20, past: 404}, ask: paging{page: 3, count: 100}, from: 20, to: 20, requests: 1, is: webdelivery.ErrNotFound},
	}
	for _, tt := range tests {
		for _, shape := range []string{"@", `{"tasks":@}`, `{"items":@}`, `{"items":@,"uri":"/here","total":0,"page_count":0}`} {
			for name, reader := range readers() {
				t.Run(tt.name+" "+shape+" "+name, func(t *testing.T) {
					t.Parallel()
					service := tt.service
					service.shape = shape
					readPager(t, reader, service, tt.ask, func(f *fixture.Fixture, ids []string, err error) {
						assert.Equal(f, items(tt.from, tt.to), ids)
						assert.Len(f, f.Srv.Requests(), tt.requests)
						checkEnd(f, err, tt.is, tt.broken, cmp.Or(tt.pages, tt.requests))
					})
				})
			}
		}
	}
}

// A response may contain a part of the envelope. Each part counts: with a total the end is known, and next_uri,
// page_count and has_more mean what they mean in the envelope.
func TestPagesThatSayALittle(t *testing.T) {
	t.Parallel()
	tests := []struct {
		shape    string
		service  pager
		ask      paging
		from, to int
		requests int
		broken   bool
	}{
		{shape: `{"tasks":@,"total":25}`, service: pager{items: 25, past: 404}, to: 25, requests: 3},
		{shape: `{"tasks":@,"total":20}`, service: pager{items: 20, past: 404}, to: 20, requests: 2},
		{shape: `{"tasks":@,"total":7}`, service: pager{items: 7, past: 404}, to: 7, requests: 1},
		{shape: `{"tasks":@,"total":0}`, requests: 1},
		{shape: `{"tasks":@,"total":25}`, service: pager{items: 20}, to: 20, requests: 3, broken: true},
		{shape: `{"tasks":@,"total":25}`, requests: 1, broken: true},
		{shape: `{"tasks":@,"total":25}`, service: pager{items: 10, ignoresPage: true}, to: 10, requests: 2, broken: true},
		{shape: `{"tasks":@,"total":25,"next_uri":null}`, service: pager{items: 25}, to: 25, requests: 3},
		{shape: `{"tasks":@,"total":25}`, service: pager{items: 25}, ask: paging{page: 2}, from: 10, to: 25, requests: 2},
		{shape: `{"tasks":@,"total":25}`, service: pager{items: 25}, ask: paging{count: 10}, to: 25, requests: 3},

		{shape: `{"tasks":@,"has_more":false}`, service: pager{items: 5}, to: 5, requests: 1},
		{shape: `{"tasks":@,"has_more":true}`, service: pager{items: 5}, to: 5, requests: 4, broken: true},
		{shape: `{"tasks":@,"next_uri":null}`, service: pager{items: 5}, to: 5, requests: 1},
		{shape: `{"tasks":@,"page_count":1}`, service: pager{items: 5}, to: 5, requests: 1},
		{shape: `{"tasks":@,"page_count":1,"page_index":1}`, service: pager{items: 5}, to: 5, requests: 1},
		{shape: `{"tasks":@,"page_count":2}`, service: pager{items: 15}, to: 15, requests: 2},
		{shape: `{"tasks":@,"page_count":2}`, service: pager{items: 15}, ask: paging{page: 2}, from: 10, to: 15, requests: 1},
	}
	for _, tt := range tests {
		for _, member := range []string{"tasks", "items"} {
			t.Run(fmt.Sprint(member, tt.shape, tt.service.items, tt.ask), func(t *testing.T) {
				t.Parallel()
				service := tt.service
				service.shape = strings.ReplaceAll(tt.shape, "tasks", member)
				readPager(t, readers()["Tasks.All"], service, tt.ask, func(f *fixture.Fixture, ids []string, err error) {
					assert.Equal(f, items(tt.from, tt.to), ids)
					assert.Len(f, f.Srv.Requests(), tt.requests)
					checkEnd(f, err, nil, tt.broken, tt.requests)
				})
			})
		}
	}
}

func readPager(t *testing.T, r reader, service pager, ask paging, check func(f *fixture.Fixture, ids []string, err error)) {
	t.Helper()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: r.path, Handler: service.ServeHTTP})
		ids, err := fixture.Gather(r.read(f.Context(), f.Client, ask))
		check(f, ids, err)
	})
}

func items(from, to int) []string {
	all := []string{}
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint("i", i))
	}
	return all
}

func checkEnd(f *fixture.Fixture, err, is error, broken bool, pages int) {
	f.Helper()
	var e *webdelivery.IncompleteError
	switch {
	case broken:
		require.ErrorAs(f, err, &e)
		assert.Equal(f, pages, e.Page)
		assert.NotContains(f, e.Reason, "check the id")
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	case is != nil:
		require.ErrorIs(f, err, is)
	default:
		require.NoError(f, err)
	}
}

// If the response says nothing about further pages, List reports that there may be some, unless the end is known.
func TestListOfAPageThatSaysNothing(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]webdelivery.Page[webdelivery.Task]{
		`[{"id":"a"}]`:                     {HasMore: true},
		`[]`:                               {},
		`{"tasks":[{"id":"a"}]}`:           {HasMore: true},
		`{"tasks":[]}`:                     {},
		`{"tasks":[{"id":"a"}],"total":1}`: {Total: 1},
		`{"tasks":[{"id":"a"}],"total":2}`: {Total: 2, HasMore: true},
		`{"tasks":[{"id":"a"}],"total":2,"next_uri":null}`:       {Total: 2, HasMore: true},
		`{"tasks":[{"id":"a"}],"next_uri":null}`:                 {},
		`{"tasks":[{"id":"a"}],"page_count":1}`:                  {PageCount: 1},
		`{"tasks":[{"id":"a"}],"page_count":2}`:                  {PageCount: 2, HasMore: true},
		`{"tasks":[{"id":"a"}],"page_count":2,"page_index":2}`:   {PageCount: 2, PageIndex: 2},
		`{"tasks":[{"id":"a"}],"page_count":2,"has_more":false}`: {PageCount: 2},
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			page, err := fixture.Always(t, []byte(body)).Tasks.List(t.Context(), webdelivery.TaskListOptions{})
			require.NoError(t, err)
			page.Items = nil
			assert.Equal(t, want, *page)
		})
	}
	// On a later page a total proves nothing, because the size of the pages is unknown.
	page, err := fixture.Always(t, []byte(`{"tasks":[{"id":"a"}],"total":1}`)).Tasks.List(t.Context(), webdelivery.TaskListOptions{Page: 2})
	require.NoError(t, err)
	assert.True(t, page.HasMore)
}
