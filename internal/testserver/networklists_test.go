package testserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// lists is the path of the network lists.
const lists = "/config/networklists"

// entriesBody returns a body of POST entries in the default dialect.
func entriesBody(texts ...string) string {
	var b strings.Builder
	for i, text := range texts {
		fmt.Fprintf(&b, `%c{"entry":%q}`, "[,"[min(i, 1)], text)
	}
	return b.String() + "]"
}

func (f fake) add(list string, texts ...string) response {
	f.t.Helper()
	return f.do(http.MethodPost, lists+"/"+list+"/entries", entriesBody(texts...))
}

// items returns one member of each item of the paged collection at path.
func (f fake) items(path, member string) []string {
	f.t.Helper()
	r := f.get(path)
	require.Equal(f.t, http.StatusOK, r.status, r.body)
	values := []string{}
	items, _ := r.object(f.t)["items"].([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		values = append(values, fmt.Sprint(object[member]))
	}
	return values
}

// Section 2.6: every field of a list. list depends on includelist, and modified_timestamp on a change.
func TestSection26NetworkListFields(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	assert.Equal(t, "l1", f.AddNetworkList(testserver.NetworkListSpec{
		ID: "l1", Name: "blocked", Description: "all that is blocked", Entries: []string{"192.0.2.1", "2001:db8::/32"},
	}))
	f.Clock().Advance(time.Minute)
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l2", Type: "GEO", NoDescription: true, Description: "d", Deprecated: true})

	const first = `"uri":"/config/networklists/l1","id":"l1","type":"IP","name":"blocked","description":"all that is blocked",
		"deprecated":false,"entries_uri":"/config/networklists/l1/entries","creation_timestamp":"2026-11-20T12:00:00Z",
		"entries_batch_deletion_uri":"/config/networklists/l1/entries/deletions"`
	const second = `"uri":"/config/networklists/l2","id":"l2","type":"GEO","name":"","deprecated":true,
		"entries_uri":"/config/networklists/l2/entries","creation_timestamp":"2026-11-20T12:01:00Z",
		"entries_batch_deletion_uri":"/config/networklists/l2/entries/deletions"`
	for path, want := range map[string]string{
		"/l1":                   `{` + first + `,"list":["192.0.2.1","2001:db8::/32"]}`,
		"/l1?includelist=true":  `{` + first + `,"list":["192.0.2.1","2001:db8::/32"]}`,
		"/l1?includelist=false": `{` + first + `}`,
		"/l2":                   `{` + second + `,"description":"d","list":[]}`,
		"/l2?includelist=false": `{` + second + `,"description":"d"}`,
		"?deprecated=true": `{"uri":"/config/networklists?count=10&deprecated=true&page=1","total":2,"has_more":false,"page_count":1,
			"page_index":1,"prev_uri":null,"next_uri":null,"items":[{` + first + `},{` + second + `}]}`,
	} {
		r := f.get(lists + path)
		assert.Equal(t, http.StatusOK, r.status, path)
		assert.JSONEq(t, want, r.body, path)
	}

	require.Equal(t, http.StatusOK, f.add("l1", "198.51.100.7").status)
	assert.JSONEq(t, `{`+first+`,"modified_timestamp":"2026-11-20T12:01:00Z"}`, f.get(lists+"/l1?includelist=false").body)
}

// Section 2.6: modified_timestamp is present only if any operation has changed the entries after creation.
func TestSection26ModifiedTimestamp(t *testing.T) {
	t.Parallel()
	const id = "00000000-0000-4000-8000-000000000001"
	for name, tc := range map[string]struct {
		change   func(f fake)
		modified any
	}{
		"nothing":              {func(fake) {}, nil},
		"reading":              {func(f fake) { f.get(lists + "/" + id + "/entries") }, nil},
		"an entry is added":    {func(f fake) { f.add(id, "192.0.2.2") }, "2026-11-20T12:00:01Z"},
		"it was there already": {func(f fake) { f.add(id, "192.0.2.1/32") }, nil},
		"a refused body":       {func(f fake) { f.add(id, "192.0.2.2", "x") }, nil},
		"an entry is deleted":  {func(f fake) { f.do(http.MethodDelete, lists+"/"+id+"/"+f.entryID(id, 0), "") }, "2026-11-20T12:00:01Z"},
		"an unknown one is":    {func(f fake) { f.do(http.MethodDelete, lists+"/"+id+"/x", "") }, nil},
		"all are deleted":      {func(f fake) { f.do(http.MethodPost, lists+"/"+id+"/entries/deletions", "") }, "2026-11-20T12:00:01Z"},
		"by somebody else":     {func(f fake) { f.ChangeEntries(id, []string{"192.0.2.2"}, nil) }, "2026-11-20T12:00:01Z"},
		"removed by somebody":  {func(f fake) { f.ChangeEntries(id, nil, []string{"192.0.2.1"}) }, "2026-11-20T12:00:01Z"},
		"to no effect":         {func(f fake) { f.ChangeEntries(id, []string{"192.0.2.1"}, []string{"192.0.2.9"}) }, nil},
		"it is made again":     {func(f fake) { f.AddNetworkList(testserver.NetworkListSpec{ID: id}) }, nil},
		"emptied twice, once now": {func(f fake) {
			f.do(http.MethodPost, lists+"/"+id+"/entries/deletions", "")
			f.Clock().Advance(time.Hour)
			f.do(http.MethodPost, lists+"/"+id+"/entries/deletions", "")
		}, "2026-11-20T12:00:01Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{})
			f.AddNetworkList(testserver.NetworkListSpec{ID: id, Entries: []string{"192.0.2.1"}})
			f.Clock().Advance(time.Second)
			tc.change(f)
			assert.Equal(t, tc.modified, f.get(lists + "/" + id).object(t)["modified_timestamp"])
		})
	}
}

