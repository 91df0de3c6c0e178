package lists_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"
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
		most, ok := lists.Removals(lists.Default, size)
		assert.True(t, ok)
		assert.Equal(t, want, most, "of %d", size)
	}
}

// An explicit share is exact: rounded down, without the extra entries that the default allows for small lists.
func TestRemovals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"none of 100": 0, "all of 100": 100, "0 of 100": 0, "7 of 100": 7, "7 of 3": 7, "20% of 100": 20, "20% of 4": 0, "20% of 5": 1, "33% of 2": 0,
		"33% of 3": 0, "33.4% of 3": 1, "50% of 3": 1, "0% of 100": 0, "100% of 3": 3, "29% of 100": 29, "30.0% of 10": 3, "99.99999999% of 3": 2,
		"100.000% of 3": 3,
	} {
		limit, of, _ := strings.Cut(text, " of ")
		size, _ := strconv.Atoi(of)
		most, ok := lists.Removals(limit, size)
		assert.True(t, ok, text)
		assert.Equal(t, want, most, text)
	}
	for _, text := range []string{
		"", "half", "Default", "+5", "-1", "1e1%", ".5%", "5.%", "0.2", "100.1%", "100.00000000000000000001%", "1.2.3%", "1%%", "%", " 5", "NaN%", "99999999999999999999",
	} {
		_, ok := lists.Removals(text, 100)
		assert.False(t, ok, text)
	}
}

// Both recommended limits allow the removal, whatever the quotient. The share is the smallest sufficient step.
func TestAllowRemovals(t *testing.T) {
	t.Parallel()
	for size := 1; size <= 120; size++ {
		for n := 1; n <= size; n++ {
			number, share := lists.AllowRemovals(n, size)
			assert.Equal(t, fmt.Sprint(n), number)
			most, ok := lists.Removals(share, size)
			require.True(t, ok)
			assert.Equal(t, n, most, "%s of %d", share, size)
		}
	}
	_, share := lists.AllowRemovals(3, 7)
	assert.Equal(t, "42.86%", share)
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
