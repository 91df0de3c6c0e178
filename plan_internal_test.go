package webdelivery

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// A list may hold entries with the same meaning twice, and the plan keeps them all. Additions that would fit by
// themselves may then not fit.
func TestAPlanThatWouldNotFit(t *testing.T) {
	t.Parallel()
	current := make([]NetworkListEntry, maxListEntries)
	for i := range current {
		text := fmt.Sprintf("198.18.%d.%d", i>>9, i>>1&255) // each twice
		current[i] = NetworkListEntry{ID: fmt.Sprint(i), Entry: text}
	}
	wanted := ipset.NewDistinct(maxListEntries)
	for i := 0; i < maxListEntries; i += 2 {
		wanted.Add(current[i].read())
	}
	list := &NetworkList{ID: "l", Type: ListTypeIP}
	plan, err := newPlan(list, current, wanted)
	require.NoError(t, err)
	assert.Equal(t, maxListEntries, plan.Keep)
	assert.Equal(t, maxListEntries, plan.PeakSize)

	wanted.Add(ipset.Read("203.0.113.1"))
	_, err = newPlan(list, current, wanted)
	var refused *PlanError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "desired", refused.Field)
	assert.Contains(t, refused.Reason, "50001")
	assert.Nil(t, refused.Plan)
}

// A plan may fill the list, but one more entry does not fit.
func TestAPlanThatFillsTheList(t *testing.T) {
	t.Parallel()
	current := make([]NetworkListEntry, maxListEntries-1)
	wanted := ipset.NewDistinct(maxListEntries)
	wanted.Add(ipset.Read("203.0.113.1"))
	for i := range current {
		current[i] = NetworkListEntry{ID: fmt.Sprint(i), Entry: fmt.Sprintf("198.18.%d.%d", i>>8, i&255)}
		wanted.Add(current[i].read())
	}
	plan, err := newPlan(&NetworkList{ID: "l", Type: ListTypeIP}, current, wanted)
	require.NoError(t, err)
	plan.MaxRemove = RemoveAll
	ready, add, err := readyToApply(*plan)
	require.NoError(t, err)
	steps, err := new(NetworkListsService).stepsFor(ready, current, add)
	require.NoError(t, err)
	require.Len(t, steps, 1)
	assert.Equal(t, maxListEntries, steps[0].Size)

	plan.Add = append(plan.Add, "203.0.113.2")
	var invalid *ValidationError
	_, _, err = readyToApply(*plan)
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "plan", invalid.Field)
	assert.Equal(t, "makes no sense: keep 49999, add 2, covering_adds 0, and 50000 entries are the most", invalid.Reason)
}