// Section 4.6: page, count, type and deprecated, with their defaults, in order of creation.
func TestSection46NetworkListFilters(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	for i := range 12 {
		f.AddNetworkList(testserver.NetworkListSpec{
			ID: fmt.Sprintf("l%02d", i), Type: []string{"IP", "GEO"}[i%2], Deprecated: i == 3 || i == 4,
		})
	}
	for query, want := range map[string]string{
		"":                            "l00 l01 l02 l05 l06 l07 l08 l09 l10 l11",
		"?page=1&count=10":            "l00 l01 l02 l05 l06 l07 l08 l09 l10 l11",
		"?deprecated=false":           "l00 l01 l02 l05 l06 l07 l08 l09 l10 l11",
		"?deprecated=true":            "l00 l01 l02 l03 l04 l05 l06 l07 l08 l09",
		"?deprecated=true&page=2":     "l10 l11",
		"?type=IP":                    "l00 l02 l06 l08 l10",
		"?type=GEO":                   "l01 l05 l07 l09 l11",
		"?type=GEO&deprecated=true":   "l01 l03 l05 l07 l09 l11",
		"?type=IP&count=2&page=3":     "l10",
		"?count=3&page=4":             "l11",
		"?count=3&page=5":             "",
		"?count=100":                  "l00 l01 l02 l05 l06 l07 l08 l09 l10 l11",
		"?type=IP&deprecated=true":    "l00 l02 l04 l06 l08 l10",
		"?count=1&type=GEO&page=3":    "l07",
		"?count=2147483647&page=9999": "",
	} {
		assert.Equal(t, want, strings.Join(f.items(lists+query, "id"), " "), query)
	}
	assert.JSONEq(t, `{"uri":"/config/networklists?count=2&page=2&type=GEO","items":[],"total":5,"has_more":true,"page_count":3,
		"page_index":2,"prev_uri":"/config/networklists?count=2&page=1&type=GEO",
		"next_uri":"/config/networklists?count=2&page=3&type=GEO"}`, f.envelope(lists+"?type=GEO&count=2&page=2"))
}

// envelope is a page without its items.
func (f fake) envelope(path string) string {
	f.t.Helper()
	object := f.get(path).object(f.t)
	object["items"] = []any{}
	return marshal(f.t, object)
}

