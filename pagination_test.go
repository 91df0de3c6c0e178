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
	"github.com/webdelivery/webdelivery-go/internal/testserver"
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

// pageOf is a page with these tasks and, unless next is "", the address of another one. An index of 0 is left out.
func pageOf(index int, next string, ids ...string) string {
	page := map[string]any{"items": []any{}, "has_more": next != "", "next_uri": next}
	if index != 0 {
		page["page_index"] = index
	}
	for _, id := range ids {
		page["items"] = append(page["items"].([]any), map[string]string{"id": id})
	}
	body, _ := json.Marshal(page)
	return string(body)
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

// Only the query of next_uri counts, and where the pages have their numbers not even that: however a service or a
// gateway spells the address, each page comes from the address of the collection, and nothing is sent elsewhere.
func TestAllReadsEveryPageHoweverNextURIIsSpelled(t *testing.T) {
	t.Parallel()
	for _, spelling := range nextSpellings {
		_, query, _ := strings.Cut(spelling, "?")
		for _, numbers := range []string{`"page_index":%d,"page_count":2,`, ""} {
			if numbers == "" && !strings.HasPrefix(query, "page=") {
				continue // without a number, such an address leads nowhere
			}
			for name, reader := range readers() {
				t.Run(strings.Join([]string{name, spelling, numbers}, " "), func(t *testing.T) {
					t.Parallel()
					fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
						host := strings.TrimPrefix(f.Srv.URL(), "http://")
						next := strings.NewReplacer("{n}", "2", "{path}", reader.path, "{origin}", f.Srv.URL(), "{host}", host).Replace(spelling)
						first, last := numbers, numbers
						if numbers != "" {
							first, last = fmt.Sprintf(numbers, 1), fmt.Sprintf(numbers, 2)
						}
						fixture.AnswerWith(f, reader.path, fmt.Sprintf(`{"items":[%s],%s"has_more":true,"next_uri":%q}`, anyItem("a"), first, next),
							fmt.Sprintf(`{"items":[%s],%s"has_more":false,"next_uri":null}`, anyItem("b"), last))
						ids, err := fixture.Gather(reader.read(f.Context(), f.Client, paging{}))
						require.NoError(f, err)
						assert.Equal(f, []string{"a", "b"}, ids)
						assert.Equal(f, 2, f.Srv.Count(http.MethodGet, reader.path))
						assert.Zero(f, f.Srv.ForeignDials())
					})
				})
			}
		}
	}
}

// ReadAhead has at most that many requests under way, and never more than a thousand.
func TestReadAheadIsBounded(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[int]int32{3: 3, 1000: 1000, 5000: 1000} {
		synctest.Test(t, func(t *testing.T) {
			var underWay, most atomic.Int32
			client := fixture.Answered(t, func(r *http.Request) *http.Response {
				most.Store(max(most.Load(), underWay.Add(1)))
				defer underWay.Add(-1)
				time.Sleep(time.Second) // until all of them are here
				page := cmp.Or(r.URL.Query().Get("page"), "1")
				return fixture.Response(http.StatusOK, fmt.Appendf(nil, `{"items":[%s],"page_index":%s,"page_count":1500}`, anyItem("i"+page), page))
			})
			all, err := webdelivery.Collect(client.NetworkLists.AllEntries(t.Context(), fixture.ListID, webdelivery.EntryOptions{ReadAhead: ahead}))
			require.NoError(t, err)
			assert.Len(t, all, 1500)
			assert.Equal(t, want, most.Load())
		})
	}
}

// An address without a query that leads on is a read in a circle, and so is one that leads back.
func TestAllNoticesACircle(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"/tasks?page=1&count=1", "http://evil.example.com/"} {
		for _, pages := range []int{1, 3} {
			t.Run(fmt.Sprint(next, " after ", pages), func(t *testing.T) {
				t.Parallel()
				fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
					var bodies []string
					for i := 1; i < pages; i++ {
						bodies = append(bodies, pageOf(0, fmt.Sprint("/tasks?page=", i+1), fmt.Sprint("t", i)))
					}
					bodies = append(bodies, pageOf(0, next, "last"), pageOf(0, "/tasks?page=2", []string{"last", "t1"}[min(pages-1, 1)]))
					fixture.AnswerWith(f, "/tasks", bodies...)
					ids, err := readAll(f, webdelivery.TaskListOptions{Page: 1, Count: 1})
					assert.Len(f, ids, pages)
					var broken *webdelivery.IncompleteError
					require.ErrorAs(f, err, &broken)
					assert.Contains(f, broken.Reason, fmt.Sprintf("/acme/v1/tasks: after page %d: ", pages+1))
					assert.Contains(f, broken.Reason, "repeats")
					assert.Len(f, f.Srv.Requests(), pages+1)
					assert.Zero(f, f.Srv.ForeignDials())
					assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				})
			})
		}
	}
}

