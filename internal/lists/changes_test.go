package lists_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/lists"
)

// Compare compares meanings. A list may hold a meaning twice: then both stay, or both go.
func TestCompareRules(t *testing.T) {
	t.Parallel()
	for rule, tt := range map[string]struct{ held, desired, add, remove string }{
		"the same in other spellings":  {"192.0.2.1 DE 2001:db8::1", "192.0.2.1/32 2001:DB8::1", "", "DE"},
		"twice in the list, and stays": {"192.0.2.1 192.0.2.1/32", "192.0.2.1", "", ""},
		"twice in the list, and goes":  {"192.0.2.1 192.0.2.1/32", "192.0.2.2", "192.0.2.2", "192.0.2.1 192.0.2.1/32"},
		"twice in the desired":         {"", "203.0.113.1 203.0.113.1/32", "203.0.113.1", ""},
		"a range is not its first":     {"192.0.2.0", "192.0.2.0/31", "192.0.2.0/31", "192.0.2.0"},
		"a code that is no country":    {"xk DE", "XK FR", "FR", "DE"},
		"nothing":                      {"", "", "", ""},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			c := changes(t, strings.Fields(tt.held), strings.Fields(tt.desired))
			_, removed := c.Split()
			assert.Equal(t, tt.add, strings.Join(lists.Texts(c.Add), " "))
			assert.Equal(t, tt.remove, strings.Join(lists.Texts(removed), " "))
			assert.Equal(t, len(c.Held)-len(removed)+len(c.Add), c.Size())
		})
	}
}

// A stored plan whose sets fit the list and each other has the changes of Compare. Any other has a misfit.
func TestStoredRules(t *testing.T) {
	t.Parallel()
	held := entries("192.0.2.1", "192.0.2.2", "gb", "gb")
	for rule, tt := range map[string]struct {
		add    string
		remove []lists.Entry
		misfit *lists.Misfit
	}{
		"it fits":                      {"192.0.2.3", []lists.Entry{held[1], held[0]}, nil},
		"one of two that are the same": {"", held[3:], nil},
		"another id":                   {"", []lists.Entry{{ID: "id9", Text: "192.0.2.1"}}, &lists.Misfit{Field: "remove[0]", Reason: "is not in the list, or comes twice"}},
		"another text":                 {"", []lists.Entry{{ID: "id0", Text: "192.0.2.1/32"}}, &lists.Misfit{Field: "remove[0]", Reason: "is not in the list, or comes twice"}},
		"removed twice":                {"", []lists.Entry{held[0], held[0]}, &lists.Misfit{Field: "remove[1]", Reason: "is not in the list, or comes twice"}},
		"added and removed":            {"192.0.2.3 192.0.2.1/32", held[:1], &lists.Misfit{Field: "add[1]", Reason: `"192.0.2.1/32" is also removed`}},
		"added, and stays":             {"192.0.2.2", held[:1], &lists.Misfit{Field: "add[0]", Reason: `"192.0.2.2" is in the list already, and stays`}},
		"added twice":                  {"192.0.2.3 192.0.2.3/32", nil, &lists.Misfit{Field: "add[1]", Reason: `"192.0.2.3/32" comes twice`}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			c, misfit := lists.Stored(held, entries(strings.Fields(tt.add)...), tt.remove)
			require.Equal(t, tt.misfit, misfit)
			if misfit == nil {
				_, removed := c.Split()
				assert.ElementsMatch(t, tt.remove, removed)
				assert.True(t, slices.IsSorted(c.Remove))
			}
		})
	}
}

// Before undoes changes that were carried out exactly.
func TestBefore(t *testing.T) {
	t.Parallel()
	held := entries("192.0.2.1", "192.0.2.2", "203.0.113.1")
	gone := []lists.Entry{{ID: "gone", Text: "192.0.2.9"}}
	for _, tt := range []struct {
		add    string
		remove []lists.Entry
		before []string // nil: they were not carried out
	}{
		{"", nil, []string{"192.0.2.1", "192.0.2.2", "203.0.113.1"}},
		{"203.0.113.1/32 192.0.2.1", gone, []string{"192.0.2.2", "192.0.2.9"}},
		{"192.0.2.1 192.0.2.2 203.0.113.1", nil, []string{}},
		{"203.0.113.1 203.0.113.2", gone, nil},
		{"203.0.113.1 203.0.113.1/32", gone, nil},
	} {
		before, ok := lists.Before(held, entries(strings.Fields(tt.add)...), tt.remove)
		assert.Equal(t, tt.before != nil, ok, tt.add)
		if ok {
			assert.Equal(t, tt.before, lists.Texts(before), tt.add)
		}
	}
	_, ok := lists.Before(entries("192.0.2.1", "192.0.2.1/32"), entries("192.0.2.1"), nil)
	assert.False(t, ok, "another client added it, too")
}

