package webdelivery_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// readAll reads a sequence to its end and returns the ids and the error. It checks that nothing follows an error.
func readAll(f *fixture.Fixture, options webdelivery.TaskListOptions) (ids []string, err error) {
	f.Helper()
	for task, e := range f.Client.Tasks.All(f.Context(), options) {
		require.NoError(f, err, "the sequence yields something after its error")
		if err = e; e != nil {
			assert.Zero(f, task)
			continue
		}
		ids = append(ids, task.ID)
	}
	return ids, err
}

// paging is what a caller asks of a collection.
type paging struct{ page, count int }

// reader reads one of the collections, with every filter that it has.
type reader struct {
	name, path string
	filters    map[string]string // what they are in a query
	read       func(ctx context.Context, c *webdelivery.Client, o paging) iter.Seq2[string, error]
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

func tasksReader() reader {
	since := time.Date(2026, 11, 20, 9, 30, 0, 5e6, time.FixedZone("", 3600))
	filters := map[string]string{"status": "failed", "operation": "a&b ü", "since": "2026-11-20T08:30:00.005+0000"}
	return reader{"Tasks.All", "/tasks", filters, func(ctx context.Context, c *webdelivery.Client, o paging) iter.Seq2[string, error] {
		options := webdelivery.TaskListOptions{Page: o.page, Count: o.count, Status: "failed", Operation: "a&b ü", Since: since}
		return idsOf(c.Tasks.All(ctx, options), func(t webdelivery.Task) string { return t.ID })
	}}
}

func entriesReader(ahead int) reader {
	name, path := fmt.Sprint("AllEntries, ReadAhead ", ahead), "/config/networklists/"+fixture.ListID+"/entries"
	return reader{name, path, nil, func(ctx context.Context, c *webdelivery.Client, o paging) iter.Seq2[string, error] {
		options := webdelivery.EntryOptions{Page: o.page, Count: o.count, ReadAhead: ahead}
		return idsOf(c.NetworkLists.AllEntries(ctx, fixture.ListID, options), func(e webdelivery.NetworkListEntry) string { return e.ID })
	}}
}

// readers returns all the ways to read a collection to its end.
func readers() []reader {
	filters := map[string]string{"type": "GEO", "deprecated": "true"}
	lists := reader{"NetworkLists.All", "/config/networklists", filters, func(ctx context.Context, c *webdelivery.Client, o paging) iter.Seq2[string, error] {
		options := webdelivery.NetworkListOptions{Page: o.page, Count: o.count, Type: webdelivery.ListTypeGEO, Deprecated: true}
		return idsOf(c.NetworkLists.All(ctx, options), func(l webdelivery.NetworkList) string { return l.ID })
	}}
	return []reader{tasksReader(), lists, entriesReader(0), entriesReader(4)}
}

// from reads the collection of a service to its end, and returns the queries of its requests. It checks what every read
// must keep to: each request goes to the address of the collection with the parameters of the first one, and nothing
// follows an error.
func (r *reader) from(t *testing.T, ask paging, answer func(*http.Request) *http.Response) (ids, queries []string, err error) {
	t.Helper()
	var mu sync.Mutex // with ReadAhead, requests overlap
	client := fixture.Answered(t, func(req *http.Request) *http.Response {
		mu.Lock()
		defer mu.Unlock()
		queries = append(queries, req.URL.RawQuery)
		address := *req.URL
		address.RawQuery = ""
		assert.Equal(t, "https://api.example.com/acme/v1"+r.path, address.String())
		values, _ := url.ParseQuery(req.URL.RawQuery) // an error because of a semicolon, which the service may use
		for name, want := range r.filters {
			assert.Equal(t, []string{want}, values[name], req.URL.RawQuery)
		}
		if len(queries) > 40 {
			t.Error("the client sends requests without end")
			return fixture.Response(http.StatusTeapot, nil)
		}
		return answer(req)
	})
	ids = []string{}
	for id, e := range r.read(t.Context(), client, ask) {
		require.NoError(t, err, "the sequence yields something after its error")
		if err = e; e == nil {
			ids = append(ids, id)
		} else {
			assert.Empty(t, id)
		}
	}
	return ids, queries, err
}

// checkEnd checks how a read has ended: with an *IncompleteError of the collection that says a text, or with is.
func (r *reader) checkEnd(t *testing.T, err error, says string, is error) {
	t.Helper()
	if says == "" {
		require.ErrorIs(t, err, is)
		return
	}
	var broken *webdelivery.IncompleteError
	require.ErrorAs(t, err, &broken)
	assert.Contains(t, broken.Reason, "/acme/v1"+r.path+": after page ")
	assert.Contains(t, broken.Reason, says)
	assert.NotContains(t, broken.Reason, "check the id")
	assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
}

// anyItem is an item that every collection can have.
func anyItem(id string) string {
	return fmt.Sprintf(`{"id":%q,"status":"s","name":"n","entry":"192.0.2.1"}`, id)
}

// idsFrom returns the ids i1, i2 and so on.
func idsFrom(first, last int) []string {
	ids := []string{}
	for i := first; i <= last; i++ {
		ids = append(ids, fmt.Sprint("i", i))
	}
	return ids
}

// itemsOf is an array of items in JSON.
func itemsOf(ids []string) string {
	items := make([]string, len(ids))
	for i, id := range ids {
		items[i] = anyItem(id)
	}
	return "[" + strings.Join(items, ",") + "]"
}

// ReadAhead has at most that many requests under way, and never more than a thousand. When the loop or a page ends the
// read, no further one begins, and the bubble checks that none is left.
func TestReadAheadIsBounded(t *testing.T) {
	t.Parallel()
	const pages, never = 1500, 9999
	for _, tt := range []struct{ ahead, fails, stop, items, atOnce, requests int }{
		{ahead: 0, fails: never, stop: never, items: pages, atOnce: 1, requests: pages},
		{ahead: 3, fails: never, stop: never, items: pages, atOnce: 3, requests: pages},
		{ahead: 1000, fails: never, stop: never, items: pages, atOnce: 1000, requests: pages},
		{ahead: 5000, fails: never, stop: never, items: pages, atOnce: 1000, requests: pages},
		{ahead: 0, fails: never, stop: 2, items: 2, atOnce: 1, requests: 2},
		{ahead: 3, fails: never, stop: 2, items: 2, atOnce: 3, requests: 5},
		{ahead: 2, fails: 3, stop: never, items: 2, atOnce: 2, requests: 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			var underWay, atOnce, requests atomic.Int64
			client := fixture.Answered(t, func(r *http.Request) *http.Response {
				requests.Add(1)
				atOnce.Store(max(atOnce.Load(), underWay.Add(1)))
				defer underWay.Add(-1)
				time.Sleep(time.Second) // until all of them are here
				page := cmp.Or(r.URL.Query().Get("page"), "1")
				if page == strconv.Itoa(tt.fails) {
					return fixture.Response(http.StatusForbidden, nil)
				}
				return fixture.Response(http.StatusOK, fmt.Appendf(nil, `{"items":[%s],"page_index":%s,"page_count":%d}`, anyItem("i"+page), page, pages))
			})
			ids, err := []string{}, error(nil)
			for entry, e := range client.NetworkLists.AllEntries(t.Context(), fixture.ListID, webdelivery.EntryOptions{ReadAhead: tt.ahead}) {
				if err = e; e == nil {
					ids = append(ids, entry.ID)
				}
				if len(ids) == tt.stop {
					break
				}
			}
			if tt.fails < pages {
				require.ErrorIs(t, err, webdelivery.ErrForbidden)
			} else {
				require.NoError(t, err)
			}
			assert.Equal(t, idsFrom(1, tt.items), ids)
			assert.Equal(t, int64(tt.atOnce), atOnce.Load())
			assert.LessOrEqual(t, requests.Load(), int64(tt.requests))
		})
	}
}

