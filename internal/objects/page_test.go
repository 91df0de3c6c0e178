package objects_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/objects"
	"github.com/webdelivery/webdelivery-go/internal/paging"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// item is an item of a test's pages.
type item struct{}

func read(t *testing.T, body string) *objects.Page[item] {
	t.Helper()
	p := objects.NewPage[item]()
	require.NoError(t, wire.Decode([]byte(body), p))
	return p
}

// Whether further pages exist, and whether the response says so, for each combination of members.
func TestWhatAPageSaysOfFurtherPages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body, query string
		said, more  bool
	}{
		{`{"items":[{}],"has_more":true}`, "", true, true},
		{`{"items":[{}],"has_more":false,"next_uri":"/n","page_count":9}`, "", true, false},
		{`{"items":[{}],"next_uri":"/n","page_count":1}`, "", true, true},
		{`{"items":[{}],"page_count":2}`, "", true, true},
		{`{"items":[{}],"page_count":2}`, "page=2", true, false},
		{`{"items":[{}],"page_count":2}`, "page=1", true, true},
		{`{"items":[{}],"page_count":2,"page_index":2}`, "page=1", true, false},
		{`{"items":[{}],"page_count":0}`, "", false, true},
		{`{"items":[],"page_count":0}`, "", true, false},
		{`{"items":[{}],"next_uri":null}`, "", true, false},
		{`{"items":[{}],"next_uri":""}`, "", true, false},
		{`{"items":[{}],"next_uri":null,"total":2}`, "", false, true},
		{`{"items":[{}],"next_uri":null,"total":1}`, "", false, false},
		{`{"items":[{}],"next_uri":null,"total":2}`, "page=2", false, false},
		{`{"items":[{}],"total":2}`, "", false, true},
		{`{"items":[{}],"total":1}`, "", false, false},
		{`{"items":[],"total":0}`, "", false, false},
		{`{"items":[{}],"total":2}`, "page=2", false, true},
		{`{"items":[{},{}],"total":1}`, "", false, true}, // 1 cannot be the total
		{`{"items":[{}]}`, "", false, true},
		{`{"items":[]}`, "", false, false},
		{`{"items":[],"total":2}`, "page=2", false, false},
	} {
		facts := read(t, tt.body).Facts(tt.query)
		assert.Equal(t, tt.said, facts.Page.Announces, "%s %s", tt.body, tt.query)
		assert.Equal(t, tt.more, facts.HasMore, "%s %s", tt.body, tt.query)
	}
}

// The facts of a page, also if members are missing, null or below 0.
func TestMembersOfAPage(t *testing.T) {
	t.Parallel()
	yes := true
	for _, tt := range []struct {
		body string
		want objects.Facts
	}{
		{
			`{"uri":"/u","items":[{}],"total":7,"has_more":true,"page_count":4,"page_index":2,"prev_uri":"/p","next_uri":"/n"}`,
			objects.Facts{
				Total: 7, PageCount: 4, PageIndex: 2, PrevURI: "/p", NextURI: "/n", HasMore: true,
				Page: paging.Page{URI: "/u", Next: "/n", Announces: true, HasMore: &yes, Index: 2, Count: 4, Total: 7, Items: 1},
			},
		},
		{`{"tasks":[{},{}]}`, objects.Facts{HasMore: true, Page: paging.Page{Count: paging.Unknown, Total: paging.Unknown, Items: 2}}},
		{
			`{"items":[{}],"total":-5,"page_count":-5,"page_index":-5,"prev_uri":null}`,
			objects.Facts{HasMore: true, Page: paging.Page{Count: paging.Unknown, Total: paging.Unknown, Items: 1}},
		},
		{
			`{"items":[{}],"total":0,"page_count":0}`, // both contradict the item
			objects.Facts{HasMore: true, Page: paging.Page{Count: paging.Unknown, Total: paging.Unknown, Items: 1}},
		},
		{`{"items":[{}],"total":1}`, objects.Facts{Total: 1, Page: paging.Page{Count: paging.Unknown, Total: 1, Items: 1}}},
		{`{"items":[],"total":0,"page_count":0}`, objects.Facts{Page: paging.Page{Announces: true}}},
	} {
		assert.Equal(t, tt.want, read(t, tt.body).Facts(""), tt.body)
	}
	array := objects.NewPage[item]()
	require.NoError(t, wire.Decode([]byte(`[{},{}]`), &array.Items))
	assert.Equal(t, objects.Facts{HasMore: true, Page: paging.Page{Count: paging.Unknown, Total: paging.Unknown, Items: 2}}, array.Facts(""))
}

// Objects that are not a page, or are ambiguous.
func TestProblemsOfPages(t *testing.T) {
	t.Parallel()
	const none = "not a page: it has neither items nor tasks"
	for body, want := range map[string]string{
		`{"items":[]}`:                           "",
		`{"tasks":[],"new":1,"New":2}`:           "",
		`{"items":[],"Items":[]}`:                "items comes twice",
		`{"TASKS":[],"tasks":[]}`:                "tasks comes twice",
		`{"items":[],"total":1,"Total":1}`:       "total comes twice",
		`{"items":[],"next_uri":1,"NEXT_URI":1}`: "next_uri comes twice",
		`{"items":[],"tasks":[]}`:                "both items and tasks",
		`{"items":[],"tasks":null}`:              "",
		`{"message":"under maintenance"}`:        none,
		`{"total":1,"has_more":false}`:           none,
		`{"items":null}`:                         none,
		`{"items":null,"page_index":0}`:          none,
		`{"items":null,"has_more":false}`:        "",
		`{"tasks":null,"total":0}`:               "",
		`{"items":null,"page_count":0}`:          "",
		`{"items":null,"page_index":1}`:          "",
		`{"Items":null,"page_index":1}`:          none,
	} {
		p := objects.NewPage[item]()
		_ = wire.Decode([]byte(body), p) // a next_uri that is a number is irrelevant here
		assert.Equal(t, want, p.Problem([]byte(body)), body)
	}
}
