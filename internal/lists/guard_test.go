package lists_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/lists"
)

// The default limit of removals: a fifth of the entries, up to three of a small list, and never more than half.
func TestTheDefaultOfRemovals(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]int{
		0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 6: 3, 7: 3, 8: 3, 9: 3, 10: 3, 11: 3, 12: 3,
		15: 3, 19: 3, 20: 4, 24: 4, 25: 5, 100: 20, 50_000: 10_000,
	} {
		assert.Equal(t, want, lists.Removals(0, size), "of %d", size)
	}
	assert.Equal(t, []int{7, 7, 100}, []int{lists.Removals(7, 100), lists.Removals(7, 3), lists.Removals(-1, 100)})
}

// Never refuses the additions that overlap one of its ranges, and names the first of them: as comparing each pair does.
func TestNeverComparesAsEachPairDoes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 1))
	some := func() string {
		switch at := r.IntN(64); r.IntN(4) {
		case 0:
			return fmt.Sprintf("::ffff:198.51.100.%d/%d", at, 122+r.IntN(7))
		case 1:
			return fmt.Sprintf("2001:db8::%x/%d", at, 122+r.IntN(7))
		case 2:
			return fmt.Sprintf("::/%d", 78+r.IntN(51))
		default:
			return fmt.Sprintf("198.51.100.%d/%d", at, 26+r.IntN(7))
		}
	}
	for range 3_000 {
		guards := lists.Additions{Most: 9, WidestIPv4: lists.AnyWidth, WidestIPv6: lists.AnyWidth}
		for range r.IntN(4) {
			guards.Never = append(guards.Never, netip.MustParsePrefix(some()))
		}
		added := entries(some(), "DE", some())
		var got, want []string
		for option, reason := range guards.Refused(added, func(i int) string { return fmt.Sprint(i) }) {
			got = append(got, option+" "+reason)
		}
		for i, e := range added {
			for _, never := range guards.Never {
				if lists.Overlap(e.Prefix, never) {
					want = append(want, fmt.Sprintf("Never %s (%d) would be added, but it overlaps %s; remove that from Never to allow it", e.Text, i, never))
					break
				}
			}
		}
		require.Equal(t, want, got, "%v %v", lists.Texts(added), guards.Never)
	}
}
