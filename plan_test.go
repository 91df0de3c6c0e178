package webdelivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
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

// changes counts the requests that may have changed something.
func changes(f *fixture.Fixture) int {
	return f.Srv.Count(http.MethodPost, "") + f.Srv.Count(http.MethodDelete, "")
}

// removals returns the texts of the entries that a plan removes.
func removals(p *webdelivery.Plan) []string {
	texts := make([]string, len(p.Remove))
	for i, e := range p.Remove {
		texts[i] = e.Entry
	}
	return texts
}

// show makes every list show these entries from now on, with the ids e0, e1 and so on: unlike the fake, another service
// may hold a meaning twice.
func show(f *fixture.Fixture, texts ...string) (restore func()) {
	items := make([]string, len(texts))
	for i, text := range texts {
		items[i] = fmt.Sprintf(`{"id":"e%d","entry":%q}`, i, text)
	}
	return showItems(f, items...)
}

func showItems(f *fixture.Fixture, items ...string) (restore func()) {
	body := fmt.Sprintf(`{"items":[%s],"total":%d}`, strings.Join(items, ","), len(items))
	return f.Srv.Fail(testserver.Fault{Method: http.MethodGet, Path: oneList + "/entries", Status: 200, Body: body})
}

// Plan compares meanings (open point 27), and Apply makes the list as planned. A text that is no entry can be kept, but
// not added.
func TestPlan(t *testing.T) {
	t.Parallel()
	for rule, tt := range map[string]struct {
		listType, held, desired string
		aggregate               bool
		add, remove             string
	}{
		"some are added, some removed": {
			"IP", "192.0.2.1 192.0.2.2/32 198.51.100.0/24 2001:db8::1",
			"192.0.2.1/32 203.0.113.7 198.51.100.99/24 ::ffff:192.0.2.2 203.0.113.7/32", false,
			"203.0.113.7", "2001:db8::1",
		},
		"other spellings": {
			"IP", "192.0.2.1 192.0.2.0/24 2001:db8::1 2001:db8::/32 0.0.0.0/0 ::/0",
			"::ffff:c000:201 ::ffff:192.0.2.0/120 2001:DB8:0:0::1 2001:db8:ffff::/32 ::ffff:203.0.113.9/96 2001:db8::/0", false,
			"", "",
		},
		"a range is not its first address": {"IP", "192.0.2.0", "192.0.2.0/31", false, "192.0.2.0/31", "192.0.2.0"},
		"merged, and what is covered goes": {
			"IP", "192.0.2.0/25 203.0.113.9", "192.0.2.0/25 192.0.2.128/26 192.0.2.192/26 192.0.2.7 203.0.113.9/32", true,
			"192.0.2.0/24", "192.0.2.0/25",
		},
		"countries are not merged":   {"GEO", "DE FR", "de AT", true, "AT", "FR"},
		"reserved codes are kept":    {"GEO", "XK EU DE", "xk EU AT", true, "AT", "DE"},
		"reserved codes are removed": {"GEO", "XK EU DE", "DE", false, "", "XK EU"},
		"odd addresses": {
			"IP", "192.0.2.1-192.0.2.9 fe80::1%eth0 198.51.100.007", "fe80::1%eth0 192.0.2.1-192.0.2.9 192.0.2.0/24", true,
			"192.0.2.0/24", "198.51.100.007",
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				held, desired := strings.Fields(tt.held), strings.Fields(tt.desired)
				id := f.Srv.AddNetworkList(testserver.NetworkListSpec{Type: tt.listType, Entries: held})
				options := webdelivery.PlanOptions{MaxRemove: -1, Aggregate: tt.aggregate}
				plan, err := f.Client.NetworkLists.Plan(f.Context(), id, desired, options)
				require.NoError(f, err)
				add, remove := strings.Fields(tt.add), strings.Fields(tt.remove)
				assert.Equal(f, add, plan.Add)
				assert.Equal(f, remove, removals(plan))
				assert.Equal(f, len(held)-len(remove), plan.Keep)
				assert.Equal(f, tt.add+tt.remove == "", plan.Empty())
				assert.Zero(f, changes(f), "a plan changes nothing")

				result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				require.NoError(f, err)
				assert.Equal(f, len(add)+len(remove), changes(f)+max(0, len(add)-1))
				left := slices.DeleteFunc(held, func(text string) bool { return slices.Contains(remove, text) })
				assert.Equal(f, append(left, add...), f.Srv.Entries(id))
				assert.Equal(f, []int{len(add), len(remove), plan.Keep + len(add)}, []int{result.Added, result.Removed, result.Size})
			})
		})
	}
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) { // a meaning that is there twice stays, or goes, as a whole
		show(f, "192.0.2.1", "192.0.2.1/32")
		for desired, want := range map[string][]string{"192.0.2.1": {}, "192.0.2.2": {"192.0.2.1", "192.0.2.1/32"}} {
			plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{desired}, anything)
			require.NoError(f, err)
			assert.Equal(f, want, removals(plan))
			assert.Len(f, plan.Add, len(want)/2)
		}
	})
}

