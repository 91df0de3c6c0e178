package webdelivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// anything allows a plan to remove all of the list.
var anything = webdelivery.PlanOptions{MaxRemove: -1}

// The plan for a list and a desired set, which are compared by meaning (open point 27).
func TestPlan(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1", "192.0.2.2/32", "198.51.100.0/24", "2001:db8::1"}, func(f *fixture.Fixture) {
		desired := []string{"192.0.2.1/32", "203.0.113.7", "198.51.100.99/24", "::ffff:192.0.2.2", "203.0.113.7/32"}
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, desired, anything)
		require.NoError(f, err)
		assert.Equal(f, []string{"203.0.113.7"}, plan.Add)
		require.Len(f, plan.Remove, 1)
		assert.Equal(f, "2001:db8::1", plan.Remove[0].Entry)
		assert.NotEmpty(f, plan.Remove[0].ID)
		assert.Equal(f, 3, plan.Keep)
		assert.False(f, plan.Empty())
		assert.Equal(f, `IP list blocklist (`+fixture.ListID+`): add 1, remove 1, keep 3; 4 entries become 4
+ 203.0.113.7
- 2001:db8::1
`, plan.String())
		assert.Equal(f, 0, f.Srv.Count(http.MethodPost, "")+f.Srv.Count(http.MethodDelete, ""), "a plan changes nothing")

		same, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, f.Srv.Entries(fixture.ListID), webdelivery.PlanOptions{})
		require.NoError(f, err)
		assert.True(f, same.Empty())
		assert.Equal(f, "IP list blocklist ("+fixture.ListID+"): nothing to change, 4 entries\n", same.String())
		result, err := f.Client.NetworkLists.Apply(f.Context(), same, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Equal(f, 4, result.Size)
		assert.Equal(f, 0, f.Srv.Count(http.MethodPost, "")+f.Srv.Count(http.MethodDelete, ""))
	})
}

// Plan returns an error in these cases, and changes nothing. They are too many removals, an empty feed, too many
// entries, entries of another type, and invalid options. If the error does not depend on the list, it matches
// ErrInvalid and nothing is sent; otherwise it is a PlanError.
func TestPlansThatAreRefused(t *testing.T) {
	t.Parallel()
	list := fixture.Addresses(100)
	tests := []struct {
		name    string
		desired []string
		options webdelivery.PlanOptions
		field   string // "": no error
		early   bool   // without a request
	}{
		{"20 of 100 by default", list[20:], webdelivery.PlanOptions{}, "", false},
		{"21 of 100 by default", list[21:], webdelivery.PlanOptions{}, "MaxRemove", false},
		{"an empty feed", nil, webdelivery.PlanOptions{}, "MaxRemove", false},
		{"an empty feed, allowed to remove all", nil, anything, "", false},
		{"29 of 100, at most 29", list[29:], webdelivery.PlanOptions{MaxRemove: 29}, "", false},
		{"30 of 100, at most 29", list[30:], webdelivery.PlanOptions{MaxRemove: 29}, "MaxRemove", false},
		{"more than the list has", list[30:], webdelivery.PlanOptions{MaxRemove: 1_000_000}, "", false},
		{"a number below -1", list, webdelivery.PlanOptions{MaxRemove: -2}, "MaxRemove", true},
		{"only additions and only removals", list, webdelivery.PlanOptions{AddOnly: true, RemoveOnly: true}, "RemoveOnly", true},
		{"50,000", append(fixture.Addresses(50_000)[100:], list...), webdelivery.PlanOptions{}, "", false},
		{"50,001", fixture.Addresses(50_001), webdelivery.PlanOptions{}, "desired", true},
		{"a country", []string{list[0], "DE"}, anything, "desired[1]", true},
		{"no entry", []string{"www.example.com"}, anything, "desired[0]", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, list, func(f *fixture.Fixture) {
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, tt.desired, tt.options)
				if tt.field == "" {
					require.NoError(f, err)
					return
				}
				assert.Nil(f, plan)
				assert.Equal(f, tt.field, fieldOf(f, err, tt.early))
				assert.Equal(f, tt.early, len(f.Srv.Requests()) == 0)
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			})
		})
	}
}

// fieldOf returns the field of the first error: a ValidationError if it came before any request, otherwise a PlanError.
func fieldOf(f *fixture.Fixture, err error, early bool) string {
	f.Helper()
	assert.Equal(f, early, errors.Is(err, webdelivery.ErrInvalid), "%v", err)
	assert.Equal(f, !early, errors.As(err, new(*webdelivery.PlanError)), "%v", err)
	var invalid *webdelivery.ValidationError
	var refused *webdelivery.PlanError
	switch {
	case errors.As(err, &invalid):
		return invalid.Field
	case errors.As(err, &refused):
		return refused.Field
	}
	return ""
}

// A plan that is stored as JSON is the same plan, and can be applied later.
func TestAStoredPlan(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1", "192.0.2.2"}, func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.2", "192.0.2.3"}, anything)
		require.NoError(f, err)
		stored, err := json.Marshal(plan)
		require.NoError(f, err)
		var read webdelivery.Plan
		require.NoError(f, json.Unmarshal(stored, &read))
		assert.Equal(f, *plan, read)
		time.Sleep(time.Hour)
		result, err := f.Client.NetworkLists.Apply(f.Context(), &read, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.2", "192.0.2.3"}, f.Srv.Entries(fixture.ListID))
		assert.Equal(f, 1, result.Added)
		assert.Equal(f, 1, result.Removed)
		assert.Equal(f, 2, result.Size)
	})
}

