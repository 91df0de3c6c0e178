package webdelivery_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

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
