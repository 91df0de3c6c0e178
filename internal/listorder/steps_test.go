package listorder_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/listorder"
)

// Whatever is kept, added and removed, four rules hold. The list never holds more than 50,000 entries on the way; a
// larger one only shrinks. No call adds more than 5,000. All changes are made once and in order. Nothing is removed
// before an addition for which there is room.
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

// Entries without addresses cover nothing, so their changes keep their order.
func TestEntriesWithoutAddresses(t *testing.T) {
	t.Parallel()
	none := make([]netip.Prefix, 3)
	limits := listorder.Limits{List: 6, Call: 2}
	want := listorder.Order{Add: []int{0, 1, 2}, Remove: []int{0, 1, 2}, Largest: 6, Calls: 5}
	require.Equal(t, want, listorder.Best(none, none, none, limits))
	require.Equal(t, []listorder.Step{
		{From: 0, To: 2, Size: 4},
		{Adds: true, From: 0, To: 2, Size: 6},
		{From: 2, To: 3, Size: 5},
		{Adds: true, From: 2, To: 3, Size: 6},
	}, listorder.Steps(none, none, none, limits))
}

// Ranges of two replace the addresses of a full list. Only the first address is uncovered for a moment.
func TestAFullListThatIsMerged(t *testing.T) {
	t.Parallel()
	const ranges = 1_000
	var add, remove []netip.Prefix
	for i := range ranges {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(i >> 7), byte(i << 1)}), 31)
		add = append(add, p)
		remove = append(remove, netip.PrefixFrom(p.Addr(), 32), netip.PrefixFrom(p.Addr().Next(), 32))
	}
	o := listorder.Best(nil, add, remove, listorder.Limits{List: len(remove), Call: 100})
	require.Equal(t, []int{len(remove), ranges, 1}, []int{o.Largest, o.Covering, o.Uncovering})
}

// A stored plan may have been edited: it may add a range twice, or one that stays or is removed. Steps still respects
// the limits and loses no change.
func TestStepsOfChangesThatOverlap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 5))
		some := func(n int) []netip.Prefix {
			all := make([]netip.Prefix, r.IntN(n))
			for i := range all {
				all[i] = netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(16))}), 28+r.IntN(5)).Masked()
			}
			return all
		}
		keep, add, remove := some(4), some(12), some(12)
		limits := listorder.Limits{List: len(keep) + max(len(add), len(remove)), Call: 1 + r.IntN(4)}
		size, added, removed := len(keep)+len(remove), 0, 0
		for _, step := range listorder.Steps(keep, add, remove, limits) {
			if step.Adds {
				require.Equal(t, added, step.From)
				added, size = step.To, size+step.To-step.From
			} else {
				require.Equal(t, removed, step.From)
				removed, size = step.To, size-step.To+step.From
			}
			require.Equal(t, size, step.Size)
			require.LessOrEqual(t, size, limits.List)
		}
		require.Equal(t, []int{len(add), len(remove)}, []int{added, removed})
	}
}