// A stored plan says when it was made and for whom. Another client refuses it.
func TestAPlanForAnotherService(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
		made := time.Now()
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.2"}, anything)
		require.NoError(f, err)
		assert.Equal(f, made.UTC().Truncate(time.Second), plan.MadeAt)
		assert.Equal(f, f.Srv.URL(), plan.Service)
		assert.Equal(f, fixture.Customer, plan.Customer)
		sent := len(f.Srv.Requests())
		for field, change := range map[string]func(*webdelivery.Plan){
			"service":  func(p *webdelivery.Plan) { p.Service = "https://api.example.org" },
			"customer": func(p *webdelivery.Plan) { p.Customer = "another" },
		} {
			other := *plan
			change(&other)
			result, err := f.Client.NetworkLists.Apply(f.Context(), &other, webdelivery.ApplyOptions{})
			assert.Nil(f, result)
			assert.Equal(f, field, fieldOf(f, err, true))
		}
		assert.Len(f, f.Srv.Requests(), sent)
	})
}

// A plan that was carried out may be applied again: nothing is changed, and its guards do not count. If the list holds
// anything else than the plan made of it, the plan is stale.
func TestAPlanThatWasCarriedOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		held, desired string
		change        func(srv *testserver.Server)
	}{
		"additions and removals":        {"192.0.2.1 192.0.2.2", "192.0.2.2 192.0.2.3 192.0.2.4", nil},
		"all of the list":               {"", "192.0.2.2", nil},
		"nothing is left":               {"192.0.2.1 192.0.2.2", "", nil},
		"another entry was added":       {"192.0.2.1", "192.0.2.2", func(s *testserver.Server) { s.ChangeEntries(fixture.ListID, []string{"192.0.2.9"}, nil) }},
		"an addition was removed":       {"192.0.2.1", "192.0.2.2 192.0.2.3", func(s *testserver.Server) { s.ChangeEntries(fixture.ListID, nil, []string{"192.0.2.3"}) }},
		"a removed one was added again": {"192.0.2.1", "192.0.2.2", func(s *testserver.Server) { s.ChangeEntries(fixture.ListID, []string{"192.0.2.1"}, nil) }},
		"what stays was exchanged": {"192.0.2.1 192.0.2.2", "192.0.2.2 192.0.2.3", func(s *testserver.Server) {
			s.ChangeEntries(fixture.ListID, []string{"192.0.2.9"}, []string{"192.0.2.2"})
		}},
		"an addition in another spelling": {"192.0.2.1", "192.0.2.2/32", func(s *testserver.Server) {
			s.ChangeEntries(fixture.ListID, []string{"192.0.2.2"}, []string{"192.0.2.2/32"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, strings.Fields(tt.held), func(f *fixture.Fixture) {
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, strings.Fields(tt.desired), anything)
				require.NoError(f, err)
				first, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
				require.NoError(f, err)
				if tt.change != nil {
					tt.change(f.Srv)
				}
				changes := f.Srv.Count(http.MethodPost, "") + f.Srv.Count(http.MethodDelete, "")
				polls := f.Srv.Count(http.MethodGet, "/tasks/*")
				again, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
				if tt.change != nil && name != "an addition in another spelling" {
					require.ErrorIs(f, err, webdelivery.ErrPlanStale)
					assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				} else {
					require.NoError(f, err)
					assert.Equal(f, &webdelivery.ApplyResult{Size: first.Size}, again)
				}
				assert.Equal(f, changes, f.Srv.Count(http.MethodPost, "")+f.Srv.Count(http.MethodDelete, ""))
				assert.Equal(f, polls, f.Srv.Count(http.MethodGet, "/tasks/*"))
			})
		})
	}
}

// Somebody else changes the list. If that happens before Apply, Apply changes nothing; if it happens meanwhile, Apply
// returns an error at the end.
func TestPlansThatAreStale(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1", "192.0.2.2"}, func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.2", "192.0.2.3"}, anything)
		require.NoError(f, err)
		f.Srv.ChangeEntries(fixture.ListID, []string{"203.0.113.1"}, nil)
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.ErrorIs(f, err, webdelivery.ErrPlanStale)
		assert.Equal(f, []string{"192.0.2.1", "192.0.2.2", "203.0.113.1"}, f.Srv.Entries(fixture.ListID))

		plan, err = f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.2", "192.0.2.3"}, anything)
		require.NoError(f, err)
		f.Srv.ChangeEntries(fixture.ListID, nil, []string{"192.0.2.1"})
		f.Srv.ChangeEntries(fixture.ListID, []string{"192.0.2.1"}, nil) // a duplicate with another id
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.ErrorIs(f, err, webdelivery.ErrPlanStale)

		plan, err = f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.2", "192.0.2.3"}, anything)
		require.NoError(f, err)
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Progress: func(added, removed, _ int) {
			if added == 1 && removed == 0 {
				f.Srv.ChangeEntries(fixture.ListID, []string{"203.0.113.9"}, []string{"192.0.2.2"})
			}
		}})
		require.ErrorIs(f, err, webdelivery.ErrPlanStale)
		require.ErrorContains(f, err, "1 entries are missing and 1 are unexpected")
	})
}

// Aggregate keeps covered entries unchanged, and sends ranges.
func TestPlanAggregates(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.0/25", "203.0.113.9"}, func(f *fixture.Fixture) {
		desired := []string{"192.0.2.0/25", "192.0.2.128/26", "192.0.2.192/26", "192.0.2.7", "203.0.113.9/32"}
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, desired, webdelivery.PlanOptions{MaxRemove: -1, Aggregate: true})
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.0/24"}, plan.Add)
		require.Len(f, plan.Remove, 1)
		assert.Equal(f, "192.0.2.0/25", plan.Remove[0].Entry)
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Equal(f, []string{"203.0.113.9", "192.0.2.0/24"}, f.Srv.Entries(fixture.ListID))
	})
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		id := f.Srv.AddNetworkList(testserver.NetworkListSpec{Type: "GEO", Entries: []string{"DE", "FR"}})
		plan, err := f.Client.NetworkLists.Plan(f.Context(), id, []string{"de", "AT"}, webdelivery.PlanOptions{MaxRemove: -1, Aggregate: true})
		require.NoError(f, err)
		assert.Equal(f, []string{"AT"}, plan.Add)
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Equal(f, []string{"DE", "AT"}, f.Srv.Entries(id))
	})
}

