package webdelivery_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
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
		assert.Nil(f, summary.List)
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

		_, err = f.Client.NetworkLists.Get(f.Context(), "5e1f0d2c-0000-4000-8000-00000000dead")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
	})
}

// Options select lists by type, and the service hides deprecated ones by default (sections 4.6 and 9). All follows
// the pages.
func TestListsAreSelected(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		for i := range 25 {
			spec := testserver.NetworkListSpec{Name: fmt.Sprint("list-", i), Deprecated: i%5 == 0, Entries: []string{"192.0.2.1"}}
			if i%2 == 0 {
				spec.Type, spec.Entries = "GEO", []string{"DE"}
			}
			f.Srv.AddNetworkList(spec)
		}
		count := func(o webdelivery.NetworkListOptions) (n int) {
			for list, err := range f.Client.NetworkLists.All(f.Context(), o) {
				require.NoError(f, err)
				assert.Nil(f, list.List)
				assert.True(f, o.Type == "" || list.Type == o.Type)
				assert.True(f, o.Deprecated || !list.Deprecated)
				n++
			}
			return n
		}
		assert.Equal(f, 20, count(webdelivery.NetworkListOptions{}))
		assert.Equal(f, 25, count(webdelivery.NetworkListOptions{Deprecated: true, Count: 4}))
		assert.Equal(f, 10, count(webdelivery.NetworkListOptions{Type: webdelivery.ListTypeIP, Count: 100}))
		assert.Equal(f, 13, count(webdelivery.NetworkListOptions{Type: webdelivery.ListTypeGEO, Deprecated: true}))
		_, err := f.Client.NetworkLists.List(f.Context(), webdelivery.NetworkListOptions{Type: "ASN", Page: -1})
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		require.ErrorContains(f, err, "type")
		require.ErrorContains(f, err, "page")
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
		assert.Equal(f, webdelivery.NetworkListEntryInfo{
			URI: e.URI, ID: e.ID, Type: webdelivery.ListTypeIP, NetworkListURI: "/config/networklists/" + fixture.ListID,
		}, *info)
		_, err = f.Client.NetworkLists.GetEntry(f.Context(), fixture.ListID, "5e1f0d2c-0000-4000-8000-00000000dead")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
	})
}

// An id is one path element. If an id is invalid, the error names its field, and nothing is sent.
func TestIdsOfListsAndEntries(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		lists, ctx := f.Client.NetworkLists, f.Context()
		for _, bad := range []string{"", ".", "..", "a\n"} {
			calls := map[string]func() error{
				"get":     func() error { _, err := lists.Get(ctx, bad); return err },
				"summary": func() error { _, err := lists.GetSummary(ctx, bad); return err },
				"entries": func() error { _, err := lists.Entries(ctx, bad, webdelivery.EntryOptions{}); return err },
				"entry":   func() error { _, err := lists.GetEntry(ctx, fixture.ListID, bad); return err },
				"add":     func() error { _, err := lists.AddEntries(ctx, bad, []string{"192.0.2.1"}); return err },
				"delete":  func() error { _, err := lists.DeleteEntry(ctx, fixture.ListID, bad); return err },
				"clear":   func() error { _, err := lists.ClearEntries(ctx, bad); return err },
				"remove":  func() error { _, err := lists.Delete(ctx, bad); return err },
				"plan":    func() error { _, err := lists.Plan(ctx, bad, nil, webdelivery.PlanOptions{}); return err },
				"all": func() (last error) {
					for _, err := range lists.AllEntries(ctx, bad, webdelivery.EntryOptions{}) {
						last = err
					}
					return last
				},
			}
			for name, call := range calls {
				require.ErrorIs(f, call(), webdelivery.ErrInvalid, "%s %q", name, bad)
			}
		}
		assert.Empty(f, f.Srv.Requests())
		_, err := lists.Get(ctx, "a/b")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		assert.Equal(f, "/acme/v1/config/networklists/a%2Fb", f.Srv.Requests()[0].Path)
	})
}