// A plan says when it was made and for whom. Its fingerprint is the SHA-256 of the type, the ids and the texts, in the
// order of the ids; stored plans have it, so it must stay the same.
func TestWhatAPlanIsFor(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		showItems(f, `{"id":"5e1f0d2c-0000-4000-8000-0000000000b1","entry":"192.0.2.1"}`,
			`{"id":"5e1f0d2c-0000-4000-8000-0000000000a2","entry":"2001:DB8::/32"}`, `{"id":"01","entry":"198.51.100.7/24"}`)
		made := time.Now().UTC().Truncate(time.Second)
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.1"}, anything)
		require.NoError(f, err)
		assert.Equal(f, webdelivery.Plan{
			Version: 1, MadeAt: made, Service: f.Srv.URL(), Customer: fixture.Customer, ListID: fixture.ListID, Type: "IP", Name: "blocklist",
			Add: []string{}, Remove: plan.Remove, Keep: 1, Options: plan.Options,
			Fingerprint: "59d097292cb858dc49ecb0146655d14077a0217d643fcffd4aae1346b30b35b2",
		}, *plan)
		assert.Equal(f, "01", plan.Remove[1].ID)
	})
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		for _, body := range []string{`{"id":"other","type":"IP"}`, `{"id":"` + fixture.ListID + `"}`} { // another list; one without a type
			restore := f.Srv.Fail(testserver.Fault{Path: oneList, Status: 200, Body: body})
			_, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.1"}, anything)
			require.ErrorIs(f, err, webdelivery.ErrBadResponse, body)
			assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			restore()
		}
	})
}

// refused checks that a plan was refused with this text: as invalid before any request, or otherwise as a PlanError.
func refused(f *fixture.Fixture, err error, want string, requests int) {
	f.Helper()
	early := strings.HasPrefix(want, "invalid ")
	require.ErrorContains(f, err, "webdelivery: "+want)
	assert.Equal(f, early, errors.Is(err, webdelivery.ErrInvalid))
	assert.Equal(f, !early, errors.As(err, new(*webdelivery.PlanError)))
	assert.Equal(f, early, requests == 0)
	assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	assert.Zero(f, changes(f))
}

// Plan refuses too many removals, such as those of an empty feed, more entries than a list can hold, entries of another
// type and invalid options. What does not depend on the list is refused before any request.
func TestPlansThatAreRefused(t *testing.T) {
	t.Parallel()
	type options = webdelivery.PlanOptions
	list := fixture.Addresses(100)
	a24 := netip.MustParsePrefix("192.0.2.0/24")
	const tooMany = " entries would be removed, for example 198.18.0.0, but at most "
	strange := make([]string, 50_001)
	for i := range strange {
		strange[i] = fmt.Sprint("x", i)
	}
	for rule, tt := range map[string]struct {
		desired []string
		options options
		want    string // "": no error
	}{
		"21 of 100 by default":                 {list[21:], options{}, "plan refused: MaxRemove: 21 of 100" + tooMany + "20 are allowed; set MaxRemove to 21"},
		"an empty feed":                        {nil, options{}, "plan refused: MaxRemove: 100 of 100" + tooMany + "20 are allowed"},
		"an empty feed, allowed to remove all": {nil, anything, ""},
		"29 of 100, at most 29":                {list[29:], options{MaxRemove: 29}, ""},
		"30 of 100, at most 29":                {list[30:], options{MaxRemove: 29}, "plan refused: MaxRemove: 30 of 100" + tooMany + "29 are allowed"},
		"RemoveOnly has the same guard":        {list[:21], options{RemoveOnly: true}, "plan refused: MaxRemove: 21 of 100" + tooMany + "20 are allowed"},
		"50,000":                               {append(fixture.Addresses(50_000)[100:], list...), options{}, ""},
		"50,001":                               {fixture.Addresses(50_001), options{}, "invalid desired: 50001 entries are more than the 50000 that a list can hold"},
		"50,001 that are no entries":           {strange, options{}, `invalid desired[0]: "x0" is neither an IP address, `},
		"an address, and a country": {
			[]string{"192.0.2.1", "no entry", "192.0.2.0/24", "ID", "DE"},
			anything,
			`invalid desired[3]: "192.0.2.1" belongs to a list of type IP, and "ID" to one of type GEO`,
		},
		"a country, and addresses": {
			[]string{"id", "192.0.2.1", "192.0.2.2"},
			anything,
			`invalid desired[1]: "ID" belongs to a list of type GEO, and "192.0.2.1" to one of type IP`,
		},
		"a country in a list of addresses": {[]string{"DE"}, anything, `plan refused: desired[0]: "DE" does not belong to a list of type IP`},
		"no entry":                         {[]string{list[0], "192.0.2.1-9"}, anything, `plan refused: desired[1]: "192.0.2.1-9" is neither`},
		"a reserved code":                  {[]string{"XK"}, anything, `plan refused: desired[0]: "XK" is neither`},

		"MaxRemove below -1":  {list, options{MaxRemove: -2}, "invalid MaxRemove: -2 is below -1"},
		"MaxAdd below 0":      {list, options{MaxAdd: -1}, "invalid MaxAdd: -1 is below 0"},
		"WidestIPv4 below -1": {list, options{WidestIPv4: -2}, "invalid WidestIPv4: -2 is not between -1 and 32"},
		"WidestIPv4 above 32": {list, options{WidestIPv4: 33}, "invalid WidestIPv4: 33 is not between -1 and 32"},
		"WidestIPv6 below -1": {list, options{WidestIPv6: -2}, "invalid WidestIPv6: -2 is not between -1 and 128"},
		"WidestIPv6 too long": {list, options{WidestIPv6: 129}, "invalid WidestIPv6: 129 is not between -1 and 128"},
		"the zero range":      {list, options{Never: []netip.Prefix{a24, {}}}, "invalid Never[1]: is not a valid range"},
		"the zero range, too": {list, options{LeaveOut: []netip.Prefix{{}}}, "invalid LeaveOut[0]: is not a valid range"},
		"both kinds alone":    {list, options{AddOnly: true, RemoveOnly: true}, "invalid RemoveOnly: is set, and so is AddOnly"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, list, func(f *fixture.Fixture) {
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, tt.desired, tt.options)
				if tt.want == "" {
					require.NoError(f, err)
					return
				}
				assert.Nil(f, plan)
				refused(f, err, tt.want, len(f.Srv.Requests()))
			})
		})
	}
	// By default a fifth of the list may be removed, or three entries, but never more than half.
	for size, want := range map[int]int{0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 6: 3, 7: 3, 19: 3, 20: 4, 24: 4, 25: 5} {
		fixture.WithList(t, fixture.Setup{}, list[:size], func(f *fixture.Fixture) {
			plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, list[:size], options{})
			require.NoError(f, err)
			assert.Equal(f, want, plan.Options.MaxRemove, "of %d", size)
		})
	}
}

