package paging_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/paging"
)

var (
	errNoPage = errors.New("no such page")
	errOutage = errors.New("outage")
)

// reader is a scripted collection: it has the response to each query, in the order of the requests.
type reader struct {
	answer func(query url.Values) (items string, page paging.Page, err error)

	mu    sync.Mutex
	asked []string
}

// said returns a page without any facts except those that the options add.
func said(options ...func(*paging.Page)) paging.Page {
	p := paging.Page{}
	for _, option := range options {
		option(&p)
	}
	return p
}

func next(query string) func(*paging.Page) { return func(p *paging.Page) { p.Next = &query } }
func hasMore(more bool) func(*paging.Page) { return func(p *paging.Page) { p.HasMore = &more } }
func index(n int) func(*paging.Page)       { return func(p *paging.Page) { p.Index = n } }
func count(n int) func(*paging.Page)       { return func(p *paging.Page) { p.Count = n } }
func total(n int64) func(*paging.Page)     { return func(p *paging.Page) { p.Total = n } }

// all reads the collection of the reader, whose items are words. ahead is the number of pages to prefetch.
func (r *reader) all(ctx context.Context, query string, ahead int) iter.Seq2[string, error] {
	c := paging.Collection[string]{
		Query: query, Ahead: ahead,
		Read: func(_ context.Context, query string) ([]string, paging.Page, error) {
			r.mu.Lock()
			r.asked = append(r.asked, query)
			r.mu.Unlock()
			values, _ := url.ParseQuery(query) // without the parts that it refuses
			words, page, err := r.answer(values)
			page.IDs = strings.Fields(words)
			if errors.Is(err, errNoPage) {
				page.Refused = "404 no such page"
			}
			return page.IDs, page, err
		},
		Broken: func(pages int, reason string) error { return fmt.Errorf("after %d: %s", pages, reason) },
	}
	return c.All(ctx)
}

// pagesOf returns one page after the other, whatever the query is.
func pagesOf(pages ...any) func(url.Values) (string, paging.Page, error) {
	at := 0
	return func(url.Values) (string, paging.Page, error) {
		if at+1 >= len(pages) {
			return "", paging.Page{}, errNoPage
		}
		items, page := pages[at].(string), pages[at+1]
		at += 2
		if err, ok := page.(error); ok {
			return "", paging.Page{}, err
		}
		return items, page.(paging.Page), nil
	}
}

func read(pages iter.Seq2[string, error]) (items string, err error) {
	var words []string
	for word, e := range pages {
		if err = e; e == nil {
			words = append(words, word)
		}
	}
	return strings.Join(words, " "), err
}

