package ipset_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// Distinct keeps the first entry of each meaning (open point 27), and finds it by every other spelling.
func TestDistinctEntries(t *testing.T) {
	t.Parallel()
	different := []string{
		"192.0.2.1", "192.0.2.0/24", "192.0.2.0/25", "192.0.2.0", "0.0.0.0/0", "0.0.0.0", "::/0", "::", "::/32", "::/96", "::c000:201",
		"2001:db8::/32", "2001:db8::/33", "2001:db8::", "2001:db8::1", "::1", "DE", "US", "XK", "Kosovo", "192.0.02.1", "",
	}
	same := map[string]int{
		"::ffff:192.0.2.1": 0, "192.0.2.1/32": 0, "192.0.2.77/24": 1, "::ffff:192.0.2.0/120": 1, "203.0.113.9/0": 4, "::ffff:0:0/96": 4,
		"2001:db8::/0": 6, "::/128": 7, "2001:db8:ffff::/32": 11, "2001:DB8::1": 14, "de": 16, "xk": 18,
	}
	d := ipset.NewDistinct(1)
	for i, text := range different {
		_, found := d.Find(ipset.Read(text).Meaning)
		assert.False(t, found, text)
		assert.True(t, d.Add(ipset.Read(text)), text)
		at, found := d.Find(ipset.Read(text).Meaning)
		assert.True(t, found, text)
		assert.Equal(t, i, at, text)
	}
	for text, want := range same {
		assert.False(t, d.Add(ipset.Read(text)), text)
		at, found := d.Find(ipset.Read(text).Meaning)
		assert.True(t, found, text)
		assert.Equal(t, want, at, text)
	}
	assert.Equal(t, different, ipset.Texts(d.Entries))
}

// Meanings that are not equal with == are never the same entry: neither the family nor the length may be lost.
func TestDistinctMeanings(t *testing.T) {
	t.Parallel()
	mapped := netip.MustParseAddr("::ffff:192.0.2.1")
	d := ipset.NewDistinct(0)
	for _, p := range []netip.Prefix{netip.PrefixFrom(mapped.Unmap(), 32), netip.PrefixFrom(mapped, 32), netip.PrefixFrom(mapped, 128)} {
		assert.True(t, d.Add(ipset.Entry{Meaning: ipset.Meaning{Prefix: p}}), p)
	}
}
