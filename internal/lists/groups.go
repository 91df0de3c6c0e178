package lists

import (
	"cmp"
	"net/netip"
	"slices"
)

// The order matters only for some changes. A removal is spare if an entry that stays or another removed range covers
// it, or if no addition covers any of its addresses; additions are spare correspondingly. The other changes form
// groups: an added range with the removed ranges within it, or a removed range with the added ranges within it. The
// groups are disjoint, so their order does not affect which addresses are covered.

// group holds added and removed ranges that cover the same addresses, one range on at least one side. A spare addition
// is a group without removals.
type group struct {
	add    []Entry
	remove []int // indexes in Changes.Held
}

// change is an entry that stays, is added or is removed.
type change struct {
	netip.Prefix

	i    int32 // index in Changes.Held or Changes.Add
	kind uint8
}

const (
	stays uint8 = iota
	added
	removed
)

// sorted returns all changes. Those without addresses come first, and a range comes before the ranges within it.
func sorted(c *Changes) []change {
	all := make([]change, 0, len(c.Held)+len(c.Add))
	for i, e := range c.Held {
		all = append(all, change{e.Prefix, int32(i), stays})
	}
	for _, i := range c.Remove {
		all[i].kind = removed
	}
	for i, e := range c.Add {
		all = append(all, change{e.Prefix, int32(i), added})
	}
	slices.SortFunc(all, func(a, b change) int {
		if byAddr := a.Addr().Compare(b.Addr()); byAddr != 0 {
			return byAddr
		}
		return cmp.Or(cmp.Compare(a.Bits(), b.Bits()), cmp.Compare(a.kind, b.kind))
	})
	return all
}

// holds reports whether around contains the range of a later change.
func holds(around netip.Prefix, c change) bool {
	return around.IsValid() && around.Contains(c.Addr())
}

// find finds the groups and the spare removals in one pass. Groups that free the most room come first, spare additions
// last.
func (s *sorter) find() {
	var keep netip.Prefix  // the last outermost range that stays
	var top, member change // the last outermost changed range, and the last one of the other kind within it
	var members []int32    // indexes of all ranges of the other kind within top
	for _, next := range sorted(s.Changes) {
		switch {
		case !next.IsValid(), holds(keep, next):
			s.single(next)
		case next.kind == stays:
			keep = next.Prefix
		case !holds(top.Prefix, next):
			s.group(top, members)
			top, member, members = next, change{}, members[:0]
		case next.kind == top.kind, holds(member.Prefix, next):
			s.single(next)
		default:
			member, members = next, append(members, next.i)
		}
	}
	s.group(top, members)
	slices.SortStableFunc(s.groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(min(1, len(b.remove)), min(1, len(a.remove))), cmp.Compare(len(b.remove)-len(b.add), len(a.remove)-len(a.add)))
	})
}

// single records a spare change.
func (s *sorter) single(c change) {
	switch c.kind {
	case stays:
	case added:
		s.groups = append(s.groups, group{add: s.Add[c.i : c.i+1]})
	case removed:
		s.spare = append(s.spare, int(c.i))
	}
}

// group records the group of an outermost range and its members. A gap lasts from the first removal of a group to its
// last addition, so these are the narrowest ranges.
func (s *sorter) group(top change, members []int32) {
	if len(members) == 0 {
		s.single(top)
		return
	}
	var g group
	if top.kind == added {
		g.add = s.Add[top.i : top.i+1]
		for _, i := range members {
			g.remove = append(g.remove, int(i))
		}
	} else {
		g.remove = []int{int(top.i)}
		for _, i := range members {
			g.add = append(g.add, s.Add[i])
		}
	}
	slices.SortStableFunc(g.remove, func(a, b int) int { return cmp.Compare(s.Held[b].Prefix.Bits(), s.Held[a].Prefix.Bits()) })
	slices.SortStableFunc(g.add, func(a, b Entry) int { return cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()) })
	s.groups = append(s.groups, g)
}