// The parameters of the first request hold on every page, although a next_uri may leave them out, change them or spell
// them otherwise. Only page and count are the service's. What it adds stays as it is, and may be any text.
func TestFiltersHoldOnEveryPage(t *testing.T) {
	t.Parallel()
	const filters = "operation=a%26b+%C3%BC&since=2026-11-20T08%3A30%3A00.005%2B0000&status=failed"
	for next, want := range map[string]string{
		"page=2":                         "page=2&count=2&" + filters,
		"page=2#top":                     "page=2&count=2&" + filters,
		"2":                              "2&count=2&" + filters,
		"cursor=x%26y":                   "cursor=x%26y&count=2&" + filters,
		"page=2&cursor=a;b%41&y":         "page=2&cursor=a;b%41&y&count=2&" + filters,
		"page=2&count=100":               "page=2&count=100&" + filters,
		"count=2&" + filters + "&page=2": "count=2&page=2&" + filters,
		"&page=2&&x=1&":                  "page=2&x=1&count=2&" + filters,
		"page=2&status=running&status=failed&st%61tus=x&status": "page=2&count=2&" + filters,
		"page=2&operation=a&b%20%C3%BC":                         "page=2&b%20%C3%BC&count=2&" + filters,
		"page=2&since=2026-11-20T08:30:00.005+0000":             "page=2&count=2&" + filters,
	} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			r, requests := tasksReader(), 0
			ids, queries, err := r.from(t, paging{page: 1, count: 2}, func(*http.Request) *http.Response {
				if requests++; requests > 1 {
					return fixture.Response(http.StatusOK, []byte(`{"items":[`+anyItem("c")+`],"has_more":false,"next_uri":null}`))
				}
				return fixture.Response(http.StatusOK, fmt.Appendf(nil, `{"items":%s,"next_uri":%q}`, itemsOf([]string{"a", "b"}), "/tasks?"+next))
			})
			require.NoError(t, err)
			assert.Equal(t, []string{"a", "b", "c"}, ids)
			assert.Equal(t, []string{"count=2&operation=a%26b+%C3%BC&page=1&since=2026-11-20T08%3A30%3A00.005%2B0000&status=failed", want}, queries)
		})
	}
}

// pager is a collection of the items i1, i2 and so on whose pages contain nothing about further pages, or too little.
type pager struct {
	items        int // of the collection
	most         int // most items per page; 0: no limit. Without a count it is 10
	ignoresPage  bool
	ignoresCount bool // answers with everything
	past         int  // status of a page behind the end; 0: a page without items
	clamps       bool // answers with the last page in place of one behind the end
}

// answer returns a page. shape is the text around the array of items, which @ stands for.
func (p pager) answer(r *http.Request, shape string) *http.Response {
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
	ids := idsFrom((page-1)*size+1, min(page*size, p.items))
	if len(ids) == 0 && page > 1 && p.past != 0 {
		return fixture.Response(p.past, nil)
	}
	return fixture.Response(http.StatusOK, []byte(strings.ReplaceAll(shape, "@", itemsOf(ids))))
}

