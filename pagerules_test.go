package webdelivery_test

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

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

// The first page must be the requested one; otherwise items before it would be lost without an error.
func TestPagesBeginWithTheOneThatWasAskedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []bookTest{
		{name: "the last page in place of the first", says: "requested page 1, but got page 3", ahead: true, pages: []string{
			`{"items":[@21-25],"page_index":3,"page_count":3,"has_more":false,"next_uri":null}`,
		}},
		{name: "the last page in place of page 2", page: 2, says: "requested page 2, but got page 3", ahead: true, atMost: 1, pages: []string{
			``, `{"items":[@21-25],"page_index":3,"page_count":3,"has_more":false,"next_uri":null}`,
		}},
		{name: "the first page in place of page 2", page: 2, says: "requested page 2, but got page 1", ahead: true, atMost: 1, pages: []string{
			``, `{"items":[@1-10],"page_index":1,"page_count":1,"has_more":false}`,
		}},
		{name: "a number on the second page alone", items: 10, says: "requested page 2, but got page 3", pages: []string{
			`{"items":[@1-10],"has_more":true,"next_uri":"{path}?page={next}"}`, `{"items":[@21-25],"page_index":3,"has_more":false}`,
		}},
		{name: "nothing announced", says: "requested page 1, but got page 2", pages: []string{`{"items":[@1-10],"page_index":2}`}},
	} {
		tt.run(t)
	}
}
