package testserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

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
