package ipset

import (
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// Set is a set of addresses: ranges in order that do not touch each other. [NewSet] creates it of all that is in it; it
// takes no more memory than these ranges, and never changes. The zero value is empty.
type Set struct{ ranges []netipx.IPRange }

// NewSet returns the set of the addresses in some prefixes. A prefix that is not valid, as that of a country, has none.
func NewSet(prefixes []netip.Prefix) Set {
	return setOf(prefixes, func(p netip.Prefix) netip.Prefix { return p })
}

// setOf is NewSet for values that have a prefix. They may be millions, so no slice of their prefixes is created.
func setOf[T any](all []T, prefix func(T) netip.Prefix) Set {
	ranges := make([]netipx.IPRange, 0, len(all))
	for _, x := range all {
		if p := prefix(x); p.IsValid() {
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
	return Set{merged}
}

// beyond: from is neither up to the address nor next to it. Addresses of IPv4 come before those of IPv6, and the last
// of the former is next to none.
func beyond(to, from netip.Addr) bool {
	return to.Less(from) && to.Next() != from
}

// at returns the first range that ends at the address or behind it.
func (s Set) at(addr netip.Addr) (netipx.IPRange, bool) {
	i, _ := slices.BinarySearchFunc(s.ranges, addr, func(r netipx.IPRange, addr netip.Addr) int { return r.To().Compare(addr) })
	if i == len(s.ranges) {
		return netipx.IPRange{}, false
	}
	return s.ranges[i], true
}

// Overlaps reports whether some of a valid prefix is in the set.
func (s Set) Overlaps(p netip.Prefix) bool {
	want := netipx.RangeOfPrefix(p)
	r, ok := s.at(want.From())
	return ok && !want.To().Less(r.From())
}

// Contains reports whether all of a valid prefix is in the set.
func (s Set) Contains(p netip.Prefix) bool {
	want := netipx.RangeOfPrefix(p)
	r, ok := s.at(want.From())
	return ok && !want.From().Less(r.From()) && !r.To().Less(want.To())
}

// Prefixes returns the fewest prefixes that cover the same addresses, in order.
func (s Set) Prefixes() []netip.Prefix {
	var all []netip.Prefix
	for _, r := range s.ranges {
		all = r.AppendPrefixes(all)
	}
	return all
}
