package listorder

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// order is a sequence of changes: indexes of additions and of removals.
type order struct {
	add, remove []int
	peak, sum   float64 // uncovered addresses: the most at once, and added up over all changes
}

// bestOrder orders the changes that p knows; p has no ranges if there is room for all additions. room is negative if the
// list is larger than it may be.
func bestOrder(p *protection, room, call int) (best order) {
	if len(p.ranges) == 0 {
		return simpleOrder(p)
	}
	g := groupsOf(p)
	for i, b := range g.bounds() {
		if o := newTrial(g, p.clone(), b, room, call).run(); i == 0 || o.better(best) {
			best = o
		}
		if best.sum == 0 {
			break
		}
	}
	return best
}

func (o order) better(than order) bool {
	return cmp.Or(cmp.Compare(o.peak, than.peak), cmp.Compare(o.sum, than.sum)) < 0
}

// simpleOrder is for a list that has room for all: additions that cover something first, removals that uncover nothing
// first.
func simpleOrder(p *protection) order {
	halves := func(ranges []int32, countsFirst bool) []int {
		all := make([]int, 0, len(ranges))
		for _, counts := range []bool{countsFirst, !countsFirst} {
			for i, x := range ranges {
				if (x >= 0) == counts {
					all = append(all, i)
				}
			}
		}
		return all
	}
	return order{add: halves(p.adds, true), remove: halves(p.removes, false)}
}

// trial carries a plan out in thought.
type trial struct {
	*groups
	*protection
	bounds
	order

	call int // additions that one call may hold

	room    int
	turn    []int32 // groups, the next one at the end
	waiting []int   // additions of each group that are left, its last ones
	growing int     // groups that grow and have additions left
	open    []int32 // groups in which something was uncovered

	addAt    []int32   // the addition that is a range
	others   []int     // additions that cover nothing
	idle     []int     // removals that never uncover anything
	removeAt [][]int32 // the removals that are a range and are left
	spare    ranking   // ranges of removals that uncover nothing, the narrowest first
	bound    ranking   // ranges of removals that uncover something, that of the fewest addresses first
}

func newTrial(g *groups, p *protection, b bounds, room, call int) *trial {
	t := &trial{
		groups: g, protection: p, bounds: b, room: room, call: call, waiting: make([]int, len(g.all)),
		addAt: make([]int32, len(p.ranges)), removeAt: make([][]int32, len(p.ranges)),
	}
	for i := range slices.Backward(g.all) {
		if at := int32(i); at != b.last { //nolint:gosec // a list is small
			t.turn = append(t.turn, at)
		}
		t.waiting[i] = len(g.all[i].adds)
		if g.all[i].grows {
			t.growing++
		}
	}
	if b.last >= 0 {
		t.turn = slices.Insert(t.turn, 0, b.last)
	}
	t.sortAdditions()
	t.sortRemovals()
	return t
}

// sortAdditions finds the addition that is each range, and those of no group. Of the latter, those that are a range come
// first.
func (t *trial) sortAdditions() {
	counted := make([]bool, len(t.ranges))
	for _, c := range t.all {
		for _, x := range c.adds {
			counted[x] = true
		}
	}
	for i, x := range t.adds {
		if x >= 0 {
			t.addAt[x] = int32(i)
		}
		if x >= 0 && !counted[x] {
			t.others = append(t.others, i)
		}
	}
	for i, x := range t.adds {
		if x < 0 {
			t.others = append(t.others, i)
		}
	}
}

// sortRemovals finds the removals that are each range, and those that never uncover anything.
func (t *trial) sortRemovals() {
	for i, x := range t.removes {
		if x < 0 {
			t.idle = append(t.idle, i)
		} else {
			t.removeAt[x] = append(t.removeAt[x], int32(i))
		}
	}
	for x, removals := range t.removeAt {
		if len(removals) > 0 {
			t.changed(int32(x))
		}
	}
}

func (t *trial) run() order {
	for left := len(t.adds); left > 0; {
		if t.room > 0 {
			t.addNext()
			left--
			continue
		}
		for wanted := t.wanted(left, t.room, t.call); wanted > 0 && t.removeSpare(); wanted-- {
		}
		if t.room <= 0 && !t.removeSpare() {
			t.removeBound()
		}
	}
	for t.removeSpare() { // when all additions are there, nothing is bound
	}
	return t.order
}

// account counts what is uncovered after a change.
func (t *trial) account() {
	t.peak = max(t.peak, t.uncovered)
	t.sum += t.uncovered
}

// addNext adds what closes a gap, if it is time to, or the next one.
func (t *trial) addNext() {
	closing := t.closing()
	next := t.next()
	switch {
	case closing >= 0 && (next < 0 || t.mayClose(closing, next)):
		t.addFrom(closing)
	case next >= 0:
		t.addFrom(next)
	default:
		i := t.others[0]
		t.others = t.others[1:]
		t.addOne(i, t.adds[i])
	}
}

// addFrom adds the next one of a group.
func (t *trial) addFrom(g int32) {
	c := &t.all[g]
	x := c.adds[len(c.adds)-t.waiting[g]]
	if t.waiting[g]--; t.waiting[g] == 0 && c.grows {
		t.growing--
	}
	t.addOne(int(t.addAt[x]), x)
}