// AddEntries sends 12,000 entries in three calls, in order, and each duplicate once (sections 4.6 and 8, open point
// 26).
func TestAddEntriesInParts(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		all := fixture.Addresses(12_000)
		given := append([]string{}, all...)
		given = append(given, all[7]+"/32", "::ffff:"+all[8]) // duplicates
		result, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, given)
		require.NoError(f, err)
		assert.Equal(f, all, result.Added)
		assert.Equal(f, all, f.Srv.Entries(fixture.ListID))
		assert.Len(f, given, 12_002, "the caller's slice is unchanged")
		var sizes []int
		for _, r := range f.Srv.Requests() {
			var items []map[string]string
			require.NoError(f, json.Unmarshal(r.Body, &items))
			sizes = append(sizes, len(items))
			assert.Equal(f, "entry", onlyKey(items[0]))
		}
		assert.Equal(f, []int{5000, 5000, 2000}, sizes)
		assert.Len(f, result.Tasks, 3)
	})
}

func onlyKey(m map[string]string) string {
	for key := range m {
		return key
	}
	return ""
}

// AddEntries finds the task in whatever shape the service answers (open point 21).
func TestRepliesToAddedEntries(t *testing.T) {
	t.Parallel()
	for shape, tasks := range map[string]int{"task": 1, "task_id": 1, "id": 1, "entries": 0, "empty": 0} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			s := fixture.Setup{Server: testserver.Config{Dialect: testserver.Dialect{EntriesReply: shape}}}
			fixture.WithList(t, s, nil, func(f *fixture.Fixture) {
				result, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, []string{"192.0.2.1", "192.0.2.2"})
				require.NoError(f, err)
				assert.Len(f, result.Tasks, tasks)
				assert.NotContains(f, result.Tasks, "")
			})
		})
	}
}

// One error names each entry that is invalid, with its index and text, and of two kinds one entry each. Nothing is sent.
func TestEntriesAreRefused(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		entries := []string{"192.0.2.1", "198.51.100.0/33", "de", "", "2001:db8::/32", "XX", "fr"}
		_, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, entries)
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		for _, says := range []string{`entries[1]: "198.51.100.0/33"`, `entries[2]: "192.0.2.1" belongs to a list of type IP, and "DE" to one of type GEO`, `entries[3]: ""`, `entries[5]: "XX"`} {
			assert.ErrorContains(f, err, says)
		}
		assert.NotContains(f, err.Error(), "entries[0]")
		assert.NotContains(f, err.Error(), "entries[4]")
		assert.NotContains(f, err.Error(), "entries[6]")
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))

		_, err = f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, fixture.Addresses(50_001))
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		require.ErrorContains(f, err, "50001")
		assert.Empty(f, f.Srv.Requests())
		_, err = f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, nil)
		require.NoError(f, err)
		assert.Empty(f, f.Srv.Requests())
	})
}

// If a call fails, its error divides the entries into accepted, not accepted and unknown, by what the service can
// have done.
func TestPartialErrors(t *testing.T) {
	t.Parallel()
	all := fixture.Addresses(12_000)
	tests := []struct {
		name                   string
		fault                  testserver.Fault
		accepted, not, unknown int
		outcome                webdelivery.Outcome
	}{
		{"the second call is rejected", testserver.Fault{Skip: 1, Status: 400}, 5000, 7000, 0, webdelivery.OutcomeUnknown},
		{"the second call is cut", testserver.Fault{Skip: 1, Cut: testserver.CutAfterExecute}, 5000, 2000, 5000, webdelivery.OutcomeUnknown},
		{"the third call fails", testserver.Fault{Skip: 2, Status: 500}, 10000, 0, 2000, webdelivery.OutcomeUnknown},
		{"the first call is rejected", testserver.Fault{Status: 403}, 0, 12000, 0, webdelivery.OutcomeNotApplied},
		{"the first call is cut", testserver.Fault{Cut: testserver.CutBeforeRead}, 0, 7000, 5000, webdelivery.OutcomeUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
				tt.fault.Method = http.MethodPost
				f.AddFault(tt.fault)
				_, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, all)
				var partial *webdelivery.PartialError
				require.ErrorAs(f, err, &partial)
				assert.Equal(f, all[:tt.accepted], partial.Accepted)
				assert.Equal(f, all[tt.accepted:tt.accepted+tt.unknown], append([]string{}, partial.Unknown...))
				assert.Equal(f, all[tt.accepted+tt.unknown:], partial.NotAccepted)
				assert.Len(f, partial.NotAccepted, tt.not)
				assert.Equal(f, tt.outcome, webdelivery.OutcomeOf(err))
				var e *webdelivery.Error
				require.ErrorAs(f, err, &e)
				assert.NotContains(f, logged(err), "198.18")
			})
		})
	}
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

