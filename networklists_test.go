package webdelivery_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// The three methods that read lists return every field of section 2.6.
func TestNetworkListFields(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1", "2001:db8::/32"}, func(f *fixture.Fixture) {
		want := webdelivery.NetworkList{
			URI: "/config/networklists/" + fixture.ListID, ID: fixture.ListID, Type: webdelivery.ListTypeIP, Name: "blocklist", Description: "feeds",
			EntriesURI:              "/config/networklists/" + fixture.ListID + "/entries",
			EntriesBatchDeletionURI: "/config/networklists/" + fixture.ListID + "/entries/deletions",
			CreationTimestamp:       time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		}
		summary, err := f.Client.NetworkLists.GetSummary(f.Context(), fixture.ListID)
		require.NoError(f, err)
		assert.Equal(f, want, *summary)
		assert.Equal(f, "includelist=false", f.Srv.Requests()[0].RawQuery)

		page, err := f.Client.NetworkLists.List(f.Context(), webdelivery.NetworkListOptions{})
		require.NoError(f, err)
		assert.Equal(f, []webdelivery.NetworkList{want}, page.Items)
		assert.Empty(f, f.Srv.Requests()[1].RawQuery)

		want.List = []string{"192.0.2.1", "2001:db8::/32"}
		list, err := f.Client.NetworkLists.Get(f.Context(), fixture.ListID)
		require.NoError(f, err)
		assert.Equal(f, want, *list)

		time.Sleep(time.Minute)
		f.Srv.ChangeEntries(fixture.ListID, nil, []string{"192.0.2.1", "2001:db8::/32"})
		list, err = f.Client.NetworkLists.Get(f.Context(), fixture.ListID)
		require.NoError(f, err)
		assert.NotNil(f, list.List, "an empty list differs from one without its entries")
		assert.Empty(f, list.List)
		assert.Equal(f, want.CreationTimestamp.Add(time.Minute), list.ModifiedTimestamp)
	})
}

// The entries collection and the single entry have fields of their own (section 2.6).
func TestEntryFields(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, func(f *fixture.Fixture) {
		_, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, []string{"2001:db8::1"})
		require.NoError(f, err)
		page, err := f.Client.NetworkLists.Entries(f.Context(), fixture.ListID, webdelivery.EntryOptions{Page: 2, Count: 3})
		require.NoError(f, err)
		assert.Equal(f, int64(4), page.Total)
		require.Len(f, page.Items, 1)
		e := page.Items[0]
		assert.Equal(f, "2001:db8::1", e.Entry)
		assert.Equal(f, fixture.Username, e.AddedBy)
		assert.Equal(f, "/config/networklists/"+fixture.ListID+"/entries/"+e.ID, e.URI)
		assert.Equal(f, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), e.CreationTimestamp)

		info, err := f.Client.NetworkLists.GetEntry(f.Context(), fixture.ListID, e.ID)
		require.NoError(f, err)
		assert.Equal(f, webdelivery.NetworkListEntry{URI: e.URI, ID: e.ID}, *info)
		_, err = f.Client.NetworkLists.GetEntry(f.Context(), fixture.ListID, "5e1f0d2c-0000-4000-8000-00000000dead")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
	})
}

// An id is one path element, a type is one of two, and pages count from 1. A name in place of an id is answered with the method
// that takes one.
func TestArgumentsOfLists(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		for _, bad := range []string{"", ".", "..", "a\n"} {
			_, err := f.Client.NetworkLists.Get(f.Context(), bad)
			require.ErrorIs(f, err, webdelivery.ErrInvalid, "%q", bad)
		}
		_, err := f.Client.NetworkLists.List(f.Context(), webdelivery.NetworkListOptions{Type: "ASN", Page: -1})
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		require.ErrorContains(f, err, "type")
		require.ErrorContains(f, err, "page")
		assert.Empty(f, f.Srv.Requests())
		for id, hint := range map[string]bool{"a/b": true, "office": true, "5e1f0d2c-0000-4000-8000-00000000ffff": false} {
			_, err := f.Client.NetworkLists.Get(f.Context(), id)
			require.ErrorIs(f, err, webdelivery.ErrNotFound)
			assert.Equal(f, hint, strings.Contains(err.Error(), "GetByName"), id)
			assert.Equal(f, 1, f.Srv.Count(http.MethodGet, "/config/networklists/"+url.PathEscape(id)))
		}
	})
}

// Deletions of one entry, of all entries, and of the list itself, each with a task or without (open points 22 to 24).
func TestDeletions(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, func(f *fixture.Fixture) {
		lists, ctx := f.Client.NetworkLists, f.Context()
		page, err := lists.Entries(ctx, fixture.ListID, webdelivery.EntryOptions{})
		require.NoError(f, err)
		task, err := lists.DeleteEntry(ctx, fixture.ListID, page.Items[1].ID)
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.1", "192.0.2.3"}, f.Srv.Entries(fixture.ListID))
		assert.False(f, task.Complete)
		task, err = f.Client.Tasks.Wait(ctx, task.ID)
		require.NoError(f, err)
		assert.True(f, task.Complete)
		_, err = lists.DeleteEntry(ctx, fixture.ListID, page.Items[1].ID)
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		f.AddFault(testserver.Fault{Method: http.MethodDelete, Count: 1, Cut: testserver.CutAfterExecute})
		task, err = lists.DeleteEntry(ctx, fixture.ListID, page.Items[2].ID)
		require.NoError(f, err, "the first attempt removed it")
		assert.Equal(f, &webdelivery.Task{Complete: true}, task)

		_, err = lists.ClearEntries(ctx, fixture.ListID)
		require.NoError(f, err)
		assert.Empty(f, f.Srv.Entries(fixture.ListID))
		_, err = lists.Get(ctx, fixture.ListID)
		require.NoError(f, err, "the list still exists")

		task, err = lists.Delete(ctx, fixture.ListID)
		require.NoError(f, err)
		assert.Equal(f, &webdelivery.Task{Complete: true}, task)
		_, err = lists.Get(ctx, fixture.ListID)
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
	})
}