// A plan may not add too many entries, too wide ranges, or what overlaps Never. The error names the entry and the option to
// change. An entry that the list already holds is no addition.
func TestGuardsOfAdditions(t *testing.T) {
	t.Parallel()
	type options = webdelivery.PlanOptions
	office := []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	const (
		v4    = "the widest allowed IPv4 range is /8; set WidestIPv4 to "
		v6    = "the widest allowed IPv6 range is /19; set WidestIPv6 to "
		but   = " would be added, but "
		allV4 = " would be added. It contains all IPv4 addresses in their IPv6 form, but "
	)
	held := []string{"192.0.2.1", "96.0.0.0/4"}
	for rule, tt := range map[string]struct {
		add     string
		options options
		want    string // "": allowed
	}{
		"/8":                                   {"11.0.0.0/8", options{}, ""},
		"/7":                                   {"11.0.0.0/8 10.0.0.0/7", options{}, "WidestIPv4: 10.0.0.0/7 (desired[3])" + but + v4 + "7 to allow it"},
		"twice: the first place":               {"10.0.0.0/7 11.0.0.0/7", options{}, "WidestIPv4: 10.0.0.0/7 (desired[2])" + but + v4 + "7"},
		"/7 allowed":                           {"10.0.0.0/7", options{WidestIPv4: 7}, ""},
		"a range cut in its last line":         {"198.51.100.0/2", options{AddOnly: true}, "WidestIPv4: 198.51.100.0/2 (desired[2])" + but + v4 + "2"},
		"all of IPv4":                          {"0.0.0.0/0", options{}, "WidestIPv4: 0.0.0.0/0 (desired[2])" + but + v4 + "-1"},
		"narrower than the default":            {"203.0.113.0/24 198.51.100.0/23", options{WidestIPv4: 24}, "WidestIPv4: 198.51.100.0/23 (desired[3])"},
		"IPv4 in IPv6":                         {"::ffff:0.0.0.0/96", options{}, "WidestIPv4: ::ffff:0.0.0.0/96 (desired[2])" + but + v4 + "-1"},
		"/7 of IPv4 in IPv6":                   {"::ffff:10.0.0.0/103", options{}, "WidestIPv4: ::ffff:10.0.0.0/103 (desired[2])" + but + v4 + "7"},
		"/8 of IPv4 in IPv6":                   {"::ffff:10.0.0.0/104", options{}, ""},
		"around IPv4 in IPv6":                  {"::fffe:0:0/95", options{}, "WidestIPv4: ::fffe:0:0/95 (desired[2])" + allV4 + v4 + "-1"},
		"around IPv4 in IPv6, by host bits":    {"::1/32", options{}, "WidestIPv4: ::1/32 (desired[2])" + allV4 + v4 + "-1"},
		"around IPv4 in IPv6 allowed":          {"::/64", options{WidestIPv4: -1}, ""},
		"beside IPv4 in IPv6":                  {"::/96", options{}, ""},
		"/19 of IPv6":                          {"2001:c000::/19", options{}, ""},
		"/18 of IPv6":                          {"2001:c000::/18", options{}, "WidestIPv6: 2001:c000::/18 (desired[2])" + but + v6 + "18 to allow it"},
		"all of IPv6":                          {"::/0", options{WidestIPv4: -1}, "WidestIPv6: ::/0 (desired[2])" + but + v6 + "-1"},
		"all of IPv6 allowed, not all of IPv4": {"::/0", options{WidestIPv6: -1}, "WidestIPv4: ::/0 (desired[2])" + allV4 + v4 + "-1"},
		"merged to a /7":                       {"10.0.0.0/8 11.0.0.0/8", options{Aggregate: true}, "WidestIPv4: 10.0.0.0/7 (merged by Aggregate)"},
		"three, and two may be": {
			"198.51.100.1 198.51.100.2 198.51.100.3",
			options{MaxAdd: 2},
			"MaxAdd: 3 entries would be added, for example 198.51.100.1 (desired[2]), but at most 2 are allowed; set MaxAdd to 3 to allow it",
		},
		"two, merged to one":         {"198.51.100.0/25 198.51.100.128/25", options{MaxAdd: 1, Aggregate: true}, ""},
		"in a range that must stay":  {"203.0.113.7", options{Never: office}, "Never: 203.0.113.7 (desired[2])" + but + "it overlaps 203.0.113.0/24; remove that"},
		"around one":                 {"203.0.112.0/22", options{Never: office}, "Never: 203.0.112.0/22 (desired[2])"},
		"around one, in IPv6 form":   {"::/0", options{Never: office, WidestIPv4: -1, WidestIPv6: -1}, "Never: ::/0 (desired[2])"},
		"beside it":                  {"203.0.112.0/24", options{Never: office}, ""},
		"of IPv6":                    {"2001:db8::1", options{Never: []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}}, "Never: 2001:db8::1 (desired[2])"},
		"held within it":             {"", options{Never: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, ""},
		"too many, and one too wide": {"0.0.0.0/1 203.0.113.1", options{MaxAdd: 1}, "MaxAdd: 2 entries would be added, for example 0.0.0.0/1 (desired[2])"},
		"one too wide, and too many": {"0.0.0.0/1 203.0.113.1", options{MaxAdd: 1}, "WidestIPv4: 0.0.0.0/1 (desired[2])" + but + v4 + "1"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, held, func(f *fixture.Fixture) {
				tt.options.MaxRemove = -1
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, slices.Concat(held, strings.Fields(tt.add)), tt.options)
				if tt.want == "" {
					require.NoError(f, err)
					_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
					require.NoError(f, err)
					return
				}
				refusal, ok := errors.AsType[*webdelivery.PlanError](err)
				require.True(f, ok, "%v", err)
				assert.NotNil(f, refusal.Plan)
				require.ErrorContains(f, err, "plan refused: "+tt.want)
			})
		})
	}
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) { // of many, the error names the first 100
		never := webdelivery.PlanOptions{Never: []netip.Prefix{netip.MustParsePrefix("198.18.0.0/15")}}
		_, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, fixture.Addresses(150), never)
		require.ErrorContains(f, err, "198.18.0.99 (desired[99])")
		require.NotContains(f, err.Error(), "desired[100]")
		require.ErrorContains(f, err, "the 50 values after these were not checked")
		never.LeaveOut = slices.Clone(never.Never)
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"203.0.113.7"}, never)
		require.NoError(f, err)
		clear(never.Never)
		clear(never.LeaveOut)
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.NoError(f, err, "the caller may change the ranges after Plan")
	})
}