// Section 7: 400 for invalid query parameters.
func TestSection7InvalidNetworkListParameters(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: []string{"192.0.2.1"}})
	for _, query := range []string{
		"?page=0", "?page=x", "?count=0", "?count=-1", "?type=ip", "?type=ASN", "?type=IP,GEO", "?type=", "?type=IP&type=GEO",
		"?deprecated=1", "?deprecated=TRUE", "?deprecated=", "?includelist=true", "?name=x", "?status=x",
		"/l?includelist=0", "/l?includelist=False", "/l?includelist=", "/l?page=1", "/l?deprecated=true",
		"/l/entries?page=0", "/l/entries?count=0", "/l/entries?count=1.5", "/l/entries?type=IP", "/l/entries?includelist=true",
	} {
		assert.Equal(t, http.StatusBadRequest, f.get(lists+query).status, query)
	}
	entry := f.entryID("l", 0)
	assert.Equal(t, http.StatusBadRequest, f.get(lists+"/l/entries/"+entry+"?page=1").status)
	for path, method := range map[string]string{
		"/l?force=true": http.MethodDelete, "/l/" + entry + "?x=1": http.MethodDelete, "/l/entries/deletions?x=1": http.MethodPost,
	} {
		assert.Equal(t, http.StatusBadRequest, f.do(method, lists+path, "").status, path)
		body, _, _ := strings.Cut(path, "?")
		assert.Equal(t, http.StatusBadRequest, f.do(method, lists+body, "{}").status, "%s with a body", body)
	}
	assert.Equal(t, http.StatusBadRequest, f.do(http.MethodPost, lists+"/l/entries?x=1", entriesBody("192.0.2.2")).status)
	assert.Equal(t, []string{"192.0.2.1"}, f.Entries("l"))
}

// Sections 4.6 and 7: unknown objects in each part of a path.
func TestSection46UnknownListsAndEntries(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: []string{"192.0.2.1"}})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "other", Entries: []string{"192.0.2.1"}})
	theirs := f.entryID("other", 0)
	for _, request := range []string{
		"GET /x", "GET /x/entries", "GET /x/entries/" + theirs, "GET /l/entries/x", "GET /l/entries/" + theirs, "GET /L",
		"DELETE /x", "DELETE /x/" + theirs, "DELETE /l/x", "DELETE /l/" + theirs, "DELETE /l/192.0.2.1",
		"POST /x/entries/deletions", "GET /l/", "GET /", "DELETE /l/", "GET /l/entries/", "GET /l/entries/" + theirs + "/x", "DELETE /l/a/b/c",
	} {
		method, path, _ := strings.Cut(request, " ")
		assert.Equal(t, http.StatusNotFound, f.do(method, lists+path, "").status, request)
	}
	assert.Equal(t, http.StatusNotFound, f.add("x", "192.0.2.1").status)
	assert.Equal(t, http.StatusNotFound, f.get("/networklists").status)
	assert.Nil(t, f.Entries("x"))
	assert.Equal(t, []string{"192.0.2.1"}, f.Entries("l"))
	assert.Equal(t, []string{"192.0.2.1"}, f.Entries("other"))
}

// The order of the checks of network lists, as in the package comment.
func TestSection46OrderOfChecks(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{Users: []testserver.User{
		{Name: "alice", Password: "correct-horse-battery"}, {Name: "eve", Password: "no", MayNotViewConfig: true},
	}})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l"})
	eve, html := basic("eve", "no"), header("Accept", "text/html")
	assert.Equal(t, 405, f.do(http.MethodPut, lists, "", eve).status, "method before rights")
	assert.Equal(t, 403, f.get(lists+"/x?y=z", eve, html).status, "rights before types, parameters and existence")
	assert.Equal(t, 406, f.get(lists+"/x?y=z", html).status, "types before parameters and existence")
	assert.Equal(t, 400, f.get(lists+"/x?y=z").status, "names of parameters before existence")
	assert.Equal(t, 404, f.get(lists+"/x?includelist=y").status, "existence before values")
	assert.Equal(t, 404, f.do(http.MethodPost, lists+"/x/entries", "[").status, "existence before the inside of a body")
	assert.Equal(t, 400, f.get(lists+"/l?includelist=y").status)
}

