package webdelivery_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
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

func TestAllTasksFollowNextURIInEveryForm(t *testing.T) {
	t.Parallel()
	for _, basePath := range []string{"", "/root"} {
		for _, form := range []string{
			"relative", "prefixed", "absolute", "query", "last-element", "no-scheme", "other-scheme", "other-host", "other-prefix",
		} {
			t.Run(basePath+" "+form, func(t *testing.T) {
				t.Parallel()
				server := testserver.Config{BasePath: basePath, Dialect: testserver.Dialect{NextURI: form}}
				fixture.InFakeTime(t, fixture.Setup{Server: server}, func(f *fixture.Fixture) {
					for i := range 7 {
						f.Srv.AddTask(testserver.TaskSpec{ID: fmt.Sprint("t", i), Operation: "a&b ü"})
					}
					f.Srv.AddTask(testserver.TaskSpec{ID: "other"})
					ids, err := readAll(f, webdelivery.TaskListOptions{Operation: "a&b ü", Count: 3})
					require.NoError(f, err)
					assert.Equal(f, []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6"}, ids)
					assert.Equal(f, 3, f.Srv.Count(http.MethodGet, "/tasks"))
					assert.Len(f, f.Srv.Requests(), 3)

					ids, err = readAll(f, webdelivery.TaskListOptions{Operation: "a&b ü", Count: 3, Page: 2})
					require.NoError(f, err)
					assert.Equal(f, []string{"t3", "t4", "t5", "t6"}, ids, "it begins at the requested page")
				})
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
	for _, next := range []string{"/tasks?page=1&count=1", "/tasks?count=1&page=1", "/tasks/page/2", "/tasks", "?", "http://evil.example.com/"} {
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
					assert.Equal(f, "/acme/v1/tasks", broken.Path)
					assert.Equal(f, pages+1, broken.Page)
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
