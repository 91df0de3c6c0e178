package webdelivery

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// Whatever is kept, added and removed: the list never holds more than 50,000 on the way (one that is above already only
// shrinks to it), no call adds more than 5,000, everything is done once and in order, and nothing is removed before an
// addition for which there is room.
func TestStepsNeverPassTheLimit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	texts := make([]string, maxListEntries)
	entries := make([]NetworkListEntry, maxListEntries)
	for i := range texts {
		texts[i] = strconv.Itoa(i)
		entries[i].ID = texts[i]
	}
	for range 300 {
		keep := r.IntN(maxListEntries + 1)
		if r.IntN(3) == 0 {
			keep = maxListEntries - r.IntN(100)
		}
		add := r.IntN(maxListEntries - keep + 1)
		remove := r.IntN(maxListEntries - keep + 1)
		if r.IntN(2) == 0 {
			remove = maxListEntries - keep
		}
		p := &Plan{Keep: keep, Add: texts[:add], Remove: entries[:remove]}
		if add > 0 {
			p.Covering = r.IntN(add + 1)
		}
		size, added, removed := keep+remove, 0, 0
		guard := newProtection(make([]netip.Prefix, keep), make([]netip.Prefix, add), make([]netip.Prefix, remove), true)
		for _, step := range p.steps(guard, serviceLimits) {
			if step.add != nil {
				require.LessOrEqual(t, len(step.add), maxCallEntries)
				next := min(add, added+len(step.add))
				require.True(t, slices.Equal(texts[added:next], step.add), "all of it, in order")
				added = next
				size += len(step.add)
			} else {
				require.NotEmpty(t, step.remove)
				next := min(remove, removed+len(step.remove))
				require.True(t, slices.Equal(entries[removed:next], step.remove), "all of it, in order")
				removed = next
				if added < add {
					require.GreaterOrEqual(t, size, maxListEntries, "there was room")
				}
				size -= len(step.remove)
			}
			require.LessOrEqual(t, size, maxListEntries)
			require.Equal(t, size, step.size)
		}
		assert.Equal(t, add, added)
		assert.Equal(t, remove, removed)
	}
}

// A list may hold one meaning twice, and all of it is kept; so what is to be added may not fit although it would by itself.
func TestAPlanThatWouldNotFit(t *testing.T) {
	t.Parallel()
	current := make([]held, maxListEntries)
	for i := range current {
		text := fmt.Sprintf("198.18.%d.%d", i>>9, i>>1&255) // each twice
		current[i] = heldEntry(NetworkListEntry{ID: fmt.Sprint(i), Entry: text})
	}
	var wanted []ipset.Entry
	for i := 0; i < maxListEntries; i += 2 {
		wanted = append(wanted, current[i].entry())
	}
	list := &NetworkList{Type: ListTypeIP}
	plan, err := newPlan(list, current, meanings(current), wanted)
	require.NoError(t, err)
	assert.Equal(t, maxListEntries, plan.Keep)
	assert.Equal(t, maxListEntries, plan.Largest)

	_, err = newPlan(list, current, meanings(current), append(wanted, ipset.Read("203.0.113.1")))
	var invalid *ValidationError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "desired", invalid.Field)
	assert.Contains(t, invalid.Reason, "50001")
}