// The lines of a plan: the numbers, what is uncovered, and the first 20 entries.
func TestThePlanAsText(t *testing.T) {
	t.Parallel()
	type plan = webdelivery.Plan
	one := []webdelivery.NetworkListEntry{{ID: "a", Entry: "192.0.2.1"}}
	for text, p := range map[string]plan{
		"nothing to change, 3 entries\n":                                                      {Keep: 3},
		"add 0, remove 1, keep 3; 4 entries become 3\n- 192.0.2.1\n":                          {Keep: 3, Remove: one},
		"add 1, remove 0, keep 3; 3 entries become 4\n+ 192.0.2.2\nleft out: ::1\n":           {Keep: 3, Add: []string{"192.0.2.2"}, LeftOut: []string{"::1"}},
		"nothing to change, 3 entries, 2 of them because nobody knows when they were added\n": {Keep: 3, Undated: 2},
		"add 1, remove 0, keep 0; 0 entries become 1\nthe list is full: the addresses of up to 1 entries are not covered for a moment\n+ ::\n": {
			Add: []string{"::"}, UncoveredDuringApply: 1,
		},
	} {
		p.ListID, p.Type, p.Name = "l", webdelivery.ListTypeIP, "n"
		assert.Equal(t, "IP list n (l): "+text, p.String())
	}
	for n, more := range map[int]string{19: "", 20: "", 21: "+ and 1 more\n", 22: "+ and 2 more\n"} {
		_, after, _ := strings.Cut((&plan{Add: fixture.Addresses(n)}).String(), "+ 198.18.0."+fmt.Sprint(min(n, 20)-1)+"\n")
		assert.Equal(t, more, after)
	}
}

// If another version stored a plan, the error names that version, whatever members the plan has. A plan is read into one of
// before without its options.
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
	plan := webdelivery.Plan{Options: webdelivery.PlanOptions{RemoveOnly: true}}
	require.NoError(t, json.Unmarshal([]byte(`{"version":1,"list_id":"l","options":{"max_remove":3},"keep":5,"fingerprint":"f"}`), &plan))
	assert.Equal(t, webdelivery.Plan{Version: 1, ListID: "l", Options: webdelivery.PlanOptions{MaxRemove: 3}, Keep: 5, Fingerprint: "f"}, plan)
}