// How All reads a collection page by page, and where it ends.
func TestAll(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		query string
		pages []any // for each request in order: the items of the page, and its facts or an error
		items string
		asked []string // expected queries
		err   string   // a part of the expected error; "": none
	}{
		// Pages that announce the next one.
		{"next_uri leads on", "", []any{"a b", said(next("page=2")), "c", said(next("page=3")), "d", said(hasMore(false))}, "a b c d", []string{"", "page=2", "page=3"}, ""},
		{"has_more is false", "", []any{"a", said(hasMore(false))}, "a", nil, ""},
		{"has_more counts more than next_uri where all has come", "", []any{"a", said(hasMore(false), next("page=2"), total(1))}, "a", nil, ""},
		{"has_more is false beside a next_uri", "", []any{"a", said(hasMore(false), next("page=2"))}, "a", nil, "after 1: page 1 is the last, but has a next_uri"},
		{"has_more is false beside a next_uri, and items are lacking", "", []any{"a", said(hasMore(false), next("page=2"), total(2))}, "a", nil, "1 of 2 items are missing"},
		{"has_more is true without next_uri", "", []any{"a", said(hasMore(true)), "b", said(hasMore(false))}, "a b", []string{"", "page=2"}, ""},
		{"page_count without next_uri", "", []any{"a", said(count(2)), "b", said()}, "a b", []string{"", "page=2"}, ""},
		{"has_more is true without next_uri, and the page number is ignored", "", []any{"a", said(hasMore(true)), "a", said(hasMore(true))}, "a", nil, "the page repeats earlier ones"},
		{"next_uri is missing on a later page", "", []any{"a", said(next("page=2")), "b", said(hasMore(true)), "c", said(hasMore(false))}, "a b c", []string{"", "page=2", "page=3"}, ""},
		{"page_count of 1", "", []any{"a", said(count(1))}, "a", nil, ""},
		{"a page later says nothing", "", []any{"a", said(next("page=2")), "b", said()}, "a b", nil, ""},
		{"the last page is not the last of page_count", "", []any{"a", said(count(3), next("page=2")), "b", said(hasMore(false))}, "a b", nil, "page 2 of 3 announces no further page"},
		{"page_count shrinks", "", []any{"a", said(count(3), next("page=2")), "b", said(count(2), hasMore(false))}, "a", nil, "0 items in 3 pages became 0 in 2"},
		{"the total changes", "", []any{"a", said(total(1), next("page=2")), "b", said(total(3), hasMore(false))}, "a", nil, "1 items in 0 pages became 3 in 0"},
		{"fewer items than the total", "", []any{"a", said(next("page=2")), "b", said(total(3), hasMore(false))}, "a b", nil, "1 of 3 items are missing"},
		{"more items than the total", "", []any{"a", said(total(1), next("page=2")), "b", said(hasMore(false))}, "a", nil, "received 2 items, but the total is 1"},
		{"one page that is not the first, of an unknown size", "page=2", []any{"b", said(index(2), total(5), hasMore(false))}, "b", nil, ""},
		{"one page that is not the first, as large as requested", "page=2&count=2", []any{"b c", said(total(5), hasMore(false))}, "b c", nil, "1 of 5 items are missing"},
		{"one page that is not the first, and an empty one", "page=2", []any{"e f", said(total(6)), "", said()}, "e f", nil, ""},
		{"pages that are not the first", "page=2", []any{"c d", said(total(5), next("page=3")), "e", said(hasMore(false))}, "c d e", nil, ""},
		{"pages that are not the first, and an item is lacking", "page=2", []any{"c d", said(total(6), next("page=3")), "e", said(hasMore(false))}, "c d e", nil, "1 of 6 items are missing"},

		// Queries that next_uri may have.
		{"next_uri leads to itself", "page=1", []any{"a", said(next("page=1")), "a", said(next("page=1"))}, "a", nil, "the page repeats earlier ones"},
		{"next_uri leads in a circle", "", []any{"a", said(next("page=2&count=1")), "b", said(next("page=3")), "c", said(next("count=1&page=2")), "b", said(next("page=3"))}, "a b c", nil, "after 4: the page repeats earlier ones"},
		{"a filter is left out of next_uri", "status=failed&count=1", []any{"a", said(next("page=2&count=5")), "b", said(hasMore(false))}, "a b", []string{"status=failed&count=1", "page=2&count=5&status=failed"}, ""},
		{"a cursor that is no form", "status=failed", []any{"a", said(next("cursor=a;b")), "b", said(next("cursor=a;c")), "c", said(next("cursor=a;b")), "b", said()}, "a b c", []string{"status=failed", "cursor=a;b&status=failed", "cursor=a;c&status=failed", "cursor=a;b&status=failed"}, "repeats"},

		// Pages that contradict each other.
		{"page_index is another one", "", []any{"a", said(index(2), hasMore(false))}, "", nil, "after 1: requested page 1, but got page 2"},
		{"page_index is the one that was asked for", "page=3", []any{"a", said(index(3), hasMore(false))}, "a", nil, ""},
		{"page_index jumps", "", []any{"a", said(index(1), next("page=2")), "b", said(index(3))}, "a", nil, "after 2: requested page 2, but got page 3"},
		{"page_index stays", "", []any{"a", said(index(1), next("page=2")), "b", said(index(1))}, "a", nil, "requested page 2, but got page 1"},
		{"a page has no new item", "", []any{"a b", said(next("page=2")), "b a", said(hasMore(false))}, "a b", nil, "the page repeats earlier ones"},
		{"a short page has no new item, and announces another", "", []any{"a b", said(next("page=2")), "b", said(next("page=3"))}, "a b", nil, "the page repeats earlier ones"},
		{"a short last page has known items alone", "", []any{"a b", said(next("page=2")), "b", said(hasMore(false))}, "a b", nil, "the page repeats earlier ones"},
		{"an item came twice, and another one is lacking", "", []any{"a b", said(total(4), next("page=2")), "b c", said(hasMore(false))}, "a b b c", nil, "1 of 4 items are missing"},
		{"some items are known", "", []any{"a b", said(next("page=2")), "b c", said(hasMore(false))}, "a b b c", nil, ""},
		{"two empty pages", "", []any{"", said(next("page=2")), "", said(next("page=3")), "a", said(hasMore(false))}, "a", nil, ""},
		{"three empty pages", "", []any{"a", said(next("page=2")), "", said(next("page=3")), "", said(next("page=4")), "", said(next("page=5"))}, "a", nil, "3 pages in a row are empty, but more are announced"},
		{"empty pages that do not follow one another", "", []any{"", said(next("page=2")), "", said(next("page=3")), "a", said(next("page=4")), "", said(next("page=5")), "", said(next("page=6")), "b", said(hasMore(false))}, "a b", nil, ""},
		{"an error ends it", "", []any{"a", said(next("page=2")), "", errOutage}, "a", nil, "outage"},
		{"a refused page that was announced", "count=5", []any{"a", said(next("page=2")), "", errNoPage}, "a", nil, "no such page"},

		// Pages that do not announce whether others follow are counted.
		{"until a short page", "count=2", []any{"a b", said(), "c d", said(), "e", said()}, "a b c d e", []string{"count=2", "page=2&count=2", "page=3&count=2"}, ""},
		{"until an empty page", "", []any{"a b", said(), "c d", said(), "", said()}, "a b c d", []string{"", "page=2", "page=3"}, ""},
		{"an empty first page", "", []any{"", said()}, "", []string{""}, ""},
		{"from the page that was asked for", "page=3", []any{"a", said(), "", said()}, "a", []string{"page=3", "page=4"}, ""},
		{"by page_index", "", []any{"a", said(index(1)), "b", said(index(2)), "", said()}, "a b", []string{"", "page=2", "page=3"}, ""},
		{"until the total", "", []any{"a", said(total(2)), "b", said()}, "a b", []string{"", "page=2"}, ""},
		{"a page larger than the first", "", []any{"a", said(), "b c", said(), "", said()}, "a b c", nil, ""},
		{"an empty page before the total", "", []any{"a", said(total(3)), "", said()}, "a", nil, "2 of 3 items are missing"},
		{"the second page is the first again: no paging", "", []any{"a b", said(), "a b", said()}, "a b", nil, ""},
		{"the second page is the first again, of as many items as asked for", "count=2", []any{"a b", said(), "a b", said()}, "a b", nil, "the page repeats earlier ones"},
		{"the second page is the first again, and items are lacking", "", []any{"a b", said(total(3)), "a b", said()}, "a b", nil, "1 of 3 items are missing"},
		{"a later page repeats", "", []any{"a b", said(), "c d", said(), "a b", said()}, "a b c d", nil, "the page repeats earlier ones"},
		{"a later page has no new item", "", []any{"a b", said(), "c d", said(), "d b", said()}, "a b c d", nil, "the page repeats earlier ones"},
		{"a short page that was moved on", "", []any{"a b", said(), "c d", said(), "d", said()}, "a b c d", nil, "the page repeats earlier ones"},
		{"a short page that begins like an earlier one", "", []any{"a b", said(), "c d", said(), "c", said()}, "a b c d", nil, "the page repeats earlier ones"},
		{"refused after a short page", "count=3", []any{"a b", said(), "c d", said(), "", errNoPage}, "a b c d", nil, ""},
		{"refused after a full page", "count=2", []any{"a b", said(), "", errNoPage}, "a b", nil, "after 1: page 2 was refused (404 no such page), and nothing says that page 1 is the last"},
		{"refused, and items are lacking", "count=3", []any{"a b", said(total(4)), "", errNoPage}, "a b", nil, "page 2 was refused"},
		{"refused although it was announced", "count=3", []any{"a b", said(hasMore(true)), "", errNoPage}, "a b", nil, "no such page"},
		{"refused after a full page that is not the first", "page=2&count=1", []any{"b", said(), "", errNoPage}, "b", nil, "page 3 was refused"},
		{"the first page is refused", "count=3", []any{"", errNoPage}, "", nil, "no such page"},
		{"an outage after a short page", "count=3", []any{"a b", said(), "", errOutage}, "a b", nil, "outage"},
		{"the second page has the items of the first, and one of them again", "", []any{"a b", said(), "a b a", said()}, "a b", nil, "the page repeats earlier ones"},
		{"a page announces at last", "", []any{"a", said(), "b", said(hasMore(false))}, "a b", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &reader{answer: pagesOf(tt.pages...)}
			items, err := read(r.all(t.Context(), tt.query, 0))
			assert.Equal(t, tt.items, items)
			if tt.err == "" {
				require.NoError(t, err)
				assert.Len(t, r.asked, len(tt.pages)/2)
			} else {
				require.ErrorContains(t, err, tt.err)
			}
			if tt.asked != nil {
				assert.Equal(t, tt.asked, r.asked)
			}
		})
	}
}

