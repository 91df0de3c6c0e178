package ipset_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// Equal entries (open point 27): each row is one meaning in several spellings.
func TestEntriesThatAreTheSame(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"192.0.2.1", "192.0.2.1/32", "::ffff:192.0.2.1", "::ffff:c000:201", "::ffff:192.0.2.1/128"},
		{"192.0.2.0/24", "192.0.2.77/24", "::ffff:192.0.2.0/120"},
		{"2001:db8::1", "2001:DB8:0:0::1", "2001:db8::1/128"},
		{"2001:db8::/32", "2001:db8:ffff::/32"},
		{"0.0.0.0/0", "203.0.113.9/0", "::ffff:203.0.113.9/96"},
		{"::/0", "2001:db8::/0"},
		{"DE", "de", "De"},
		{"US"},
	}
	seen := map[ipset.Meaning]int{}
	for i, row := range rows {
		for _, text := range row {
			e, err := ipset.Parse(text)
			require.NoError(t, err, text)
			if before, ok := seen[e.Meaning]; ok {
				assert.Equal(t, before, i, text)
			}
			seen[e.Meaning] = i
		}
	}
	assert.Len(t, seen, len(rows))
}

// The text of an entry stays as the caller wrote it, except that a country is in upper case (open points 27 and 28).
func TestWhatIsSentOfAnEntry(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"192.0.2.77/24": "192.0.2.77/24", "2001:DB8::1": "2001:DB8::1", "de": "DE"} {
		e, err := ipset.Parse(text)
		require.NoError(t, err)
		assert.Equal(t, want, e.Text)
	}
}

// Texts that no list can hold.
func TestEntriesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "192.0.2.1 ", "192.0.2", "192.0.2.256", "192.0.02.1", "192.0.2.1/33", "192.0.2.1/-1", "192.0.2.1/", "2001:db8::/129",
		"2001:db8::g", "fe80::1%eth0", "fe80::%eth0/64", "fe80::1%eth/0",
		"192.0.2.1/24/24", "192.0.2.1/024", "de/24", "/", "/24", "192.0.2.1-192.0.2.9", "www.example.com", "D", "DEU", "276", "D1", "ÄÖ",
		"XX", "ZZ", "AA", "QQ", "EU", "UK", "AC", "XK", "AN", "CS", "SU", "YU", "NT", "UN",
	} {
		_, err := ipset.Parse(text)
		require.Error(t, err, text)
	}
}

// ISO 3166-1 has 249 officially assigned codes.
func TestCountries(t *testing.T) {
	t.Parallel()
	count := 0
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			if e, err := ipset.Parse(string(a) + string(b)); err == nil {
				assert.False(t, e.HasAddresses())
				count++
			}
		}
	}
	assert.Equal(t, 249, count)
	for _, code := range []string{"AQ", "BQ", "CW", "GB", "HK", "PS", "SS", "SX", "TL", "TW", "UM", "VA", "ZW"} {
		_, err := ipset.Parse(code)
		require.NoError(t, err, code)
	}
}

// Aggregate covers exactly the same addresses with the fewest ranges. The test compares it with a bitmap of 256
// addresses of each family.
func FuzzAggregate(f *testing.F) {
	f.Add([]byte{0, 32, 1, 32, 2, 31, 128, 25, 0, 24}, false)
	f.Add([]byte{7, 30, 5, 29, 255, 32}, true)
	f.Fuzz(func(t *testing.T, data []byte, v6 bool) {
		var entries []ipset.Entry
		var want, got smallSpace
		for i := 0; i+1 < len(data) && i < 60; i += 2 {
			bits := 24 + int(data[i+1])%9
			addr := netip.AddrFrom4([4]byte{192, 0, 2, data[i]})
			if v6 {
				addr = netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: data[i]})
				bits += 96
			}
			e, err := ipset.Parse(netip.PrefixFrom(addr, bits).String())
			require.NoError(t, err)
			entries = append(entries, e)
			want.add(netip.PrefixFrom(addr, bits))
		}
		merged := ipset.Aggregate(entries)
		for i, e := range merged {
			require.Equal(t, e.Prefix.IsSingleIP(), !strings.Contains(e.Text, "/"), e.Text)
			again, err := ipset.Parse(e.Text)
			require.NoError(t, err)
			require.Equal(t, e.Meaning, again.Meaning)
			twice, _ := got.add(e.Prefix)
			require.False(t, twice, "covered twice")
			for _, other := range merged[:i] {
				sibling := other.Prefix.Bits() == e.Prefix.Bits() && e.Prefix.Bits() > 0 &&
					netip.PrefixFrom(other.Prefix.Addr(), e.Prefix.Bits()-1).Masked() == netip.PrefixFrom(e.Prefix.Addr(), e.Prefix.Bits()-1).Masked()
				require.False(t, sibling, "%v and %v could be one", other.Prefix, e.Prefix)
			}
		}
		require.Equal(t, want, got)
	})
}

// Parse accepts what net/netip or the table of countries accepts, and nothing else. The meaning covers the address of
// the text, and parsing the meaning's text gives the same meaning.
func FuzzEntry(f *testing.F) {
	for _, seed := range []string{
		"192.0.2.1", "192.0.2.7/24", "2001:db8::1", "2001:db8::/32", "::ffff:192.0.2.1", "::ffff:192.0.2.1/120", "::ffff:192.0.2.1/95", "::/0", "fe80::1%eth0",
		"de", "DE", "XX", "192.0.2.1/33", "192.0.2.01", " 192.0.2.1", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		addr, addrErr := netip.ParseAddr(text)
		prefix, prefixErr := netip.ParsePrefix(text)
		isAddr, isRange := addrErr == nil && addr.Zone() == "", prefixErr == nil
		got, err := ipset.Parse(text)
		if err != nil {
			require.False(t, isAddr || isRange, "%q", text)
			return
		}
		switch {
		case isAddr:
			require.True(t, got.HasAddresses())
			require.True(t, got.Prefix.IsSingleIP())
			require.Equal(t, addr.Unmap(), got.Prefix.Addr())
			require.Equal(t, text, got.Text)
		case isRange:
			require.True(t, got.HasAddresses())
			require.Equal(t, got.Prefix.Masked(), got.Prefix)
			require.Equal(t, text, got.Text)
			if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
				require.True(t, got.Prefix.Contains(prefix.Addr().Unmap()))
				require.Equal(t, prefix.Bits()-96, got.Prefix.Bits())
			} else {
				require.Equal(t, prefix.Masked(), got.Prefix)
			}
		default:
			require.False(t, got.HasAddresses())
			require.Len(t, got.Name, 2)
			require.True(t, strings.EqualFold(text, got.Name))
			require.Equal(t, got.Name, got.Text)
		}
		canonical := got.Name
		if got.HasAddresses() {
			canonical = got.Prefix.String()
		}
		again, err := ipset.Parse(canonical)
		require.NoError(t, err)
		require.Equal(t, got.Meaning, again.Meaning)
	})
}