// All reads on after an empty page, however the service writes that it has no items.
func TestAllTasksReadOnAfterEmptyPages(t *testing.T) {
	t.Parallel()
	for _, items := range []string{`"items":[]`, `"items":null`, `"tasks":[]`, `"tasks":null`, `"total":2,"items":[]`} {
		t.Run(items, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				empty := `{` + items + `,"has_more":true,"next_uri":"/tasks?page=%d"}`
				fixture.AnswerWith(f, "/tasks", fmt.Sprintf(empty, 2), fmt.Sprintf(empty, 3), pageOf(3, "/tasks?page=4", "a"),
					fmt.Sprintf(empty, 5), fmt.Sprintf(empty, 6), pageOf(6, "", "b"))
				ids, err := readAll(f, webdelivery.TaskListOptions{})
				require.NoError(f, err)
				assert.Equal(f, []string{"a", "b"}, ids)
				assert.Len(f, f.Srv.Requests(), 6)
			})
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				fixture.AnswerWith(f, "/tasks", `{`+items+`,"has_more":false}`)
				page, err := f.Client.Tasks.List(f.Context(), webdelivery.TaskListOptions{})
				require.NoError(f, err)
				assert.NotNil(f, page.Items)
				assert.Empty(f, page.Items)
			})
		})
	}
}

// filtered is a read of a collection with parameters.
type filtered struct {
	name string
	path string
	sent url.Values // the query of the first request
	read func(ctx context.Context, c *webdelivery.Client) ([]string, error)
}

func filteredReads() []filtered {
	since := time.Date(2026, 11, 20, 9, 30, 0, 5e6, time.FixedZone("", 3600))
	entries := func(ahead int) func(ctx context.Context, c *webdelivery.Client) ([]string, error) {
		return func(ctx context.Context, c *webdelivery.Client) ([]string, error) {
			options := webdelivery.EntryOptions{Count: 2, ReadAhead: ahead}
			return fixture.Gather(idsOf(c.NetworkLists.AllEntries(ctx, fixture.ListID, options), func(e webdelivery.NetworkListEntry) string { return e.ID }))
		}
	}
	return []filtered{
		{
			"Tasks.All", "/tasks",
			url.Values{"status": {"failed"}, "operation": {"a&b ü"}, "since": {"2026-11-20T08:30:00.005+0000"}, "count": {"2"}},
			func(ctx context.Context, c *webdelivery.Client) ([]string, error) {
				options := webdelivery.TaskListOptions{Status: "failed", Operation: "a&b ü", Since: since, Count: 2}
				return fixture.Gather(idsOf(c.Tasks.All(ctx, options), func(t webdelivery.Task) string { return t.ID }))
			},
		},
		{
			"NetworkLists.All", "/config/networklists",
			url.Values{"type": {"GEO"}, "deprecated": {"true"}, "count": {"2"}},
			func(ctx context.Context, c *webdelivery.Client) ([]string, error) {
				options := webdelivery.NetworkListOptions{Type: webdelivery.ListTypeGEO, Deprecated: true, Count: 2}
				return fixture.Gather(idsOf(c.NetworkLists.All(ctx, options), func(l webdelivery.NetworkList) string { return l.ID }))
			},
		},
		{"AllEntries", "/config/networklists/" + fixture.ListID + "/entries", url.Values{"count": {"2"}}, entries(0)},
		{"AllEntries with ReadAhead", "/config/networklists/" + fixture.ListID + "/entries", url.Values{"count": {"2"}}, entries(2)},
	}
}

// filteringService answers with three pages of a collection. next is the query of the address of the next page;
// {page} in it stands for its number. Its pages have their numbers if counted is set: then no address is followed.
type filteringService struct {
	next    string
	counted bool

	mu       sync.Mutex // ReadAhead requests several pages at once
	requests []*http.Request
}