// If the caller stops, no further page is yielded and no further request is sent.
func TestStop(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{0, 1} {
		r := &reader{answer: numbered(5, 2)}
		n := 0
		for _, err := range r.all(t.Context(), "", ahead) {
			require.NoError(t, err)
			if n++; n == 2 {
				break
			}
		}
		assert.LessOrEqual(t, len(r.asked), 2+ahead)
	}
}

// numbered returns the pages of a collection that gives its page_count, by number. All pages are full.
func numbered(pages, size int, options ...func(*paging.Page)) func(url.Values) (string, paging.Page, error) {
	return func(query url.Values) (string, paging.Page, error) {
		n, _ := strconv.Atoi(cmp.Or(query.Get("page"), "1"))
		words := make([]string, size)
		for i := range words {
			words[i] = fmt.Sprint("i", (n-1)*size+i+1)
		}
		page := said(index(n), count(pages), total(int64(pages*size)), hasMore(n < pages))
		if n < pages {
			query := fmt.Sprintf("page=%d", n+1)
			page.Next = &query
		}
		for _, option := range options {
			option(&page)
		}
		return strings.Join(words, " "), page, nil
	}
}

// on changes the facts of page n.
func on(n int, change func(*paging.Page)) func(*paging.Page) {
	return func(p *paging.Page) {
		if p.Index == n {
			change(p)
		}
	}
}

