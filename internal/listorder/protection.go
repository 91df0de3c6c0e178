package listorder

import (
	"cmp"
	"math"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// protection knows which addresses a list covers while a plan is carried out. Only those count that the list covers
// before and after, and that no entry covers that stays: the others are not missed, or not in danger.
//
// Ranges lie within one another or apart, so they are a tree. An address belongs to the narrowest range around it, and is
// covered while that range or one around it is in the list. Adding or removing a range touches the ranges within it, and
// no range is in more than 128 others.
type protection struct {
	ranges  []protectedRange // in order of address; a range comes before those within it
	adds    []int32          // the range of each addition; -1 if none of its addresses count
	removes []int32          // the same of each removal

	uncovered float64 // addresses that count and are covered by nothing now
	gaps      int     // ranges whose own addresses are
}

type protectedRange struct {
	prefix  netip.Prefix
	parent  int32   // the narrowest range around it; -1 without one
	end     int32   // behind the last range within it
	weight  float64 // addresses that belong to it
	counts  bool    // they count
	added   bool    // the plan adds it
	present int32   // entries of the list that are this range; two ids may have one
	cover   int32   // entries of the list that are this range or around it

	// What only this range covers, while it is there once.
	solo       int32   // ranges within it, itself included, whose own addresses are covered by nothing else
	soloWeight float64 // their addresses
}

// newProtection is the protection before the first change. It has no ranges if no address is in danger: nothing that goes
// is covered by what comes, or the list is not crowded, so that all that comes does so before anything goes.
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

// inDanger marks the changes with addresses that count, by a range of 0. If the list is crowded, it returns the ranges
// around these addresses, in any order and some of them twice.
func (p *protection) inDanger(keep, add, remove []netip.Prefix, crowded bool) (all []netip.Prefix) {
	staying, coming := ipset.NewSet(keep), ipset.NewSet(add)
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

// place gives the marked changes their ranges.
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

// missed: while the later additions are not there, removing this uncovers addresses that are to stay covered. Rather
// too often true than not often enough.
func missed(p netip.Prefix, later, there ipset.Set) bool {
	return p.IsValid() && later.Overlaps(p) && !there.Contains(p)
}

// build finds for each range the one around it, and the addresses that are in none within it.
func (p *protection) build() {
	var open []int32
	next := make([]netip.Addr, len(p.ranges)) // behind the ranges within it so far
	full := make([]bool, len(p.ranges))       // those have no gap
	end := func(i int32) netip.Addr { return netipx.RangeOfPrefix(p.ranges[i].prefix).To().Next() }
	closeUpTo := func(here int32, within func(netip.Prefix) bool) {
		for len(open) > 0 && !within(p.ranges[open[len(open)-1]].prefix) {
			i := open[len(open)-1]
			r := &p.ranges[i]
			if r.end = here; full[i] && next[i] == end(i) {
				r.weight = 0
			} else {
				r.weight = max(r.weight, 1) // in IPv6 a few addresses of many are lost in rounding
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

// begin marks the addresses that count, and counts what covers them.
func (p *protection) begin(staysAt []bool) {
	type around struct{ stays, comes, goes bool }
	above := make([]around, len(p.ranges))
	for i := range p.ranges {
		r, a := &p.ranges[i], &above[i]
		if r.parent >= 0 {
			*a, r.cover = above[r.parent], p.ranges[r.parent].cover
		}
		r.cover += r.present
		a.stays, a.comes, a.goes = a.stays || staysAt[i], a.comes || r.added, a.goes || r.present > 0
		r.counts = r.weight > 0 && !a.stays && a.comes && a.goes
	}
	for i := range p.ranges {
		if r := &p.ranges[i]; r.counts && r.cover == 1 {
			p.credit(p.holder(int32(i)), r.weight)
		}
	}
}

// holder is the narrowest range of the list that covers the addresses of i.
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
		r.soloWeight = 0 // without what rounding left
	}
}

// put adds a range to the list. changed is called with each range that now covers less by itself.
func (p *protection) put(x int32, changed func(int32)) {
	for i := x; i < p.ranges[x].end; i++ {
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

// take removes a range from the list. changed is called with each range that now covers more by itself.
func (p *protection) take(x int32, changed func(int32)) {
	p.ranges[x].present--
	for i := x; i < p.ranges[x].end; i++ {
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

// free: removing one entry of this range uncovers nothing.
func (p *protection) free(x int32) bool { return p.ranges[x].solo == 0 }

// clone is a copy to try an order with.
func (p *protection) clone() *protection {
	c := *p
	c.ranges = slices.Clone(p.ranges)
	return &c
}

// relies: the addresses of a removal are covered by additions, and must stay covered.
func (p *protection) relies(removal int) bool { return p.removes[removal] >= 0 }

// spares: a removal uncovers nothing now.
func (p *protection) spares(removal int) bool {
	x := p.removes[removal]
	return x < 0 || len(p.ranges) == 0 || p.free(x)
}

// wanted is how many entries are to be removed at once when there is no room for the additions that are left. While
// something is uncovered, nothing is done that can wait.
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