func (s *filteringService) answer(r *http.Request) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	page := len(s.requests)
	if n := r.URL.Query().Get("page"); n != "" {
		_, _ = fmt.Sscan(n, &page)
	}
	_, path, _ := strings.Cut(r.URL.Path, "/v1")
	next := "null"
	if page < 3 {
		next = fmt.Sprintf("%q", path+"?"+strings.ReplaceAll(s.next, "{page}", fmt.Sprint(page+1)))
	}
	counts := ""
	if s.counted {
		counts = fmt.Sprintf(`"page_index":%d,"page_count":3,"total":6,`, page)
	}
	return fixture.Response(http.StatusOK, fmt.Appendf(nil, `{"items":[%s,%s],%s"has_more":%t,"next_uri":%s}`,
		anyItem(fmt.Sprint("a", page)), anyItem(fmt.Sprint("b", page)), counts, page < 3, next))
}

// The parameters of the first request hold on every page: the client adds those that next_uri leaves out. Parameters
// of the service's own stay, and page belongs to the service.
func TestFiltersHoldOnEveryPage(t *testing.T) {
	t.Parallel()
	for _, op := range filteredReads() {
		for _, next := range []string{"page={page}", "cursor=x%26y{page}", "page={page}&cursor=a;b{page}", "{page}", "{all}&page={page}", "page={page}&{all}"} {
			for _, counted := range []bool{false, true} {
				t.Run(fmt.Sprint(op.name, " ", next, " ", counted), func(t *testing.T) {
					t.Parallel()
					service := &filteringService{next: strings.ReplaceAll(next, "{all}", op.sent.Encode()), counted: counted}
					ids, err := op.read(t.Context(), fixture.Answered(t, service.answer))
					require.NoError(t, err)
					assert.Equal(t, []string{"a1", "b1", "a2", "b2", "a3", "b3"}, ids)
					require.Len(t, service.requests, 3)
					for i, r := range service.requests {
						query := r.URL.RawQuery
						values, _ := url.ParseQuery(query) // an error because of a semicolon, which the service may use
						for name, want := range op.sent {
							assert.Equal(t, want, values[name], "request %d: %s", i, query)
						}
						if i > 0 && !counted && !strings.Contains(next, "{all}") {
							want := strings.ReplaceAll(next, "{page}", fmt.Sprint(i+1))
							assert.True(t, strings.HasPrefix(query, want), "the service's own parameters stay as they are: %s", query)
						}
						if i > 0 && !counted && !strings.Contains(next, "page") {
							assert.NotContains(t, values, "page")
						}
					}
				})
			}
		}
	}
}

// A next_uri with another value of a parameter, or in another spelling, cannot lead to other items: the value of the first
// request is sent. Only count may change, because the service may have a maximum.
func TestFiltersThatNextURIContradicts(t *testing.T) {
	t.Parallel()
	for _, next := range []string{
		"page={page}&status=running&type=IP&deprecated=false", "page={page}&status=failed&status=running", "page={page}&status&type=",
		"page={page}&st%61tus=r&t%79pe=IP", "page={page}&operation=a&b%20%C3%BC", "page={page}&since=2026-11-20T08:30:00.005+0000",
		"page={page}&since=yesterday&deprecated=True", "page={page}&count=1",
	} {
		for _, op := range filteredReads() {
			t.Run(op.name+" "+next, func(t *testing.T) {
				t.Parallel()
				service := &filteringService{next: next}
				ids, err := op.read(t.Context(), fixture.Answered(t, service.answer))
				require.NoError(t, err)
				assert.Len(t, ids, 6)
				for i, r := range service.requests {
					for name, want := range op.sent {
						if i > 0 && name == "count" && strings.Contains(next, "count") {
							want = []string{"1"}
						}
						assert.Equal(t, want, r.URL.Query()[name], "request %d", i)
					}
				}
			})
		}
	}
}

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
		assert.Contains(f, e.Reason, fmt.Sprintf(": after page %d: ", pages))
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