// A stored plan may be changed by hand. What it removes must be in the list, once; what it adds must be new; and the guards
// hold. If no list can match the plan, Apply refuses it before it reads the list.
func TestStoredPlansAreCheckedAgain(t *testing.T) {
	t.Parallel()
	type plan = webdelivery.Plan
	type entry = webdelivery.NetworkListEntry
	for rule, tt := range map[string]struct {
		want   string
		change func(p *plan, all []entry)
	}{
		"removes everything":          {"plan refused: MaxRemove: 10 of 10 ", func(p *plan, all []entry) { p.Remove, p.Keep = all, 49_000 }},
		"removes by another id":       {"plan refused: remove[0]: is not in", func(p *plan, all []entry) { p.Remove[0].ID = all[5].ID }},
		"removes by another text":     {"plan refused: remove[0]: is not in", func(p *plan, _ []entry) { p.Remove[0].Entry += "/32" }},
		"removes one twice":           {"plan refused: remove[1]: is not in the list, or comes twice", func(p *plan, _ []entry) { p.Remove = append(p.Remove, p.Remove[0]) }},
		"adds what it removes":        {`plan refused: add[0]: "198.18.0.0/32" is also removed`, func(p *plan, _ []entry) { p.Add[0] = p.Remove[0].Entry + "/32" }},
		"adds what stays":             {`plan refused: add[0]: "198.18.0.5" is in the list already, and stays`, func(p *plan, all []entry) { p.Add[0] = all[5].Entry }},
		"adds one twice":              {`plan refused: add[1]: "::1/128" comes twice`, func(p *plan, _ []entry) { p.Add = []string{"::1", "::1/128"} }},
		"adds a text that is none":    {`invalid add[0]: "x y" is neither`, func(p *plan, _ []entry) { p.Add[0] = "x y" }},
		"adds one of another type":    {`invalid add[0]: "DE" does not belong`, func(p *plan, _ []entry) { p.Add[0] = "DE" }},
		"adds a wider one":            {"plan refused: WidestIPv4: 0.0.0.0/0 (add[0])", func(p *plan, _ []entry) { p.Add[0] = "0.0.0.0/0" }},
		"adds more than allowed":      {"plan refused: MaxAdd: 3 entries ", func(p *plan, _ []entry) { p.Add = append(p.Add, "::1", "::2") }},
		"adds what it never may":      {"plan refused: Never: 203.0.113.0/24 (add[0])", func(p *plan, _ []entry) { p.Options.Never = []netip.Prefix{netip.MustParsePrefix("::/0")} }},
		"adds without a guard":        {"plan refused: WidestIPv4: 10.0.0.0/7 (add[0])", func(p *plan, _ []entry) { p.Options.WidestIPv4, p.Add[0] = 0, "10.0.0.0/7" }},
		"a guard that makes no sense": {"invalid WidestIPv6: 1000", func(p *plan, _ []entry) { p.Options.WidestIPv6 = 1000 }},
		"adds only, and removes":      {"invalid options: only add or only remove", func(p *plan, _ []entry) { p.Options.AddOnly = true }},
		"removes only, and adds":      {"invalid options: only add or only remove", func(p *plan, _ []entry) { p.Options.RemoveOnly = true }},
		"another type":                {"plan refused: type: is GEO, but the plan was made for a list of type IP", func(p *plan, _ []entry) { p.Type, p.Add[0] = "GEO", "DE" }},
		"another type, nothing stays": {"plan refused: type: is GEO", func(p *plan, all []entry) { p.Type, p.Add[0], p.Remove = "GEO", "DE", all }},
		"no type":                     {"invalid type: is empty", func(p *plan, _ []entry) { p.Type, p.Add[0] = "", "DE" }},
		"no list":                     {`invalid list_id: "" is not the id of a list`, func(p *plan, _ []entry) { p.ListID = "" }},
		"another version":             {"invalid version: the plan has version 2", func(p *plan, _ []entry) { p.Version++ }},
		"another service":             {`invalid service: the plan is for "https://api.example.org"`, func(p *plan, _ []entry) { p.Service = "https://api.example.org" }},
		"another customer":            {`invalid customer: the plan is for "other"`, func(p *plan, _ []entry) { p.Customer = "other" }},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, fixture.Addresses(10), func(f *fixture.Fixture) {
				desired := slices.Concat(fixture.Addresses(10)[1:], []string{"203.0.113.0/24"})
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, desired, webdelivery.PlanOptions{MaxAdd: 2})
				require.NoError(f, err)
				page, err := f.Client.NetworkLists.Entries(f.Context(), fixture.ListID, webdelivery.EntryOptions{})
				require.NoError(f, err)
				tt.change(plan, page.Items)
				before := len(f.Srv.Requests())
				result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				assert.Nil(f, result)
				refused(f, err, tt.want, len(f.Srv.Requests())-before)
			})
		})
	}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		id := f.Srv.AddNetworkList(testserver.NetworkListSpec{Type: "GEO"})
		plan, err := f.Client.NetworkLists.Plan(f.Context(), id, []string{"DE"}, anything)
		require.NoError(f, err)
		plan.Add[0] = "de"
		before := len(f.Srv.Requests())
		_, err = f.Client.NetworkLists.Apply(f.Context(), nil, webdelivery.ApplyOptions{})
		refused(f, err, "invalid plan: is nil", len(f.Srv.Requests())-before)
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{MaxOutage: -1})
		refused(f, err, "invalid MaxOutage: -1ns is below 0", len(f.Srv.Requests())-before)
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Equal(f, []string{"DE"}, f.Srv.Entries(id))
		assert.Equal(f, "de", plan.Add[0], "the caller's plan is unchanged")
	})
}

// A plan that was carried out may be applied again: nothing is changed, and its guards do not count. If the list holds
// anything else than the plan made of it, the plan is stale.
func TestAPlanThatWasCarriedOut(t *testing.T) {
	t.Parallel()
	type change = func(f *fixture.Fixture)
	by := func(add, remove string) change {
		return func(f *fixture.Fixture) {
			f.Srv.ChangeEntries(fixture.ListID, strings.Fields(add), strings.Fields(remove))
		}
	}
	for rule, tt := range map[string]struct {
		held, desired string
		change        change
		stale         bool
	}{
		"an addition in another spelling": {"192.0.2.1", "192.0.2.2/32", by("192.0.2.2", "192.0.2.2/32"), false},
		"another entry was added":         {"192.0.2.1", "192.0.2.2", by("192.0.2.9", ""), true},
		"an addition was removed":         {"192.0.2.1", "192.0.2.2 192.0.2.3", by("", "192.0.2.3"), true},
		"a removed one was added again":   {"192.0.2.1", "192.0.2.2", by("192.0.2.1", ""), true},
		"what stays was exchanged":        {"192.0.2.1 192.0.2.2", "192.0.2.2 192.0.2.3", by("192.0.2.9", "192.0.2.2"), true},
		"an addition is there twice":      {"", "192.0.2.2", func(f *fixture.Fixture) { show(f, "192.0.2.2", "192.0.2.2/32") }, true},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, strings.Fields(tt.held), func(f *fixture.Fixture) {
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, strings.Fields(tt.desired), anything)
				require.NoError(f, err)
				first, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
				require.NoError(f, err)
				tt.change(f)
				sent, polls := changes(f), f.Srv.Count(http.MethodGet, "/tasks/*")
				again, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
				if tt.stale {
					require.ErrorIs(f, err, webdelivery.ErrPlanStale)
					assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				} else {
					require.NoError(f, err)
					assert.Equal(f, &webdelivery.ApplyResult{Size: first.Size}, again)
				}
				assert.Equal(f, []int{sent, polls}, []int{changes(f), f.Srv.Count(http.MethodGet, "/tasks/*")})
			})
		})
	}
}

