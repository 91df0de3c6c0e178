package lists

import (
	"iter"
	"net/netip"
	"sort"

	"go4.org/netipx"
)

// ranges is a set of addresses: disjoint ranges in ascending order.
type ranges []netipx.IPRange

// rangesOf returns the addresses of all valid prefixes.
func rangesOf(prefixes iter.Seq[netip.Prefix]) ranges {
	var b netipx.IPSetBuilder
	for p := range prefixes {
		b.AddPrefix(p)
	}
	set, _ := b.IPSet() // an error means that some prefixes are not valid, such as those of countries
	return set.Ranges()
}

// overlap reports whether a prefix contains one of the addresses. IPSet.OverlapsPrefix would compare it with every
// range.
func (r ranges) overlap(p netip.Prefix) bool {
	of := netipx.RangeOfPrefix(p)
	i := sort.Search(len(r), func(i int) bool { return !r[i].To().Less(of.From()) })
	return p.IsValid() && i < len(r) && !of.To().Less(r[i].From())
}
