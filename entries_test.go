package webdelivery_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// oneList is the path of every list, for faults.
const oneList = "/config/networklists/*"

// changingList answers with pages of ten entries (service document, section 2.6) of a list that somebody changes
// after the first page was read. before and after are its entries. Members of a page that are not in form are left
// out.
type changingList struct {
	before, after []string
	form          []string
	pages         atomic.Int32 // requests for pages
}

func (l *changingList) list(w http.ResponseWriter, _ *http.Request) {
	l.write(w, map[string]any{"id": fixture.ListID, "type": "IP", "name": "blocklist"})
}

func (l *changingList) entries(w http.ResponseWriter, r *http.Request) {
	index, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil {
		index = 1
	}
	now := l.before
	if index > 1 {
		now = l.after
	}
	const size = 10
	items, pages := []map[string]string{}, (len(now)+size-1)/size
	for _, text := range now[min((index-1)*size, len(now)):min(index*size, len(now))] {
		items = append(items, map[string]string{"id": "id of " + text, "entry": text})
	}
	page := map[string]any{"items": items}
	for _, name := range l.form {
		switch name {
		case "total":
			page[name] = len(now)
		case "page_count":
			page[name] = pages
		case "page_index":
			page[name] = index
		case "has_more":
			page[name] = index < pages
		case "next_uri":
			page[name] = nil
			if index < pages {
				page[name] = fmt.Sprintf("/config/networklists/%s/entries?count=1000&page=%d", fixture.ListID, index+1)
			}
		}
	}
	l.pages.Add(1)
	l.write(w, page)
}

func (l *changingList) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// If the total of a list changes between two of its pages, or an entry comes twice, Plan returns an error, however the
// pages announce one another.
func TestAPlanOfAListThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	was := fixture.Addresses(25)
	changes := map[string][]string{
		"one is removed":                 was[1:],                                                 // the eleventh is missed
		"one is added":                   append([]string{"203.0.113.1"}, was...),                 // the tenth comes twice
		"the last moves to the front":    append([]string{was[24]}, was[:24]...),                  // the tenth comes twice
		"the first moves to the end":     append(append([]string(nil), was[1:]...), was[0]),       // the eleventh is missed
		"the second page is removed":     append(append([]string(nil), was[:10]...), was[20:]...), // ten are missed
		"all but the first page removed": was[:10],                                                // the others are missed
	}
	forms := map[string][]string{
		"all":                  {"total", "page_count", "page_index", "has_more", "next_uri"},
		"no page_index":        {"total", "page_count", "has_more", "next_uri"},
		"no page_count":        {"total", "page_index", "has_more", "next_uri"},
		"next_uri and total":   {"total", "next_uri", "has_more"},
		"total":                {"total"},
		"total and page_index": {"total", "page_index"},
	}
	for change, after := range changes {
		for form, members := range forms {
			t.Run(change+"/"+form, func(t *testing.T) {
				t.Parallel()
				fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
					l := &changingList{before: was, after: was, form: members}
					f.AddFault(testserver.Fault{Path: oneList, Handler: l.list})
					f.AddFault(testserver.Fault{Path: oneList + "/entries", Handler: l.entries})
					plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, was, webdelivery.PlanOptions{})
					require.NoError(f, err)
					assert.True(f, plan.Empty())
					assert.GreaterOrEqual(f, l.pages.Load(), int32(3))

					l.after = after
					plan, err = f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, was, webdelivery.PlanOptions{})
					var broken *webdelivery.IncompleteError
					require.ErrorAs(f, err, &broken)
					assert.Nil(f, plan)
					assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
					assert.Contains(f, broken.Reason, "/entries: ")
				})
			})
		}
	}
}

// A service may refuse pages of 1,000 with 400. Then whatever reads a whole list reads pages of the service's own size. If
// these fail as well, the first error is returned.
func TestPagesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(150), func(f *fixture.Fixture) {
		for range 15 {
			f.Srv.AddNetworkList(testserver.NetworkListSpec{Name: "other"})
		}
		status := 0 // of pages without a count; 0: the service answers
		client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{
			Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
				refused := 0
				switch query := r.URL.Query(); {
				case query.Get("count") == "1000":
					refused = http.StatusBadRequest
				case strings.HasSuffix(r.URL.Path, "s") && r.Method == http.MethodGet: // a collection
					refused = status
				}
				if refused == 0 {
					return f.HTTP.Transport.RoundTrip(r)
				}
				body := io.NopCloser(strings.NewReader(`{"description":"of count ` + r.URL.Query().Get("count") + `"}`))
				return &http.Response{StatusCode: refused, Body: body, Header: http.Header{}, Request: r}, nil
			}),
		})}}).NetworkLists
		last := "198.18.0.149"
		uses := map[string]func() error{
			"GetByName": func() error {
				_, err := client.GetByName(f.Context(), "blocklist")
				return err
			},
			"Find": func() error {
				found, _, err := client.Find(f.Context(), []netip.Addr{netip.MustParseAddr(last)})
				assert.True(f, err != nil || len(found) == 1)
				return err
			},
			"RemoveEntries and Plan": func() error {
				_, err := client.RemoveEntries(f.Context(), fixture.ListID, []string{last})
				if err != nil {
					return err
				}
				plan, err := client.Plan(f.Context(), fixture.ListID, fixture.Addresses(150), webdelivery.PlanOptions{})
				require.NoError(f, err)
				assert.Equal(f, []string{last}, plan.Add)
				_, err = client.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				return err
			},
		}
		for name, use := range uses {
			status = 0
			require.NoError(f, use(), name)
			assert.ElementsMatch(f, fixture.Addresses(150), f.Srv.Entries(fixture.ListID))
			for _, status = range []int{http.StatusBadRequest, http.StatusForbidden} {
				err := use()
				require.ErrorIs(f, err, webdelivery.ErrBadRequest, name)
				assert.ErrorContains(f, err, "of count 1000")
			}
		}
	})
}

