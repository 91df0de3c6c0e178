package webdelivery

import (
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// coverage is a set of addresses: ranges in order that do not touch each other. It is made once, of all that is in it,
// and takes no more memory than that.
type coverage []netipx.IPRange

// covered is the set of the addresses of some entries.
func covered[T any](entries []T, prefix func(T) netip.Prefix) coverage {
	ranges := make(coverage, 0, len(entries))
	for _, e := range entries {
		if p := prefix(e); p.IsValid() {
			ranges = append(ranges, netipx.RangeOfPrefix(p))
		}
	}
	slices.SortFunc(ranges, func(a, b netipx.IPRange) int { return a.From().Compare(b.From()) })
	merged := ranges[:0]
	for _, r := range ranges {
		if n := len(merged); n > 0 && !beyond(merged[n-1].To(), r.From()) {
			if merged[n-1].To().Less(r.To()) {
				merged[n-1] = netipx.IPRangeFrom(merged[n-1].From(), r.To())
			}
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// beyond: from is neither up to the address nor next to it. Addresses of IPv4 come before those of IPv6, and the last
// of the former is next to none.
func beyond(to, from netip.Addr) bool {
	return to.Less(from) && to.Next() != from
}

// at is the first range that ends at the address or behind it.
func (c coverage) at(addr netip.Addr) (netipx.IPRange, bool) {
	i, _ := slices.BinarySearchFunc(c, addr, func(r netipx.IPRange, addr netip.Addr) int { return r.To().Compare(addr) })
	if i == len(c) {
		return netipx.IPRange{}, false
	}
	return c[i], true
}

// overlaps: some of the prefix is in it.
func (c coverage) overlaps(p netip.Prefix) bool {
	want := netipx.RangeOfPrefix(p)
	r, ok := c.at(want.From())
	return ok && !want.To().Less(r.From())
}

// contains: all of the prefix is in it.
func (c coverage) contains(p netip.Prefix) bool {
	want := netipx.RangeOfPrefix(p)
	r, ok := c.at(want.From())
	return ok && !want.From().Less(r.From()) && !r.To().Less(want.To())
}

// prefixes are the fewest that cover the same addresses.
func (c coverage) prefixes() []netip.Prefix {
	var all []netip.Prefix
	for _, r := range c {
		all = r.AppendPrefixes(all)
	}
	return all
}
