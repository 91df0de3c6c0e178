package webdelivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

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
				tt.options.MaxRemove = webdelivery.RemoveAll
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
		options := webdelivery.PlanOptions{MaxRemove: "1", Aggregate: true, Protect: func(e webdelivery.NetworkListEntry) bool {
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
			MaxRemove: webdelivery.RemoveAll,
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

// Plan refuses invalid guards before it sends anything.
func TestGuardsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		for field, options := range map[string]webdelivery.PlanOptions{
			"MaxRemove":  {MaxRemove: "150%"},
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
		"never to be added":  func(p *webdelivery.Plan) { p.Never = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")} },
		"an earlier plan":    func(p *webdelivery.Plan) { p.WidestIPv4, p.Add[0] = 0, "10.0.0.0/7" },
		"no sense":           func(p *webdelivery.Plan) { p.WidestIPv6 = 1000 },
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
