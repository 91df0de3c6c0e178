package webdelivery

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Over the 256 addresses of a /24, a set is what its addresses one by one are.
func TestCoverageIsASetOfAddresses(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	within := func() netip.Prefix {
		bits := 24 + r.IntN(9)
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(256))}), bits).Masked()
	}
	for range 2000 {
		var prefixes []netip.Prefix
		for range r.IntN(12) {
			prefixes = append(prefixes, within())
		}
		var in [256]bool
		for n := range in {
			for _, p := range prefixes {
				in[n] = in[n] || p.Contains(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}))
			}
		}
		set := covered(prefixes, itself)
		for _, p := range append(prefixes, within(), within()) {
			some, all := false, true
			for n := range in {
				if p.Contains(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})) {
					some, all = some || in[n], all && in[n]
				}
			}
			require.Equal(t, some, set.overlaps(p), "%v and %v", prefixes, p)
			require.Equal(t, all, set.contains(p), "%v and %v", prefixes, p)
		}
		var merged [256]bool
		for _, p := range set.prefixes() {
			for n := range merged {
				if p.Contains(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})) {
					require.False(t, merged[n], "twice")
					merged[n] = true
				}
			}
		}
		require.Equal(t, in, merged)
	}
}

func TestCoverageAtItsEdges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want []string }{
		{nil, nil},
		{[]string{"0.0.0.0/1", "128.0.0.0/1"}, []string{"0.0.0.0/0"}},
		{[]string{"::/1", "8000::/1"}, []string{"::/0"}},
		{[]string{"255.255.255.255/32", "::/128"}, []string{"255.255.255.255/32", "::/128"}}, // neighbours only in sorting
		{[]string{"2001:db8::1/128", "192.0.2.1/32", "192.0.2.0/32"}, []string{"192.0.2.0/31", "2001:db8::1/128"}},
		{[]string{"192.0.2.0/24", "192.0.2.7/32", "192.0.3.0/24"}, []string{"192.0.2.0/23"}},
	} {
		var in []netip.Prefix
		for _, text := range tt.in {
			in = append(in, netip.MustParsePrefix(text))
		}
		var got []string
		for _, p := range covered(in, itself).prefixes() {
			got = append(got, p.String())
		}
		assert.Equal(t, tt.want, got)
	}
	assert.Empty(t, covered([]entry{{meaning: meaning{name: "DE"}}}, entryPrefix), "a country has no addresses")
}

func TestAggregatedEntriesAreWrittenShort(t *testing.T) {
	t.Parallel()
	parsed, err := parseEntries("desired", ListTypeIP, []string{"192.0.2.7", "198.51.100.0/25", "198.51.100.128/25", "2001:db8::1/128"})
	require.NoError(t, err)
	assert.Equal(t, []string{"192.0.2.7", "198.51.100.0/24", "2001:db8::1"}, textsOf(aggregate(parsed)))
}

// A list may hold one meaning twice, and all of it is kept; so what is to be added may not fit although it would by itself.
func TestAPlanThatWouldNotFit(t *testing.T) {
	t.Parallel()
	current := make([]held, maxListEntries)
	for i := range current {
		text := fmt.Sprintf("198.18.%d.%d", i>>9, i>>1&255) // each twice
		current[i] = held{NetworkListEntry{ID: fmt.Sprint(i), Entry: text}, heldEntry(text).meaning}
	}
	var wanted []entry
	for i := 0; i < maxListEntries; i += 2 {
		wanted = append(wanted, entry{current[i].Entry, current[i].meaning})
	}
	list := &NetworkList{Type: ListTypeIP}
	plan, err := newPlan(list, current, wanted)
	require.NoError(t, err)
	assert.Equal(t, maxListEntries, plan.Keep)
	assert.Equal(t, maxListEntries, plan.Largest)

	_, err = newPlan(list, current, append(wanted, heldEntry("203.0.113.1")))
	var invalid *ValidationError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "desired", invalid.Field)
	assert.Contains(t, invalid.Reason, "50001")
}
