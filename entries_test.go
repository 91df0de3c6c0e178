package webdelivery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// oneList is the path of every list, for faults.
const oneList = "/config/networklists/*"

// If a list changes between two of its pages, Plan returns an error. So it does if an entry comes twice, and another is lacking,
// although the total fits, or if two entries have the same id.
func TestAPlanOfAListThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	const (
		first = `{"items":[{"id":"a","entry":"192.0.2.1"},{"id":"b","entry":"192.0.2.2"}],"has_more":true,"total":3}`
		last  = `{"id":"c","entry":"192.0.2.3"}],"has_more":false`
		noID  = `the entry "192.0.2.9" has no id of its own`
	)
	for second, says := range map[string]string{
		`{"items":[` + last + `}`:                                "",
		`{"items":[` + last + `,"total":4}`:                      "/entries: after page 2: the collection changed while it was read",
		`{"items":[{"id":"b","entry":"192.0.2.2"},` + last + `}`: "/entries: after page 1: the list changed while it was read: the entry 192.0.2.2 appears twice",
		`{"items":[{"id":"b","entry":"192.0.2.9"},` + last + `}`: noID,
	} {
		fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
			for _, body := range []string{first, second} {
				f.AddFault(testserver.Fault{Path: oneList + "/entries", Count: 1, Status: 200, Body: body})
			}
			plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, anything)
			if says == "" {
				require.NoError(f, err)
				assert.True(f, plan.Empty())
				return
			}
			require.ErrorContains(f, err, says)
			assert.Nil(f, plan)
			assert.Equal(f, says != noID, errors.As(err, new(*webdelivery.IncompleteError)))
			assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		})
	}
}

// A service may refuse pages of 1,000 with 400. Then whatever reads a whole list, or all lists, reads pages of the service's own
// size. If these fail as well, the first error is returned.
func TestPagesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, http.StatusBadRequest, http.StatusForbidden} { // of pages of the service's own size
		fixture.WithList(t, fixture.Setup{}, fixture.Addresses(150), func(f *fixture.Fixture) {
			fake := f.HTTP.Transport
			f.HTTP.Transport = fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				body := []byte(`{"description":"of count ` + r.URL.Query().Get("count") + `"}`)
				switch isCollection := strings.HasSuffix(r.URL.Path, "s"); {
				case r.URL.Query().Get("count") == "1000":
					return fixture.Response(http.StatusBadRequest, body), nil
				case isCollection && status != 0:
					return fixture.Response(status, body), nil
				}
				return fake.RoundTrip(r)
			})
			lists := f.NewClient(f.Srv.URL(), fixture.Setup{}).NetworkLists
			_, listsErr := lists.GetByName(f.Context(), "blocklist")
			plan, entriesErr := lists.Plan(f.Context(), fixture.ListID, fixture.Addresses(150), webdelivery.PlanOptions{})
			if status == 0 {
				require.NoError(f, errors.Join(listsErr, entriesErr))
				assert.True(f, plan.Empty())
				return
			}
			for _, err := range []error{listsErr, entriesErr} {
				require.ErrorIs(f, err, webdelivery.ErrBadRequest)
				assert.ErrorContains(f, err, "of count 1000")
			}
		})
	}
}

// AddEntries sends 12,000 entries in three calls, in order, and each duplicate once (sections 4.6 and 8, open point
// 26).
func TestAddEntriesInParts(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		all := fixture.Addresses(12_000)
		given := slices.Concat(all, []string{all[7] + "/32", "::ffff:" + all[8]})
		tasks, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, given)
		require.NoError(f, err)
		assert.Equal(f, all, f.Srv.Entries(fixture.ListID))
		assert.Len(f, given, 12_002, "the caller's slice is unchanged")
		var sizes []int
		for _, r := range f.Srv.Requests() {
			var items []map[string]string
			require.NoError(f, json.Unmarshal(r.Body, &items))
			sizes = append(sizes, len(items))
			assert.Equal(f, map[string]string{"entry": items[0]["entry"]}, items[0])
		}
		assert.Equal(f, []int{5000, 5000, 2000}, sizes)
		assert.Len(f, tasks, 3)
	})
}