// A response may be a bare array, or contain a part of the envelope. If none says whether further pages exist, All yields
// every item once, or an error; a missing item is always an error, and the sequence always ends. Each part of the
// envelope counts: with a total the end is known, and next_uri, page_count and has_more mean what they mean in it.
func TestPagesThatSayNothingOfFurtherOnes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		shape    string // "": those that say nothing
		service  pager
		ask      paging
		from, to int // items that All yields
		requests int
		is       error  // nil: none
		says     string // of a *IncompleteError; "": none
	}{
		{name: "a short last page", service: pager{items: 25}, from: 1, to: 25, requests: 3},
		{name: "a full last page", service: pager{items: 20}, from: 1, to: 20, requests: 3},
		{name: "one short page", service: pager{items: 7}, from: 1, to: 7, requests: 2},
		{name: "no item", service: pager{}, requests: 1},
		{name: "a count", service: pager{items: 25}, ask: paging{count: 8}, from: 1, to: 25, requests: 4},
		{name: "less than the count", service: pager{items: 25}, ask: paging{count: 100}, from: 1, to: 25, requests: 2},
		{name: "a count above what the service allows", service: pager{items: 25, most: 10}, ask: paging{count: 1000}, from: 1, to: 25, requests: 3},
		{name: "from a later page", service: pager{items: 25}, ask: paging{page: 2}, from: 11, to: 25, requests: 2},
		{name: "from a page behind the end", service: pager{items: 25}, ask: paging{page: 9}, requests: 1},

		{name: "everything, whatever page is requested", service: pager{items: 25, ignoresPage: true, ignoresCount: true}, from: 1, to: 25, requests: 2},
		{name: "everything in place of 10", service: pager{items: 25, ignoresPage: true, ignoresCount: true}, ask: paging{count: 10}, from: 1, to: 25, requests: 2},
		{name: "everything, less than the count", service: pager{items: 25, ignoresPage: true}, ask: paging{count: 100}, from: 1, to: 25, requests: 2},
		{
			name: "the first 10, whatever page is requested", service: pager{items: 25, ignoresPage: true}, ask: paging{count: 10}, from: 1, to: 10, requests: 2,
			says: "after page 2: the page repeats earlier ones",
		},
		{name: "the last page again", service: pager{items: 20, clamps: true}, from: 1, to: 20, requests: 3, says: "after page 3: the page repeats earlier ones"},

		{name: "404 past the end", service: pager{items: 20, past: 404}, from: 1, to: 20, requests: 3, says: "after page 2: page 3 was refused (404"},
		{name: "400 past the end", service: pager{items: 20, past: 400}, from: 1, to: 20, requests: 3, says: "after page 2: page 3 was refused (400"},
		{
			name: "404 after a full page", service: pager{items: 20, past: 404}, ask: paging{count: 10}, from: 1, to: 20, requests: 3,
			says: "after page 2: page 3 was refused (404",
		},
		{
			name: "404 after a full page that is not the first", service: pager{items: 20, past: 404}, ask: paging{page: 2, count: 10}, from: 11, to: 20, requests: 2,
			says: "after page 1: page 3 was refused (404",
		},
		{name: "404 after less than the count", service: pager{items: 20, past: 404}, ask: paging{count: 100}, from: 1, to: 20, requests: 2},
		{name: "400 after less than the count", service: pager{items: 20, past: 400}, ask: paging{count: 100}, from: 1, to: 20, requests: 2},
		{name: "404 after pages below the count", service: pager{items: 20, most: 10, past: 404}, ask: paging{count: 100}, from: 1, to: 20, requests: 3},
		{name: "403 after less than the count", service: pager{items: 20, past: 403}, ask: paging{count: 100}, from: 1, to: 20, requests: 2, is: webdelivery.ErrForbidden},
		{name: "404 on the first request", service: pager{items: 20, past: 404}, ask: paging{page: 3, count: 100}, requests: 1, is: webdelivery.ErrNotFound},

		{shape: `{"items":@,"total":25}`, service: pager{items: 25, past: 404}, from: 1, to: 25, requests: 3},
		{shape: `{"items":@,"total":20}`, service: pager{items: 20, past: 404}, from: 1, to: 20, requests: 2},
		{shape: `{"tasks":@,"total":7}`, service: pager{items: 7, past: 404}, from: 1, to: 7, requests: 1},
		{shape: `{"items":@,"total":25}`, service: pager{items: 20}, from: 1, to: 20, requests: 3, says: "after page 3: 5 of 25 items are missing"},
		{shape: `{"items":@,"total":25}`, requests: 1, says: "after page 1: 25 of 25 items are missing"},
		{shape: `{"items":@,"total":25}`, service: pager{items: 20, past: 404}, ask: paging{count: 100}, from: 1, to: 20, requests: 2, says: "after page 1: page 2 was refused"},
		{shape: `{"items":@,"total":25}`, service: pager{items: 10, ignoresPage: true}, from: 1, to: 10, requests: 2, says: "after page 2: 15 of 25 items are missing"},
		{shape: `{"items":@,"total":25,"next_uri":null}`, service: pager{items: 25}, from: 1, to: 25, requests: 3},
		{shape: `{"tasks":@,"total":25}`, service: pager{items: 25}, ask: paging{count: 10}, from: 1, to: 25, requests: 3},

		// From a later page on, a total says something only if the size of the pages before is known.
		{shape: `{"items":@,"total":25}`, service: pager{items: 25}, ask: paging{page: 2}, from: 11, to: 25, requests: 2},
		{shape: `{"items":@,"total":26,"has_more":false}`, service: pager{items: 25}, ask: paging{page: 3}, from: 21, to: 25, requests: 1},
		{
			shape: `{"items":@,"total":25,"has_more":false}`, service: pager{items: 20}, ask: paging{page: 2, count: 10}, from: 11, to: 20, requests: 1,
			says: "after page 1: 5 of 25 items are missing",
		},
		{shape: `{"items":@,"total":20}`, service: pager{items: 20}, ask: paging{page: 2}, from: 11, to: 20, requests: 2},

		{shape: `{"items":@,"has_more":false}`, service: pager{items: 5}, from: 1, to: 5, requests: 1},
		{shape: `{"items":@,"has_more":true}`, service: pager{items: 5}, from: 1, to: 5, requests: 4, says: "after page 4: 3 pages in a row are empty, but more are announced"},
		{shape: `{"items":@,"next_uri":null}`, service: pager{items: 5}, from: 1, to: 5, requests: 1},
		{shape: `{"items":@,"next_uri":""}`, service: pager{items: 5}, from: 1, to: 5, requests: 1},
		{shape: `{"tasks":@,"page_count":1}`, service: pager{items: 5}, from: 1, to: 5, requests: 1},
		{shape: `{"items":@,"page_count":1,"page_index":1}`, service: pager{items: 5}, from: 1, to: 5, requests: 1},
		{shape: `{"items":@,"page_count":2}`, service: pager{items: 15}, from: 1, to: 15, requests: 2},
		{shape: `{"items":@,"page_count":2}`, service: pager{items: 15}, ask: paging{page: 2}, from: 11, to: 15, requests: 1},
	} {
		shapes := []string{tt.shape}
		if tt.shape == "" {
			shapes = []string{"@", `{"tasks":@}`, `{"items":@}`, `{"items":@,"uri":"/here","total":0,"page_count":0}`}
		}
		for _, shape := range shapes {
			for _, r := range readers() {
				t.Run(fmt.Sprint(tt.name, " ", shape, tt.service.items, tt.ask, r.name), func(t *testing.T) {
					t.Parallel()
					ids, queries, err := r.from(t, tt.ask, func(req *http.Request) *http.Response { return tt.service.answer(req, shape) })
					assert.Equal(t, idsFrom(max(tt.from, 1), tt.to), ids)
					assert.Len(t, queries, tt.requests)
					r.checkEnd(t, err, tt.says, tt.is)
				})
			}
		}
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

// The client refuses a page that can be read in more than one way: a reader that chooses one of them may lose items.
func TestPagesThatAreAmbiguous(t *testing.T) {
	t.Parallel()
	for body, says := range map[string]string{ // "": the page has the item a, and nothing ambiguous
		`{"items":[{"id":"a"}],"items":null}`:                               `duplicate object member name "items"`,
		`{"it\u0065ms":[{"id":"a"}],"items":[]}`:                            `duplicate object member name "items"`,
		`{"extra":{"note":[1],"note":[2]},"items":[]}`:                      `duplicate object member name "note"`,
		`{"items":[{"id":"a","status":"s","status":"t"}]}`:                  `duplicate object member name "status"`,
		`{"items":[{"id":"a"}],"next_uri":"/tasks?page=2","next_uri":null}`: `duplicate object member name "next_uri"`,
		`{"items":[{"id":"\ud800","status":"s"}]}`:                          "surrogate",
		`{"items":null,"error":"backend down"}`:                             "neither items nor tasks",
		`{"items":null,"tasks":null,"next_uri":null}`:                       "neither items nor tasks",
		`{"items":[],"tasks":[{"id":"a"}]}`:                                 "both items and tasks",
		`{"items":[{"id":"a"}],"tasks":[]}`:                                 "both items and tasks",

		// The members of items have names of their own, and null is no list of items.
		`{"items":[{"id":"a","entry":"192.0.2.1","name":"n","status":"s","uri":"/x","total":[{"items":"a,\"items\":"}]}],"note":"\\\",\"items\":[","has_more":false}`: "",
		`{"extra":{"items":[1],"x":{"items":[2]}},"items":[` + anyItem("a") + `],"more":[{"items":1},"items","items"],"has_more":false}`:                              "",
		`{"items":null,"tasks":[` + anyItem("a") + `],"has_more":false}`:                                                                                              "",
		`{"items":[` + anyItem("a") + `],"tasks":null,"has_more":false}`:                                                                                              "",
		` {"tasks" : [ ` + anyItem("a") + ` ] , "note":"items", "Note":"items" , "has_more" : false }`:                                                                "",
	} {
		for _, r := range readers() {
			t.Run(r.name+" "+body, func(t *testing.T) {
				t.Parallel()
				ids, _, err := r.from(t, paging{}, func(*http.Request) *http.Response { return fixture.Response(http.StatusOK, []byte(body)) })
				if says == "" {
					require.NoError(t, err)
					assert.Equal(t, []string{"a"}, ids)
					return
				}
				require.ErrorIs(t, err, webdelivery.ErrBadResponse)
				require.ErrorContains(t, err, says)
				assert.Empty(t, ids)
			})
		}
	}
}

var itemRange = regexp.MustCompile(`@(\d+)-(\d+)`)

// expand replaces @1-10 with the items i1 to i10.
func expand(page string) string {
	return itemRange.ReplaceAllStringFunc(page, func(text string) string {
		var first, last int
		_, _ = fmt.Sscanf(text, "@%d-%d", &first, &last)
		return strings.Trim(itemsOf(idsFrom(first, last)), "[]")
	})
}

// If a page announces items or pages, they must come; otherwise an error follows the items. The client compares the
// pages with their numbers, page_count and next_uri, and the items with total and with earlier ones.
func TestPagesThatWereAnnouncedMustCome(t *testing.T) {
	t.Parallel()
	const next = `"next_uri":"{path}?page={next}"`
	for _, tt := range []struct {
		name     string
		pages    []string // by their number, {next} being the next one; a status is one. Behind the last comes the last again
		items    string   // that All yields
		says     string   // of the *IncompleteError; "": no error
		is       error
		ask      paging
		requests int // 0: one per page
	}{
		{name: "the end before the total", items: "@1-20", says: "after page 2: 5 of 25 items are missing", pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,` + next + `}`, `{"items":[@11-20],"total":25,"has_more":false,"next_uri":null}`,
		}},
		{name: "the end before the total of the first page alone", items: "@1-20", says: "5 of 25 items", pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,` + next + `}`, `{"items":[@11-20],"has_more":false}`,
		}},
		{name: "a total alone, then the end", items: "@1-20", says: "5 of 25 items", pages: []string{
			`{"items":[@1-10],"total":25}`, `{"items":[@11-20],"has_more":false}`,
		}},
		{name: "page_count, then items alone", items: "@1-20", says: "page 2 of 3 announces no further page", pages: []string{
			`{"items":[@1-10],"page_count":3,"total":25,` + next + `}`, `{"items":[@11-20]}`,
		}},
		{name: "page_count from page 2, then items alone", items: "@1-20", ask: paging{page: 2}, says: "after page 2: page 3 of 4", pages: []string{
			``, `{"items":[@1-10],"page_count":4,` + next + `}`, `{"items":[@11-20]}`,
		}},
		{name: "page_count and the first page_index, then items alone", items: "@1-20", says: "the page repeats earlier ones", requests: 3, pages: []string{
			`{"items":[@1-10],"page_count":3,"page_index":1,` + next + `}`, `{"items":[@11-20]}`,
		}},
		{name: "next_uri alone, then a total alone", items: "@1-20", says: "5 of 25 items", pages: []string{
			`{"items":[@1-10],` + next + `}`, `{"items":[@11-20],"total":25}`,
		}},
		{name: "has_more false, next_uri", items: "@1-10", says: "page 1 is the last, but has a next_uri", pages: []string{
			`{"items":[@1-10],"has_more":false,` + next + `}`,
		}},
		{name: "has_more false, page_count 3", items: "@1-10", says: "page 1 of 3", pages: []string{`{"items":[@1-10],"has_more":false,"page_count":3}`}},
		{name: "has_more false, total 25", items: "@1-10", says: "15 of 25 items", pages: []string{`{"items":[@1-10],"has_more":false,"total":25}`}},
		{name: "page_count 1, total 25", items: "@1-10", says: "15 of 25 items", pages: []string{`{"items":[@1-10],"page_count":1,"total":25}`}},
		{name: "numbered, page_count 1, total 25", items: "@1-10", says: "15 of 25 items", pages: []string{
			`{"items":[@1-10],"page_index":1,"page_count":1,"total":25}`,
		}},
		{name: "numbered, and the last page announces another", items: "@1-20", says: "page 2 is the last, but has a next_uri or announces more", pages: []string{
			`{"items":[@1-10],"page_index":1,"page_count":2}`, `{"items":[@11-20],"page_index":2,"page_count":2,"has_more":true}`,
		}},
		{name: "numbered, and all pages are empty", says: "3 pages in a row are empty", requests: 3, pages: []string{`{"items":[],"page_count":5,"page_index":{number}}`}},
		{name: "no items, total 25", says: "25 of 25 items", pages: []string{`{"items":[],"has_more":false,"total":25}`}},
		{name: "page 1 is not read, and items are lacking", items: "@11-23", ask: paging{page: 2}, says: "2 of 25 items", pages: []string{
			``, `{"items":[@11-20],"page_index":2,"page_count":3,"total":25}`, `{"items":[@21-23],"page_index":3,"page_count":3,"total":25}`,
		}},
		{name: "an announced page is refused", items: "@1-5", ask: paging{count: 10}, is: webdelivery.ErrNotFound, pages: []string{
			`{"items":[@1-5],` + next + `}`, `404`,
		}},
		{name: "more items than the total", items: "@1-10", says: "received 15 items, but the total is 10", pages: []string{
			`{"items":[@1-10],"total":10,` + next + `}`, `{"items":[@11-15],"has_more":false}`,
		}},

		// Pages have their own numbers and items.
		{name: "another first page", ask: paging{page: 2}, says: "after page 1: requested page 2, but got page 1", pages: []string{
			``, `{"items":[@1-10],"page_index":1,"page_count":3}`,
		}},
		{name: "another page", items: "@1-10", says: "after page 2: requested page 2, but got page 3", pages: []string{
			`{"items":[@1-10],"page_index":1,` + next + `}`, `{"items":[@21-30],"page_index":3,"has_more":false}`,
		}},
		{name: "next_uri leads to its own page", items: "@1-10", says: "after page 2: the page repeats earlier ones", requests: 2, pages: []string{
			`{"items":[@1-10],"next_uri":"{path}?page=1&count=1"}`,
		}},
		{name: "next_uri leads back", items: "@1-30", says: "after page 4: the page repeats earlier ones", requests: 4, pages: []string{
			`{"items":[@1-10],` + next + `}`, `{"items":[@11-20],` + next + `}`, `{"items":[@21-30],"next_uri":"http://evil.example.com/"}`,
		}},
		{name: "a short last page with earlier items alone", items: "@1-20", says: "after page 3: the page repeats earlier ones", pages: []string{
			`{"items":[@1-10]}`, `{"items":[@11-20]}`, `{"items":[@20-20]}`,
		}},
		{name: "the last page has earlier items alone", items: "@1-10", says: "after page 2: the page repeats earlier ones", pages: []string{
			`{"items":[@1-10],` + next + `}`, `{"items":[@9-10],"has_more":false}`,
		}},
		{name: "the first page again, and an item of it twice", items: "@1-10", says: "after page 2: the page repeats earlier ones", pages: []string{
			`{"items":[@1-10]}`, `{"items":[@1-10,@1-1]}`,
		}},
		{name: "an item comes twice, and another one is lacking", items: "@1-10 @10-14", says: "1 of 15 items are missing", pages: []string{
			`{"items":[@1-10],"total":15,` + next + `}`, `{"items":[@10-14],"has_more":false}`,
		}},

		// A collection must not change while it is read.
		{name: "it grows by an item", items: "@1-10", says: "the collection changed while it was read: 25 items in 3 pages became 26 in 3", pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,"page_count":3,` + next + `}`, `{"items":[@11-20],"total":26,"page_count":3,"has_more":true,` + next + `}`,
		}},
		{name: "it grows by a page", items: "@1-10", says: "25 items in 3 pages became 31 in 4", requests: 2, pages: []string{
			`{"items":[@1-10],"total":25,"page_count":3,"page_index":1}`, `{"items":[@11-20],"total":31,"page_count":4,"page_index":2}`,
			`{"items":[@21-30],"total":31,"page_count":4,"page_index":3}`, `{"items":[@31-31],"total":31,"page_count":4,"page_index":4}`,
		}},
		{name: "it shrinks", items: "@1-10", says: "25 items in 3 pages became 20 in 2", pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,"page_count":3,"page_index":1,` + next + `}`,
			`{"items":[@11-20],"total":20,"has_more":false,"page_count":2,"page_index":2,"next_uri":null}`,
		}},
		{name: "it shrinks behind the page", items: "@1-20", says: "25 items in 3 pages became 20 in 2", pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,"page_count":3,` + next + `}`, `{"items":[@11-20],"total":25,"has_more":true,"page_count":3,` + next + `}`,
			`{"items":[],"total":20,"has_more":false,"page_count":2}`,
		}},
		{name: "it becomes empty", items: "@1-10", says: "page 2 of 3 announces no further page", pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,"page_count":3,` + next + `}`, `{"items":[],"total":0,"has_more":false,"page_count":0}`,
		}},

		// These are no contradictions.
		{name: "page 1 is not read", items: "@1-15", ask: paging{page: 2}, pages: []string{
			``, `{"items":[@1-10],"has_more":true,"total":25,` + next + `}`, `{"items":[@11-15],"has_more":false,"total":25}`,
		}},
		{name: "numbered, the last page has a next_uri", items: "@1-20", pages: []string{
			`{"items":[@1-10],"page_index":1,"page_count":2,"has_more":true,` + next + `}`,
			`{"items":[@11-20],"page_index":2,"page_count":2,"has_more":false,` + next + `}`,
		}},
		{name: "numbered, a page has its number alone", items: "@1-25", pages: []string{
			`{"items":[@1-10],"page_index":1,"page_count":3,"total":25}`, `{"items":[@11-20],"page_index":2}`, `{"items":[@21-25],"page_index":3,"total":25}`,
		}},
		{name: "numbered, the last page is empty with totals of 0", items: "@1-10", pages: []string{
			`{"items":[@1-10],"page_index":1,"page_count":2,"total":10}`, `{"items":[],"page_index":2,"page_count":0,"total":0}`,
		}},
		{name: "page_count with addresses alone", items: "@1-15", pages: []string{
			`{"items":[@1-10],"page_count":2,` + next + `}`, `{"items":[@11-15],"page_count":2,"next_uri":null}`,
		}},
		{name: "a page that says nothing behind one that does", items: "@1-20", pages: []string{`{"items":[@1-10],` + next + `}`, `{"items":[@11-20]}`}},
		{name: "a page larger than the first", items: "@1-30", requests: 3, pages: []string{`{"items":[@1-10]}`, `{"items":[@11-30]}`, `{"items":[]}`}},
		{name: "an item comes twice", items: "@1-10 @10-15", pages: []string{`{"items":[@1-10],` + next + `}`, `{"items":[@10-15],"has_more":false}`}},
	} {
		for _, r := range readers() {
			t.Run(tt.name+" "+r.name, func(t *testing.T) {
				t.Parallel()
				ids, queries, err := r.from(t, tt.ask, func(req *http.Request) *http.Response {
					number := 1
					if n, err := strconv.Atoi(req.URL.Query().Get("page")); err == nil {
						number = n
					}
					page := tt.pages[min(number, len(tt.pages))-1]
					if status, err := strconv.Atoi(page); err == nil {
						return fixture.Response(status, nil)
					}
					page = strings.NewReplacer("{path}", r.path, "{number}", strconv.Itoa(number), "{next}", strconv.Itoa(number+1)).Replace(page)
					return fixture.Response(http.StatusOK, []byte(expand(page)))
				})
				var want []string
				for _, item := range itemRange.FindAllStringSubmatch(tt.items, -1) {
					first, _ := strconv.Atoi(item[1])
					last, _ := strconv.Atoi(item[2])
					want = append(want, idsFrom(first, last)...)
				}
				assert.Equal(t, append([]string{}, want...), ids)
				r.checkEnd(t, err, tt.says, tt.is)
				if !strings.HasSuffix(r.name, "ReadAhead 4") {
					assert.Len(t, queries, cmp.Or(tt.requests, len(tt.pages)-max(tt.ask.page-1, 0)))
				}
			})
		}
	}
}