// A feed that mixes countries and addresses is refused. The error names one of each, because the first entry may be the
// wrong one.
func TestAFeedOfBothKinds(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		for says, desired := range map[string][]string{
			`desired[1]: "ID" belongs to a list of type GEO, and "192.0.2.1" to one of type IP`: {"id", "192.0.2.1", "192.0.2.2"},
			`desired[3]: "192.0.2.1" belongs to a list of type IP, and "ID" to one of type GEO`: {"192.0.2.1", "no entry", "192.0.2.0/24", "ID", "DE"},
		} {
			_, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, desired, anything)
			require.ErrorIs(f, err, webdelivery.ErrInvalid)
			assert.EqualError(f, err, "webdelivery: invalid "+says)
		}
		assert.Empty(f, f.Srv.Requests())
	})
}

// If another version stored a plan, the error names that version, whatever members the plan has.
func TestPlansOfOtherVersions(t *testing.T) {
	t.Parallel()
	for stored, says := range map[string]string{
		`{"list_id":"l","largest":5,"max_remove":0.2,"before":"f"}`: "invalid version: the plan has none; create it with NetworkLists.Plan",
		`{"version":2,"max_remove":{"share":0.2}}`:                  "invalid version: the plan has version 2",
		`{"version":1,"options":{"max_remove":0.2}}`:                "max_remove",
		`[]`: "array",
	} {
		var plan webdelivery.Plan
		require.ErrorContains(t, json.Unmarshal([]byte(stored), &plan), says)
		assert.Empty(t, plan.ListID)
	}
	var plan webdelivery.Plan
	require.NoError(t, json.Unmarshal([]byte(`{"version":1,"list_id":"l","options":{"max_remove":3},"keep":5,"fingerprint":"f"}`), &plan))
	assert.Equal(t, webdelivery.Plan{Version: 1, ListID: "l", Options: webdelivery.PlanOptions{MaxRemove: 3}, Keep: 5, Fingerprint: "f"}, plan)
}

// A stored plan may be changed by hand. What it removes must be in the list, once, and no more than MaxRemove; what it
// adds must be new. If no list can match the plan, Apply refuses it before it reads the list.
func TestStoredPlansAreCheckedAgain(t *testing.T) {
	t.Parallel()
	type plan = webdelivery.Plan
	type entry = webdelivery.NetworkListEntry
	for _, tt := range []struct {
		name   string
		field  string
		sent   bool // the list was read
		change func(p *plan, all []entry)
	}{
		{"removes everything", "MaxRemove", true, func(p *plan, all []entry) { p.Remove, p.Keep = all, 49_000 }},
		{"removes the id of another entry", "remove[0]", true, func(p *plan, all []entry) { p.Remove[0].ID = all[5].ID }},
		{"removes one twice", "remove[1]", true, func(p *plan, _ []entry) { p.Remove = append(p.Remove, p.Remove[0]) }},
		{"removes an entry without an id", "remove[0]", true, func(p *plan, _ []entry) { p.Remove[0].ID = "" }},
		{"adds what it removes", "add[0]", true, func(p *plan, _ []entry) { p.Add = []string{p.Remove[0].Entry + "/32"} }},
		{"adds what stays", "add[0]", true, func(p *plan, all []entry) { p.Add = []string{all[5].Entry} }},
		{"adds one twice", "add[1]", true, func(p *plan, _ []entry) { p.Add = []string{"203.0.113.1", "203.0.113.1/32"} }},
		{"adds a text that is no entry", "add[0]", false, func(p *plan, _ []entry) { p.Add = []string{"x y"} }},
		{"adds an entry of another type", "add[0]", false, func(p *plan, _ []entry) { p.Add = []string{"DE"} }},
		{"another type", "type", true, func(p *plan, _ []entry) { p.Type, p.Add = webdelivery.ListTypeGEO, []string{"DE"} }},
		{"another type, and nothing stays", "type", true, func(p *plan, all []entry) {
			p.Type, p.Add, p.Remove, p.Options.MaxRemove = webdelivery.ListTypeGEO, []string{"DE"}, all, -1
		}},
		{"no type", "type", false, func(p *plan, _ []entry) { p.Type, p.Add = "", []string{"DE"} }},
		{"no list", "list_id", false, func(p *plan, _ []entry) { p.ListID = "" }},
		{"another version", "version", false, func(p *plan, _ []entry) { p.Version++ }},
		{"no version", "version", false, func(p *plan, _ []entry) { p.Version = 0 }},
		{"nothing", "version", false, func(p *plan, _ []entry) { *p = plan{} }},
		{"no limit", "MaxRemove", false, func(p *plan, _ []entry) { p.Options.MaxRemove = -2 }},
		{"adds only, and removes", "options", false, func(p *plan, _ []entry) { p.Options.AddOnly = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, fixture.Addresses(10), func(f *fixture.Fixture) {
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, fixture.Addresses(10)[1:], webdelivery.PlanOptions{})
				require.NoError(f, err)
				page, err := f.Client.NetworkLists.Entries(f.Context(), fixture.ListID, webdelivery.EntryOptions{})
				require.NoError(f, err)
				tt.change(plan, page.Items)
				before := len(f.Srv.Requests())
				result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				assert.Nil(f, result)
				assert.Equal(f, tt.field, fieldOf(f, err, !tt.sent))
				assert.Equal(f, tt.sent, len(f.Srv.Requests()) > before)
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				assert.Equal(f, fixture.Addresses(10), f.Srv.Entries(fixture.ListID))
			})
		})
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		id := f.Srv.AddNetworkList(testserver.NetworkListSpec{Type: "GEO"})
		plan, err := f.Client.NetworkLists.Plan(f.Context(), id, []string{"DE"}, anything)
		require.NoError(f, err)
		plan.Add[0] = "de"
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Equal(f, []string{"DE"}, f.Srv.Entries(id))
		assert.Equal(f, "de", plan.Add[0], "the caller's plan is unchanged")
	})
}

