package listorder

import (
	"cmp"
	"slices"
)

// group has the ranges within one outermost range that is added or removed. Groups do not overlap.
type group struct {
	adds   []int32 // added ranges that cover something, widest first: the outermost range, or its replacements
	grows  bool    // its one addition frees more room than it needs
	widest float64 // addresses that the first of adds covers
}

// groups are all groups, sorted so that those that free most room come first.
type groups struct {
	all  []group
	of   []int32   // the group of each range; -1 if no address in it counts
	need []float64 // addresses in each range that count
}

func groupsOf(p *protection) *groups {
	n := int32(len(p.ranges)) //nolint:gosec // a list is small
	g := &groups{of: slices.Repeat([]int32{-1}, len(p.ranges)), need: make([]float64, n)}
	for i := n - 1; i >= 0; i-- {
		r := &p.ranges[i]
		if r.counts {
			g.need[i] += r.weight
		}
		if r.parent >= 0 {
			g.need[r.parent] += g.need[i]
		}
	}
	type numbered struct {
		group
		top  int32
		gain int // entries that its first addition frees room for
	}
	var found []numbered
	for top := int32(0); top < n; top = p.ranges[top].end {
		if g.need[top] == 0 {
			continue
		}
		next := numbered{group{adds: []int32{top}}, top, 0}
		if p.ranges[top].added {
			next.gain = len(g.outermost(p, top, func(r *protectedRange) bool { return r.present > 0 }))
		} else {
			next.adds = g.outermost(p, top, func(r *protectedRange) bool { return r.added })
			slices.SortStableFunc(next.adds, func(a, b int32) int { return cmp.Compare(g.need[b], g.need[a]) })
		}
		next.grows, next.widest = next.gain > 1, g.need[next.adds[0]]
		found = append(found, next)
	}
	slices.SortStableFunc(found, func(a, b numbered) int {
		if byGain := cmp.Compare(b.gain, a.gain); byGain != 0 || a.grows { // groups that grow come first
			return byGain
		}
		return cmp.Or(cmp.Compare(len(a.adds), len(b.adds)), cmp.Compare(b.widest, a.widest))
	})
	for i, f := range found {
		g.all = append(g.all, f.group)
		for x := f.top; x < p.ranges[f.top].end; x++ {
			g.of[x] = int32(i)
		}
	}
	return g
}

// outermost returns the outermost of the wanted ranges within top in which addresses count.
func (g *groups) outermost(p *protection, top int32, wanted func(*protectedRange) bool) (found []int32) {
	for i := top + 1; i < p.ranges[top].end; {
		if r := &p.ranges[i]; wanted(r) && g.need[i] > 0 {
			found = append(found, i)
			i = r.end
		} else {
			i++
		}
	}
	return found
}

// bounds determine how an order begins and ends.
type bounds struct {
	growFirst bool  // while groups that grow are left, a removal that uncovers something must be in one of them
	last      int32 // the group that comes last; -1: no group is forced to
	hold      bool  // a gap in the last group stays open, and so makes room for all others
}

// bounds returns the bounds to try. The group with the narrowest last addition may come last.
func (g *groups) bounds() (all []bounds) {
	lasts := []int32{-1, g.smallest(func(c *group) bool { return !c.grows }), g.smallest(func(*group) bool { return true })}
	for _, last := range slices.Compact(lasts) {
		for _, hold := range []bool{false, true} {
			if last < 0 && hold {
				continue
			}
			if all = append(all, bounds{false, last, hold}); len(g.all) > 0 && g.all[0].grows {
				all = append(all, bounds{true, last, hold})
			}
		}
	}
	return all
}

// smallest returns the group with the narrowest last addition among those that may accepts; -1 if it accepts none.
func (g *groups) smallest(may func(*group) bool) int32 {
	found, least := int32(-1), 0.0
	for i := range g.all {
		if c := &g.all[i]; may(c) {
			if covers := g.need[c.adds[len(c.adds)-1]]; found < 0 || covers <= least {
				found, least = int32(i), covers
			}
		}
	}
	return found
}
