package lists

import (
	"net/netip"
	"slices"
)

// Additions come before removals, so that addresses covered before and after the changes stay covered in between. If
// the list has no room for all additions, removals and additions take turns. Then a gap opens where an entry is removed
// before the additions that cover its addresses. To open few, removals that overlap no addition come first, and
// additions that overlap no removal come last. To close them soon, both are in the order of their addresses, and at
// most maxGaps open at a time: not one, because each would need its own request.
//
// A better order exists for lists that are full and in which most ranges become wider or narrower. It took 200 lines,
// and the gaps that it avoids last about a second.
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
	Peak      int // largest number of entries at any time
	Requests  int // calls that change the list, one for each removal
	Uncovered int // maximum number of removals before the additions that cover their addresses
}

// Order orders the changes. The entries that stay and the added ones must fit into the list.
func (c *Changes) Order(l Limits) Order {
	o, size := Order{Peak: len(c.Held)}, len(c.Held)
	add, remove, covering, spare := c.Add, c.Remove, 0, 0
	if size+len(add) > l.List {
		add, covering = apart(add, rangesOf(c.removed), func(e Entry) netip.Prefix { return e.Prefix }, true)
		remove, spare = apart(remove, rangesOf(c.added), func(i int) netip.Prefix { return c.Held[i].Prefix }, false)
	}
	for len(add)+len(remove) > 0 {
		a, r := min(max(0, l.List-size), len(add)), len(remove)
		if a < len(add) {
			r = min(r, l.Call, size+len(add)-l.List) // no more than the rest needs
			if spare > 0 {
				r = min(r, spare)
			} else {
				r = min(r, maxGaps)
			}
		}
		if covering > a && spare == 0 {
			o.Uncovered += r
		}
		o.Steps = append(o.Steps, Step{add[:a], remove[:r]})
		o.Peak = max(o.Peak, size+a)
		o.Requests += (a+l.Call-1)/l.Call + r
		add, remove, covering, spare, size = add[a:], remove[r:], max(0, covering-a), max(0, spare-r), size+a-r
	}
	return o
}

// apart sorts changes by address, first those that overlap the ranges or do not, and returns how many these are.
func apart[T any](changes []T, r ranges, of func(T) netip.Prefix, overlapping bool) (sorted []T, first int) {
	var rest []T
	for _, c := range changes {
		if r.overlap(of(c)) == overlapping {
			sorted = append(sorted, c)
		} else {
			rest = append(rest, c)
		}
	}
	first = len(sorted)
	for _, part := range [][]T{sorted, rest} {
		slices.SortStableFunc(part, func(a, b T) int { return of(a).Compare(of(b)) })
	}
	return append(sorted, rest...), first
}

func (c *Changes) added(yield func(netip.Prefix) bool) {
	for _, e := range c.Add {
		if !yield(e.Prefix) {
			return
		}
	}
}

func (c *Changes) removed(yield func(netip.Prefix) bool) {
	for _, i := range c.Remove {
		if !yield(c.Held[i].Prefix) {
			return
		}
	}
}