// The plan belongs to the requested list.
func TestAPlanIsForTheRequestedList(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		restore := f.Srv.Fail(testserver.Fault{Path: "/config/networklists/*", Status: 200, Body: `{"id":"other","type":"IP"}`})
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.1"}, anything)
		require.ErrorIs(f, err, webdelivery.ErrBadResponse, "another list")
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		assert.Nil(f, plan)
		upper := strings.ToUpper(fixture.ListID)
		restore()
		f.AddFault(testserver.Fault{Path: "/config/networklists/*", Status: 200, Body: `{"id":"` + upper + `","type":"IP"}`})
		plan, err = f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.1"}, anything)
		require.NoError(f, err)
		assert.Equal(f, fixture.ListID, plan.ListID)
	})
}

// The lines of a plan: the numbers, what is uncovered, and the entries.
func TestThePlanAsText(t *testing.T) {
	t.Parallel()
	one := []webdelivery.NetworkListEntry{{ID: "a", Entry: "192.0.2.1"}}
	const head = "IP list n (l): "
	for _, tt := range []struct {
		plan  webdelivery.Plan
		empty bool
		size  int
		text  string
	}{
		{webdelivery.Plan{Keep: 3}, true, 3, "nothing to change, 3 entries\n"},
		{
			webdelivery.Plan{Keep: 3, Remove: one},
			false, 3,
			"add 0, remove 1, keep 3; 4 entries become 3\n- 192.0.2.1\n",
		},
		{
			webdelivery.Plan{Keep: 3, Add: []string{"192.0.2.2"}},
			false, 4,
			"add 1, remove 0, keep 3; 3 entries become 4\n+ 192.0.2.2\n",
		},
		{
			webdelivery.Plan{Add: []string{"192.0.2.0/24", "203.0.113.1"}, Remove: one, UncoveredDuringApply: 1},
			false, 2,
			"add 2, remove 1, keep 0; 1 entry becomes 2\n" +
				"the list is full: the addresses of up to 1 entries are not covered for a moment\n" +
				"+ 192.0.2.0/24\n+ 203.0.113.1\n- 192.0.2.1\n",
		},
	} {
		tt.plan.ListID, tt.plan.Type, tt.plan.Name = "l", webdelivery.ListTypeIP, "n"
		assert.Equal(t, head+tt.text, tt.plan.String())
		assert.Equal(t, tt.empty, tt.plan.Empty())
	}
	for n, more := range map[int]string{19: "", 20: "", 21: "+ and 1 more\n", 22: "+ and 2 more\n"} {
		plan := webdelivery.Plan{Add: fixture.Addresses(n)}
		_, after, _ := strings.Cut(plan.String(), "+ 198.18.0."+fmt.Sprint(min(n, 20)-1)+"\n")
		assert.Equal(t, more, after)
	}
}