// If a deletion is retried because its outcome is unknown, it succeeds when the entry is gone.
func TestADeletionThatWorkedTheFirstTime(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
		page, err := f.Client.NetworkLists.Entries(f.Context(), fixture.ListID, webdelivery.EntryOptions{})
		require.NoError(f, err)
		f.AddFault(testserver.Fault{Method: http.MethodDelete, Count: 1, Cut: testserver.CutAfterExecute})
		task, err := f.Client.NetworkLists.DeleteEntry(f.Context(), fixture.ListID, page.Items[0].ID)
		require.NoError(f, err)
		assert.Equal(f, &webdelivery.Task{Complete: true}, task)
	})
}

// RemoveEntries compares meanings, and says of each value what became of it. DeleteEntry hints at it.
func TestRemoveEntries(t *testing.T) {
	t.Parallel()
	held := []string{"192.0.2.1", "2001:db8::1", "198.51.100.0/24", "192.0.2.3"}
	fixture.WithList(t, fixture.Setup{}, held, func(f *fixture.Fixture) {
		lists, ctx := f.Client.NetworkLists, f.Context()
		values := []string{"192.0.2.1/32", "198.51.100.7", "2001:DB8:0::1", "::ffff:192.0.2.1", "XK"}
		result, err := lists.RemoveEntries(ctx, fixture.ListID, values)
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.1/32", "2001:DB8:0::1"}, result.Removed)
		assert.Equal(f, []string{"198.51.100.7", "XK"}, result.NotInList)
		assert.Len(f, result.Tasks, 2)
		assert.Equal(f, held[2:], f.Srv.Entries(fixture.ListID))

		page, err := lists.Entries(ctx, fixture.ListID, webdelivery.EntryOptions{})
		require.NoError(f, err)
		f.AddFault(testserver.Fault{Method: http.MethodDelete, Path: "/config/networklists/*/" + page.Items[0].ID, Status: http.StatusForbidden})
		result, err = lists.RemoveEntries(ctx, fixture.ListID, []string{"203.0.113.1", "198.51.100.0/24", "192.0.2.3"})
		var partial *webdelivery.PartialError
		require.ErrorAs(f, err, &partial)
		require.ErrorIs(f, err, webdelivery.ErrForbidden)
		assert.Equal(f, [][]string{{"192.0.2.3"}, {"198.51.100.0/24"}, nil}, [][]string{partial.Accepted, partial.NotAccepted, partial.Unknown})
		assert.Equal(f, []string{"203.0.113.1"}, result.NotInList)
		assert.Equal(f, held[2:3], f.Srv.Entries(fixture.ListID))

		const countries = "5e1f0d2c-0000-4000-8000-000000000002"
		f.Srv.AddNetworkList(testserver.NetworkListSpec{ID: countries, Type: "GEO", Entries: []string{"DE", "AQ"}})
		_, err = lists.RemoveEntries(ctx, countries, []string{"de"})
		require.NoError(f, err)
		assert.Equal(f, []string{"AQ"}, f.Srv.Entries(countries))

		requests := len(f.Srv.Requests())
		_, err = lists.RemoveEntries(ctx, fixture.ListID, []string{"192.0.2.3", " 192.0.2.3", "bogus"})
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		require.ErrorContains(f, err, "values[2]")
		_, err = lists.RemoveEntries(ctx, fixture.ListID, nil)
		require.NoError(f, err)
		for _, value := range []string{"192.0.2.1", "2001:db8::/32", "aq"} {
			_, err = lists.DeleteEntry(ctx, fixture.ListID, value)
			require.ErrorContains(f, err, "is the value of an entry, not its id; use RemoveEntries")
			require.ErrorIs(f, err, webdelivery.ErrInvalid)
		}
		assert.Len(f, f.Srv.Requests(), requests)
	})
}

