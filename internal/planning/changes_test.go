package planning_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/listorder"
	"github.com/webdelivery/webdelivery-go/internal/planning"
)

// entries reads texts. Their ids are 0, 1, 2 and so on, as letters from a.
func entries(texts string) []planning.Entry {
	var all []planning.Entry
	for i, text := range strings.Fields(texts) {
		all = append(all, planning.Entry{ID: string(rune('a' + i)), Entry: ipset.Read(text)})
	}
	return all
}

func meaning(e *planning.Entry) ipset.Meaning { return e.Meaning }

func compare(current, wanted string, l listorder.Limits) (planning.Changes, error) {
	want := ipset.NewDistinct(0)
	for _, e := range entries(wanted) {
		want.Add(e.Entry)
	}
	return planning.Compare(entries(current), meaning, want, l)
}

// Compare adds what the list lacks and removes what is not wanted. It compares meanings (open point 27).
func TestWhatChanges(t *testing.T) {
	t.Parallel()
	limits := listorder.Limits{List: 10, Call: 2}
	for _, tt := range []struct {
		current, wanted string
		add, remove     []int
		keep            int
		largest, calls  int
		covering        int
	}{
		{"", "", []int{}, []int{}, 0, 0, 0, 0},
		{"192.0.2.1 de", "DE 192.0.2.1/32", []int{}, []int{}, 2, 2, 0, 0},
		{"192.0.2.1", "192.0.2.9 192.0.2.1 192.0.2.8 192.0.2.7", []int{0, 2, 3}, []int{}, 1, 4, 2, 0},
		{"192.0.2.1 192.0.2.2 192.0.2.3", "192.0.2.2", []int{}, []int{0, 2}, 1, 3, 2, 0},
		// A list may hold a meaning twice: both stay, or both go.
		{"192.0.2.1 192.0.2.1/32 192.0.2.2", "192.0.2.1", []int{}, []int{2}, 2, 3, 1, 0},
		{"192.0.2.1 192.0.2.1/32 192.0.2.2", "192.0.2.2", []int{}, []int{0, 1}, 1, 3, 2, 0},
		// The addition that covers a removal comes first.
		{"192.0.2.9 192.0.2.1", "198.18.0.1 192.0.2.0/29", []int{1, 0}, []int{0, 1}, 0, 4, 3, 1},
		{"xk", "XK US", []int{1}, []int{}, 1, 2, 1, 0},
	} {
		c, err := compare(tt.current, tt.wanted, limits)
		require.NoError(t, err)
		assert.Equal(t, tt.add, c.Add, "%s to %s", tt.current, tt.wanted)
		assert.Equal(t, tt.remove, c.Remove, "%s to %s", tt.current, tt.wanted)
		assert.Equal(t, tt.keep, c.Keep, "%s to %s", tt.current, tt.wanted)
		assert.Equal(t, []int{tt.largest, tt.calls, tt.covering, 0}, []int{c.Largest, c.Calls, c.Covering, c.Uncovering}, "%s to %s", tt.current, tt.wanted)
	}
}

// What stays and what is added must fit the list together. What is removed makes room.
func TestWhatDoesNotFitTheList(t *testing.T) {
	t.Parallel()
	limits := listorder.Limits{List: 3, Call: 3}
	for _, tt := range []struct{ current, wanted, want string }{
		{"192.0.2.1 192.0.2.2 192.0.2.3", "198.18.0.1 198.18.0.2 198.18.0.3", ""},
		{"192.0.2.1 192.0.2.2", "192.0.2.1 192.0.2.2 198.18.0.3", ""},
		{"192.0.2.1 192.0.2.1/32", "192.0.2.1 198.18.0.2 198.18.0.3", "the list would hold 4 entries, and 3 are the most"},
		{"", "198.18.0.1 198.18.0.2 198.18.0.3 198.18.0.4 198.18.0.5", "the list would hold 5 entries, and 3 are the most"},
	} {
		_, err := compare(tt.current, tt.wanted, limits)
		if tt.want == "" {
			require.NoError(t, err, "%s to %s", tt.current, tt.wanted)
		} else {
			require.EqualError(t, err, tt.want)
		}
	}
}