// Somebody else changes the list. If that happens before Apply, Apply changes nothing; if it happens meanwhile, Apply
// returns an error at the end, which blames only others if this Apply cannot be the cause.
func TestPlansThatAreStale(t *testing.T) {
	t.Parallel()
	const (
		others = "another client changed the list meanwhile, or a late request of an earlier Apply did"
		before = "it has changed since the plan was made"
	)
	for rule, tt := range map[string]struct {
		add, remove []string // by another client, after the addition
		lost        bool     // the response to the addition is lost
		says        string   // of the list of 192.0.2.1 and .2, of which .2 stays and .3 is added
	}{
		"before: an entry more":      {[]string{"203.0.113.1"}, nil, false, before},
		"before: another id":         {[]string{"192.0.2.1"}, []string{"192.0.2.1"}, false, before},
		"one that stays is gone":     {nil, []string{"192.0.2.2"}, false, "1 entries are missing and 0 are unexpected; " + others},
		"one that is unknown":        {[]string{"203.0.113.9"}, nil, false, "0 entries are missing and 1 are unexpected; " + others},
		"both":                       {[]string{"203.0.113.9"}, []string{"192.0.2.2"}, false, "1 entries are missing and 1 are unexpected; " + others},
		"a removed one is back":      {[]string{"192.0.2.1"}, nil, false, "0 entries are missing and 1 are unexpected; a change of this Apply is not in effect yet, or " + others},
		"the added one is not there": {nil, []string{"192.0.2.3"}, false, "1 entries are missing and 0 are unexpected; a change of this Apply is not in effect yet, or " + others},
		"the same, after a loss":     {nil, []string{"192.0.2.3"}, true, "a change whose response was lost may have arrived late, or " + others},
		"an unknown one, after one":  {[]string{"203.0.113.9"}, nil, true, "unexpected; " + others},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1", "192.0.2.2"}, func(f *fixture.Fixture) {
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.2", "192.0.2.3"}, anything)
				require.NoError(f, err)
				if tt.lost {
					f.AddFault(testserver.Fault{Method: http.MethodPost, Count: 1, Cut: testserver.CutAfterExecute})
				}
				if tt.says == before {
					f.Srv.ChangeEntries(fixture.ListID, tt.add, tt.remove)
				}
				_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Progress: func(_, removed, _ int) {
					if removed == 1 {
						f.Srv.ChangeEntries(fixture.ListID, tt.add, tt.remove)
					}
				}})
				require.ErrorIs(f, err, webdelivery.ErrPlanStale)
				require.ErrorContains(f, err, tt.says)
				assert.Equal(f, tt.says == before, webdelivery.OutcomeOf(err) == webdelivery.OutcomeNotApplied)
				assert.Equal(f, tt.says == before, changes(f) == 0)
			})
		})
	}
}

// A plan keeps the entries that Protect keeps, and those whose time is absent or cannot be read, because they may be
// younger than Protect wants. They do not count for MaxRemove.
func TestProtectedEntriesStay(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
		var items []string
		for i, at := range []string{`"1999-05-01T12:00:00Z"`, `"1999-12-31T23:30:00Z"`, `"1999-05-01T24:00:00Z"`, `null`, `"1999-05-01T12:00:00Z"`} {
			items = append(items, fmt.Sprintf(`{"id":"e%d","entry":"192.0.2.%d","creation_timestamp":%s}`, i, i, at))
		}
		showItems(f, items...)
		var asked []string
		young := func(e webdelivery.NetworkListEntry) bool {
			asked = append(asked, e.ID)
			return time.Since(e.CreationTimestamp) < time.Hour
		}
		options := webdelivery.PlanOptions{MaxRemove: 1, Protect: young}
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.4"}, options)
		require.NoError(f, err)
		assert.Equal(f, []string{"e0", "e1", "e2", "e3"}, asked, "only what the plan would remove")
		assert.Equal(f, []string{"192.0.2.0"}, removals(plan))
		assert.Equal(f, []int{4, 2}, []int{plan.Keep, plan.Undated})
	})
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(100), func(f *fixture.Fixture) { // 80 of others do not hide that the feed is cut
		others := fixture.Addresses(80)
		options := webdelivery.PlanOptions{Protect: func(e webdelivery.NetworkListEntry) bool { return slices.Contains(others, e.Entry) }}
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, fixture.Addresses(100)[84:], options)
		require.NoError(f, err)
		assert.Len(f, plan.Remove, 4)
		_, err = f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, fixture.Addresses(100)[85:], options)
		require.ErrorContains(f, err, "MaxRemove: 5 of 20 entries would be removed, for example "+fixture.Addresses(100)[80]+", but at most 4 are allowed")
		others = fixture.Addresses(99)
		_, err = f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, nil, options)
		require.ErrorContains(f, err, "MaxRemove: 1 of 1 entries would be removed, for example "+fixture.Addresses(100)[99]+", but at most 0 are allowed")
	})
}

// If the context ends while Plan reads the desired entries, or compares, Plan returns its error.
func TestPlanEndsWithTheContext(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(2), func(f *fixture.Fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		_, err := f.Client.NetworkLists.Plan(ctx, fixture.ListID, fixture.Addresses(1), webdelivery.PlanOptions{
			MaxRemove: -1,
			Protect:   func(webdelivery.NetworkListEntry) bool { cancel(); return false },
		})
		require.ErrorIs(f, err, context.Canceled)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
		_, err = f.Client.NetworkLists.Plan(ctx, fixture.ListID, append(fixture.Addresses(2_000), "DE"), anything)
		require.ErrorIs(f, err, context.Canceled, "before it sees what is wrong: millions of entries take seconds")
	})
}

