package listorder

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// protection tracks which addresses the list covers while the changes are applied. An address counts if the list covers
// it before and after, and no entry that stays covers it. All other addresses need no cover, or keep it anyway.
//
// Two ranges are nested or disjoint, so they form a tree. An address belongs to the narrowest range around it. It is
// covered while that range or one around it is in the list. Adding or removing a range affects only the ranges within
// it, and no range is within more than 128 others.
type protection struct {
	ranges  []protectedRange // sorted by address; a range comes before those within it
	adds    []int32          // the range of each addition; -1 if none of its addresses count
	removes []int32          // the range of each removal; -1 if none of its addresses count

	uncovered float64 // addresses that count and are not covered now
	gaps      int     // ranges whose own addresses are not covered now

	visited int // ranges and groups that a search for an order has looked at; tests bound it
}

// enough is how many entries with the same range count as cover. While that many are left, removing another one
// uncovers nothing and no range covers more alone, so take does not visit the ranges within it.
const enough = 2

type protectedRange struct {
	prefix  netip.Prefix
	parent  int32   // the narrowest range around it; -1 if there is none
	end     int32   // index behind the last range within it
	weight  float64 // addresses that belong to it
	counts  bool    // these addresses count
	added   bool    // the changes add it
	present int32   // entries of the list with this range; several ids may have the same
	cover   int32   // entries of the list with this range or one around it, at most enough of each range

	// What only this range covers, while one entry has it.
	solo       int32   // ranges within it, including itself, whose own addresses nothing else covers
	soloWeight float64 // their addresses
}

// newProtection returns the protection before the first change. It has no ranges if no address is in danger. That is so
// if no addition covers a removal, or if the list is not crowded, because then all additions come before all removals.
func newProtection(keep, add, remove []netip.Prefix, crowded bool) *protection {
	p := &protection{adds: slices.Repeat([]int32{-1}, len(add)), removes: slices.Repeat([]int32{-1}, len(remove))}
	all := p.inDanger(keep, add, remove, crowded)
	if len(all) == 0 {
		return p
	}
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	all = slices.Compact(all)
	at := make(map[netip.Prefix]int32, len(all))
	p.ranges = make([]protectedRange, len(all))
	for i, r := range all {
		p.ranges[i].prefix, at[r] = r, int32(i)
	}
	p.build()
	p.place(at, add, remove)
	staysAt := make([]bool, len(all))
	for _, k := range keep {
		if i, ok := at[k]; ok {
			staysAt[i] = true
		}
	}
	p.begin(staysAt)
	return p
}

// inDanger marks the changes with addresses that count, with range 0. If the list is crowded, it returns the ranges
// around these addresses, unsorted and with duplicates.
func (p *protection) inDanger(keep, add, remove []netip.Prefix, crowded bool) (all []netip.Prefix) {
	coming := ipset.NewSet(add)
	covered := func(r netip.Prefix) bool { return r.IsValid() && coming.Overlaps(r) }
	if !slices.ContainsFunc(remove, covered) {
		return nil // the usual case: the entries that stay make no difference
	}
	staying := ipset.NewSet(keep)
	for i, r := range remove {
		if missed(r, coming, staying) {
			all = append(all, r)
			p.removes[i] = 0
		}
	}
	if len(all) == 0 {
		return nil
	}
	gone := ipset.NewSet(all)
	for i, a := range add {
		if a.IsValid() && gone.Overlaps(a) && !staying.Contains(a) {
			all = append(all, a)
			p.adds[i] = 0
		}
	}
	if !crowded {
		return nil
	}
	for _, k := range keep {
		if k.IsValid() && gone.Overlaps(k) {
			all = append(all, k)
		}
	}
	return all
}

// place sets the ranges of the marked changes.
func (p *protection) place(at map[netip.Prefix]int32, add, remove []netip.Prefix) {
	for i, a := range add {
		if p.adds[i] >= 0 {
			p.adds[i] = at[a]
			p.ranges[at[a]].added = true
		}
	}
	for i, r := range remove {
		if p.removes[i] >= 0 {
			p.removes[i] = at[r]
			p.ranges[at[r]].present++
		}
	}
}

// missed reports whether removing p before the later additions may uncover addresses that must stay covered. It is
// conservative: it may return true although there is no such address.
func missed(p netip.Prefix, later, there ipset.Set) bool {
	return p.IsValid() && later.Overlaps(p) && !there.Contains(p)
}

