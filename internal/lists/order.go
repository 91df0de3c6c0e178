package lists

import (
	"cmp"
	"net/netip"
	"slices"
)

// Additions come before removals, so that addresses covered before and after the changes stay covered in between. If
// the list has no room for all additions, removals and additions take turns. Then a gap opens where an entry is removed
// before the additions that cover its addresses. To open few, removals that overlap no addition come first, and
// additions that overlap no removal come last. To close them soon, both are in the order of their addresses, and at
// most maxGaps open at a time: not one, because each would need its own request.
// A better order is possible if most ranges of a full list become wider or narrower, but avoids gaps of a second only.
const maxGaps = 100

// Limits holds the maximum number of entries in a list, and of entries that one call may add.
type Limits struct{ List, Call int }

// Step is a part of the changes: additions, then removals. The additions must be in effect before the removals begin,
// and the whole step before the next one begins.
type Step struct {
	Add    []Entry
	Remove []int // indexes in Changes.Held
}

// Order is an order in which to make all changes.
type Order struct {
	Steps     []Step
	Uncovered int // maximum number of removals before the additions that cover their addresses
}

// Order orders the changes. The entries that stay and the added ones must fit into the list.
func (c *Changes) Order(l Limits) Order {
	o, size := Order{}, len(c.Held)
	add, remove, covering, spare := c.Add, c.Remove, 0, 0
	if size+len(add) > l.List {
		ofAdded, ofHeld := func(e Entry) netip.Prefix { return e.Prefix }, func(i int) netip.Prefix { return c.Held[i].Prefix }
		last, first := splitByOverlap(add, rangesOf(remove, ofHeld), ofAdded)
		free, rest := splitByOverlap(remove, rangesOf(add, ofAdded), ofHeld)
		add, remove, covering, spare = slices.Concat(first, last), slices.Concat(free, rest), len(first), len(free)
	}
	for len(add)+len(remove) > 0 {
		a, r := min(max(0, l.List-size), len(add)), len(remove)
		if a < len(add) {
			r = min(r, l.Call, cmp.Or(spare, maxGaps), size+len(add)-l.List) // no more than the rest needs
		}
		if covering > a && spare == 0 {
			o.Uncovered += r
		}
		o.Steps = append(o.Steps, Step{add[:a], remove[:r]})
		add, remove, covering, spare, size = add[a:], remove[r:], max(0, covering-a), max(0, spare-r), size+a-r
	}
	return o
}

// splitByOverlap returns the changes that overlap none of the ranges, and the others, both in order of their addresses.
func splitByOverlap[T any](changes []T, r ranges, of func(T) netip.Prefix) (none, others []T) {
	changes = slices.SortedStableFunc(slices.Values(changes), func(a, b T) int { return of(a).Compare(of(b)) })
	for _, c := range changes {
		if r.overlap(of(c)) {
			others = append(others, c)
		} else {
			none = append(none, c)
		}
	}
	return none, others
}