// An entry that a list already contains can be kept and desired, also if it violates the service document; as an
// addition it is refused. The letter case of a code does not count.
func TestEntriesThatCannotBeParsed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec        testserver.NetworkListSpec
		desired     []string
		add, remove []string
		field       string // "": accepted
	}{
		"reserved codes are kept": {
			testserver.NetworkListSpec{Type: "GEO", Entries: []string{"XK", "EU", "DE"}}, []string{"xk", "EU", "AT"}, []string{"AT"}, []string{"DE"}, "",
		},
		"reserved codes are removed": {
			testserver.NetworkListSpec{Type: "GEO", Entries: []string{"XK", "EU", "DE"}}, []string{"DE"}, nil, []string{"XK", "EU"}, "",
		},
		"only reserved codes": {
			testserver.NetworkListSpec{Type: "GEO", Entries: []string{"XK", "UK"}}, []string{"UK", "XK", "UK"}, nil, nil, "",
		},
		"a new reserved code": {
			testserver.NetworkListSpec{Type: "GEO", Entries: []string{"XK", "DE"}}, []string{"XK", "DE", "EU"}, nil, nil, "desired[2]",
		},
		"odd addresses are kept": {
			testserver.NetworkListSpec{Entries: []string{"192.0.2.1-192.0.2.9", "fe80::1%eth0", "198.51.100.007"}},
			[]string{"fe80::1%eth0", "192.0.2.1-192.0.2.9", "192.0.2.0/24"},
			[]string{"192.0.2.0/24"},
			[]string{"198.51.100.007"},
			"",
		},
		"a new odd address": {
			testserver.NetworkListSpec{Entries: []string{"192.0.2.1-192.0.2.9"}}, []string{"192.0.2.1-192.0.2.9", "192.0.2.1-192.0.2.10"}, nil, nil, "desired[1]",
		},
		"a code in a list of addresses": {
			testserver.NetworkListSpec{Entries: []string{"XK"}}, []string{"XK", "DE"}, nil, nil, "desired[1]",
		},
	}
	for name, tt := range tests {
		for _, aggregate := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", aggregate ", aggregate), func(t *testing.T) {
				t.Parallel()
				fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
					id := f.Srv.AddNetworkList(tt.spec)
					options := webdelivery.PlanOptions{MaxRemove: -1, Aggregate: aggregate}
					plan, err := f.Client.NetworkLists.Plan(f.Context(), id, tt.desired, options)
					if tt.field != "" {
						require.ErrorContains(f, err, "plan refused: "+tt.field)
						require.ErrorAs(f, err, new(*webdelivery.PlanError))
						require.NotErrorIs(f, err, webdelivery.ErrInvalid)
						return
					}
					require.NoError(f, err)
					assert.ElementsMatch(f, tt.add, plan.Add)
					removed := []string{}
					for _, e := range plan.Remove {
						removed = append(removed, e.Entry)
					}
					assert.ElementsMatch(f, tt.remove, removed)
					_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
					require.NoError(f, err)
					plan, err = f.Client.NetworkLists.Plan(f.Context(), id, f.Srv.Entries(id), options)
					require.NoError(f, err)
					assert.True(f, plan.Empty(), "the plan keeps the service's entries unchanged")
				})
			})
		}
	}
}

// AddEntries sends 12,000 entries in three calls, in order, and each duplicate once (sections 4.6 and 8, open point
// 26).
func TestAddEntriesInParts(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		all := fixture.Addresses(12_000)
		given := append([]string{}, all...)
		given = append(given, all[7]+"/32", "::ffff:"+all[8]) // duplicates
		tasks, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, given)
		require.NoError(f, err)
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
		assert.Len(f, tasks, 3)
	})
}

// AddEntries finds the task in whatever shape the service answers (open point 21).
func TestResponsesToAddedEntries(t *testing.T) {
	t.Parallel()
	for shape, n := range map[string]int{"task": 1, "task_id": 1, "id": 1, "entries": 0, "empty": 0} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			s := fixture.Setup{Server: testserver.Config{Dialect: testserver.Dialect{EntriesReply: shape}}}
			fixture.WithList(t, s, nil, func(f *fixture.Fixture) {
				tasks, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, []string{"192.0.2.1", "192.0.2.2"})
				require.NoError(f, err)
				assert.Len(f, tasks, n)
				assert.NotContains(f, tasks, "")
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
