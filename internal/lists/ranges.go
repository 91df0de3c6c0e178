package lists

import (
	"net/netip"
	"sort"

	"go4.org/netipx"
)

// ranges is a set of addresses: disjoint ranges in ascending order.
type ranges []netipx.IPRange

// rangesOf returns the addresses of all items.
func rangesOf[T any](items []T, of func(T) netip.Prefix) ranges {
	var b netipx.IPSetBuilder
	for _, item := range items {
		b.AddPrefix(of(item))
	}
	set, _ := b.IPSet() // an error means that some items have no addresses
	return set.Ranges()
}

// overlap reports whether a prefix contains one of the addresses. IPSet.OverlapsPrefix would compare it with every
// range.
func (r ranges) overlap(p netip.Prefix) bool {
	of := netipx.RangeOfPrefix(p)
	i := sort.Search(len(r), func(i int) bool { return !r[i].To().Less(of.From()) })
	return p.IsValid() && i < len(r) && !of.To().Less(r[i].From())
}