// The client refuses a page that can be read in more than one way: a reader that chooses one of them may lose items.
func TestPagesThatAreAmbiguous(t *testing.T) {
	t.Parallel()
	for body, says := range map[string]string{
		`{"items":[{"id":"a"}],"items":[]}`:                                 `duplicate object member name "items"`,
		`{"items":[{"id":"a"}],"items":null}`:                               `duplicate object member name "items"`,
		`{"it\u0065ms":[{"id":"a"}],"items":[]}`:                            `duplicate object member name "items"`,
		`{"extra":{"note":[1],"note":[2]},"items":[]}`:                      `duplicate object member name "note"`,
		`{"items":[{"id":"a","status":"s","status":"t"}]}`:                  `duplicate object member name "status"`,
		`{"items":[{"id":"\ud800","status":"s"}]}`:                          "surrogate",
		`{"items":null,"error":"backend down"}`:                             "neither items nor tasks",
		`{"items":null,"uri":"/tasks"}`:                                     "neither items nor tasks",
		`{"items":null,"tasks":null,"next_uri":null}`:                       "neither items nor tasks",
		`{"items":[{"id":"a"}],"total":25,"has_more":true,"total":1}`:       `duplicate object member name "total"`,
		`{"items":[{"id":"a"}],"next_uri":"/tasks?page=2","next_uri":null}`: `duplicate object member name "next_uri"`,
		`{"page_count":3,"items":[{"id":"a"}],"page_count":1}`:              `duplicate object member name "page_count"`,
		`{"page_index":1,"items":[{"id":"a"}],"page_index":1}`:              `duplicate object member name "page_index"`,
		`{"items":[{"id":"a"}],"tasks":[{"id":"b"}]}`:                       "both items and tasks",
		`{"items":[{"id":"a"}],"tasks":[{"id":"a"}]}`:                       "both items and tasks",
		`{"items":[],"tasks":[{"id":"a"}]}`:                                 "both items and tasks",
		`{"items":[{"id":"a"}],"tasks":[]}`:                                 "both items and tasks",
	} {
		for name, reader := range readers() {
			t.Run(name+" "+body, func(t *testing.T) {
				t.Parallel()
				ids, err := fixture.Gather(reader.read(t.Context(), fixture.Always(t, []byte(body)), paging{}))
				require.ErrorIs(t, err, webdelivery.ErrBadResponse)
				require.ErrorContains(t, err, says)
				assert.Empty(t, ids)
			})
		}
	}
	// These pages are not ambiguous: the members of items have names of their own, and null is no list of items.
	for _, body := range []string{
		`{"items":[{"id":"a","entry":"192.0.2.1","name":"n","status":"s","uri":"/x","total":[{"items":"a,\"items\":"}]}],"uri":"/tasks","note":"\\\",\"items\":[","has_more":false}`,
		`{"extra":{"items":[1],"x":{"items":[2]}},"items":[` + anyItem("a") + `],"more":[{"items":1},"items","items"],"has_more":false}`,
		`{"items":null,"tasks":[` + anyItem("a") + `],"has_more":false}`,
		`{"items":[` + anyItem("a") + `],"tasks":null,"has_more":false}`,
		` {"tasks" : [ ` + anyItem("a") + ` ] , "note":"items", "Note":"items" , "has_more" : false }`,
	} {
		for name, reader := range readers() {
			t.Run(name+" "+body, func(t *testing.T) {
				t.Parallel()
				ids, err := fixture.Gather(reader.read(t.Context(), fixture.Always(t, []byte(body)), paging{}))
				require.NoError(t, err)
				assert.Equal(t, []string{"a"}, ids)
			})
		}
	}
}

var itemRange = regexp.MustCompile(`@(\d+)-(\d+)`)

// bookOf is a collection whose pages are these texts, by their number. In a page, @1-10 stands for the items i1 to
// i10, and {path} for the path of the collection. Behind the last page comes the last one again.
func bookOf(t *testing.T, path string, pages []string) (client *webdelivery.Client, requests func() int) {
	t.Helper()
	var sent atomic.Int64
	return fixture.Answered(t, func(r *http.Request) *http.Response {
		if sent.Add(1) > 50 {
			t.Error("the client sends requests without end")
			return fixture.Response(http.StatusTeapot, nil)
		}
		number := 1
		if n, err := strconv.Atoi(r.URL.Query().Get("page")); err == nil {
			number = n
		}
		page := strings.ReplaceAll(pages[min(number, len(pages))-1], "{path}", path)
		page = strings.ReplaceAll(page, "{number}", strconv.Itoa(number))
		page = strings.ReplaceAll(page, "{next}", strconv.Itoa(number+1))
		return fixture.Response(http.StatusOK, []byte(itemRange.ReplaceAllStringFunc(page, func(text string) string {
			var from, to int
			_, _ = fmt.Sscanf(text, "@%d-%d", &from, &to)
			var items []string
			for i := from; i <= to; i++ {
				items = append(items, anyItem(fmt.Sprint("i", i)))
			}
			return strings.Join(items, ",")
		})))
	}), func() int { return int(sent.Load()) }
}

