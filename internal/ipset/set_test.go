package ipset_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// Over the 256 addresses of a /24, a set is what its addresses one by one are.
func TestASetIsItsAddresses(t *testing.T) {
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
		set := ipset.NewSet(prefixes)
		for _, p := range append(prefixes, within(), within()) {
			some, all := false, true
			for n := range in {
				if p.Contains(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})) {
					some, all = some || in[n], all && in[n]
				}
			}
			require.Equal(t, some, set.Overlaps(p), "%v and %v", prefixes, p)
			require.Equal(t, all, set.Contains(p), "%v and %v", prefixes, p)
		}
		var merged [256]bool
		for _, p := range set.Prefixes() {
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

func TestSetsAtTheirEdges(t *testing.T) {
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
		for _, p := range ipset.NewSet(in).Prefixes() {
			got = append(got, p.String())
		}
		assert.Equal(t, tt.want, got)
	}
	assert.Empty(t, ipset.NewSet([]netip.Prefix{ipset.Read("DE").Prefix}).Prefixes(), "a country has no addresses")
	assert.Empty(t, ipset.Aggregate([]ipset.Entry{ipset.Read("DE")}))
}

func TestAggregatedEntriesAreWrittenShort(t *testing.T) {
	t.Parallel()
	var entries []ipset.Entry
	for _, text := range []string{"192.0.2.7", "198.51.100.0/25", "198.51.100.128/25", "2001:db8::1/128"} {
		entries = append(entries, ipset.Read(text))
	}
	assert.Equal(t, []string{"192.0.2.7", "198.51.100.0/24", "2001:db8::1"}, ipset.Texts(ipset.Aggregate(entries)))
}
