package ipset_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// smallSpace is a bitmap of 256 addresses of each family: 192.0.2.0/24 and 2001:db8::/120.
type smallSpace [256]bool

// add adds the addresses of a prefix. It reports whether some of them, and whether all, were there before.
func (s *smallSpace) add(p netip.Prefix) (some, all bool) {
	all = true
	for n := range s {
		v4, v6 := netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: byte(n)})
		if p.Contains(v4) || p.Contains(v6) {
			some, all = some || s[n], all && s[n]
			s[n] = true
		}
	}
	return some, all
}

// Over the 256 addresses of a /24, a Set agrees with a bitmap of its addresses.
func TestASetIsItsAddresses(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	within := func() netip.Prefix {
		bits := 24 + r.IntN(9)
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(256))}), bits).Masked()
	}
	for range 2000 {
		var prefixes []netip.Prefix
		var in, merged smallSpace
		for range r.IntN(12) {
			prefixes = append(prefixes, within())
			in.add(prefixes[len(prefixes)-1])
		}
		set := ipset.NewSet(prefixes)
		for _, p := range append(prefixes, within(), within()) {
			before := in
			some, all := before.add(p)
			require.Equal(t, some, set.Overlaps(p), "%v and %v", prefixes, p)
			require.Equal(t, all, set.Contains(p), "%v and %v", prefixes, p)
		}
		for _, p := range set.Prefixes() {
			twice, _ := merged.add(p)
			require.False(t, twice, "twice")
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