// Find names the entries that it cannot compare with an address.
func TestFindNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	odd := []string{"192.0.2.1-192.0.2.9", "198.51.100.007", "DE"}
	fixture.WithList(t, fixture.Setup{}, append([]string{"192.0.2.7"}, odd...), func(f *fixture.Fixture) {
		f.Srv.AddNetworkList(testserver.NetworkListSpec{Name: "countries", Type: "GEO", Entries: []string{"XK"}})
		found, err := f.Client.NetworkLists.Find(f.Context(), netip.MustParseAddr("192.0.2.7"))
		require.NoError(f, err)
		require.Len(f, found.Matches, 1)
		assert.Equal(f, "192.0.2.7", found.Matches[0].Entry.Entry)
		var texts []string
		for _, unread := range found.Unreadable {
			assert.Equal(f, fixture.ListID, unread.List.ID)
			texts = append(texts, unread.Entry.Entry)
		}
		assert.Equal(f, odd, texts)
	})
}

// Find names the entries that cover an address, in all IP lists.
func TestFind(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.0/24", "192.0.2.7", "192.0.2.8", "2001:db8::/32"}, func(f *fixture.Fixture) {
		f.Srv.AddNetworkList(testserver.NetworkListSpec{Name: "countries", Type: "GEO", Entries: []string{"DE"}})
		f.Srv.AddNetworkList(testserver.NetworkListSpec{Name: "old", Deprecated: true, Entries: []string{"::/0"}})
		for address, want := range map[string][]string{
			"192.0.2.7":        {"blocklist 192.0.2.0/24", "blocklist 192.0.2.7", "old ::/0"},
			"::ffff:192.0.2.9": {"blocklist 192.0.2.0/24", "old ::/0"},
			"2001:db8::1%eth0": {"blocklist 2001:db8::/32", "old ::/0"},
			"198.51.100.1":     {"old ::/0"},
		} {
			found, err := f.Client.NetworkLists.Find(f.Context(), netip.MustParseAddr(address))
			require.NoError(f, err)
			var names []string
			assert.Nil(f, found.Unreadable)
			for _, match := range found.Matches {
				names = append(names, match.List.Name+" "+match.Entry.Entry)
			}
			assert.Equal(f, want, names, address)
		}
		f.AddFault(testserver.Fault{Path: "/config/networklists/*/entries", Status: 404}) // deleted after the lists were read
		_, err := f.Client.NetworkLists.Find(f.Context(), netip.MustParseAddr("192.0.2.7"))
		var incomplete *webdelivery.IncompleteError
		require.ErrorAs(f, err, &incomplete)
		assert.Contains(f, incomplete.Error(), "deleted")
	})
}