// The guards of additions: an addition may be wider than allowed, or there may be too many. Then Plan returns an
// error that names the entry, the guard and the option to change. An entry that the list already holds is no
// addition.
func TestGuardsOfAdditions(t *testing.T) {
	t.Parallel()
	held := []string{"192.0.2.1", "96.0.0.0/4"}
	type options = webdelivery.PlanOptions
	office := []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	tests := []struct {
		name    string
		add     []string
		options options
		field   string   // "": allowed
		texts   []string // of the error
	}{
		{"/8", []string{"11.0.0.0/8"}, options{}, "", nil},
		{
			"/7",
			[]string{"11.0.0.0/8", "10.0.0.0/7"},
			options{},
			"WidestIPv4",
			[]string{"10.0.0.0/7 (desired[3])", "widest allowed IPv4 range is /8;", "set WidestIPv4 to 7"},
		},
		{"/7 allowed", []string{"10.0.0.0/7"}, options{WidestIPv4: 7}, "", nil},
		{"a range cut in its last line", []string{"198.51.100.0/2"}, options{}, "WidestIPv4", []string{"198.51.100.0/2 (desired[2])"}},
		{"all of IPv4", []string{"0.0.0.0/0"}, options{WidestIPv4: 1}, "WidestIPv4", []string{"set WidestIPv4 to -1"}},
		{"all of IPv4 allowed", []string{"0.0.0.0/0"}, options{WidestIPv4: -1}, "", nil},
		{
			"narrower than the default",
			[]string{"203.0.113.0/24", "198.51.100.0/23"},
			options{WidestIPv4: 24},
			"WidestIPv4",
			[]string{"198.51.100.0/23 (desired[3])", "widest allowed IPv4 range is /24;"},
		},
		{"IPv4 in IPv6", []string{"::ffff:0.0.0.0/96"}, options{}, "WidestIPv4", []string{"::ffff:0.0.0.0/96 (desired[2])"}},
		{"/7 of IPv4 in IPv6", []string{"::ffff:10.0.0.0/103"}, options{}, "WidestIPv4", []string{"set WidestIPv4 to 7"}},
		{"/8 of IPv4 in IPv6", []string{"::ffff:10.0.0.0/104"}, options{}, "", nil},
		{
			"around IPv4 in IPv6",
			[]string{"::fffe:0:0/95"},
			options{},
			"WidestIPv4",
			[]string{"::fffe:0:0/95 (desired[2])", "all IPv4 addresses in their IPv6 form", "set WidestIPv4 to -1"},
		},
		{"around IPv4 in IPv6, by host bits", []string{"::1/32"}, options{}, "WidestIPv4", []string{"::1/32 (desired[2])"}},
		{"around IPv4 in IPv6 allowed", []string{"::/64"}, options{WidestIPv4: -1}, "", nil},
		{"beside IPv4 in IPv6", []string{"::/96"}, options{}, "", nil},
		{"/19 of IPv6", []string{"2001:c000::/19"}, options{}, "", nil},
		{
			"/18 of IPv6",
			[]string{"2001:c000::/18"},
			options{},
			"WidestIPv6",
			[]string{"2001:c000::/18 (desired[2])", "widest allowed IPv6 range is /19;", "set WidestIPv6 to 18"},
		},
		{"/18 of IPv6 allowed", []string{"2001:c000::/18"}, options{WidestIPv6: 18}, "", nil},
		{"all of IPv6", []string{"::/0"}, options{}, "WidestIPv6", []string{"set WidestIPv6 to -1", "set WidestIPv4 to -1"}},
		{"all of IPv6 allowed, not all of IPv4", []string{"::/0"}, options{WidestIPv6: -1}, "WidestIPv4", []string{"::/0 (desired[2])"}},
		{"all of both allowed", []string{"::/0", "0.0.0.0/0"}, options{WidestIPv4: -1, WidestIPv6: -1}, "", nil},
		{
			"merged to a /7",
			[]string{"10.0.0.0/8", "11.0.0.0/8"},
			options{Aggregate: true},
			"WidestIPv4",
			[]string{"10.0.0.0/7 (merged by Aggregate)"},
		},
		{"merged to a /8", []string{"10.0.0.0/9", "10.128.0.0/9"}, options{Aggregate: true}, "", nil},
		{
			"merged to all of IPv6",
			[]string{"::/1", "8000::/1"},
			options{Aggregate: true, WidestIPv4: -1},
			"WidestIPv6",
			[]string{"::/0 (merged by Aggregate)"},
		},
		{
			"three, and two may be", fixture.Addresses(3),
			options{MaxAdd: 2},
			"MaxAdd",
			[]string{"3 entries would be added, for example 198.18.0.0 (desired[2]), but at most 2 are allowed", "set MaxAdd to 3"},
		},
		{"two, and two may be", fixture.Addresses(2), options{MaxAdd: 2}, "", nil},
		{"two of four, merged to one", []string{"198.51.100.0/25", "198.51.100.128/25"}, options{MaxAdd: 1, Aggregate: true}, "", nil},
		{
			"in a range that is never blocked",
			[]string{"203.0.113.7"},
			options{Never: office},
			"Never",
			[]string{"203.0.113.7 (desired[2]) would be added, but it overlaps 203.0.113.0/24; remove that from Never"},
		},
		{"around one", []string{"203.0.112.0/22"}, options{Never: office}, "Never", []string{"203.0.112.0/22 (desired[2])"}},
		{"around one in IPv6 form", []string{"::/0"}, options{Never: office, WidestIPv4: -1, WidestIPv6: -1}, "Never", nil},
		{"beside it", []string{"203.0.112.0/24"}, options{Never: office}, "", nil},
		{"held within it", nil, options{Never: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, "", nil},
		{
			"too many and too wide",
			[]string{"0.0.0.0/1", "203.0.113.1"},
			options{MaxAdd: 1},
			"MaxAdd",
			[]string{"2 entries would be added, for example ", "; plan refused: WidestIPv4: 0.0.0.0/1 (desired[2])"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, held, func(f *fixture.Fixture) {
				tt.options.MaxRemove = -1
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, slices.Concat(held, tt.add), tt.options)
				if tt.field == "" {
					require.NoError(f, err)
					_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
					require.NoError(f, err)
					return
				}
				refused, ok := errors.AsType[*webdelivery.PlanError](err)
				require.True(f, ok, "%v", err)
				assert.Equal(f, tt.field, refused.Field)
				require.NotErrorIs(f, err, webdelivery.ErrInvalid)
				for _, text := range tt.texts {
					require.ErrorContains(f, err, text)
				}
				assert.Nil(f, plan)
			})
		})
	}
}

// A plan keeps the entries that Protect keeps, also when it was stored. They do not count for MaxRemove.
func TestProtectedEntriesStay(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}, func(f *fixture.Fixture) {
		_, err := f.Client.NetworkLists.AddEntries(f.Context(), fixture.ListID, []string{"198.51.100.0/25"})
		require.NoError(f, err)
		var asked []string
		options := webdelivery.PlanOptions{MaxRemove: 1, Aggregate: true, Protect: func(e webdelivery.NetworkListEntry) bool {
			asked = append(asked, e.Entry)
			return e.AddedBy != "operator" || e.Entry == "192.0.2.3"
		}}
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.2", "198.51.100.0/24"}, options)
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.1", "192.0.2.3", "198.51.100.0/25"}, asked, "only what the plan would remove")
		assert.Equal(f, 3, plan.Keep)
		stored, err := json.Marshal(plan)
		require.NoError(f, err)
		var read webdelivery.Plan
		require.NoError(f, json.Unmarshal(stored, &read))
		_, err = f.Client.NetworkLists.Apply(f.Context(), &read, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.2", "192.0.2.3", "198.51.100.0/25", "198.51.100.0/24"}, f.Srv.Entries(fixture.ListID))
	})
}

