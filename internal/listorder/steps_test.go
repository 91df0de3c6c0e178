package listorder_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/listorder"
)

// Whatever is kept, added and removed: the list never holds more than 50,000 on the way (one that is above already only
// shrinks to it), no call adds more than 5,000, everything is done once and in order, and nothing is removed before an
// addition for which there is room.
func TestStepsNeverPassTheLimit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	limits := listorder.Limits{List: 50_000, Call: 5_000}
	for range 300 {
		keep := r.IntN(limits.List + 1)
		if r.IntN(3) == 0 {
			keep = limits.List - r.IntN(100)
		}
		add := r.IntN(limits.List - keep + 1)
		remove := r.IntN(limits.List - keep + 1)
		if r.IntN(2) == 0 {
			remove = limits.List - keep
		}
		size, added, removed := keep+remove, 0, 0
		for _, step := range listorder.Steps(make([]netip.Prefix, keep), make([]netip.Prefix, add), make([]netip.Prefix, remove), limits) {
			if step.Adds {
				require.Equal(t, 1, step.Calls())
				require.LessOrEqual(t, step.To-step.From, limits.Call)
				require.Equal(t, added, step.From, "all of it, in order")
				added = step.To
				size += step.To - step.From
			} else {
				require.Less(t, step.From, step.To)
				require.Equal(t, step.To-step.From, step.Calls())
				require.Equal(t, removed, step.From, "all of it, in order")
				removed = step.To
				if added < add {
					require.GreaterOrEqual(t, size, limits.List, "there was room")
				}
				size -= step.To - step.From
			}
			require.LessOrEqual(t, size, limits.List)
			require.Equal(t, size, step.Size)
		}
		require.Equal(t, add, added)
		require.Equal(t, remove, removed)
	}
}