func (t *trial) addOne(i int, x int32) {
	t.add = append(t.add, i)
	if x >= 0 {
		t.put(x, t.changed)
	}
	t.room--
	t.account()
}

// next is the group whose turn it is; -1 if none has additions left.
func (t *trial) next() int32 {
	for n := len(t.turn); n > 0; n-- {
		if g := t.turn[n-1]; t.waiting[g] > 0 && !slices.Contains(t.open, g) {
			return g
		}
		t.turn = t.turn[:n-1]
	}
	return -1
}

// closing is the group of the widest addition that covers what is uncovered; -1 if there is none.
func (t *trial) closing() int32 {
	found := int32(-1)
	if t.gaps == 0 {
		for _, g := range t.open {
			if t.waiting[g] > 0 {
				t.turn = append(t.turn, g)
			}
		}
		t.open = t.open[:0]
		return found
	}
	t.open = slices.DeleteFunc(t.open, func(g int32) bool { return t.waiting[g] == 0 })
	for _, g := range t.open {
		if found < 0 || t.widestLeft(g) > t.widestLeft(found) {
			found = g
		}
	}
	return found
}

// widestLeft is how many addresses the next addition of a group covers.
func (t *trial) widestLeft(g int32) float64 {
	adds := t.all[g].adds
	return t.need[adds[len(adds)-t.waiting[g]]]
}

// mayClose: when the gap of a group is closed, there is room for the next addition, or that is not worth the gap.
func (t *trial) mayClose(g, next int32) bool {
	switch {
	case t.hold && g == t.last:
		return false
	case t.all[g].grows, t.room > 1, t.hasSpare():
		return true
	case t.all[next].grows:
		return false
	case t.waiting[next] > 1:
		return true
	default:
		return t.widestLeft(next) <= t.uncovered
	}
}

// changed notes that a range covers more or less by itself than before.
func (t *trial) changed(x int32) {
	if t.free(x) {
		// One that remains of several that cover the same is the widest, for which everything else may make room.
		heap.Push(&t.spare, ranked{x, -float64(t.ranges[x].prefix.Bits()), 0})
	} else {
		heap.Push(&t.bound, ranked{x, t.ranges[x].soloWeight, t.closedBy(t.of[x])})
	}
}

// closedBy is how many additions close a group, if it is not to be the last.
func (t *trial) closedBy(g int32) int {
	if g == t.last {
		return math.MaxInt
	}
	return len(t.all[g].adds)
}

// hasSpare tells whether there is a removal that uncovers nothing.
func (t *trial) hasSpare() bool {
	for len(t.spare) > 0 {
		if x := t.spare[0].at; len(t.removeAt[x]) > 0 && t.free(x) {
			return true
		}
		heap.Pop(&t.spare)
	}
	return len(t.idle) > 0
}

// removeSpare removes an entry that uncovers nothing, if there is one.
func (t *trial) removeSpare() bool {
	switch {
	case len(t.idle) > 0:
		t.remove = append(t.remove, t.idle[0])
		t.idle = t.idle[1:]
		t.room++
		t.account()
	case t.hasSpare():
		t.removeOne(t.spare[0].at)
	default:
		return false
	}
	return true
}

// removeBound removes the entry that uncovers the fewest addresses.
func (t *trial) removeBound() {
	grow := t.growFirst && t.growing > 0 && t.gaps == 0
	var passed []ranked
	for len(t.bound) > 0 {
		u := heap.Pop(&t.bound).(ranked) //nolint:forcetypeassert // it holds nothing else
		g := t.of[u.at]
		if len(t.removeAt[u.at]) == 0 || t.ranges[u.at].soloWeight != u.rank {
			continue // out of date
		}
		if grow && (!t.all[g].grows || t.waiting[g] == 0) {
			passed = append(passed, u)
			continue
		}
		passed = append(passed, u)
		passed[0], passed[len(passed)-1] = u, passed[0]
		break
	}
	for _, u := range passed[1:] {
		heap.Push(&t.bound, u)
	}
	t.open = append(t.open, t.of[passed[0].at])
	t.removeOne(passed[0].at)
}

func (t *trial) removeOne(x int32) {
	t.remove = append(t.remove, int(t.removeAt[x][0]))
	t.removeAt[x] = t.removeAt[x][1:]
	t.take(x, t.changed)
	t.room++
	t.account()
}

// ranked is a range with what it is ranked by.
type ranked struct {
	at   int32
	rank float64
	tie  int // of the same rank the smallest comes first
}

// ranking is a heap. Some of it is out of date.
type ranking []ranked

func (r *ranking) Len() int { return len(*r) }
func (r *ranking) Less(i, j int) bool {
	a, b := (*r)[i], (*r)[j]
	return a.rank < b.rank || a.rank == b.rank && a.tie < b.tie
}
func (r *ranking) Swap(i, j int) { (*r)[i], (*r)[j] = (*r)[j], (*r)[i] }
func (r *ranking) Push(x any)    { *r = append(*r, x.(ranked)) } //nolint:forcetypeassert // heap.Push pushes nothing else
func (r *ranking) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