// An entry whose time is absent or cannot be read may be younger than Protect wants, so it stays, and the plan says so.
func TestUndatedEntriesStay(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(3), func(f *fixture.Fixture) {
		body := `{"items":[`
		for i, at := range []string{`"1999-05-01T12:00:00Z"`, `"1999-05-01T24:00:00Z"`, `null`} {
			body += fmt.Sprintf(`{"id":"%d","entry":"%s","creation_timestamp":%s},`, i, fixture.Addresses(3)[i], at)
		}
		f.AddFault(testserver.Fault{Path: "/config/networklists/*/entries", Status: 200, Body: strings.TrimSuffix(body, ",") + `],"total":3}`})
		for protect, want := range map[bool][]int{false: {3, 0}, true: {1, 2}} {
			options := webdelivery.PlanOptions{MaxRemove: -1}
			if protect {
				options.Protect = func(e webdelivery.NetworkListEntry) bool { return time.Since(e.CreationTimestamp) < time.Hour }
			}
			plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, nil, options)
			require.NoError(f, err)
			assert.Equal(f, want, []int{len(plan.Remove), plan.Undated})
			assert.Equal(f, protect, strings.Contains(plan.String(), "keep 2, 2 of them because nobody knows when they were added;"), plan)
		}
	})
}

// Of many entries that a guard refuses, the error names the first 100, and says how many it did not check.
func TestManyEntriesThatAGuardRefuses(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		options := webdelivery.PlanOptions{Never: []netip.Prefix{netip.MustParsePrefix("198.18.0.0/15")}}
		_, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, fixture.Addresses(150), options)
		require.ErrorContains(f, err, "198.18.0.99 (desired[99])")
		require.NotContains(f, err.Error(), "desired[100]")
		require.ErrorContains(f, err, "the 50 values after these were not checked")
	})
}

// If the context ends while Plan compares, Plan returns its error.
func TestPlanEndsWithTheContext(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(2), func(f *fixture.Fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		defer cancel()
		plan, err := f.Client.NetworkLists.Plan(ctx, fixture.ListID, fixture.Addresses(1), webdelivery.PlanOptions{
			MaxRemove: -1,
			Protect: func(webdelivery.NetworkListEntry) bool {
				cancel()
				return false
			},
		})
		require.ErrorIs(f, err, context.Canceled)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		assert.Nil(f, plan)
	})
}

// A plan that only adds, or only removes, leaves all other entries alone, whoever changes them before it is applied, and
// may be applied again. Guards hold for it.
func TestPlansOfOneKind(t *testing.T) {
	t.Parallel()
	lists := func(f *fixture.Fixture) *webdelivery.NetworkListsService { return f.Client.NetworkLists }
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(20), func(f *fixture.Fixture) {
		all := fixture.Addresses(24)
		more := func(entries ...string) *webdelivery.Plan {
			plan, err := lists(f).Plan(f.Context(), fixture.ListID, append(entries, all[0]), webdelivery.PlanOptions{AddOnly: true})
			require.NoError(f, err)
			assert.Equal(f, entries, plan.Add)
			assert.Empty(f, plan.Remove)
			assert.Equal(f, 20, plan.Keep)
			return plan
		}
		one, other := more(all[20], all[21]), more(all[21], all[22])
		less, err := lists(f).Plan(f.Context(), fixture.ListID, []string{all[3] + "/32", all[4], all[23]}, webdelivery.PlanOptions{RemoveOnly: true})
		require.NoError(f, err)
		assert.Len(f, less.Remove, 2)
		assert.Empty(f, less.Add)
		for _, plan := range []*webdelivery.Plan{one, other, less, one, less} {
			f.Srv.ChangeEntries(fixture.ListID, []string{"203.0.113.7"}, []string{all[5]}) // somebody else
			_, err := lists(f).Apply(f.Context(), plan, webdelivery.ApplyOptions{})
			require.NoError(f, err)
		}
		want := append(slices.Concat(all[:3], all[6:23]), "203.0.113.7")
		assert.ElementsMatch(f, want, f.Srv.Entries(fixture.ListID))

		_, err = lists(f).Plan(f.Context(), fixture.ListID, all[:10], webdelivery.PlanOptions{RemoveOnly: true})
		require.ErrorContains(f, err, "MaxRemove: 7 of 21 entries would be removed")
		_, err = lists(f).Plan(f.Context(), fixture.ListID, []string{"0.0.0.0/0"}, webdelivery.PlanOptions{AddOnly: true})
		require.ErrorContains(f, err, "WidestIPv4")
		merged, err := lists(f).Plan(f.Context(), fixture.ListID, []string{all[0], all[1]}, webdelivery.PlanOptions{RemoveOnly: true, Aggregate: true})
		require.NoError(f, err)
		assert.Len(f, merged.Remove, 2)
		f.Srv.ChangeEntries(fixture.ListID, nil, []string{all[20]}) // the plan would have to do it again
		_, err = lists(f).Apply(f.Context(), one, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Contains(f, f.Srv.Entries(fixture.ListID), all[20])
		f.Srv.ChangeEntries(fixture.ListID, []string{all[3]}, nil) // another entry with the same address
		for range 2 {
			_, err = lists(f).Apply(f.Context(), less, webdelivery.ApplyOptions{})
			require.ErrorIs(f, err, webdelivery.ErrPlanStale)
		}
	})
}

// The default of MaxRemove is that of the list for which the plan was made: others may have removed entries since.
func TestTwoRemovals(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(20), func(f *fixture.Fixture) {
		all := fixture.Addresses(20)
		var plans []*webdelivery.Plan
		for _, entries := range [][]string{all[:4], all[4:8]} {
			plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, entries, webdelivery.PlanOptions{RemoveOnly: true})
			require.NoError(f, err)
			assert.Equal(f, 4, plan.Options.MaxRemove)
			plans = append(plans, plan)
		}
		for _, plan := range append(plans, plans...) {
			_, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
			require.NoError(f, err)
		}
		assert.Equal(f, all[8:], f.Srv.Entries(fixture.ListID))
	})
}