// An address for the batch deletion that leads elsewhere is an unusable response. Nothing is sent to it (rule 2).
func TestABatchDeletionAddressThatLeadsElsewhere(t *testing.T) {
	t.Parallel()
	const own = "/config/networklists/" + fixture.ListID
	for _, address := range []string{
		`"https://evil.example.com/x"`, `"//evil.example.com/x"`, `""`, `null`, `"deletions"`, `"%"`, `" "`, `"/"`, `5`, `{}`,
		`"/config/networklists"`, `"` + own + `"`, `"` + own + `/"`, `"` + own + `/../x/entries/deletions"`, `"` + own + `1/entries/deletions"`,
		`"/other/v1` + own + `/entries/deletions"`, `"http://evil.example.com` + own + `/entries/deletions"`, `"` + own + `/entries/deletions#x"`,
	} {
		fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: "/config/networklists/*", Status: 200, Body: fmt.Sprintf(`{"id":%q,"entries_batch_deletion_uri":%s}`, fixture.ListID, address)})
			assertNotCleared(f, address)
		})
	}
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/config/networklists/*", Status: 200, Body: fmt.Sprintf(`{"id":%q}`, fixture.ListID)})
		assertNotCleared(f, "missing")
	})
}

func assertNotCleared(f *fixture.Fixture, address string) {
	f.Helper()
	task, err := f.Client.NetworkLists.ClearEntries(f.Context(), fixture.ListID)
	assert.Nil(f, task)
	require.ErrorIs(f, err, webdelivery.ErrBadResponse, address)
	require.NotErrorIs(f, err, webdelivery.ErrInvalid)
	require.ErrorContains(f, err, "entries_batch_deletion_uri")
	assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	assert.Zero(f, f.Srv.ForeignDials())
	assert.Len(f, f.Srv.Requests(), 1)
	assert.NotEmpty(f, f.Srv.Entries(fixture.ListID))
}

// bounded is a list whose batch deletion removes a limited number of entries per call and sends any answer (section
// 8: 5,000 per call).
type bounded struct {
	left, most int
	response   string // to the deletion
	rest       string // to the entries; %d is the number of entries left
}

func (b *bounded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch own := "/acme/v1/config/networklists/" + fixture.ListID; r.Method + " " + r.URL.String() {
	case "GET " + own + "?includelist=false":
		_, _ = fmt.Fprintf(w, `{"id":%q,"entries_batch_deletion_uri":"/config/networklists/%s/entries/deletions"}`, fixture.ListID, fixture.ListID)
	case "POST " + own + "/entries/deletions":
		b.left = max(0, b.left-b.most)
		_, _ = fmt.Fprint(w, b.response)
	case "GET " + own + "/entries?count=1":
		_, _ = fmt.Fprint(w, strings.ReplaceAll(b.rest, "%d", fmt.Sprint(b.left)))
	default:
		http.NotFound(w, r)
	}
}

// If entries are left afterwards, the error contains their number, unless a task has yet to remove them.
func TestClearEntriesTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	const (
		empty    = `{"items":[],"total":0,"has_more":false,"page_count":0,"page_index":1,"prev_uri":null,"next_uri":null}`
		some     = `{"items":[{"id":"e","entry":"192.0.2.1"}],"total":%d,"has_more":true,"page_count":%d,"page_index":1,"next_uri":"/x"}`
		complete = `{"id":"t","complete":true}`
		failed   = `{"id":"t","complete":false,"error_info":{"message":"too many"}}`
	)
	tests := []struct {
		name     string
		service  bounded
		left     int64
		task     bool
		requests int
	}{
		{"without a task, all gone", bounded{50_000, 50_000, ``, empty}, 0, false, 3},
		{"without a task, 45,000 left", bounded{50_000, 5_000, ``, some}, 45_000, false, 3},
		{"a complete task, all gone", bounded{50_000, 50_000, complete, empty}, 0, true, 3},
		{"a complete task, 45,000 left", bounded{50_000, 5_000, complete, some}, 45_000, true, 3},
		{"a task that failed, all left", bounded{50_000, 0, failed, some}, 50_000, true, 3},
		{"a task that is pending", bounded{50_000, 0, `{"id":"t","complete":false}`, some}, 0, true, 2},
		{"the id of a task alone", bounded{50_000, 0, `{"task_id":"t"}`, some}, 0, true, 2},
		{"no total", bounded{7, 5, ``, `{"items":[{"id":"e","entry":"192.0.2.1"}],"has_more":true,"next_uri":"/x"}`}, 1, false, 3},
		{"an array", bounded{7, 5, ``, `[{"id":"e","entry":"192.0.2.1"}]`}, 1, false, 3},
		{"an empty array", bounded{5, 5, ``, `[]`}, 0, false, 3},
		{"no item, has_more", bounded{7, 5, ``, `{"items":[],"has_more":true}`}, 1, false, 3},
		{"no item, next_uri", bounded{7, 5, ``, `{"items":[],"has_more":false,"next_uri":"/x"}`}, 1, false, 3},
		{"no item, page_count 3", bounded{7, 5, ``, `{"items":[],"page_count":3}`}, 1, false, 3},
		{"no item, page_count 3, has_more false", bounded{7, 5, ``, `{"items":[],"has_more":false,"page_count":3}`}, 1, false, 3},
		{"no item, has_more, a total", bounded{7, 5, ``, `{"items":[],"has_more":true,"total":%d}`}, 2, false, 3},
		{"no item, page_count 1", bounded{5, 5, ``, `{"items":[],"has_more":false,"page_count":1,"page_index":1}`}, 0, false, 3},
		{"the list itself", bounded{7, 5, `{"id":"l","type":"IP","name":"n","entries_uri":"/x"}`, some}, 2, false, 3},
		{"the number of deleted entries", bounded{7, 5, `{"deleted":5,"id":5}`, some}, 2, false, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				f.AddFault(testserver.Fault{Handler: tt.service.ServeHTTP})
				task, err := f.Client.NetworkLists.ClearEntries(f.Context(), fixture.ListID)
				assert.Equal(f, tt.task, task.ID != "", "a task without an id is complete: %+v", task)
				assert.Len(f, f.Srv.Requests(), tt.requests)
				if tt.left == 0 {
					require.NoError(f, err)
					return
				}
				require.ErrorContains(f, err, fmt.Sprintf("network list %s still has %d entr", fixture.ListID, tt.left))
				assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
			})
		})
	}
}

// An entry that a service deletes at another path is not a wrong id: the error names the Dialect.
func TestAWrongPathOfDeletions(t *testing.T) {
	t.Parallel()
	s := fixture.Setup{Server: testserver.Config{Dialect: testserver.Dialect{EntryDeletePath: "/config/networklists/{list}/entries/{entry}"}}}
	fixture.WithList(t, s, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
		_, err := f.Client.NetworkLists.RemoveEntries(f.Context(), fixture.ListID, []string{"192.0.2.1"})
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		require.ErrorContains(f, err, "set Dialect.EntryDeletePath")
		assert.NotContains(f, err.Error(), "check the id")
		assert.Equal(f, []string{"192.0.2.1"}, f.Srv.Entries(fixture.ListID))
	})
}

// The fake's dialects cover every response that the service document leaves open (open points 19, 22, 23, 24).
func TestNetworkListDialects(t *testing.T) {
	t.Parallel()
	const deletePath = "/config/networklists/{list}/entries/{entry}"
	s := fixture.Setup{
		Server: testserver.Config{Dialect: testserver.Dialect{
			EntryKey: "value", EntryDeletePath: deletePath, BatchDeletionMethod: http.MethodDelete, ListDeleteReply: "task",
		}},
		Options: []webdelivery.Option{webdelivery.WithDialect(webdelivery.Dialect{
			EntryKey: "value", EntryDeletePath: deletePath, BatchDeletionMethod: http.MethodDelete,
		})},
	}
	fixture.WithList(t, s, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
		lists, ctx := f.Client.NetworkLists, f.Context()
		_, err := lists.AddEntries(ctx, fixture.ListID, []string{"192.0.2.2", "192.0.2.3"})
		require.NoError(f, err)
		page, err := lists.Entries(ctx, fixture.ListID, webdelivery.EntryOptions{})
		require.NoError(f, err)
		require.Len(f, page.Items, 3)
		_, err = lists.DeleteEntry(ctx, fixture.ListID, page.Items[0].ID)
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.2", "192.0.2.3"}, f.Srv.Entries(fixture.ListID))
		_, err = lists.ClearEntries(ctx, fixture.ListID)
		require.NoError(f, err)
		assert.Empty(f, f.Srv.Entries(fixture.ListID))
		task, err := lists.Delete(ctx, fixture.ListID)
		require.NoError(f, err)
		require.NotNil(f, task)
	})
}

// A response with another list than the requested one clears nothing. The letter case of a UUID does not count.
func TestABatchDeletionOfAnotherList(t *testing.T) {
	t.Parallel()
	upper := strings.ToUpper(fixture.ListID)
	for _, tt := range []struct {
		id, address string
		cleared     bool
	}{{"other", fixture.ListID, false}, {fixture.ListID, "other", false}, {upper, fixture.ListID, true}, {fixture.ListID, upper, true}, {upper, upper, true}} {
		fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: oneList, Status: 200, Body: fmt.Sprintf(
				`{"id":%q,"entries_batch_deletion_uri":"/config/networklists/%s/entries/deletions"}`, tt.id, tt.address)})
			if tt.address == upper {
				f.AddFault(testserver.Fault{Path: "/config/networklists/" + upper + "/entries/deletions", Status: 204})
				f.AddFault(testserver.Fault{Path: oneList + "/entries", Status: 200, Body: `{"items":[],"total":0}`})
			}
			_, err := f.Client.NetworkLists.ClearEntries(f.Context(), fixture.ListID)
			if tt.cleared {
				require.NoError(f, err)
				return
			}
			require.ErrorIs(f, err, webdelivery.ErrBadResponse)
			assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			assert.Zero(f, f.Srv.Count(http.MethodPost, ""))
		})
	}
}

// A name in place of an id is answered with the method that takes one.
func TestGetOfAName(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		_, err := f.Client.NetworkLists.Get(f.Context(), "office")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		assert.ErrorContains(f, err, "GetByName")
		_, err = f.Client.NetworkLists.Get(f.Context(), "5e1f0d2c-0000-4000-8000-00000000ffff")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		assert.NotContains(f, err.Error(), "GetByName")
	})
}