// Section 4.6: each path has its own methods, also those of the dialect. Open points 20, 22 and 24.
func TestSection46Methods(t *testing.T) {
	t.Parallel()
	with := testserver.Dialect{EntryDeletePath: lists + "/{list}/entries/{entry}"}
	batch := testserver.Dialect{BatchDeletionMethod: http.MethodDelete}
	for _, tc := range []struct {
		name    string
		dialect testserver.Dialect
		request string // a request that is not allowed
		allow   string // the methods of the document
	}{
		{"no creation", testserver.Dialect{}, "POST ", "GET"},
		{"no change", testserver.Dialect{}, "PUT /l", "DELETE, GET"},
		{"entries are read and added", testserver.Dialect{}, "PUT /l/entries", "GET, POST"},
		{"entries is no entry id", testserver.Dialect{}, "DELETE /l/entries", "GET, POST"},
		{"an entry is read elsewhere", testserver.Dialect{}, "GET /l/e", "DELETE"},
		{"an entry is deleted elsewhere", testserver.Dialect{}, "DELETE /l/entries/e", "GET"},
		{"an entry is added elsewhere", testserver.Dialect{}, "POST /l/entries/e", "GET"},
		{"deletions is no entry id", testserver.Dialect{}, "GET /l/entries/deletions", "POST"},
		{"deletions takes one method", testserver.Dialect{}, "DELETE /l/entries/deletions", "POST"},
		{"entry path of the dialect", with, "POST /l/entries/e", "DELETE, GET"},
		{"entry path not of the dialect", with, "DELETE /l/e", ""},
		{"entries beside it", with, "DELETE /l/entries", "GET, POST"},
		{"deletions beside it", with, "DELETE /l/entries/deletions", "POST"},
		{"deletions of the dialect", batch, "POST /l/entries/deletions", "DELETE"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{Dialect: tc.dialect})
			f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: []string{"192.0.2.1"}})
			method, path, _ := strings.Cut(tc.request, " ")
			r := f.do(method, lists+path, "", anonymous)
			assert.Equal(t, map[bool]int{false: 405, true: 404}[tc.allow == ""], r.status)
			allowed := strings.Split(r.header.Get("Allow"), ", ")
			assert.Subset(t, allowed, strings.Split(tc.allow, ", "))
			assert.NotContains(t, allowed, method)
			assert.Equal(t, []string{"192.0.2.1"}, f.Entries("l"))
		})
	}
}

// Open point 22: the paths of a dialect. An error names an invalid path.
func TestSection46EntryDeletePaths(t *testing.T) {
	t.Parallel()
	for template, path := range map[string]string{
		"":                                lists + "/l/%s",
		lists + "/{list}/{entry}":         lists + "/l/%s",
		lists + "/{list}/entries/{entry}": lists + "/l/entries/%s",
		"entries/{entry}/of/{list}":       "/entries/%s/of/l",
	} {
		f := start(t, testserver.Config{Dialect: testserver.Dialect{EntryDeletePath: template}})
		f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: []string{"192.0.2.1", "192.0.2.2"}})
		assert.Equal(t, 200, f.do(http.MethodDelete, fmt.Sprintf(path, f.entryID("l", 0)), "").status, template)
		assert.Equal(t, []string{"192.0.2.2"}, f.Entries("l"), template)
	}
	for _, template := range []string{"/x", "/{list}", "/{entry}", "/{list}/{entry}/{entry}", "/{list}/a-{entry}", "/{list}/{entry}?x={list}", "/{list}?e={entry}"} {
		r := start(t, testserver.Config{Dialect: testserver.Dialect{EntryDeletePath: template}}).get(lists)
		assert.Equal(t, http.StatusNotImplemented, r.status, template)
		assert.Contains(t, r.body, "Dialect.EntryDeletePath")
	}
	for field, d := range map[string]testserver.Dialect{"EntriesReply": {EntriesReply: "x"}, "ListDeleteReply": {ListDeleteReply: "id"}} {
		assert.Contains(t, start(t, testserver.Config{Dialect: d}).get(lists).body, "unknown Dialect."+field)
	}
}