// All reads on after an empty page, however the service writes that it has no items, and gives up after three.
func TestAllReadsOnAfterEmptyPages(t *testing.T) {
	t.Parallel()
	for _, items := range []string{`"items":[]`, `"items":null`, `"tasks":[]`, `"tasks":null`, `"total":2,"items":[]`, `"items":[],"page_count":0`} {
		const next = `"next_uri":"/tasks?page=%d","has_more":true`
		empty := `{` + items + `,` + next + `}`
		for _, tt := range []struct {
			pages string // e: empty
			ids   []string
			says  string
		}{
			{"e e a e e b", []string{"a", "b"}, ""},
			{"a e e e b", []string{"a"}, "after page 4: 3 pages in a row are empty, but more are announced"},
		} {
			t.Run(items+" "+tt.pages, func(t *testing.T) {
				t.Parallel()
				r, requests, pages := tasksReader(), 0, strings.Fields(tt.pages)
				ids, _, err := r.from(t, paging{}, func(*http.Request) *http.Response {
					page := pages[min(requests, len(pages)-1)]
					requests++
					switch {
					case page == "e":
						return fixture.Response(http.StatusOK, fmt.Appendf(nil, empty, requests+1))
					case requests >= len(pages):
						return fixture.Response(http.StatusOK, []byte(`{"items":[`+anyItem(page)+`],"has_more":false}`))
					default:
						return fixture.Response(http.StatusOK, fmt.Appendf(nil, `{"items":[`+anyItem(page)+`],`+next+`}`, requests+1))
					}
				})
				assert.Equal(t, tt.ids, ids)
				r.checkEnd(t, err, tt.says, nil)
			})
		}
	}
}