// One error names each entry that is invalid, with its index and text, and of two kinds one entry each. Nothing is sent.
func TestEntriesAreRefused(t *testing.T) {
	t.Parallel()
	const none = " is neither an IP address, a CIDR range nor an ISO 3166-1 country code"
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		for want, entries := range map[string][]string{
			`webdelivery: invalid entries[1]: "198.51.100.0/33"` + none +
				`; invalid entries[2]: "192.0.2.1" belongs to a list of type IP, and "DE" to one of type GEO` +
				`; invalid entries[3]: ""` + none + `; invalid entries[5]: "XX"` + none: {
				"192.0.2.1", "198.51.100.0/33", "de", "", "2001:db8::/32", "XX", "fr",
			},
			"webdelivery: invalid entries: 50001 are more than the 50000 that a list can hold": fixture.Addresses(50_001),
		} {
			_, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, entries)
			require.ErrorIs(f, err, webdelivery.ErrInvalid)
			require.EqualError(f, err, want)
			assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		}
		_, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, nil)
		require.NoError(f, err)
		assert.Empty(f, f.Srv.Requests())
	})
}

// If a call fails, its error divides the entries into accepted, not accepted and unknown, by what the service can
// have done.
func TestPartialErrors(t *testing.T) {
	t.Parallel()
	all := fixture.Addresses(12_000)
	for name, tt := range map[string]struct {
		fault                  testserver.Fault
		accepted, unknown, not int
	}{
		"the second call is rejected": {testserver.Fault{Skip: 1, Status: 400}, 5000, 0, 7000},
		"the second call is cut":      {testserver.Fault{Skip: 1, Cut: testserver.CutAfterExecute}, 5000, 5000, 2000},
		"the third call fails":        {testserver.Fault{Skip: 2, Status: 500}, 10000, 2000, 0},
		"the first call is rejected":  {testserver.Fault{Status: 403}, 0, 0, 12000},
		"the first call is cut":       {testserver.Fault{Cut: testserver.CutBeforeRead}, 0, 5000, 7000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
				tt.fault.Method = http.MethodPost
				f.AddFault(tt.fault)
				tasks, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, all)
				var partial *webdelivery.PartialError
				require.ErrorAs(f, err, &partial)
				assert.Len(f, tasks, tt.accepted/5000)
				assert.Equal(f, all, slices.Concat(partial.Accepted, partial.Unknown, partial.NotAccepted))
				assert.Equal(f, []int{tt.accepted, tt.unknown, tt.not}, []int{len(partial.Accepted), len(partial.Unknown), len(partial.NotAccepted)})
				assert.Equal(f, tt.not == 12_000, webdelivery.OutcomeOf(err) == webdelivery.OutcomeNotApplied)
				require.ErrorAs(f, err, new(*webdelivery.Error))
				assert.NotContains(f, logged(err), "198.18")
			})
		})
	}
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
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) { // two mean the same; then one of them stays
		show(f, "192.0.2.1", "192.0.2.1/32")
		f.AddFault(testserver.Fault{Method: http.MethodDelete, Count: 2, Status: 200, Body: `{"task_id":"t"}`})
		result, err := f.Client.NetworkLists.RemoveEntries(f.Context(), fixture.ListID, []string{"192.0.2.1"})
		require.NoError(f, err)
		assert.Equal(f, []string{"t", "t"}, result.Tasks)
		f.AddFault(testserver.Fault{Method: http.MethodDelete, Path: oneList + "/e0", Status: 204})
		f.AddFault(testserver.Fault{Method: http.MethodDelete, Delay: 1, Status: http.StatusForbidden})
		_, err = f.Client.NetworkLists.RemoveEntries(f.Context(), fixture.ListID, []string{"192.0.2.1"})
		var partial *webdelivery.PartialError
		require.ErrorAs(f, err, &partial)
		assert.Equal(f, []string{"192.0.2.1"}, partial.Unknown)
	})
}