// always and scripted return a new collection for each reader.
func always(answer func(url.Values) (string, paging.Page, error)) func() func(url.Values) (string, paging.Page, error) {
	return func() func(url.Values) (string, paging.Page, error) { return answer }
}

func scripted(pages ...any) func() func(url.Values) (string, paging.Page, error) {
	return func() func(url.Values) (string, paging.Page, error) { return pagesOf(pages...) }
}

// Pages with numbers are read by number, and prefetching changes nothing.
func TestAhead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		query  string
		answer func() func(url.Values) (string, paging.Page, error)
		items  string
		err    string
	}{
		{"all pages in order", "", always(numbered(4, 1)), "i1 i2 i3 i4", ""},
		{"one page", "", always(numbered(1, 2)), "i1 i2", ""},
		{"from the page that was asked for, of which the total does not speak", "page=3", always(numbered(4, 1)), "i3 i4", ""},
		{"another first page", "page=2", always(numbered(3, 1, on(2, index(1)))), "", "requested page 2, but got page 1"},
		{"another page", "", always(numbered(3, 1, on(2, index(3)))), "i1", "requested page 2, but got page 3"},
		{"another total", "", always(numbered(3, 1, on(3, total(4)))), "i1 i2", "3 items in 3 pages became 4 in 3"},
		{"another page_count", "", always(numbered(3, 1, on(2, count(4)))), "i1", "3 items in 3 pages became 3 in 4"},
		{"a page without total and page_count", "", always(numbered(3, 1, on(2, total(0)), on(2, count(0)))), "i1 i2 i3", ""},
		{"the last page announces another, but all items have come", "", always(numbered(2, 1, on(2, hasMore(true)))), "i1 i2", ""},
		{"the last page announces another, and there is no total", "", always(numbered(2, 1, total(0), on(2, hasMore(true)))), "i1 i2", "page 2 is the last, but has a next_uri or announces more"},
		{"the total is not what came", "", always(numbered(2, 1, total(3))), "i1 i2", "1 of 3 items are missing"},
		{"empty pages", "", always(numbered(5, 0)), "", "3 pages in a row are empty"},
		{"a page again", "", always(func(url.Values) (string, paging.Page, error) { return "i1", said(count(1), index(1)), nil }), "i1", ""},
		{"an outage of the first page", "", scripted("", errOutage), "", "outage"},
		{"no page_count: one by one", "", scripted("a", said(index(1), next("page=2")), "b", said(index(2), hasMore(false))), "a b", ""},
		{"no page_index: one by one", "", scripted("a", said(count(2), next("page=2")), "b", said(count(2), hasMore(false))), "a b", ""},
		{"one by one, and the total changes", "", scripted("a", said(index(1), total(2), next("page=2")), "b", said(index(2), total(3), hasMore(false))), "a", "the collection changed while it was read: 2 items in 0 pages became 3 in 0"},
		{"one by one, and more items than the total", "", scripted("a", said(index(1), total(1), next("page=2")), "b c", said(index(2), hasMore(false))), "a", "received 3 items, but the total is 1"},
		{"page_count of 0, and more are announced", "", scripted("", said(index(1), count(0), next("page=2")), "a", said(index(2), hasMore(false))), "a", ""},
		{"an empty last page with totals of 0", "", scripted("a", said(index(1), total(1), count(2)), "", said(index(2), total(0), count(0))), "a", ""},
		{"an empty last page with a total of 0, one by one", "", scripted("a", said(index(1), total(1), next("page=2")), "", said(total(0), hasMore(false))), "a", ""},
		{"an empty last page with a total of 0, and items are lacking", "", scripted("a", said(index(1), total(2), count(2)), "", said(index(2), total(0))), "a", "1 of 2 items are missing"},
		{"page_count of 0", "", scripted("", said(index(1), count(0))), "", ""},
	} {
		for _, ahead := range []int{0, 1, 4} {
			t.Run(fmt.Sprint(tt.name, ", ahead ", ahead), func(t *testing.T) {
				t.Parallel()
				r := &reader{answer: tt.answer()}
				items, err := read(r.all(t.Context(), tt.query, ahead))
				assert.Equal(t, tt.items, items)
				if tt.err == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, tt.err)
				}
			})
		}
	}
}