// nextSpellings are addresses of page {n} of the collection {path}, as a service or a gateway may write them.
var nextSpellings = []string{
	"{path}?page={n}", "/acme/v1{path}?page={n}", "{origin}/acme/v1{path}?page={n}", "?page={n}", "entries?page={n}", "./entries?page={n}", "../x/entries?page={n}",
	"//{host}/acme/v1{path}?page={n}", "//198.51.100.7/acme/v1{path}?page={n}", "http://198.51.100.7/acme/v1{path}?page={n}",
	"http://backend-1.internal:8080/acme/v1{path}?page={n}", "http://localhost/acme/v1{path}?page={n}", "https://{host}/acme/v1{path}?page={n}",
	"http://user:secret@{host}/acme/v1{path}?page={n}", "/root/acme/v1{path}?page={n}", "/acme/v2{path}?page={n}", "/v1{path}?page={n}",
	"/other/v1{path}?page={n}", "{path}/?page={n}", "{path}#?page={n}", "{path}?page={n}#top", "//{path}?page={n}", "/config/..{path}?page={n}",
	"/config/networklists?page={n}", "/tasks%zz?page={n}", "http://{unset}:port{path}?page={n}", "{path}?PAGE={n}", "next page", "/",
}

// pagingService is a random service with pages. It says what its members say, and has at most one fault.
type pagingService struct {
	pages       [][]string // ids
	size        int        // of a full page
	first       int        // page that the read begins with
	count       int        // that the read asks for; 0: none
	bare        bool       // arrays alone
	index, numb bool       // page_index, page_count
	total, more bool       // total, has_more
	next        string     // spelling of next_uri; "": never
	end         string     // next_uri of the last page; "": left out
	cursor      bool       // next_uri has a cursor, and page is ignored
	past        int        // status behind the last page; 0: an empty page
	fault       string     // "" or one of pagingFaults
	at          int        // page of the fault
}

