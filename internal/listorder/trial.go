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
	peak, sum   float64 // uncovered addresses: the largest number at once, and the sum over all changes
}

// bestOrder sorts the changes of p. If there is room for all additions, p has no ranges. If the list is larger than
// allowed, room is negative.
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

// simpleOrder is the order for a list that has room for all additions. Additions that cover something come first, and
// so do removals that uncover nothing.
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

// trial simulates the changes to find an order.
type trial struct {
	*groups
	*protection
	bounds
	order

	call int // largest number of additions per call

	room    int
	turn    []int32 // groups whose turn comes, the next one at the end
	waiting []int   // how many of the last additions of each group are left
	growing int     // groups that grow and have additions left
	open    openGroups

	addAt    []int32   // the addition of each range
	others   []int     // additions of no group
	idle     []int     // removals that never uncover anything
	removeAt [][]int32 // the remaining removals of each range
	spare    ranking   // ranges of removals that uncover nothing
	bound    ranking   // ranges of removals that uncover something, fewest addresses first
}

func newTrial(g *groups, p *protection, b bounds, room, call int) *trial {
	t := &trial{
		groups: g, protection: p, bounds: b, room: room, call: call, waiting: make([]int, len(g.all)),
		open:  openGroups{has: make([]bool, len(g.all))},
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

// sortAdditions finds the addition of each range, and the additions of no group. Of the latter, those with a range come
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

// sortRemovals finds the removals of each range, and those that never uncover anything.
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
	for t.removeSpare() { // after all additions, no removal uncovers anything
	}
	return t.order
}

// account updates peak and sum after a change.
func (t *trial) account() {
	t.peak = max(t.peak, t.uncovered)
	t.sum += t.uncovered
}

// addNext makes the addition that closes a gap if that is better now, or the next one otherwise.
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

// addFrom makes the next addition of a group.
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

// next returns the group whose turn it is; -1 if no group has additions left.
func (t *trial) next() int32 {
	for n := len(t.turn); n > 0; n-- {
		if g := t.turn[n-1]; t.waiting[g] > 0 && !t.open.has[g] {
			return g
		}
		t.turn = t.turn[:n-1]
	}
	return -1
}

// closing returns the group with the widest addition that covers uncovered addresses; -1 if there is none.
func (t *trial) closing() int32 {
	if t.gaps == 0 {
		for _, g := range t.open.opened {
			if t.waiting[g] > 0 {
				t.turn = append(t.turn, g)
			}
		}
		t.open.clear()
		return -1
	}
	for len(t.open.widest) > 0 {
		first := &t.open.widest[0]
		if t.waiting[first.at] == 0 {
			heap.Pop(&t.open.widest)
		} else if rank := -t.widestLeft(first.at); first.rank != rank { // it had an addition, and the next one is narrower
			first.rank = rank
			heap.Fix(&t.open.widest, 0)
		} else {
			return first.at
		}
	}
	return -1
}

// openGroup notes that something in group g is about to be uncovered.
func (t *trial) openGroup(g int32) {
	if !t.open.has[g] && t.waiting[g] > 0 {
		heap.Push(&t.open.widest, ranked{g, -t.widestLeft(g), len(t.open.opened)})
	}
	t.open.has[g] = true
	t.open.opened = append(t.open.opened, g)
}

// widestLeft returns how many addresses the next addition of a group covers.
func (t *trial) widestLeft(g int32) float64 {
	t.visited++
	adds := t.all[g].adds
	return t.need[adds[len(adds)-t.waiting[g]]]
}

// mayClose reports whether to close the gap of group g before the next addition. It returns true if room for that
// addition remains. Otherwise that addition would need another gap, and mayClose compares the two gaps.
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

// changed updates the rankings after a range covers more or less alone than before.
func (t *trial) changed(x int32) {
	if t.free(x) {
		// Narrowest first: of several ranges that cover the same, the widest must remain until last.
		heap.Push(&t.spare, ranked{x, -float64(t.ranges[x].prefix.Bits()), 0})
	} else {
		heap.Push(&t.bound, ranked{x, t.ranges[x].soloWeight, t.closedBy(t.of[x])})
	}
}

// closedBy returns how many additions close a group. The last group counts as having the most.
func (t *trial) closedBy(g int32) int {
	if g == t.last {
		return math.MaxInt
	}
	return len(t.all[g].adds)
}

// hasSpare reports whether there is a removal that uncovers nothing.
func (t *trial) hasSpare() bool {
	for len(t.spare) > 0 {
		if x := t.spare[0].at; len(t.removeAt[x]) > 0 && t.free(x) {
			return true
		}
		heap.Pop(&t.spare)
	}
	return len(t.idle) > 0
}

// removeSpare makes a removal that uncovers nothing. It returns false if there is none.
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

// removeBound makes the removal that uncovers the fewest addresses.
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
	t.openGroup(t.of[passed[0].at])
	t.removeOne(passed[0].at)
}

func (t *trial) removeOne(x int32) {
	t.remove = append(t.remove, int(t.removeAt[x][0]))
	t.removeAt[x] = t.removeAt[x][1:]
	t.take(x, t.changed)
	t.room++
	t.account()
}

// openGroups are the groups in which something was uncovered since the list last had no gaps.
type openGroups struct {
	opened []int32 // in the order in which they were opened; a group comes once per removal
	has    []bool  // whether each group is among them
	widest ranking // those with additions left, the widest next addition first; a rank may be too wide
}

func (o *openGroups) clear() {
	for _, g := range o.opened {
		o.has[g] = false
	}
	o.opened, o.widest = o.opened[:0], o.widest[:0]
}

// ranked is a range or a group with its rank.
type ranked struct {
	at   int32
	rank float64
	tie  int // with equal ranks, the smallest tie comes first
}

// ranking is a heap by rank. It may hold outdated elements, which its users skip.
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