// bookTest is a collection, and the result of reading it.
type bookTest struct {
	name   string
	pages  []string
	items  int    // that All yields
	says   string // the *IncompleteError; "": no error
	page   int    // of the first request; 0: no page parameter
	ahead  bool   // ReadAhead has the same result, because the pages are numbered
	atMost int    // requests; 0: one per page
}

func (tt *bookTest) run(t *testing.T) {
	t.Helper()
	for name, reader := range readers() {
		if strings.Contains(name, "ReadAhead") && !tt.ahead {
			continue
		}
		t.Run(tt.name+" "+name, func(t *testing.T) {
			t.Parallel()
			client, requests := bookOf(t, reader.path, tt.pages)
			ids, err := fixture.Gather(reader.read(t.Context(), client, paging{page: tt.page}))
			assert.Len(t, ids, tt.items)
			if tt.says == "" {
				require.NoError(t, err)
			} else {
				var broken *webdelivery.IncompleteError
				require.ErrorAs(t, err, &broken)
				assert.Contains(t, broken.Reason, tt.says)
			}
			assert.LessOrEqual(t, requests(), cmp.Or(tt.atMost, len(tt.pages)))
		})
	}
}

// If a page announces items or pages, they must come; otherwise an error follows the items. The client compares the
// pages with page_count and next_uri, and the items with total.
func TestPagesThatWereAnnouncedMustCome(t *testing.T) {
	t.Parallel()
	const next = `"next_uri":"{path}?page={next}"`
	for _, tt := range []bookTest{
		{name: "the end before the total", items: 20, says: "5 of 25 items are missing", pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,` + next + `}`, `{"items":[@11-20],"total":25,"has_more":false,"next_uri":null}`,
		}},
		{name: "the end before the total of the first page alone", items: 20, says: "5 of 25 items", pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,` + next + `}`, `{"items":[@11-20],"has_more":false}`,
		}},
		{name: "a total alone, then the end", items: 20, says: "5 of 25 items", pages: []string{
			`{"items":[@1-10],"total":25}`, `{"items":[@11-20],"has_more":false}`,
		}},
		{name: "page_count and total, then items alone", items: 20, says: "page 2 of 3", pages: []string{
			`{"items":[@1-10],"page_count":3,"total":25,` + next + `}`, `{"items":[@11-20]}`,
		}},
		{name: "page_count, then items alone", items: 20, says: "page 2 of 3", pages: []string{
			`{"items":[@1-10],"page_count":3,` + next + `}`, `{"items":[@11-20]}`,
		}},
		{name: "page_count from page 2, then items alone", items: 20, page: 2, says: "page 3 of 4", pages: []string{
			``, `{"items":[@1-10],"page_count":4,` + next + `}`, `{"items":[@11-20]}`,
		}},
		{name: "page_count and the first page_index, then items alone", items: 20, says: "the page repeats earlier ones", atMost: 3, pages: []string{
			`{"items":[@1-10],"page_count":3,"page_index":1,` + next + `}`, `{"items":[@11-20]}`,
		}},
		{name: "next_uri alone, then a total alone", items: 20, says: "5 of 25 items", pages: []string{
			`{"items":[@1-10],` + next + `}`, `{"items":[@11-20],"total":25}`,
		}},
		{name: "has_more false, next_uri", items: 10, says: "page 1 is the last, but has a next_uri", pages: []string{
			`{"items":[@1-10],"has_more":false,` + next + `}`,
		}},
		{name: "has_more false, page_count 3", items: 10, says: "page 1 of 3", pages: []string{`{"items":[@1-10],"has_more":false,"page_count":3}`}},
		{name: "has_more false, page_count 3, page 3", items: 5, page: 3, pages: []string{``, ``, `{"items":[@1-5],"has_more":false,"page_count":3}`}},
		{name: "has_more false, total 25", items: 10, says: "15 of 25 items", pages: []string{`{"items":[@1-10],"has_more":false,"total":25}`}},
		{name: "page_count 1, total 25", items: 10, says: "15 of 25 items", pages: []string{`{"items":[@1-10],"page_count":1,"total":25}`}},
		{name: "numbered, page_count 1, total 25", items: 10, says: "15 of 25 items", ahead: true, pages: []string{
			`{"items":[@1-10],"page_index":1,"page_count":1,"total":25}`,
		}},
		{name: "no items, total 25", says: "25 of 25 items", pages: []string{`{"items":[],"has_more":false,"total":25}`}},

		{name: "page 1 is not read, and items are lacking", items: 13, page: 2, says: "2 of 25 items", ahead: true, pages: []string{
			``, `{"items":[@11-20],"page_index":2,"page_count":3,"total":25}`, `{"items":[@21-23],"page_index":3,"page_count":3,"total":25}`,
		}},

		// A collection must not change while it is read.
		{name: "it grows by an item", items: 10, says: "25 items in 3 pages became 26 in 3", pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,"page_count":3,` + next + `}`, `{"items":[@11-20],"total":26,"page_count":3,"has_more":true,` + next + `}`,
		}},
		{name: "it grows by a page", items: 10, ahead: true, says: "25 items in 3 pages became 31 in 4", pages: []string{
			`{"items":[@1-10],"total":25,"page_count":3,"page_index":1}`, `{"items":[@11-20],"total":31,"page_count":4,"page_index":2}`,
			`{"items":[@21-30],"total":31,"page_count":4,"page_index":3}`, `{"items":[@31-31],"total":31,"page_count":4,"page_index":4}`,
		}},
		{name: "it shrinks", items: 10, ahead: true, says: "25 items in 3 pages became 20 in 2", atMost: 3, pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,"page_count":3,"page_index":1,` + next + `}`,
			`{"items":[@11-20],"total":20,"has_more":false,"page_count":2,"page_index":2,"next_uri":null}`,
		}},
		{name: "it shrinks behind the page", items: 20, says: "25 items in 3 pages became 20 in 2", pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,"page_count":3,` + next + `}`, `{"items":[@11-20],"total":25,"has_more":true,"page_count":3,` + next + `}`,
			`{"items":[],"total":20,"has_more":false,"page_count":2}`,
		}},
		{name: "it becomes empty", items: 10, says: "page 2 of 3 announces no further page", pages: []string{
			`{"items":[@1-10],"total":25,"has_more":true,"page_count":3,` + next + `}`, `{"items":[],"total":0,"has_more":false,"page_count":0}`,
		}},

		// These are no contradictions.
		{name: "page 1 is not read", items: 15, page: 2, pages: []string{
			``, `{"items":[@1-10],"has_more":true,"total":25,` + next + `}`, `{"items":[@11-15],"has_more":false,"total":25}`,
		}},
		{name: "numbered, the last page has a next_uri", items: 20, ahead: true, pages: []string{
			`{"items":[@1-10],"page_index":1,"page_count":2,"has_more":true,` + next + `}`,
			`{"items":[@11-20],"page_index":2,"page_count":2,"has_more":false,` + next + `}`,
		}},
		{name: "page_count with addresses alone", items: 15, pages: []string{
			`{"items":[@1-10],"page_count":2,` + next + `}`, `{"items":[@11-15],"page_count":2,"next_uri":null}`,
		}},
	} {
		tt.run(t)
	}
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
		next := strings.NewReplacer("{path}", "/tasks", "{n}", strconv.Itoa(following)).Replace(s.next)
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
// other. It never ends without an error and without an item that the pages announced, ReadAhead changes nothing, and no
// request goes elsewhere.
func TestPagingServices(t *testing.T) {
	t.Parallel()
	const services = 1_500
	counts := map[string]int{}
	for seed := range uint64(services) {
		s := newPagingService(seed)
		verdict := s.verdict()
		counts[verdict]++
		results := map[string]string{}
		for name, reader := range readers() {
			if name == "NetworkLists.All" {
				continue
			}
			var requests atomic.Int64
			client := fixture.Answered(t, func(r *http.Request) *http.Response {
				if requests.Add(1) > 40 {
					return fixture.Response(http.StatusTeapot, nil)
				}
				assert.Equal(t, "/acme/v1"+reader.path, r.URL.Path)
				return s.answer(r)
			})
			ask := paging{count: s.count}
			if s.first > 1 {
				ask.page = s.first
			}
			ids, err := fixture.Gather(reader.read(t.Context(), client, ask))
			results[fmt.Sprint(ids, err != nil)] = name
			context := fmt.Sprintf("seed %d, %s: %+v: %v", seed, name, *s, err)
			if err != nil {
				require.NotEqual(t, "all", verdict, context)
				if broken := (*webdelivery.IncompleteError)(nil); verdict == "incomplete" {
					require.ErrorAs(t, err, &broken, context)
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
	t.Log(counts)
	for _, verdict := range []string{"all", "incomplete", "either", "unnoticed"} {
		assert.NotZero(t, counts[verdict], verdict)
	}
}