var pagingFaults = []string{"the total changes", "page_count changes", "next_uri leads back", "page is ignored", "ends early"}

func newPagingService(seed uint64) *pagingService {
	r := rand.New(rand.NewPCG(seed, 47))
	half := func() bool { return r.IntN(2) == 0 }
	s := &pagingService{size: 1 + r.IntN(5), first: 1, bare: r.IntN(8) == 0}
	pages := r.IntN(7)
	for page := range pages {
		n := s.size
		if page == pages-1 {
			n = 1 + r.IntN(s.size)
		}
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf("%d-%d", page+1, i)
		}
		s.pages = append(s.pages, ids)
	}
	if pages > 1 && r.IntN(4) == 0 {
		s.first = 1 + r.IntN(pages)
	}
	s.count = []int{0, s.size, s.size + 3}[r.IntN(3)]
	s.past = []int{0, 404, 400}[r.IntN(3)]
	if !s.bare {
		s.index, s.numb, s.total, s.more = half(), half(), half(), half()
		if r.IntN(4) > 0 {
			s.next = nextSpellings[r.IntN(len(nextSpellings))]
			if address, _, _ := strings.Cut(s.next, "#"); !s.numbered() && !strings.Contains(address, "?page=") {
				s.next = "{path}?page={n}" // without numbers, the other leads nowhere
			}
			s.end = []string{"", `null`, `""`}[r.IntN(3)]
			s.cursor = !s.numbered() && r.IntN(4) == 0
		}
	}
	if s.says() && pages > 2 && r.IntN(8) == 0 { // an empty page in the middle
		s.pages[1+r.IntN(pages-2)] = nil
	}
	if pages > 1 && r.IntN(3) == 0 {
		s.fault, s.at = pagingFaults[r.IntN(len(pagingFaults))], 1+r.IntN(pages)
	}
	return s
}

