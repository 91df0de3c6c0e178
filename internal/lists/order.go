package lists

// Additions come before removals, so that addresses covered before and after the changes stay covered in between. If
// the list has no room for all additions, they are ordered in groups (groups.go). Within a group, all additions come
// before the first removal. Groups that free the most room come first, spare removals make room for the next call, and
// spare additions come last. So there is room for each group, except at the beginning, if the list is full and no
// removal is spare, and at the end, if the list will be full and no addition is spare. Then there is a gap: an entry is
// removed before the additions that cover its addresses. If many groups need a gap, several are open at a time, because
// otherwise each group would need its own request.

// maxGaps is the maximum number of gaps open at a time, unless one group needs more to make room.
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
	s := sorter{Changes: c, limits: l, room: l.List - len(c.Held), order: Order{Peak: len(c.Held)}}
	if len(c.Add) <= s.room {
		s.step(c.Add, c.Remove)
		return s.order
	}
	s.groups = make([]group, 0, len(c.Add))
	s.find()
	for len(s.groups) > 0 {
		s.makeRoom()
		if fit := s.fitting(); len(fit.add) > 0 {
			s.step(fit.add, fit.remove)
		} else {
			s.openGaps()
		}
	}
	s.step(nil, s.spare)
	return s.order
}

// sorter is the state of Order.
type sorter struct {
	*Changes

	limits Limits
	order  Order
	room   int     // room for further entries after the steps so far
	groups []group // remaining groups, in order
	spare  []int   // remaining spare removals
}

// step appends a step.
func (s *sorter) step(add []Entry, remove []int) {
	if len(add)+len(remove) == 0 {
		return
	}
	s.order.Steps = append(s.order.Steps, Step{add, remove})
	s.order.Peak = max(s.order.Peak, s.limits.List-s.room+len(add))
	s.order.Requests += (len(add)+s.limits.Call-1)/s.limits.Call + len(remove)
	s.room += len(remove) - len(add)
}

// makeRoom makes spare removals, so that the next call can add as many entries as possible.
func (s *sorter) makeRoom() {
	want := 0
	for i := 0; i < len(s.groups) && want < s.limits.Call; i++ {
		want += len(s.groups[i].add)
	}
	n := max(0, min(want-s.room, len(s.spare)))
	s.step(nil, s.spare[:n])
	s.spare = s.spare[n:]
}

// fitting removes the next groups that the list has room for, and returns their changes.
func (s *sorter) fitting() (all group) {
	all.add = make([]Entry, 0, min(max(0, s.room), len(s.groups))) // there may be tens of thousands of groups
	for len(s.groups) > 0 && len(all.add)+len(s.groups[0].add) <= s.room {
		all.add, all.remove = append(all.add, s.groups[0].add...), append(all.remove, s.groups[0].remove...)
		s.groups = s.groups[1:]
	}
	return all
}

// openGaps removes entries of the next groups before their additions, until these fit and further removals free room.
func (s *sorter) openGaps() {
	first := &s.groups[0]
	if n := s.room; n > 0 { // there may be room for all but its last additions
		s.step(first.add[:n], nil)
		first.add = first.add[n:]
	}
	var add []Entry
	var gaps, rest []int
	for len(s.groups) > 0 && len(rest) == 0 && len(gaps) < maxGaps {
		g := s.groups[0]
		s.groups, add = s.groups[1:], append(add, g.add...)
		n := max(0, min(len(add)-len(gaps)-s.room, len(g.remove)))
		gaps, rest = append(gaps, g.remove[:n]...), g.remove[n:]
	}
	s.step(nil, gaps)
	s.order.Uncovered += len(gaps)
	s.step(add, rest)
}
