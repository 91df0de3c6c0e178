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
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// The three methods that read lists return every field of section 2.6.
func TestNetworkListFields(t *testing.T) {
	t.Parallel()
	withList(t, setup{}, []string{"192.0.2.1", "2001:db8::/32"}, func(f *fixture) {
		want := webdelivery.NetworkList{
			URI: "/config/networklists/" + listID, ID: listID, Type: webdelivery.ListTypeIP, Name: "blocklist", Description: "feeds",
			EntriesURI:              "/config/networklists/" + listID + "/entries",
			EntriesBatchDeletionURI: "/config/networklists/" + listID + "/entries/deletions",
			CreationTimestamp:       time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		}
		summary, err := f.client.NetworkLists.GetSummary(f.Context(), listID)
		require.NoError(f, err)
		assert.Equal(f, want, *summary)
		assert.Nil(f, summary.List)
		assert.Equal(f, "includelist=false", f.srv.Requests()[0].RawQuery)

		page, err := f.client.NetworkLists.List(f.Context(), webdelivery.NetworkListOptions{})
		require.NoError(f, err)
		assert.Equal(f, []webdelivery.NetworkList{want}, page.Items)
		assert.Empty(f, f.srv.Requests()[1].RawQuery)

		want.List = []string{"192.0.2.1", "2001:db8::/32"}
		list, err := f.client.NetworkLists.Get(f.Context(), listID)
		require.NoError(f, err)
		assert.Equal(f, want, *list)

		time.Sleep(time.Minute)
		f.srv.ChangeEntries(listID, nil, []string{"192.0.2.1", "2001:db8::/32"})
		list, err = f.client.NetworkLists.Get(f.Context(), listID)
		require.NoError(f, err)
		assert.NotNil(f, list.List, "an empty list differs from one without its entries")
		assert.Empty(f, list.List)
		assert.Equal(f, want.CreationTimestamp.Add(time.Minute), list.ModifiedTimestamp)

		_, err = f.client.NetworkLists.Get(f.Context(), "5e1f0d2c-0000-4000-8000-00000000dead")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
	})
}

// Options select lists by type, and the service hides deprecated ones by default (sections 4.6 and 9). All follows
// the pages.
func TestListsAreSelected(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		for i := range 25 {
			spec := testserver.NetworkListSpec{Name: fmt.Sprint("list-", i), Deprecated: i%5 == 0, Entries: []string{"192.0.2.1"}}
			if i%2 == 0 {
				spec.Type, spec.Entries = "GEO", []string{"DE"}
			}
			f.srv.AddNetworkList(spec)
		}
		count := func(o webdelivery.NetworkListOptions) (n int) {
			for list, err := range f.client.NetworkLists.All(f.Context(), o) {
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
		_, err := f.client.NetworkLists.List(f.Context(), webdelivery.NetworkListOptions{Type: "ASN", Page: -1})
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		require.ErrorContains(f, err, "type")
		require.ErrorContains(f, err, "page")
	})
}

// The entries collection and the single entry have fields of their own (section 2.6).
func TestEntryFields(t *testing.T) {
	t.Parallel()
	withList(t, setup{}, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, func(f *fixture) {
		_, err := f.client.NetworkLists.AddEntries(f.Context(), listID, []string{"2001:db8::1"})
		require.NoError(f, err)
		page, err := f.client.NetworkLists.Entries(f.Context(), listID, webdelivery.EntryOptions{Page: 2, Count: 3})
		require.NoError(f, err)
		assert.Equal(f, int64(4), page.Total)
		require.Len(f, page.Items, 1)
		e := page.Items[0]
		assert.Equal(f, "2001:db8::1", e.Entry)
		assert.Equal(f, username, e.AddedBy)
		assert.Equal(f, "/config/networklists/"+listID+"/entries/"+e.ID, e.URI)
		assert.Equal(f, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), e.CreationTimestamp)

		info, err := f.client.NetworkLists.GetEntry(f.Context(), listID, e.ID)
		require.NoError(f, err)
		assert.Equal(f, webdelivery.NetworkListEntryInfo{
			URI: e.URI, ID: e.ID, Type: webdelivery.ListTypeIP, NetworkListURI: "/config/networklists/" + listID,
		}, *info)
		_, err = f.client.NetworkLists.GetEntry(f.Context(), listID, "5e1f0d2c-0000-4000-8000-00000000dead")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
	})
}