// says reports whether the pages say whether others follow.
func (s *pagingService) says() bool { return s.more || s.numb || s.next != "" }

func (s *pagingService) numbered() bool { return s.index && s.numb }

// follows reports whether next_uri leads on.
func (s *pagingService) follows() bool { return s.next != "" && !s.numbered() }

func (s *pagingService) answer(r *http.Request) *http.Response {
	number, query := 1, r.URL.Query()
	if n, err := strconv.Atoi(query.Get("page")); err == nil && (!s.cursor || n == s.first) {
		number = n
	}
	if n, err := strconv.Atoi(query.Get("cursor")); err == nil && s.cursor {
		number = n
	}
	if s.fault == "page is ignored" {
		number = s.first
	}
	if number > len(s.pages) && s.past != 0 && number > 1 {
		return fixture.Response(s.past, nil)
	}
	items := []json.RawMessage{}
	if number <= len(s.pages) {
		for _, id := range s.pages[number-1] {
			items = append(items, json.RawMessage(anyItem(id)))
		}
	}
	if s.bare {
		body, _ := json.Marshal(items)
		return fixture.Response(http.StatusOK, body)
	}
	body, total, pages := map[string]any{"items": items}, 0, len(s.pages)
	for _, ids := range s.pages {
		total += len(ids)
	}
	last := number >= pages || s.fault == "ends early" && number == s.at
	if s.fault == "the total changes" && number >= s.at {
		total++
	}
	if s.fault == "page_count changes" && number >= s.at {
		pages++
	}
	for name, member := range map[string]struct {
		has   bool
		value any
	}{"page_index": {s.index, number}, "page_count": {s.numb, pages}, "total": {s.total, total}, "has_more": {s.more, !last}} {
		if member.has {
			body[name] = member.value
		}
	}
	following := number + 1
	if s.fault == "next_uri leads back" && number >= s.at {
		following, last = max(s.first, number-1), false
	}
	switch {
	case s.next != "" && !last:
		next := strings.NewReplacer("{path}", strings.TrimPrefix(r.URL.Path, "/acme/v1"), "{origin}", "https://api.example.com", "{host}", "api.example.com",
			"{n}", strconv.Itoa(following)).Replace(s.next)
		if s.cursor {
			next = strings.Replace(next, "?page=", "?cursor=", 1)
		}
		body["next_uri"] = next
	case s.next != "" && s.end != "":
		body["next_uri"] = json.RawMessage(s.end)
	}
	text, _ := json.Marshal(body)
	return fixture.Response(http.StatusOK, text)
}