// At most n requests are under way. While the caller works on the first page, n pages are prefetched.
func TestAheadIsBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ n, pages, most int }{{1, 10, 1}, {3, 10, 3}, {20, 10, 9}} {
		synctest.Test(t, func(t *testing.T) {
			var underWay, most atomic.Int32
			r := &reader{}
			r.answer = func(query url.Values) (string, paging.Page, error) {
				most.Store(max(most.Load(), underWay.Add(1)))
				time.Sleep(time.Second)
				underWay.Add(-1)
				return numbered(tt.pages, 1)(query)
			}
			items, err := read(r.all(t.Context(), "", tt.n))
			require.NoError(t, err)
			assert.Len(t, strings.Fields(items), tt.pages)
			assert.Equal(t, tt.most, int(most.Load()))
		})
	}
}

// The error of a prefetched page ends the sequence at the place of its items. No goroutine stays behind.
func TestAheadFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine stays behind
		r := &reader{}
		r.answer = func(query url.Values) (string, paging.Page, error) {
			if query.Get("page") == "3" {
				return "", paging.Page{}, errOutage
			}
			return numbered(6, 1)(query)
		}
		items, err := read(r.all(t.Context(), "", 2))
		assert.Equal(t, "i1 i2", items)
		require.ErrorIs(t, err, errOutage)
		assert.LessOrEqual(t, len(r.asked), 4)
	})
}