// Sections 5 and 7: only users who may view the configuration can read. Without authentication, every request is
// rejected.
func TestSection5NetworkListRights(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{Users: []testserver.User{
		{Name: "alice", Password: "correct-horse-battery"}, {Name: "eve", Password: "no", MayNotViewConfig: true},
	}})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: []string{"192.0.2.1", "192.0.2.2"}})
	first := f.entryID("l", 0)
	for _, tc := range []struct {
		method, path, body string
		blind              int // status for a user who may not view the configuration
	}{
		{http.MethodGet, "", "", 403},
		{http.MethodGet, "?type=nonsense", "", 403},
		{http.MethodGet, "/l", "", 403},
		{http.MethodGet, "/unknown", "", 403},
		{http.MethodGet, "/l/entries", "", 403},
		{http.MethodGet, "/l/entries/" + first, "", 403},
		{http.MethodPost, "/l/entries", entriesBody("192.0.2.3"), 200},
		{http.MethodDelete, "/l/" + first, "", 200},
		{http.MethodPost, "/l/entries/deletions", "", 200},
		{http.MethodDelete, "/l", "", 204},
	} {
		assert.Equal(t, 401, f.do(tc.method, lists+tc.path, tc.body, anonymous).status, tc)
		assert.Equal(t, 401, f.do(tc.method, lists+tc.path, tc.body, session("expired")).status, tc)
		assert.Equal(t, tc.blind, f.do(tc.method, lists+tc.path, tc.body, basic("eve", "no")).status, tc)
	}
	assert.Equal(t, 200, f.get("/tasks", basic("eve", "no")).status, "tasks are no configuration")
	assert.Nil(t, f.Entries("l"))
}

// Section 4.6: DELETE removes the list and all its data. Open point 23: with or without a task.
func TestSection46DeleteList(t *testing.T) {
	t.Parallel()
	const task = `{"id":"task-1","uri":"/tasks/task-1","operation":"networklist-delete","status":"IN_PROGRESS","complete":false,
		"progress":0,"begin_time":"2026-11-20T12:00:00.000Z","last_updated":"2026-11-20T12:00:00.000Z",
		"user":{"id":"alice","uri":"/users/alice"},"target":{"id":"l","uri":"/config/networklists/l"}}`
	for form, want := range map[string]struct {
		status int
		body   string
	}{
		"": {204, ""}, "empty": {204, ""}, "task": {200, task}, "task_id": {200, `{"task_id":"task-1"}`},
	} {
		t.Run("as "+form, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{Dialect: testserver.Dialect{ListDeleteReply: form}})
			f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: []string{"192.0.2.1"}})
			f.AddNetworkList(testserver.NetworkListSpec{ID: "other"})
			r := f.do(http.MethodDelete, lists+"/l", "")
			assert.Equal(t, want.status, r.status)
			if want.body == "" {
				assert.Empty(t, r.body)
				assert.Empty(t, r.header.Get("Content-Type"))
			} else {
				assert.JSONEq(t, want.body, r.body)
			}
			assert.Equal(t, []string{"other"}, f.items(lists, "id"))
			assert.Equal(t, 404, f.get(lists+"/l").status)
			assert.Equal(t, 404, f.do(http.MethodDelete, lists+"/l", "").status)
			assert.Nil(t, f.Entries("l"))
			assert.Equal(t, 200, f.get("/tasks/task-1").status, "the deployment has a task in any case")
			f.AddNetworkList(testserver.NetworkListSpec{ID: "l"})
			assert.Equal(t, []string{}, f.Entries("l"), "nothing came back")
		})
	}
}

// Open point 29: every address in a response has the form of the dialect, and so have timestamps.
func TestSection26AddressesAndTimestamps(t *testing.T) {
	t.Parallel()
	for form, front := range map[string]string{"relative": "", "prefixed": "/root/acme/v1", "absolute": "%s/acme/v1"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{BasePath: "/root", Dialect: testserver.Dialect{NextURI: form, Timestamps: "none", ListDeleteReply: "task"}})
			f.AddNetworkList(testserver.NetworkListSpec{ID: "a/b ü", Entries: []string{"192.0.2.1"}})
			front := strings.ReplaceAll(front, "%s", f.URL())
			path := lists + "/a%2Fb%20%C3%BC"
			list := f.get(path).object(t)
			assert.Equal(t, front+path, list["uri"])
			assert.Equal(t, front+path+"/entries", list["entries_uri"])
			assert.Equal(t, front+path+"/entries/deletions", list["entries_batch_deletion_uri"])
			assert.Equal(t, "2026-11-20T12:00:00.000", list["creation_timestamp"])
			entry := f.items(path+"/entries", "id")[0]
			assert.Equal(t, []string{front + path + "/entries/" + entry}, f.items(path+"/entries", "uri"))
			one := f.get(path + "/entries/" + entry).object(t)
			assert.Equal(t, front+path+"/entries/"+entry, one["uri"])
			assert.Equal(t, front+path, one["network_list_uri"])
			assert.Equal(t, front+path+"/entries?count=100&page=1", f.get(path + "/entries").object(t)["uri"])
			task := f.do(http.MethodDelete, path, "").object(t)
			assert.Equal(t, map[string]any{"id": "a/b ü", "uri": front + path}, task["target"])
			assert.Equal(t, map[string]any{"id": "alice", "uri": front + "/users/alice"}, task["user"])
		})
	}
}