// Desired entries that overlap LeaveOut are left out, and the plan names them, also after it was stored.
func TestWhatAPlanLeavesOut(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
		desired := []string{"192.0.2.1", "198.51.100.0/24", "203.0.113.9", "::ffff:203.0.113.8"}
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, desired, webdelivery.PlanOptions{
			AddOnly: true, Aggregate: true, LeaveOut: []netip.Prefix{netip.MustParsePrefix("203.0.113.8/31")},
		})
		require.NoError(f, err)
		stored, err := json.Marshal(plan)
		require.NoError(f, err)
		read := webdelivery.Plan{Options: webdelivery.PlanOptions{RemoveOnly: true}} // of an earlier plan
		require.NoError(f, json.Unmarshal(stored, &read))
		assert.False(f, read.Options.RemoveOnly)
		assert.Equal(f, []string{"198.51.100.0/24"}, read.Add)
		assert.Equal(f, desired[2:], read.LeftOut)
		assert.Contains(f, read.String(), "\nleft out: 203.0.113.9\nleft out: ::ffff:203.0.113.8\n")
		_, err = f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, desired, webdelivery.PlanOptions{LeaveOut: []netip.Prefix{{}}})
		assert.Equal(f, []string{"LeaveOut[0]"}, invalidFields(err))
	})
}

// Plan refuses invalid guards before it sends anything.
func TestGuardsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		for field, options := range map[string]webdelivery.PlanOptions{
			"MaxRemove":  {MaxRemove: -2},
			"MaxAdd":     {MaxAdd: -1},
			"Never[1]":   {Never: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), {}}},
			"WidestIPv4": {WidestIPv4: 33},
			"WidestIPv6": {WidestIPv6: 129},
		} {
			_, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, nil, options)
			require.ErrorContains(f, err, "invalid "+field)
		}
		for _, options := range []webdelivery.PlanOptions{{WidestIPv4: -2}, {WidestIPv6: -2}} {
			_, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, nil, options)
			require.ErrorIs(f, err, webdelivery.ErrInvalid)
		}
		assert.Empty(f, f.Srv.Requests())
	})
}

// Apply checks the guards of the plan, also if the plan was stored without them or was edited.
func TestApplyKeepsToTheGuardsOfAdditions(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*webdelivery.Plan){
		"wider than allowed": func(p *webdelivery.Plan) { p.Add[0] = "0.0.0.0/0" },
		"more than allowed":  func(p *webdelivery.Plan) { p.Add = append(p.Add, "203.0.113.1", "203.0.113.2") },
		"never to be added":  func(p *webdelivery.Plan) { p.Options.Never = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")} },
		"without a guard":    func(p *webdelivery.Plan) { p.Options.WidestIPv4, p.Add[0] = 0, "10.0.0.0/7" },
		"no sense":           func(p *webdelivery.Plan) { p.Options.WidestIPv6 = 1000 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
				desired := []string{"192.0.2.1", "203.0.113.0/24"}
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, desired, webdelivery.PlanOptions{MaxAdd: 2})
				require.NoError(f, err)
				stored, err := json.Marshal(plan)
				require.NoError(f, err)
				var read webdelivery.Plan
				require.NoError(f, json.Unmarshal(stored, &read))
				change(&read)
				_, err = f.Client.NetworkLists.Apply(f.Context(), &read, webdelivery.ApplyOptions{})
				fieldOf(f, err, name == "no sense")
				assert.Zero(f, f.Srv.Count(http.MethodPost, ""))
			})
		})
	}
}

// addressBits is a range of the 64 addresses of 198.51.100.0/26, as the oracle of plans knows it: a set of addresses.
type addressBits uint64

// someRangeOf returns a random range, of 1 to 16 addresses, with one of its spellings.
func someRangeOf(r *rand.Rand) (b addressBits, text string) {
	narrow := r.IntN(5) // a range of 2^narrow addresses
	at := r.IntN(64)
	first := at >> narrow << narrow
	b = (1<<(1<<narrow) - 1) << first
	switch form := r.IntN(4); {
	case form == 0 && narrow == 0:
		return b, fmt.Sprintf("198.51.100.%d", at)
	case form == 1:
		return b, fmt.Sprintf("::ffff:198.51.100.%d/%d", at, 128-narrow)
	default:
		return b, fmt.Sprintf("198.51.100.%d/%d", at, 32-narrow)
	}
}

// someRanges returns up to n different ranges with their spellings.
func someRanges(r *rand.Rand, n int) map[addressBits]string {
	all := map[addressBits]string{}
	for range r.IntN(n + 1) {
		b, text := someRangeOf(r)
		if all[b] == "" {
			all[b] = text
		}
	}
	return all
}

func union(all map[addressBits]string) (set addressBits) {
	for b := range all {
		set |= b
	}
	return set
}