// Only an address of this list clears it: one that leads elsewhere is an unusable response, to which nothing is sent (rule 2),
// and so is another list than the requested one. The letter case of a UUID does not count.
func TestABatchDeletionAddressThatLeadsElsewhere(t *testing.T) {
	t.Parallel()
	const own, rest = "/config/networklists/" + fixture.ListID, "/entries/deletions"
	upper := strings.ToUpper(fixture.ListID)
	upperOwn := "/config/networklists/" + upper
	member := func(id, uri string) string { return fmt.Sprintf(`{"id":%q,"entries_batch_deletion_uri":%s}`, id, uri) }
	bodies := map[string]bool{`{"id":"` + fixture.ListID + `"}`: false, member("other", strconv.Quote(own+rest)): false}
	for _, uri := range []string{own + rest, upperOwn + rest} {
		bodies[member(fixture.ListID, strconv.Quote(uri))], bodies[member(upper, strconv.Quote(uri))] = true, true
	}
	for _, uri := range []string{
		`"https://evil.example.com/x"`, `"//evil.example.com/x"`, `""`, `"deletions"`, `"%"`, `" "`, `"/"`, `"/config/networklists"`, `"` + own + `"`, `"` + own + `/"`,
		`"` + own + `/../x/entries/deletions"`, `"` + own + `1` + rest + `"`, `"/other/v1` + own + rest + `"`, `"http://evil.example.com` + own + rest + `"`,
		`"` + own + rest + `#x"`, `"/config/networklists/other` + rest + `"`, `null`, `5`, `{}`,
	} {
		bodies[member(fixture.ListID, uri)] = false
	}
	for body, cleared := range bodies {
		fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: oneList, Status: 200, Body: body})
			f.AddFault(testserver.Fault{Path: "/config/networklists/" + upper + rest, Status: 204})
			show(f)
			task, err := f.Client.NetworkLists.ClearEntries(f.Context(), fixture.ListID)
			if cleared {
				require.NoError(f, err, body)
				assert.Equal(f, 1, changes(f))
				return
			}
			assert.Nil(f, task)
			require.ErrorIs(f, err, webdelivery.ErrBadResponse, body)
			require.NotErrorIs(f, err, webdelivery.ErrInvalid)
			assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			assert.Zero(f, f.Srv.ForeignDials())
			assert.Len(f, f.Srv.Requests(), 1)
		})
	}
}

// If entries are left after a batch deletion, the error contains their number, unless a task has yet to remove them.
func TestClearEntriesTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	const (
		empty = `{"items":[],"total":0,"has_more":false,"page_count":0,"page_index":1,"prev_uri":null,"next_uri":null}`
		some  = `{"items":[{"id":"e","entry":"192.0.2.1"}],"total":45000,"has_more":true,"page_count":45000,"page_index":1,"next_uri":"/x"}`
	)
	for name, tt := range map[string]struct {
		response, rest string // to the deletion, and to the entries after it; "": they are not read
		left           int
		task           string // "": the task is complete and has no id
	}{
		"no task, all gone":             {``, empty, 0, ""},
		"no task, some left":            {``, some, 45_000, ""},
		"a complete task, some left":    {`{"id":"t","complete":true}`, some, 45_000, "t"},
		"a task that failed":            {`{"id":"t","complete":false,"error_info":{"message":"too many"}}`, some, 45_000, "t"},
		"a task that is pending":        {`{"id":"t","complete":false}`, ``, 0, "t"},
		"the id of a task alone":        {`{"task_id":"t"}`, ``, 0, "t"},
		"the list itself":               {`{"id":"l","type":"IP","name":"n","entries_uri":"/x"}`, some, 45_000, ""},
		"the number of deleted entries": {`{"deleted":5,"id":5}`, some, 45_000, ""},
		"no total":                      {``, `{"items":[{"id":"e","entry":"192.0.2.1"}],"has_more":true,"next_uri":"/x"}`, 1, ""},
		"an array":                      {``, `[{"id":"e","entry":"192.0.2.1"}]`, 1, ""},
		"no item, has_more":             {``, `{"items":[],"has_more":true}`, 1, ""},
		"no item, has_more, a total":    {``, `{"items":[],"has_more":true,"total":2}`, 2, ""},
		"no item, next_uri":             {``, `{"items":[],"has_more":false,"next_uri":"/x"}`, 1, ""},
		"no item, page_count 3":         {``, `{"items":[],"has_more":false,"page_count":3}`, 1, ""},
		"no item, page_count 1":         {``, `{"items":[],"has_more":false,"page_count":1,"page_index":1}`, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
				f.AddFault(testserver.Fault{Method: http.MethodPost, Path: oneList + "/entries/deletions", Status: 200, Body: tt.response})
				f.AddFault(testserver.Fault{Path: oneList + "/entries", Status: 200, Body: tt.rest})
				task, err := f.Client.NetworkLists.ClearEntries(f.Context(), fixture.ListID)
				assert.Equal(f, tt.task, task.ID)
				assert.Equal(f, tt.rest != "", f.Srv.Count(http.MethodGet, oneList+"/entries") == 1)
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