// Ids are distinct UUIDs, and the same in every run.
func TestSection26IDs(t *testing.T) {
	t.Parallel()
	const uuid = `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`
	var runs [2][]string
	for i := range runs {
		f := start(t, testserver.Config{})
		ids := []string{f.AddNetworkList(testserver.NetworkListSpec{Entries: []string{"192.0.2.1", "192.0.2.2"}})}
		ids = append(ids, f.items(lists+"/"+ids[0]+"/entries", "id")...)
		runs[i] = append(ids, f.AddNetworkList(testserver.NetworkListSpec{}))
	}
	assert.Equal(t, runs[0], runs[1])
	require.Len(t, runs[0], 4)
	different := map[string]bool{}
	for _, id := range runs[0] {
		different[id] = true
		assert.Regexp(t, uuid, id)
	}
	assert.Len(t, different, 4)
}

// A mistake of a test panics.
func TestNetworkListMistakes(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: addresses(0, 50_000)})
	for want, mistake := range map[string]func(){
		`testserver: type "ASN" of a network list is neither IP nor GEO`: func() { f.AddNetworkList(testserver.NetworkListSpec{Type: "ASN"}) },
		`testserver: the list would have 50001 entries, more than 50000`: func() { f.AddNetworkList(testserver.NetworkListSpec{Entries: addresses(0, 50_001)}) },
		`testserver: the list would have 50002 entries, more than 50000`: func() { f.ChangeEntries("l", addresses(50_000, 50_002), nil) },
		`testserver: network list "x" does not exist`:                    func() { f.ChangeEntries("x", nil, nil) },
	} {
		assert.PanicsWithValue(t, want, mistake)
	}
	assert.Equal(t, []string{"l"}, f.items(lists, "id"))
	assert.Len(t, f.Entries("l"), 50_000)
	f.ChangeEntries("l", addresses(50_000, 50_002), addresses(0, 2))
	assert.Len(t, f.Entries("l"), 50_000, "what is removed makes room")
}

// Open point 42: timestamps of network lists and entries have whole seconds and Z. In other forms they have
// milliseconds, as those of tasks always do.
func TestSection26Timestamps(t *testing.T) {
	t.Parallel()
	for spelling, want := range map[string][2]string{
		"":             {"2026-11-20T12:00:00Z", "2026-11-20T12:00:00.250Z"},
		"Z":            {"2026-11-20T12:00:00Z", "2026-11-20T12:00:00.250Z"},
		"milliseconds": {"2026-11-20T12:00:00.250Z", "2026-11-20T12:00:00.250Z"},
		"+0000":        {"2026-11-20T12:00:00.250+0000", "2026-11-20T12:00:00.250+0000"},
		"none":         {"2026-11-20T12:00:00.250", "2026-11-20T12:00:00.250"},
	} {
		t.Run("as "+spelling, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{Dialect: testserver.Dialect{Timestamps: spelling}})
			f.Clock().Advance(250 * time.Millisecond)
			f.AddNetworkList(testserver.NetworkListSpec{ID: "l", Entries: []string{"192.0.2.1"}})
			f.ChangeEntries("l", []string{"192.0.2.2"}, nil)
			list := f.get("/config/networklists/l").object(t)
			entries, _ := f.get("/config/networklists/l/entries").object(t)["items"].([]any)
			entry, _ := entries[0].(map[string]any)
			assert.Equal(t, []any{want[0], want[0], want[0]}, []any{
				list["creation_timestamp"], list["modified_timestamp"], entry["creation_timestamp"],
			})
			f.AddTask(testserver.TaskSpec{ID: "t"})
			assert.Equal(t, want[1], f.get("/tasks/t").object(t)["begin_time"])
		})
	}
}