// A plan that only adds, or only removes, leaves all other entries alone, whoever changes them before it is applied, and
// may be applied again. Guards hold for it, and the default of MaxRemove is that of the list for which it was made.
func TestPlansOfOneKind(t *testing.T) {
	t.Parallel()
	all := fixture.Addresses(24)
	addOnly, removeOnly := webdelivery.PlanOptions{AddOnly: true}, webdelivery.PlanOptions{RemoveOnly: true}
	plan := func(f *fixture.Fixture, o webdelivery.PlanOptions, entries ...string) *webdelivery.Plan {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, entries, o)
		require.NoError(f, err)
		return plan
	}
	apply := func(f *fixture.Fixture, plan *webdelivery.Plan) error {
		_, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		return err
	}
	fixture.WithList(t, fixture.Setup{}, all[:20], func(f *fixture.Fixture) {
		more, other := plan(f, addOnly, all[0], all[20], all[21]), plan(f, addOnly, all[21], all[22])
		assert.Equal(f, [][]string{all[20:22], {}, all[21:23]}, [][]string{more.Add, removals(more), other.Add})
		assert.Equal(f, 20, more.Keep)
		less := plan(f, removeOnly, all[3]+"/32", all[4], all[23])
		assert.Equal(f, all[3:5], removals(less))
		assert.Empty(f, less.Add)
		for _, p := range []*webdelivery.Plan{more, other, less, more, less} {
			f.Srv.ChangeEntries(fixture.ListID, []string{"203.0.113.7"}, []string{all[5]}) // somebody else
			require.NoError(f, apply(f, p))
		}
		assert.ElementsMatch(f, append(slices.Concat(all[:3], all[6:23]), "203.0.113.7"), f.Srv.Entries(fixture.ListID))

		assert.Len(f, plan(f, webdelivery.PlanOptions{RemoveOnly: true, Aggregate: true}, all[0], all[1]).Remove, 2, "entries are not merged")
		office := []netip.Prefix{netip.MustParsePrefix(all[0] + "/32"), netip.MustParsePrefix(all[23] + "/32")}
		left := plan(f, webdelivery.PlanOptions{RemoveOnly: true, LeaveOut: office}, all[0], all[1])
		out := plan(f, webdelivery.PlanOptions{AddOnly: true, LeaveOut: office}, all[23], "203.0.113.8")
		assert.Equal(f, [][]string{all[:1], all[1:2]}, [][]string{left.LeftOut, removals(left)})
		assert.Equal(f, [][]string{all[23:], {"203.0.113.8"}}, [][]string{out.LeftOut, out.Add})
		f.Srv.ChangeEntries(fixture.ListID, []string{all[3]}, []string{all[20]})
		require.NoError(f, apply(f, more))
		assert.Contains(f, f.Srv.Entries(fixture.ListID), all[20], "it is added again")
		for range 2 {
			require.ErrorIs(f, apply(f, less), webdelivery.ErrPlanStale, "another entry with the same address stays")
		}
	})
	fixture.WithList(t, fixture.Setup{}, all[:20], func(f *fixture.Fixture) { // each removes a fifth of the same list
		first, second := plan(f, removeOnly, all[:4]...), plan(f, removeOnly, all[4:8]...)
		for _, p := range []*webdelivery.Plan{first, second, first, second} {
			require.NoError(f, apply(f, p))
		}
		assert.Equal(f, all[8:20], f.Srv.Entries(fixture.ListID))
	})
	fixture.WithList(t, fixture.Setup{}, all[:20], func(f *fixture.Fixture) { // somebody else takes the last place of the list
		limited, p := f.Client.Limited(21, 21).NetworkLists, plan(f, addOnly, all[20])
		_, err := limited.Plan(f.Context(), fixture.ListID, all[19:22], addOnly)
		require.ErrorContains(f, err, "plan refused: desired: the list would hold 22 entries, but at most 21 are allowed")
		f.Srv.ChangeEntries(fixture.ListID, []string{"203.0.113.7"}, nil)
		_, err = limited.Apply(f.Context(), p, webdelivery.ApplyOptions{})
		require.ErrorContains(f, err, "plan refused: add: the list would hold 22 entries, but at most 21 are allowed")
	})
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) { // the entry of an id is exchanged
		restore := show(f, all[:2]...)
		p := plan(f, removeOnly, all[0])
		restore()
		show(f, all[2], all[1])
		require.NoError(f, apply(f, p))
		assert.Zero(f, changes(f))
	})
}

// addressBits is a set of the 64 addresses of 198.51.100.0/26: what the tests of plans know of entries.
type addressBits uint64

// rangeBits returns the 2^narrow addresses of the range around an address.
func rangeBits(at, narrow int) addressBits { return (1<<(1<<narrow) - 1) << (at >> narrow << narrow) }

// bitsOf reads the last number of an entry and its length.
func bitsOf(text string) addressBits {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		addr := netip.MustParseAddr(text)
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	bytes := p.Addr().AsSlice()
	return rangeBits(int(bytes[len(bytes)-1]), p.Addr().BitLen()-p.Bits())
}

// coveredBy returns the addresses that entries cover.
func coveredBy(texts iter.Seq[string]) (set addressBits) {
	for text := range texts {
		set |= bitsOf(text)
	}
	return set
}

// someRange returns a random range of 1 to 16 addresses with one of its spellings.
func someRange(r *rand.Rand) (b addressBits, text string) {
	narrow, at := r.IntN(5), r.IntN(64)
	switch form := r.IntN(4); {
	case form == 0 && narrow == 0:
		text = fmt.Sprintf("198.51.100.%d", at)
	case form == 1:
		text = fmt.Sprintf("::ffff:198.51.100.%d/%d", at, 128-narrow)
	default:
		text = fmt.Sprintf("198.51.100.%d/%d", at, 32-narrow)
	}
	return rangeBits(at, narrow), text
}

