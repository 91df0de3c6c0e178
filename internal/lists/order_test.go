package lists_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/lists"
)

// entries reads texts as those of a list, each with an id of its own.
func entries(texts ...string) []lists.Entry {
	all := make([]lists.Entry, len(texts))
	for i, text := range texts {
		all[i] = lists.Entry{ID: fmt.Sprint("id", i), Text: text, Meaning: lists.Read(text)}
	}
	return all
}

// changes returns the changes from one list to another.
func changes(t testing.TB, held, desired []string) *lists.Changes {
	t.Helper()
	d, err := lists.NewDesired(t.Context(), desired, nil, 50_000)
	require.NoError(t, err)
	return d.Compare(entries(held...), false, false)
}

// Each row is a rule of the order. A step is written as its additions and its removals, and most and call are the Limits.
func TestOrderRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule, held, desired string
		most, call          int
		steps               string
		uncovered           int
	}{
		{
			"a removal that no addition covers makes room", "192.0.2.0/25 192.0.2.128/25 203.0.113.9", "192.0.2.0/24",
			3, 1, "-203.0.113.9 | +192.0.2.0/24 -192.0.2.0/25 -192.0.2.128/25", 0,
		},
		{
			"an addition that covers no removal comes last", "192.0.2.0/25 192.0.2.128/25 198.51.100.9", "198.51.100.1 192.0.2.0/24",
			3, 1, "-198.51.100.9 | +192.0.2.0/24 -192.0.2.0/25 | +198.51.100.1 -192.0.2.128/25", 0,
		},
		{
			"without room a gap opens", "192.0.2.0/25 192.0.2.128/25", "192.0.2.0/24",
			2, 1, "-192.0.2.0/25 | +192.0.2.0/24 -192.0.2.128/25", 1,
		},
		{
			"as many additions as fit come before the gap", "192.0.2.0/24", "192.0.2.192/26 192.0.2.0/25 192.0.2.128/26",
			3, 9, "+192.0.2.0/25 +192.0.2.128/26 -192.0.2.0/24 | +192.0.2.192/26", 1,
		},
		{
			"both sides in the order of their addresses", "192.0.2.4 192.0.2.0 192.0.2.2", "192.0.2.2/31 192.0.2.4/31 192.0.2.0/31",
			4, 1, "+192.0.2.0/31 -192.0.2.0 | +192.0.2.2/31 -192.0.2.2 | +192.0.2.4/31 -192.0.2.4", 2,
		},
		{
			"spare removals only for one call at a time", "192.0.2.1 192.0.2.2 192.0.2.3", "203.0.113.1 203.0.113.2 203.0.113.3",
			3, 2, "-192.0.2.1 -192.0.2.2 | +203.0.113.1 +203.0.113.2 -192.0.2.3 | +203.0.113.3", 0,
		},
		{
			"no more removals than the additions need", "192.0.2.2 203.0.113.1 203.0.113.2 203.0.113.3", "192.0.2.2/31 198.51.100.1",
			5, 9, "+192.0.2.2/31 -203.0.113.1 | +198.51.100.1 -203.0.113.2 -203.0.113.3 -192.0.2.2", 0,
		},
		{
			"a list with more entries than it may have", "192.0.2.1 192.0.2.2 192.0.2.3", "203.0.113.1",
			2, 9, "-192.0.2.1 -192.0.2.2 | +203.0.113.1 -192.0.2.3", 0,
		},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			t.Parallel()
			c := changes(t, strings.Fields(tt.held), strings.Fields(tt.desired))
			o := c.Order(lists.Limits{List: tt.most, Call: tt.call})
			var steps []string
			for _, step := range o.Steps {
				var parts []string
				for _, e := range step.Add {
					parts = append(parts, "+"+e.Text)
				}
				for _, i := range step.Remove {
					parts = append(parts, "-"+c.Held[i].Text)
				}
				steps = append(steps, strings.Join(parts, " "))
			}
			assert.Equal(t, tt.steps, strings.Join(steps, " | "))
			assert.Equal(t, tt.uncovered, o.Uncovered)
		})
	}
}

// At most 100 gaps are open at a time.
func TestManyGaps(t *testing.T) {
	t.Parallel()
	var held, desired []string
	for i := range 128 {
		held = append(held, fmt.Sprintf("198.51.100.%d", 2*i))
		desired = append(desired, fmt.Sprintf("198.51.100.%d/31", 2*i))
	}
	o := changes(t, held, desired).Order(lists.Limits{List: 128, Call: 1000})
	var counts [][2]int
	for _, step := range o.Steps {
		counts = append(counts, [2]int{len(step.Add), len(step.Remove)})
	}
	assert.Equal(t, [][2]int{{0, 100}, {100, 28}, {28, 0}}, counts)
	assert.Equal(t, 128, o.Uncovered)
}