// verdict says what reading the service must come to: all of the items, an *IncompleteError, or either of them. It
// knows only what the pages say, not how they are read.
func (s *pagingService) verdict() string {
	left := len(s.pages) - s.first + 1 // pages to read
	totals := s.total && s.first == 1
	switch s.fault {
	case "the total changes", "page_count changes":
		if said := s.total && s.fault == "the total changes" || s.numb && s.fault == "page_count changes"; said {
			if s.at > s.first {
				return "incomplete"
			}
			return "either" // all pages have the same wrong number
		}
	case "page is ignored":
		switch {
		case left > 1 && (s.says() || s.index || totals || s.count == s.size):
			return "incomplete"
		case left > 1:
			return "unnoticed" // it looks like a service that has everything in one page
		case left == 1 && !s.more && !s.numb:
			return "either" // the page behind the last has a wrong number
		}
	case "next_uri leads back":
		switch {
		case s.follows() && (max(s.at, s.first) < len(s.pages) || !s.more || !s.total):
			return "incomplete"
		case s.follows() && !totals:
			return "either" // the last page has has_more false and a next_uri: the total decides
		}
	case "ends early":
		early := s.at >= s.first && s.at < len(s.pages) && !s.numbered() && (s.more || s.next != "" && !s.numb)
		switch {
		case early && !s.more && s.at == s.first && (s.end == "" || s.total) && len(s.pages[s.at-1]) > 0 && !s.cursor:
			return "either" // the first page does not say that it is the last
		case !early && s.cursor:
			return "either" // page_count leads on without an address
		case early && (totals || s.numb):
			return "incomplete"
		case early:
			return "unnoticed"
		}
	}
	switch {
	case len(s.pages) == 0, s.more, s.numb, s.next != "" && s.end != "" && !s.total, s.next != "" && left > 1, totals:
		return "all"
	case s.cursor:
		return "either" // a page behind the last cannot be asked for
	case s.past == 0:
		return "all" // an empty page shows the end
	case len(s.pages[len(s.pages)-1]) < s.count && s.count > 0:
		return "all" // a page shorter than requested does
	default:
		return "either"
	}
}

func (s *pagingService) wanted() []string {
	ids := []string{}
	for _, page := range s.pages[min(s.first-1, len(s.pages)):] {
		ids = append(ids, page...)
	}
	return ids
}

// A read of a service with pages comes to all of its items, or to an *IncompleteError where its pages contradict each
// other. It never ends without an error and without an item that the pages announced, and ReadAhead changes nothing. Only
// the query of next_uri counts, and where the pages have their numbers not even that: however a service or a gateway
// spells the address, nothing is sent elsewhere.
func TestPagingServices(t *testing.T) {
	t.Parallel()
	const services = 1_000
	counts := map[string]int{}
	for seed := range uint64(services) {
		s := newPagingService(seed)
		verdict := s.verdict()
		counts[verdict]++
		results := map[string]string{}
		for _, r := range []reader{tasksReader(), entriesReader(4)} {
			ask := paging{count: s.count}
			if s.first > 1 {
				ask.page = s.first
			}
			ids, _, err := r.from(t, ask, s.answer)
			results[fmt.Sprint(ids, err != nil)] = r.name
			context := fmt.Sprintf("seed %d, %s: %+v: %v", seed, r.name, *s, err)
			require.False(t, t.Failed(), context)
			if err != nil {
				require.NotEqual(t, "all", verdict, context)
				if verdict == "incomplete" {
					require.ErrorAs(t, err, new(*webdelivery.IncompleteError), context)
				}
				continue
			}
			require.NotEqual(t, "incomplete", verdict, context)
			if verdict != "unnoticed" {
				require.Equal(t, s.wanted(), ids, context)
			}
		}
		require.Len(t, results, 1, "seed %d: %+v", seed, *s)
	}
	for _, verdict := range []string{"all", "incomplete", "either", "unnoticed"} {
		assert.NotZero(t, counts[verdict], verdict)
	}
}