// someRanges returns up to n different ranges with their spellings.
func someRanges(r *rand.Rand, n int) map[addressBits]string {
	all := map[addressBits]string{}
	for range r.IntN(n + 1) {
		if b, text := someRange(r); all[b] == "" {
			all[b] = text
		}
	}
	return all
}

// fewest adds the fewest ranges for a set of addresses, in their shortest spelling, of the 2^narrow addresses from at.
func fewest(all map[addressBits]string, set addressBits, at, narrow int) {
	switch b := rangeBits(at, narrow); {
	case narrow < 6 && set&b == b && narrow > 0:
		all[b] = fmt.Sprintf("198.51.100.%d/%d", at, 32-narrow)
	case set&b == b && narrow == 0:
		all[b] = fmt.Sprintf("198.51.100.%d", at)
	case set&b != 0:
		fewest(all, set, at, narrow-1)
		fewest(all, set, at+1<<(narrow-1), narrow-1)
	}
}

// somePrefixes returns up to two random ranges for an option, or none, and their addresses.
func somePrefixes(r *rand.Rand) (ranges []netip.Prefix, set addressBits) {
	for range max(0, r.IntN(5)-2) {
		b, text := someRange(r)
		if !strings.Contains(text, "/") {
			text += "/32"
		}
		ranges, set = append(ranges, netip.MustParsePrefix(text)), set|b
	}
	return ranges, set
}

// storedAndRead returns what is left of a plan that was stored.
func storedAndRead(f *fixture.Fixture, p *webdelivery.Plan) *webdelivery.Plan {
	f.Helper()
	stored, err := json.Marshal(p)
	require.NoError(f, err)
	var read webdelivery.Plan
	require.NoError(f, json.Unmarshal(stored, &read))
	require.Equal(f, *p, read)
	return &read
}

// Random plans are those of an oracle, which knows entries as sets of addresses, and so are their refusals. Once stored and
// read again, a plan makes the list as planned and never fuller than allowed, and uncovers no more than it announces. It can
// be applied again. A refused plan is in its error, and Apply refuses it, too, until its limits are changed.
func TestRandomPlans(t *testing.T) {
	t.Parallel()
	plans := fixture.Cases(300, 60)
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
		options := webdelivery.PlanOptions{MaxAdd: 1 + r.IntN(15), MaxRemove: 1 + r.IntN(14), Aggregate: r.IntN(4) == 0}
		var never, leaveOut addressBits
		options.Never, never = somePrefixes(r)
		options.LeaveOut, leaveOut = somePrefixes(r)

		// The oracle.
		var leftOut []string
		maps.DeleteFunc(desired, func(b addressBits, text string) bool {
			if b&leaveOut != 0 {
				leftOut = append(leftOut, text)
			}
			return b&leaveOut != 0
		})
		if options.Aggregate {
			set := coveredBy(maps.Values(desired))
			clear(desired)
			fewest(desired, set, 0, 6)
		}
		var add, remove []string
		wrong := map[string]bool{}
		for b, text := range desired {
			if held[b] == "" {
				add = append(add, text)
				wrong["Never"] = wrong["Never"] || b&never != 0
			}
		}
		for b, text := range held {
			if desired[b] == "" {
				remove = append(remove, text)
			}
		}
		wrong["MaxAdd"] = len(add) > options.MaxAdd
		wrong["MaxRemove"] = len(remove) > options.MaxRemove
		mayNotOpen := coveredBy(maps.Values(held)) & coveredBy(maps.Values(desired))

		fixture.WithList(t, fixture.Setup{}, slices.Sorted(maps.Values(held)), func(f *fixture.Fixture) {
			announced := 0
			client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{
				Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
					resp, err := f.HTTP.Transport.RoundTrip(r)
					now := f.Srv.Entries(fixture.ListID)
					assert.LessOrEqual(f, len(now), max(most, len(held)), seed)
					open, uncovered := mayNotOpen&^coveredBy(slices.Values(now)), 0
					for b := range held {
						if b&open != 0 {
							uncovered++
						}
					}
					assert.LessOrEqual(f, uncovered, announced, "seed %d", seed)
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
				plan = storedAndRead(f, refusal.Plan)
				_, err = client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				require.ErrorContains(f, err, "plan refused: "+refusal.Field, "seed %d: Apply refuses it, too", seed)
				require.Zero(f, changes(f))
				plan.Options.MaxAdd, plan.Options.MaxRemove, plan.Options.Never = 64, 64, nil
			} else {
				require.NoError(f, err, "seed %d", seed)
				plan = storedAndRead(f, plan)
				applied++
			}
			require.ElementsMatch(f, leftOut, plan.LeftOut, "seed %d", seed)
			require.ElementsMatch(f, add, plan.Add, "seed %d", seed)
			require.ElementsMatch(f, remove, removals(plan), "seed %d", seed)
			require.Equal(f, len(held)-len(remove), plan.Keep)
			require.Equal(f, len(desired), plan.Keep+len(plan.Add))
			if len(held)+len(add) <= most {
				require.Zero(f, plan.UncoveredDuringApply, "seed %d: there is room", seed)
			} else {
				full++
			}
			announced = plan.UncoveredDuringApply
			for round := range 2 {
				result, err := client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				require.NoError(f, err, "seed %d", seed)
				require.Equal(f, len(desired), result.Size)
				require.Equal(f, [2]int{(1 - round) * len(add), (1 - round) * len(remove)}, [2]int{result.Added, result.Removed}, "seed %d", seed)
				require.Equal(f, coveredBy(maps.Values(desired)), coveredBy(slices.Values(f.Srv.Entries(fixture.ListID))))
			}
		})
	}
	assert.Greater(t, applied, plans/4)
	assert.Greater(t, refused, plans/4)
	assert.Greater(t, full, plans/20)
}