// build computes for each range the one around it, and the number of addresses in it that are in no range within it.
func (p *protection) build() {
	var open []int32
	next := make([]netip.Addr, len(p.ranges)) // the address behind the ranges within it so far
	full := make([]bool, len(p.ranges))       // the ranges within it so far have no gaps
	end := func(i int32) netip.Addr { return netipx.RangeOfPrefix(p.ranges[i].prefix).To().Next() }
	closeUpTo := func(here int32, within func(netip.Prefix) bool) {
		for len(open) > 0 && !within(p.ranges[open[len(open)-1]].prefix) {
			i := open[len(open)-1]
			r := &p.ranges[i]
			if r.end = here; full[i] && next[i] == end(i) {
				r.weight = 0
			} else {
				r.weight = max(r.weight, 1) // in IPv6, rounding may lose the last addresses
			}
			open = open[:len(open)-1]
		}
	}
	for n := range p.ranges {
		i, r := int32(n), &p.ranges[n]
		closeUpTo(i, func(around netip.Prefix) bool { return around.Overlaps(r.prefix) })
		r.parent, r.weight = -1, math.Ldexp(1, r.prefix.Addr().BitLen()-r.prefix.Bits())
		next[i], full[i] = r.prefix.Addr(), true
		if len(open) > 0 {
			r.parent = open[len(open)-1]
			p.ranges[r.parent].weight -= r.weight
			full[r.parent] = full[r.parent] && next[r.parent] == r.prefix.Addr()
			next[r.parent] = end(i)
		}
		open = append(open, i)
	}
	closeUpTo(int32(len(p.ranges)), func(netip.Prefix) bool { return false }) //nolint:gosec // a list is small
}

// begin marks the addresses that count, and counts the entries that cover them.
func (p *protection) begin(staysAt []bool) {
	type around struct{ stays, comes, goes bool }
	above := make([]around, len(p.ranges))
	for i := range p.ranges {
		r, a := &p.ranges[i], &above[i]
		if r.parent >= 0 {
			*a, r.cover = above[r.parent], p.ranges[r.parent].cover
		}
		r.cover += min(r.present, enough)
		a.stays, a.comes, a.goes = a.stays || staysAt[i], a.comes || r.added, a.goes || r.present > 0
		r.counts = r.weight > 0 && !a.stays && a.comes && a.goes
	}
	for i := range p.ranges {
		if r := &p.ranges[i]; r.counts && r.cover == 1 {
			p.credit(p.holder(int32(i)), r.weight)
		}
	}
}

// holder returns the narrowest range in the list that covers the addresses of i.
func (p *protection) holder(i int32) int32 {
	for p.ranges[i].present == 0 {
		i = p.ranges[i].parent
	}
	return i
}

func (p *protection) credit(i int32, weight float64) {
	p.ranges[i].solo++
	p.ranges[i].soloWeight += weight
}

func (p *protection) debit(i int32, weight float64) {
	r := &p.ranges[i]
	r.soloWeight -= weight
	if r.solo--; r.solo == 0 {
		r.soloWeight = 0 // removes rounding errors
	}
}

// put adds a range to the list. It calls changed for each range that now covers less alone.
func (p *protection) put(x int32, changed func(int32)) {
	if p.ranges[x].present >= enough {
		p.ranges[x].present++
		return
	}
	for i := x; i < p.ranges[x].end; i++ {
		p.visited++
		r := &p.ranges[i]
		if !r.counts {
			continue
		}
		switch r.cover++; r.cover {
		case 1:
			p.uncovered -= r.weight
			p.gaps--
			p.credit(x, r.weight)
		case 2:
			other := p.holder(i)
			p.debit(other, r.weight)
			changed(other)
		}
	}
	p.ranges[x].present++
	if p.gaps == 0 {
		p.uncovered = 0
	}
}

// take removes a range from the list. It calls changed for each range that now covers more alone.
func (p *protection) take(x int32, changed func(int32)) {
	if p.ranges[x].present--; p.ranges[x].present >= enough {
		return
	}
	for i := x; i < p.ranges[x].end; i++ {
		p.visited++
		r := &p.ranges[i]
		if !r.counts {
			continue
		}
		switch r.cover--; r.cover {
		case 0:
			p.uncovered += r.weight
			p.gaps++
			p.debit(x, r.weight)
		case 1:
			other := p.holder(i)
			p.credit(other, r.weight)
			changed(other)
		}
	}
}

// free reports whether removing an entry with this range uncovers nothing.
func (p *protection) free(x int32) bool { return p.ranges[x].solo == 0 }

// clone returns a copy for trying an order.
func (p *protection) clone() *protection {
	c := *p
	c.ranges = slices.Clone(p.ranges)
	return &c
}

// relies reports whether additions cover addresses of a removal that must stay covered.
func (p *protection) relies(removal int) bool { return p.removes[removal] >= 0 }

// spares reports whether a removal uncovers nothing now.
func (p *protection) spares(removal int) bool {
	x := p.removes[removal]
	return x < 0 || len(p.ranges) == 0 || p.free(x)
}

// wanted returns how many entries to remove together if there is no room for the remaining additions. While something
// is uncovered, it makes room for only one addition, because everything else can wait.
func (p *protection) wanted(left, room, call int) int {
	if p.gaps > 0 {
		left = 1
	}
	return min(left, call) - room
}

func (p *protection) addNumber(addition int) {
	if x := p.adds[addition]; x >= 0 && len(p.ranges) > 0 {
		p.put(x, func(int32) {})
	}
}

func (p *protection) removeNumber(removal int) {
	if x := p.removes[removal]; x >= 0 && len(p.ranges) > 0 {
		p.take(x, func(int32) {})
	}
}
