package webdelivery_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
var anything = webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveAll}

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
		assert.Equal(f, 4, plan.Size())
		assert.Equal(f, 5, plan.PeakSize, "added before removed")
		assert.Equal(f, 2, plan.Requests)
		assert.False(f, plan.Empty())
		assert.Equal(f, `IP list blocklist (`+fixture.ListID+`): add 1, remove 1, keep 3; 4 entries become 4, up to 5 during the change; 2 requests
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
		{"29 of 100 at 0.29", list[29:], webdelivery.PlanOptions{MaxRemove: "29%"}, "", false},
		{"30 of 100 at 0.29", list[30:], webdelivery.PlanOptions{MaxRemove: "29%"}, "MaxRemove", false},
		{"29 of 100, at most 29", list[29:], webdelivery.PlanOptions{MaxRemove: "29"}, "", false},
		{"30 of 100, at most 29", list[30:], webdelivery.PlanOptions{MaxRemove: "29"}, "MaxRemove", false},
		{"1 of 100, none allowed", list[1:], webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveNone}, "MaxRemove", false},
		{"1 of 100, at most 0", list[1:], webdelivery.PlanOptions{MaxRemove: "0"}, "MaxRemove", false},
		{"1 of 100, a share of 0", list[1:], webdelivery.PlanOptions{MaxRemove: "0%"}, "MaxRemove", false},
		{"none of 100, none allowed", list, webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveNone}, "", false},
		{"more than the list has", list[30:], webdelivery.PlanOptions{MaxRemove: "1000000"}, "", false},
		{"a text that is a limit", list[30:], webdelivery.PlanOptions{MaxRemove: "30.0%"}, "", false},
		{"a share below 0", list, webdelivery.PlanOptions{MaxRemove: "-10%"}, "MaxRemove", true},
		{"a share above 1", list, webdelivery.PlanOptions{MaxRemove: "101%"}, "MaxRemove", true},
		{"a share that is not a number", list, webdelivery.PlanOptions{MaxRemove: "NaN%"}, "MaxRemove", true},
		{"a number below 0", list, webdelivery.PlanOptions{MaxRemove: "-1"}, "MaxRemove", true},
		{"a share a little above 1", list, webdelivery.PlanOptions{MaxRemove: "100.00000001%"}, "MaxRemove", true},
		{"a text that is no limit", list, webdelivery.PlanOptions{MaxRemove: "half"}, "MaxRemove", true},
		{"a sign", list, webdelivery.PlanOptions{MaxRemove: "+5"}, "MaxRemove", true},
		{"an exponent", list, webdelivery.PlanOptions{MaxRemove: "1e1%"}, "MaxRemove", true},
		{"no digit before the point", list, webdelivery.PlanOptions{MaxRemove: ".5%"}, "MaxRemove", true},
		{"no digit behind the point", list, webdelivery.PlanOptions{MaxRemove: "5.%"}, "MaxRemove", true},
		{"a share without its sign", list, webdelivery.PlanOptions{MaxRemove: "0.2"}, "MaxRemove", true},
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
	assert.Equal(f, !early, errors.Is(err, webdelivery.ErrPlanRefused), "%v", err)
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

// A stored plan says when it was made and for whom. Another client refuses it, unless an earlier SDK stored it.
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

		plan.MadeAt, plan.Service, plan.Customer = time.Time{}, "", ""
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Equal(f, []string{"192.0.2.2"}, f.Srv.Entries(fixture.ListID))
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
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Progress: func(p webdelivery.ApplyProgress) {
			if p.Added == 1 && p.Removed == 0 {
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
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, desired, webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveAll, Aggregate: true})
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
		plan, err := f.Client.NetworkLists.Plan(f.Context(), id, []string{"de", "AT"}, webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveAll, Aggregate: true})
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
		`{"list_id":"l","largest":5,"max_remove":0.2,"before":"f"}`: "invalid version: the plan has none; create it with NetworkLists.Plan (plan again if an earlier SDK stored it)",
		`{"version":2,"max_remove":{"share":0.2}}`:                  "invalid version: the plan has version 2",
		`{"version":1,"max_remove":0.2}`:                            "max_remove",
		`[]`:                                                        "array",
	} {
		var plan webdelivery.Plan
		require.ErrorContains(t, json.Unmarshal([]byte(stored), &plan), says)
		assert.Empty(t, plan.ListID)
	}
	var plan webdelivery.Plan
	require.NoError(t, json.Unmarshal([]byte(`{"version":1,"list_id":"l","max_remove":"none","peak_size":5,"fingerprint":"f"}`), &plan))
	assert.Equal(t, webdelivery.Plan{Version: 1, ListID: "l", MaxRemove: webdelivery.RemoveNone, PeakSize: 5, Fingerprint: "f"}, plan)
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
			p.Type, p.Add, p.Remove, p.MaxRemove = webdelivery.ListTypeGEO, []string{"DE"}, all, webdelivery.RemoveAll
		}},
		{"no type", "type", false, func(p *plan, _ []entry) { p.Type, p.Add = "", []string{"DE"} }},
		{"no list", "list_id", false, func(p *plan, _ []entry) { p.ListID = "" }},
		{"another version", "version", false, func(p *plan, _ []entry) { p.Version++ }},
		{"no version", "version", false, func(p *plan, _ []entry) { p.Version = 0 }},
		{"nothing", "version", false, func(p *plan, _ []entry) { *p = plan{} }},
		{"no limit", "MaxRemove", false, func(p *plan, _ []entry) { p.MaxRemove = "half" }},
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

// Plan refuses entries that no list can hold before it sends anything. The plan belongs to the requested list.
func TestPlanRefusesBeforeItReads(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		for _, desired := range [][]string{fixture.Addresses(50_001), {"DE", "192.0.2.1"}, {"www.example.com", "DE", "192.0.2.1"}} {
			_, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, desired, anything)
			require.ErrorIs(f, err, webdelivery.ErrInvalid)
		}
		assert.Empty(f, f.Srv.Requests())
		_, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"www.example.com"}, anything)
		require.ErrorContains(f, err, "desired[0]", "a list of another type might hold it")
		require.ErrorIs(f, err, webdelivery.ErrPlanRefused)
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
			webdelivery.Plan{Keep: 3, Remove: one, PeakSize: 4, Requests: 1},
			false, 3,
			"add 0, remove 1, keep 3; 4 entries become 3, up to 4 during the change; 1 request\n- 192.0.2.1\n",
		},
		{
			webdelivery.Plan{Keep: 3, Add: []string{"192.0.2.2"}, PeakSize: 4, Requests: 1},
			false, 4,
			"add 1, remove 0, keep 3; 3 entries become 4, up to 4 during the change; 1 request\n+ 192.0.2.2\n",
		},
		{
			webdelivery.Plan{Add: []string{"192.0.2.0/24", "203.0.113.1"}, Remove: one, PeakSize: 2, Requests: 3, UncoveredDuringApply: 1},
			false, 2,
			"add 2, remove 1, keep 0; 1 entry becomes 2, up to 2 during the change; 3 requests\n" +
				"the list is full: the addresses of up to 1 entries are not covered for a moment\n" +
				"+ 192.0.2.0/24\n+ 203.0.113.1\n- 192.0.2.1\n",
		},
	} {
		tt.plan.ListID, tt.plan.Type, tt.plan.Name = "l", webdelivery.ListTypeIP, "n"
		assert.Equal(t, head+tt.text, tt.plan.String())
		assert.Equal(t, tt.empty, tt.plan.Empty())
		assert.Equal(t, tt.size, tt.plan.Size())
	}
	for n, more := range map[int]string{19: "", 20: "", 21: "+ and 1 more\n", 22: "+ and 2 more\n"} {
		plan := webdelivery.Plan{Add: fixture.Addresses(n)}
		_, after, _ := strings.Cut(plan.String(), "+ 198.18.0."+fmt.Sprint(min(n, 20)-1)+"\n")
		assert.Equal(t, more, after)
	}
}
