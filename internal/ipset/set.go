package ipset

import (
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// Set is an immutable set of addresses, stored as sorted ranges that neither overlap nor touch. [NewSet] creates it.
// The zero value is empty.
type Set struct{ ranges []netipx.IPRange }

// NewSet returns the set of all addresses in the prefixes. It ignores invalid prefixes, such as that of a country.
func NewSet(prefixes []netip.Prefix) Set {
	return setOf(prefixes, func(p netip.Prefix) netip.Prefix { return p })
}

// setOf is NewSet for values that have a prefix. There may be millions of values, so it creates no slice of prefixes.
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

// beyond reports whether a range that starts at from neither overlaps nor touches one that ends at to. IPv4 sorts
// before IPv6, and Next of the last IPv4 address is invalid, so the two families never touch.
func beyond(to, from netip.Addr) bool {
	return to.Less(from) && to.Next() != from
}

// at returns the first range that ends at or after the address.
func (s Set) at(addr netip.Addr) (netipx.IPRange, bool) {
	i, _ := slices.BinarySearchFunc(s.ranges, addr, func(r netipx.IPRange, addr netip.Addr) int { return r.To().Compare(addr) })
	if i == len(s.ranges) {
		return netipx.IPRange{}, false
	}
	return s.ranges[i], true
}

// Overlaps reports whether the set holds at least one address of a valid prefix.
func (s Set) Overlaps(p netip.Prefix) bool {
	want := netipx.RangeOfPrefix(p)
	r, ok := s.at(want.From())
	return ok && !want.To().Less(r.From())
}

// Contains reports whether the set holds all addresses of a valid prefix.
func (s Set) Contains(p netip.Prefix) bool {
	want := netipx.RangeOfPrefix(p)
	r, ok := s.at(want.From())
	return ok && !want.From().Less(r.From()) && !r.To().Less(want.To())
}

// Prefixes returns the fewest prefixes that cover the same addresses, sorted.
func (s Set) Prefixes() []netip.Prefix {
	var all []netip.Prefix
	for _, r := range s.ranges {
		all = r.AppendPrefixes(all)
	}
	return all
}