// Check counts what differs from the expected list, and says whether entries differ that the changes do not touch.
func TestCheckRules(t *testing.T) {
	t.Parallel()
	c := changes(t, []string{"192.0.2.1", "192.0.2.2"}, []string{"192.0.2.2", "192.0.2.3"})
	for _, tt := range []struct {
		after               string
		missing, unexpected int
		others              bool
	}{
		{"192.0.2.2/32 192.0.2.3", 0, 0, false},
		{"192.0.2.2 192.0.2.2/32 192.0.2.3", 0, 0, false},
		{"192.0.2.2", 1, 0, false},
		{"192.0.2.1 192.0.2.2 192.0.2.3", 0, 1, false},
		{"192.0.2.3", 1, 0, true},
		{"192.0.2.2 192.0.2.3 203.0.113.1", 0, 1, true},
		{"192.0.2.1", 2, 1, true},
	} {
		missing, unexpected, others := c.Check(entries(strings.Fields(tt.after)...))
		assert.Equal(t, []any{tt.missing, tt.unexpected, tt.others}, []any{missing, unexpected, others}, tt.after)
	}
}

// A fingerprint depends on the type, the ids and the texts, and not on the order.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	entry := func(id, text string) lists.Entry { return lists.Entry{ID: id, Text: text} }
	seen := map[string]int{}
	for i, held := range [][]lists.Entry{
		nil,
		{entry("", "")},
		{entry("a", "b")},
		{entry("b", "a")},
		{entry("ab", "")},
		{entry("", "ab")},
		{entry("a", "b"), entry("c", "d")},
		{entry("a", "b\x01c\x01d")},
		{entry("a", "b"), entry("a", "b")},
		{entry("same beginning 1", "x"), entry("same beginning 2", "y")},
		{entry("same beginning 1", "y"), entry("same beginning 2", "x")},
		{entry("a", "b"), entry("a", "c")},
	} {
		for j, listType := range []string{lists.IP, lists.GEO} {
			hash := lists.Fingerprint(listType, held)
			other, twice := seen[hash]
			assert.False(t, twice, "%v and number %d", held, other)
			seen[hash] = 2*i + j
			turned := slices.Clone(held)
			slices.Reverse(turned)
			assert.Equal(t, hash, lists.Fingerprint(listType, turned))
		}
	}
}

// Texts that a list cannot hold, with their places. Before the list is known, only those are refused that no list can
// hold together. Here a list can hold two entries.
func TestDesiredRules(t *testing.T) {
	t.Parallel()
	for rule, tt := range map[string]struct {
		desired, listType, held string
		impossible, unfit       []int
	}{
		"of the type":                {"192.0.2.1 2001:db8::1", lists.IP, "", nil, nil},
		"of the other type":          {"DE FR", lists.IP, "", nil, []int{0, 1}},
		"of both types":              {"XK 192.0.2.1 DE", lists.IP, "", []int{2}, []int{0, 2}},
		"unreadable, but held":       {"DE xk", lists.GEO, "XK", nil, nil},
		"unreadable, and new":        {"DE XK", lists.GEO, "FR", nil, []int{1}},
		"only unreadable ones":       {"XK EU", lists.GEO, "XK EU", nil, nil},
		"more of them than fit":      {"XK EU UK", lists.GEO, "XK EU UK", []int{0, 1, 2}, nil},
		"the same one several times": {"XK xk EU XK", lists.GEO, "XK EU", nil, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			d, err := lists.NewDesired(t.Context(), strings.Fields(tt.desired), nil, 2)
			require.NoError(t, err)
			var impossible, unfit []int
			for i, err := range d.Impossible(2) {
				require.Error(t, err)
				impossible = append(impossible, i)
			}
			for i, err := range d.Unfit(tt.listType, entries(strings.Fields(tt.held)...)) {
				require.Error(t, err)
				unfit = append(unfit, i)
			}
			assert.Equal(t, tt.impossible, impossible)
			assert.Equal(t, tt.unfit, unfit)
		})
	}
	d, err := lists.NewDesired(t.Context(), []string{"203.0.113.1", "203.0.113.2", "203.0.113.1/32"}, nil, 9)
	require.NoError(t, err)
	assert.Equal(t, map[lists.Meaning]int{lists.Read("203.0.113.1"): 0, lists.Read("203.0.113.2"): 1}, d.Places())
}

// Millions of texts take long, so the context ends the reading.
func TestDesiredEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := lists.NewDesired(ctx, slices.Repeat([]string{"192.0.2.1"}, 2_000), nil, 50_000)
	require.ErrorIs(t, err, context.Canceled)
}