// An id is one path element. If an id is invalid, the error names its field, and nothing is sent.
func TestIdsOfListsAndEntries(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		lists, ctx := f.client.NetworkLists, f.Context()
		for _, bad := range []string{"", ".", "..", "a\n"} {
			calls := map[string]func() error{
				"get":     func() error { _, err := lists.Get(ctx, bad); return err },
				"summary": func() error { _, err := lists.GetSummary(ctx, bad); return err },
				"entries": func() error { _, err := lists.Entries(ctx, bad, webdelivery.EntryOptions{}); return err },
				"entry":   func() error { _, err := lists.GetEntry(ctx, listID, bad); return err },
				"add":     func() error { _, err := lists.AddEntries(ctx, bad, []string{"192.0.2.1"}); return err },
				"delete":  func() error { _, err := lists.DeleteEntry(ctx, listID, bad); return err },
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
		assert.Empty(f, f.srv.Requests())
		_, err := lists.Get(ctx, "a/b")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		assert.Equal(f, "/acme/v1/config/networklists/a%2Fb", f.srv.Requests()[0].Path)
	})
}

// AddEntries sends 12,000 entries in three calls, in order, and each duplicate once (sections 4.6 and 8, open point
// 26).
func TestAddEntriesInParts(t *testing.T) {
	t.Parallel()
	withList(t, setup{}, nil, func(f *fixture) {
		all := addresses(12_000)
		given := append([]string{}, all...)
		given = append(given, all[7]+"/32", "::ffff:"+all[8]) // duplicates
		result, err := f.client.NetworkLists.AddEntries(f.Context(), listID, given)
		require.NoError(f, err)
		assert.Equal(f, all, result.Added)
		assert.Equal(f, all, f.srv.Entries(listID))
		assert.Len(f, given, 12_002, "the caller's slice is unchanged")
		var sizes []int
		for _, r := range f.srv.Requests() {
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
			s := setup{server: testserver.Config{Dialect: testserver.Dialect{EntriesReply: shape}}}
			withList(t, s, nil, func(f *fixture) {
				result, err := f.client.NetworkLists.AddEntries(f.Context(), listID, []string{"192.0.2.1", "192.0.2.2"})
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
	withList(t, setup{}, nil, func(f *fixture) {
		entries := []string{"192.0.2.1", "198.51.100.0/33", "de", "", "2001:db8::/32", "XX", "fr"}
		_, err := f.client.NetworkLists.AddEntries(f.Context(), listID, entries)
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		for _, says := range []string{`entries[1]: "198.51.100.0/33"`, `entries[2]: "192.0.2.1" belongs to a list of type IP, and "DE" to one of type GEO`, `entries[3]: ""`, `entries[5]: "XX"`} {
			assert.ErrorContains(f, err, says)
		}
		assert.NotContains(f, err.Error(), "entries[0]")
		assert.NotContains(f, err.Error(), "entries[4]")
		assert.NotContains(f, err.Error(), "entries[6]")
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))

		_, err = f.client.NetworkLists.AddEntries(f.Context(), listID, addresses(50_001))
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		require.ErrorContains(f, err, "50001")
		assert.Empty(f, f.srv.Requests())
		_, err = f.client.NetworkLists.AddEntries(f.Context(), listID, nil)
		require.NoError(f, err)
		assert.Empty(f, f.srv.Requests())
	})
}

// If a call fails, its error divides the entries into accepted, not accepted and unknown, by what the service can
// have done.
func TestPartialErrors(t *testing.T) {
	t.Parallel()
	all := addresses(12_000)
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
			withList(t, setup{}, nil, func(f *fixture) {
				tt.fault.Method = http.MethodPost
				f.fail(tt.fault)
				_, err := f.client.NetworkLists.AddEntries(f.Context(), listID, all)
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
	withList(t, setup{}, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, func(f *fixture) {
		lists, ctx := f.client.NetworkLists, f.Context()
		page, err := lists.Entries(ctx, listID, webdelivery.EntryOptions{})
		require.NoError(f, err)
		task, err := lists.DeleteEntry(ctx, listID, page.Items[1].ID)
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.1", "192.0.2.3"}, f.srv.Entries(listID))
		assert.False(f, task.Complete)
		task, err = f.client.Tasks.Wait(ctx, task.ID)
		require.NoError(f, err)
		assert.True(f, task.Complete)
		_, err = lists.DeleteEntry(ctx, listID, page.Items[1].ID)
		require.ErrorIs(f, err, webdelivery.ErrNotFound)

		_, err = lists.ClearEntries(ctx, listID)
		require.NoError(f, err)
		assert.Empty(f, f.srv.Entries(listID))
		_, err = lists.Get(ctx, listID)
		require.NoError(f, err, "the list still exists")

		task, err = lists.Delete(ctx, listID)
		require.NoError(f, err)
		assert.Equal(f, &webdelivery.Task{Complete: true}, task)
		_, err = lists.Get(ctx, listID)
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
	})
}

// If a deletion is retried because its outcome is unknown, it succeeds when the entry is gone.
func TestADeletionThatWorkedTheFirstTime(t *testing.T) {
	t.Parallel()
	withList(t, setup{}, []string{"192.0.2.1"}, func(f *fixture) {
		page, err := f.client.NetworkLists.Entries(f.Context(), listID, webdelivery.EntryOptions{})
		require.NoError(f, err)
		f.fail(testserver.Fault{Method: http.MethodDelete, Count: 1, Cut: testserver.CutAfterExecute})
		task, err := f.client.NetworkLists.DeleteEntry(f.Context(), listID, page.Items[0].ID)
		require.NoError(f, err)
		assert.Equal(f, &webdelivery.Task{Complete: true}, task)
	})
}

// RemoveEntries compares meanings, and says of each value what became of it. DeleteEntry hints at it.
func TestRemoveEntries(t *testing.T) {
	t.Parallel()
	held := []string{"192.0.2.1", "2001:db8::1", "198.51.100.0/24", "192.0.2.3"}
	withList(t, setup{}, held, func(f *fixture) {
		lists, ctx := f.client.NetworkLists, f.Context()
		values := []string{"192.0.2.1/32", "198.51.100.7", "2001:DB8:0::1", "::ffff:192.0.2.1", "XK"}
		result, err := lists.RemoveEntries(ctx, listID, values)
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.1/32", "2001:DB8:0::1"}, result.Removed)
		assert.Equal(f, []string{"198.51.100.7", "XK"}, result.NotInList)
		assert.Len(f, result.Tasks, 2)
		assert.Equal(f, held[2:], f.srv.Entries(listID))

		page, err := lists.Entries(ctx, listID, webdelivery.EntryOptions{})
		require.NoError(f, err)
		f.fail(testserver.Fault{Method: http.MethodDelete, Path: "/config/networklists/*/" + page.Items[0].ID, Status: http.StatusForbidden})
		result, err = lists.RemoveEntries(ctx, listID, []string{"203.0.113.1", "198.51.100.0/24", "192.0.2.3"})
		var partial *webdelivery.PartialError
		require.ErrorAs(f, err, &partial)
		require.ErrorIs(f, err, webdelivery.ErrForbidden)
		assert.Equal(f, [][]string{{"192.0.2.3"}, {"198.51.100.0/24"}, nil}, [][]string{partial.Accepted, partial.NotAccepted, partial.Unknown})
		assert.Equal(f, []string{"203.0.113.1"}, result.NotInList)
		assert.Equal(f, held[2:3], f.srv.Entries(listID))

		const countries = "5e1f0d2c-0000-4000-8000-000000000002"
		f.srv.AddNetworkList(testserver.NetworkListSpec{ID: countries, Type: "GEO", Entries: []string{"DE", "AQ"}})
		_, err = lists.RemoveEntries(ctx, countries, []string{"de"})
		require.NoError(f, err)
		assert.Equal(f, []string{"AQ"}, f.srv.Entries(countries))

		requests := len(f.srv.Requests())
		_, err = lists.RemoveEntries(ctx, listID, []string{"192.0.2.3", " 192.0.2.3", "bogus"})
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		require.ErrorContains(f, err, "values[2]")
		_, err = lists.RemoveEntries(ctx, listID, nil)
		require.NoError(f, err)
		for _, value := range []string{"192.0.2.1", "2001:db8::/32", "aq"} {
			_, err = lists.DeleteEntry(ctx, listID, value)
			require.ErrorContains(f, err, "is the value of an entry, not its id; use RemoveEntries")
			require.ErrorIs(f, err, webdelivery.ErrInvalid)
		}
		assert.Len(f, f.srv.Requests(), requests)
	})
}

// Find names the entries that it cannot compare with an address.
func TestFindNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	odd := []string{"192.0.2.1-192.0.2.9", "198.51.100.007", "DE"}
	withList(t, setup{}, append([]string{"192.0.2.7"}, odd...), func(f *fixture) {
		f.srv.AddNetworkList(testserver.NetworkListSpec{Name: "countries", Type: "GEO", Entries: []string{"XK"}})
		found, err := f.client.NetworkLists.Find(f.Context(), netip.MustParseAddr("192.0.2.7"))
		require.NoError(f, err)
		require.Len(f, found.Matches, 1)
		assert.Equal(f, "192.0.2.7", found.Matches[0].Entry.Entry)
		var texts []string
		for _, unread := range found.Unreadable {
			assert.Equal(f, listID, unread.List.ID)
			texts = append(texts, unread.Entry.Entry)
		}
		assert.Equal(f, odd, texts)
	})
}

// Find names the entries that cover an address, in all IP lists.
func TestFind(t *testing.T) {
	t.Parallel()
	withList(t, setup{}, []string{"192.0.2.0/24", "192.0.2.7", "192.0.2.8", "2001:db8::/32"}, func(f *fixture) {
		f.srv.AddNetworkList(testserver.NetworkListSpec{Name: "countries", Type: "GEO", Entries: []string{"DE"}})
		f.srv.AddNetworkList(testserver.NetworkListSpec{Name: "old", Deprecated: true, Entries: []string{"::/0"}})
		for address, want := range map[string][]string{
			"192.0.2.7":        {"blocklist 192.0.2.0/24", "blocklist 192.0.2.7", "old ::/0"},
			"::ffff:192.0.2.9": {"blocklist 192.0.2.0/24", "old ::/0"},
			"2001:db8::1%eth0": {"blocklist 2001:db8::/32", "old ::/0"},
			"198.51.100.1":     {"old ::/0"},
		} {
			found, err := f.client.NetworkLists.Find(f.Context(), netip.MustParseAddr(address))
			require.NoError(f, err)
			var names []string
			assert.Nil(f, found.Unreadable)
			for _, match := range found.Matches {
				names = append(names, match.List.Name+" "+match.Entry.Entry)
			}
			assert.Equal(f, want, names, address)
		}
		f.fail(testserver.Fault{Path: "/config/networklists/*/entries", Status: 404}) // deleted after the lists were read
		_, err := f.client.NetworkLists.Find(f.Context(), netip.MustParseAddr("192.0.2.7"))
		var incomplete *webdelivery.IncompleteError
		require.ErrorAs(f, err, &incomplete)
		assert.Contains(f, incomplete.Error(), "deleted")
	})
}

// An address for the batch deletion that leads elsewhere is an unusable response. Nothing is sent to it (rule 2).
func TestABatchDeletionAddressThatLeadsElsewhere(t *testing.T) {
	t.Parallel()
	const own = "/config/networklists/" + listID
	for _, address := range []string{
		`"https://evil.example.com/x"`, `"//evil.example.com/x"`, `""`, `null`, `"deletions"`, `"%"`, `" "`, `"/"`, `5`, `{}`,
		`"/config/networklists"`, `"` + own + `"`, `"` + own + `/"`, `"` + own + `/../x/entries/deletions"`, `"` + own + `1/entries/deletions"`,
		`"/other/v1` + own + `/entries/deletions"`, `"http://evil.example.com` + own + `/entries/deletions"`, `"` + own + `/entries/deletions#x"`,
	} {
		withList(t, setup{}, []string{"192.0.2.1"}, func(f *fixture) {
			f.fail(testserver.Fault{Path: "/config/networklists/*", Status: 200, Body: fmt.Sprintf(`{"id":%q,"entries_batch_deletion_uri":%s}`, listID, address)})
			assertNotCleared(f, address)
		})
	}
	withList(t, setup{}, []string{"192.0.2.1"}, func(f *fixture) {
		f.fail(testserver.Fault{Path: "/config/networklists/*", Status: 200, Body: fmt.Sprintf(`{"id":%q}`, listID)})
		assertNotCleared(f, "missing")
	})
}

func assertNotCleared(f *fixture, address string) {
	f.Helper()
	task, err := f.client.NetworkLists.ClearEntries(f.Context(), listID)
	assert.Nil(f, task)
	require.ErrorIs(f, err, webdelivery.ErrBadResponse, address)
	require.NotErrorIs(f, err, webdelivery.ErrInvalid)
	require.ErrorContains(f, err, "entries_batch_deletion_uri")
	assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	assert.Zero(f, f.srv.ForeignDials())
	assert.Len(f, f.srv.Requests(), 1)
	assert.NotEmpty(f, f.srv.Entries(listID))
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
	switch own := "/acme/v1/config/networklists/" + listID; r.Method + " " + r.URL.String() {
	case "GET " + own + "?includelist=false":
		_, _ = fmt.Fprintf(w, `{"id":%q,"entries_batch_deletion_uri":"/config/networklists/%s/entries/deletions"}`, listID, listID)
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
			inFakeTime(t, setup{}, func(f *fixture) {
				f.fail(testserver.Fault{Handler: tt.service.ServeHTTP})
				task, err := f.client.NetworkLists.ClearEntries(f.Context(), listID)
				assert.Equal(f, tt.task, task.ID != "", "a task without an id is complete: %+v", task)
				assert.Len(f, f.srv.Requests(), tt.requests)
				if tt.left == 0 {
					require.NoError(f, err)
					return
				}
				require.ErrorContains(f, err, fmt.Sprintf("network list %s still has %d entr", listID, tt.left))
				assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
			})
		})
	}
}

// An entry that a service deletes at another path is not a wrong id: the error names the Dialect.
func TestAWrongPathOfDeletions(t *testing.T) {
	t.Parallel()
	s := setup{server: testserver.Config{Dialect: testserver.Dialect{EntryDeletePath: "/config/networklists/{list}/entries/{entry}"}}}
	withList(t, s, []string{"192.0.2.1"}, func(f *fixture) {
		_, err := f.client.NetworkLists.RemoveEntries(f.Context(), listID, []string{"192.0.2.1"})
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		require.ErrorContains(f, err, "set Dialect.EntryDeletePath")
		assert.NotContains(f, err.Error(), "check the id")
		assert.Equal(f, []string{"192.0.2.1"}, f.srv.Entries(listID))
	})
}

// The fake's dialects cover every response that the service document leaves open (open points 19, 22, 23, 24).
func TestNetworkListDialects(t *testing.T) {
	t.Parallel()
	const deletePath = "/config/networklists/{list}/entries/{entry}"
	s := setup{
		server: testserver.Config{Dialect: testserver.Dialect{
			EntryKey: "value", EntryDeletePath: deletePath, BatchDeletionMethod: http.MethodDelete, ListDeleteReply: "task",
		}},
		options: []webdelivery.Option{webdelivery.WithDialect(webdelivery.Dialect{
			EntryKey: "value", EntryDeletePath: deletePath, BatchDeletionMethod: http.MethodDelete,
		})},
	}
	withList(t, s, []string{"192.0.2.1"}, func(f *fixture) {
		lists, ctx := f.client.NetworkLists, f.Context()
		_, err := lists.AddEntries(ctx, listID, []string{"192.0.2.2", "192.0.2.3"})
		require.NoError(f, err)
		page, err := lists.Entries(ctx, listID, webdelivery.EntryOptions{})
		require.NoError(f, err)
		require.Len(f, page.Items, 3)
		_, err = lists.DeleteEntry(ctx, listID, page.Items[0].ID)
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.2", "192.0.2.3"}, f.srv.Entries(listID))
		_, err = lists.ClearEntries(ctx, listID)
		require.NoError(f, err)
		assert.Empty(f, f.srv.Entries(listID))
		task, err := lists.Delete(ctx, listID)
		require.NoError(f, err)
		require.NotNil(f, task)
	})
}

// A response with another list than the requested one clears nothing. The letter case of a UUID does not count.
func TestABatchDeletionOfAnotherList(t *testing.T) {
	t.Parallel()
	upper := strings.ToUpper(listID)
	for _, tt := range []struct {
		id, address string
		cleared     bool
	}{{"other", listID, false}, {listID, "other", false}, {upper, listID, true}, {listID, upper, true}, {upper, upper, true}} {
		withList(t, setup{}, []string{"192.0.2.1"}, func(f *fixture) {
			f.fail(testserver.Fault{Path: oneList, Status: 200, Body: fmt.Sprintf(
				`{"id":%q,"entries_batch_deletion_uri":"/config/networklists/%s/entries/deletions"}`, tt.id, tt.address)})
			if tt.address == upper {
				f.fail(testserver.Fault{Path: "/config/networklists/" + upper + "/entries/deletions", Status: 204})
				f.fail(testserver.Fault{Path: oneList + "/entries", Status: 200, Body: `{"items":[],"total":0}`})
			}
			_, err := f.client.NetworkLists.ClearEntries(f.Context(), listID)
			if tt.cleared {
				require.NoError(f, err)
				return
			}
			require.ErrorIs(f, err, webdelivery.ErrBadResponse)
			assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			assert.Zero(f, f.srv.Count(http.MethodPost, ""))
		})
	}
}

// A name in place of an id is answered with the method that takes one.
func TestGetOfAName(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		_, err := f.client.NetworkLists.Get(f.Context(), "office")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		assert.ErrorContains(f, err, "GetByName")
		_, err = f.client.NetworkLists.Get(f.Context(), "5e1f0d2c-0000-4000-8000-00000000ffff")
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		assert.NotContains(f, err.Error(), "GetByName")
	})
}