// Find names the entries that cover an address, in all IP lists, and those that it cannot compare with one.
func TestFind(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.0/24", "192.0.2.7", "192.0.2.8", "2001:db8::/32", "192.0.2.1-192.0.2.9", "DE"}, func(f *fixture.Fixture) {
		f.Srv.AddNetworkList(testserver.NetworkListSpec{Name: "countries", Type: "GEO", Entries: []string{"DE", "XK"}})
		f.Srv.AddNetworkList(testserver.NetworkListSpec{Name: "old", Deprecated: true, Entries: []string{"::/0"}})
		var addresses []netip.Addr
		for _, text := range []string{"192.0.2.7", "::ffff:192.0.2.9", "2001:db8::1%eth0", "198.51.100.1", "192.0.2.7", "::ffff:198.51.100.1"} {
			addresses = append(addresses, netip.MustParseAddr(text))
		}
		matches, unreadable, err := f.Client.NetworkLists.Find(f.Context(), addresses)
		require.NoError(f, err)
		got := map[string][]string{}
		for _, match := range matches {
			got[match.Addr.String()] = append(got[match.Addr.String()], match.List.Name+" "+match.Entry.Entry)
		}
		require.Len(f, unreadable, 2)
		for i, text := range []string{"192.0.2.1-192.0.2.9", "DE"} {
			assert.Equal(f, []string{fixture.ListID, text}, []string{unreadable[i].List.ID, unreadable[i].Entry.Entry})
		}
		assert.Equal(f, map[string][]string{
			"192.0.2.7":    {"blocklist 192.0.2.0/24", "blocklist 192.0.2.7", "old ::/0"},
			"192.0.2.9":    {"blocklist 192.0.2.0/24", "old ::/0"},
			"2001:db8::1":  {"blocklist 2001:db8::/32", "old ::/0"},
			"198.51.100.1": {"old ::/0"},
		}, got)
		assert.Equal(f, 1, f.Srv.Count(http.MethodGet, "/config/networklists/"+fixture.ListID+"/entries"), "one reading for all")
		f.AddFault(testserver.Fault{Path: "/config/networklists/*/entries", Status: 404}) // deleted after the lists were read
		_, _, err = f.Client.NetworkLists.Find(f.Context(), addresses)
		var incomplete *webdelivery.IncompleteError
		require.ErrorAs(f, err, &incomplete)
		assert.Contains(f, incomplete.Error(), "deleted")
	})
}

func listNumber(n int) string { return fmt.Sprintf("%08d-1111-4111-8111-111111111111", n) }

// GetByName compares names byte for byte, whatever the type of the list. It ignores deprecated lists.
func TestGetByName(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		for n := range 1100 { // more than a page
			f.Srv.AddNetworkList(testserver.NetworkListSpec{ID: listNumber(n), Name: fmt.Sprint("list ", n)})
		}
		for n, spec := range []testserver.NetworkListSpec{
			{Name: "office"}, {Name: "office", Deprecated: true}, {Name: "Büro", Type: "GEO"}, {Name: "old", Deprecated: true}, {Name: "twin"}, {Name: "twin", Type: "GEO"},
		} {
			spec.ID = listNumber(2001 + n)
			f.Srv.AddNetworkList(spec)
		}
		for name, want := range map[string]string{
			"office": listNumber(2001), "Büro": listNumber(2003),
			"Office": "", "office ": "", "offic": "", "Bu\u0308ro": "", "old": "", "list 1100": "",
		} {
			list, err := f.Client.NetworkLists.GetByName(f.Context(), name)
			if want == "" {
				require.ErrorIs(f, err, webdelivery.ErrNotFound, name)
				assert.ErrorContains(f, err, name)
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				continue
			}
			require.NoError(f, err)
			assert.Equal(f, []string{want, name}, []string{list.ID, list.Name})
			assert.Nil(f, list.List, "the summary")
		}
		_, err := f.Client.NetworkLists.GetByName(f.Context(), "twin")
		assert.EqualError(f, err, `webdelivery: 2 network lists have the name "twin": `+listNumber(2005)+", "+listNumber(2006))
		assert.NotErrorIs(f, err, webdelivery.ErrNotFound)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))

		sent := len(f.Srv.Requests())
		_, err = f.Client.NetworkLists.GetByName(f.Context(), "")
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		assert.Len(f, f.Srv.Requests(), sent)
		// A service may show deprecated lists without being asked.
		shown := fmt.Sprintf(`{"items":[{"id":%q,"name":"old","deprecated":true}],"total":1}`, listNumber(2004))
		f.AddFault(testserver.Fault{Path: "/config/networklists", Status: 200, Body: shown})
		_, err = f.Client.NetworkLists.GetByName(f.Context(), "old")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
	})
}