// A stored plan may have been edited. It must name entries of the list, each once, and know how many stay.
func TestStoredPlansThatDoNotFit(t *testing.T) {
	t.Parallel()
	const current = "192.0.2.1 192.0.2.2 192.0.2.3" // with the ids a, b and c
	const noneOf = "does not fit the list: none of the entries that stay belongs to a list of type "
	for name, tt := range map[string]struct {
		current, listType string
		remove            string // id=text
		keep              int
		want              *planning.Misfit
	}{
		"fits":                      {current, "IP", "b=192.0.2.2 a=192.0.2.1", 1, nil},
		"removes nothing":           {current, "IP", "", 3, nil},
		"an unknown id":             {current, "IP", "a=192.0.2.1 d=192.0.2.2", 1, &planning.Misfit{Field: "remove[1]", Reason: "is not in the list, or comes twice"}},
		"an unknown id, no text":    {current, "IP", "d=", 2, &planning.Misfit{Field: "remove[0]", Reason: "is not in the list, or comes twice"}},
		"another text":              {current, "IP", "a=192.0.2.1/32", 2, &planning.Misfit{Field: "remove[0]", Reason: "is not in the list, or comes twice"}},
		"an entry twice":            {current, "IP", "a=192.0.2.1 a=192.0.2.1", 1, &planning.Misfit{Field: "remove[1]", Reason: "is not in the list, or comes twice"}},
		"more stay":                 {current, "IP", "a=192.0.2.1", 1, &planning.Misfit{Field: "keep", Reason: "does not fit the list: keep 1, remove 1, and there are 3 entries"}},
		"fewer stay":                {current, "IP", "", 4, &planning.Misfit{Field: "keep", Reason: "does not fit the list: keep 4, remove 0, and there are 3 entries"}},
		"another type":              {current, "GEO", "", 3, &planning.Misfit{Field: "type", Reason: noneOf + "GEO"}},
		"another type, countries":   {"de XK", "IP", "", 2, &planning.Misfit{Field: "type", Reason: noneOf + "IP"}},
		"all of another type go":    {"gb", "IP", "a=GB", 0, nil},
		"some of another type go":   {"gb fr", "IP", "a=GB", 1, &planning.Misfit{Field: "type", Reason: noneOf + "IP"}},
		"none of the type stays":    {"192.0.2.1 fr", "IP", "a=192.0.2.1", 1, &planning.Misfit{Field: "type", Reason: noneOf + "IP"}},
		"one entry of the type":     {current + " de", "GEO", "", 4, nil},
		"an unknown type":           {current, "ASN", "", 3, nil},
		"unreadable entries alone":  {"XK EU", "IP", "", 2, nil},
		"an empty list of any type": {"", "GEO", "", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			removed := strings.Fields(tt.remove)
			stored := planning.Stored{Type: tt.listType, Keep: tt.keep, Remove: len(removed), Removed: func(i int) (id, text string) {
				id, text, _ = strings.Cut(removed[i], "=")
				return id, text
			}}
			_, misfit := planning.Steps(stored, entries(tt.current), func(e *planning.Entry) planning.Entry { return *e }, listorder.Limits{List: 10, Call: 10})
			assert.Equal(t, tt.want, misfit)
		})
	}
}

// The steps have the order of the stored plan: additions as far as there is room, and what an addition covers after it.
func TestStepsOfAStoredPlan(t *testing.T) {
	t.Parallel()
	removed := entries("192.0.2.1 192.0.2.9")
	stored := planning.Stored{
		Type: "IP", Add: []ipset.Entry{ipset.Read("192.0.2.0/29"), ipset.Read("198.18.0.1")}, Keep: 1,
		Remove: 2, Removed: func(i int) (id, text string) { return removed[i].ID, removed[i].Text },
	}
	steps, misfit := planning.Steps(stored, entries("192.0.2.1 192.0.2.9 192.0.2.77"), func(e *planning.Entry) planning.Entry { return *e }, listorder.Limits{List: 10, Call: 1})
	require.Nil(t, misfit)
	assert.Equal(t, []listorder.Step{
		{Adds: true, From: 0, To: 1, Size: 4},
		{Adds: true, From: 1, To: 2, Size: 5},
		{From: 0, To: 1, Relies: true, Size: 4},
		{From: 1, To: 2, Size: 3},
	}, steps)
}