// Random plans are those of an oracle, which knows entries as sets of addresses, and so are their refusals. An Apply
// makes the list as planned and never fuller than allowed, and uncovers nothing that the plan does not announce. The
// plan can be applied again.
func TestRandomPlans(t *testing.T) {
	t.Parallel()
	const plans = 300
	applied, refused, full := 0, 0, 0
	for seed := range uint64(plans) {
		r := rand.New(rand.NewPCG(seed, 47))
		most := 8 + r.IntN(12)
		held, desired := someRanges(r, most), someRanges(r, most)
		for _, b := range slices.Sorted(maps.Keys(held)) {
			if r.IntN(2) == 0 && len(desired) < most { // half of the list stays
				desired[b] = held[b]
			}
		}
		texts := slices.Sorted(maps.Values(desired))
		never, neverText := someRangeOf(r)
		mostRemovals := 1 + r.IntN(14)
		options := webdelivery.PlanOptions{MaxAdd: 1 + r.IntN(15), MaxRemove: mostRemovals}
		if r.IntN(3) == 0 {
			if !strings.Contains(neverText, "/") {
				neverText += "/32"
			}
			options.Never = append(options.Never, netip.MustParsePrefix(neverText))
		} else {
			never = 0
		}

		// The oracle.
		var add, remove []addressBits
		wrong := map[string]bool{}
		for b := range desired {
			if held[b] == "" {
				add = append(add, b)
				wrong["Never"] = wrong["Never"] || b&never != 0
			}
		}
		for b := range held {
			if desired[b] == "" {
				remove = append(remove, b)
			}
		}
		wrong["MaxAdd"] = len(add) > options.MaxAdd
		wrong["MaxRemove"] = len(remove) > mostRemovals
		mayNotOpen := union(held) & union(desired)

		fixture.WithList(t, fixture.Setup{}, slices.Sorted(maps.Values(held)), func(f *fixture.Fixture) {
			announced := false
			client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{
				Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
					resp, err := f.HTTP.Transport.RoundTrip(r)
					now := f.Srv.Entries(fixture.ListID)
					assert.LessOrEqual(f, len(now), max(most, len(held)), seed)
					if !announced {
						assert.Zero(f, mayNotOpen&^coveredBy(now), "seed %d", seed)
					}
					return resp, err
				}),
			})}}).Limited(most, 4)
			plan, err := client.NetworkLists.Plan(f.Context(), fixture.ListID, texts, options)
			for option, is := range wrong {
				if is {
					require.ErrorContains(f, err, "plan refused: "+option, "seed %d", seed)
				} else if err != nil {
					require.NotContains(f, err.Error(), option+":", "seed %d", seed)
				}
			}
			if refusal, ok := errors.AsType[*webdelivery.PlanError](err); ok {
				refused++
				require.True(f, wrong[refusal.Field], "seed %d: %v", seed, err)
				return
			}
			require.NoError(f, err, "seed %d", seed)
			var wantAdd, wantRemove, gone []string
			for _, b := range add {
				wantAdd = append(wantAdd, desired[b])
			}
			for _, b := range remove {
				wantRemove = append(wantRemove, held[b])
			}
			for _, e := range plan.Remove {
				gone = append(gone, e.Entry)
			}
			require.ElementsMatch(f, wantAdd, plan.Add, "seed %d", seed)
			require.ElementsMatch(f, wantRemove, gone, "seed %d", seed)
			require.Equal(f, len(held)-len(remove), plan.Keep)
			require.Equal(f, len(desired), plan.Keep+len(plan.Add))
			if len(held)+len(add) <= most {
				require.Zero(f, plan.UncoveredDuringApply, "seed %d: there is room", seed)
			} else {
				full++
			}
			announced = plan.UncoveredDuringApply > 0
			for round := range 2 {
				result, err := client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				require.NoError(f, err, "seed %d", seed)
				require.Equal(f, len(desired), result.Size)
				require.Equal(f, [2]int{(1 - round) * len(add), (1 - round) * len(remove)}, [2]int{result.Added, result.Removed}, "seed %d", seed)
				require.Len(f, f.Srv.Entries(fixture.ListID), len(desired))
				require.Equal(f, union(desired), coveredBy(f.Srv.Entries(fixture.ListID)))
			}
			applied++
		})
	}
	t.Logf("%d applied, %d of them in a full list; %d refused", applied, full, refused)
	assert.Greater(t, applied, plans/4)
	assert.Greater(t, refused, plans/4)
	assert.Greater(t, full, plans/20)
}

// coveredBy returns the addresses that a list covers, by reading each text's last number and length.
func coveredBy(texts []string) (set addressBits) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			addr := netip.MustParseAddr(text)
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		narrow := p.Addr().BitLen() - p.Bits()
		bytes := p.Addr().AsSlice()
		first := int(bytes[len(bytes)-1]) >> narrow << narrow
		set |= (1<<(1<<narrow) - 1) << first
	}
	return set
}

// A plan with too many removals returns an error with their number and with the plan. The plan can be shown, and
// Apply refuses it with the same error, also after it was stored. Apply accepts the plan when its limit is changed.
func TestARefusedRemovalHasItsPlan(t *testing.T) {
	t.Parallel()
	held := fixture.Addresses(10)
	fixture.WithList(t, fixture.Setup{}, held, func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, held[4:], webdelivery.PlanOptions{MaxRemove: 2})
		assert.Nil(f, plan)
		var refused *webdelivery.PlanError
		for range 2 {
			require.ErrorAs(f, err, &refused)
			assert.Equal(f, 2, refused.Plan.Options.MaxRemove)
			assert.Equal(f, "MaxRemove", refused.Field)
			assert.Contains(f, refused.Plan.String(), "add 0, remove 4, keep 6; 10 entries become 6")
			require.EqualError(f, err, `webdelivery: plan refused: MaxRemove: 4 of 10 entries would be removed, for example 198.18.0.0, `+
				`but at most 2 are allowed; set MaxRemove to 4 to allow it`)

			stored, jsonErr := json.Marshal(refused.Plan)
			require.NoError(f, jsonErr)
			plan = &webdelivery.Plan{}
			require.NoError(f, json.Unmarshal(stored, plan))
			_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		}
		plan.Options.MaxRemove = 4
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Equal(f, held[4:], f.Srv.Entries(fixture.ListID))
	})
}
