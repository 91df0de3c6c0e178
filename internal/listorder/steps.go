package listorder

import "net/netip"

// Limits are how many entries a list and a call that adds to it may hold.
type Limits struct{ List, Call int }

// Step is one part of carrying out changes: a call that adds, or removals that may run side by side.
type Step struct {
	Adds     bool // it adds; otherwise it removes
	From, To int  // which of the additions or of the removals, counted from 0 in their order; To is behind the last
	Relies   bool // the removals rely on additions before them: those cover their addresses
	Uncovers bool // the removal uncovers addresses until a later addition
	Size     int  // of the list afterwards
}

// Calls returns how many calls the step needs: one for each removal.
func (s Step) Calls() int {
	if s.Adds {
		return 1
	}
	return s.To - s.From
}

// Steps returns how changes are carried out that are in order already: additions as far as there is room; when there is
// none, as many removals as the next call of additions needs and as uncover nothing, at least one; and the other removals
// last. An entry without addresses is the zero prefix.
func Steps(keep, add, remove []netip.Prefix, l Limits) []Step {
	return stepsOf(protectionOf(keep, add, remove, l), len(keep)+len(remove), l)
}

// stepsOf is Steps for a list of this size. guard knows what is covered, and follows.
func stepsOf(guard *protection, size int, l Limits) []Step {
	var steps []Step
	toAdd, toRemove, added, removed := len(guard.adds), len(guard.removes), 0, 0
	remove := func(n int, uncovers bool) {
		for end := removed + n; removed < end; {
			from, relies := removed, guard.relies(removed)
			for removed < end && guard.relies(removed) == relies {
				removed++
			}
			size -= removed - from
			steps = append(steps, Step{From: from, To: removed, Relies: relies, Uncovers: uncovers, Size: size})
		}
	}
	for added < toAdd {
		left, room := toAdd-added, l.List-size
		if room > 0 {
			n := min(left, room, l.Call)
			size += n
			steps = append(steps, Step{Adds: true, From: added, To: added + n, Size: size})
			for range n {
				guard.addNumber(added)
				added++
			}
			continue
		}
		most, spare := min(guard.wanted(left, room, l.Call), toRemove-removed), 0
		for spare < most && guard.spares(removed+spare) {
			guard.removeNumber(removed + spare)
			spare++
		}
		if spare == 0 {
			guard.removeNumber(removed)
		}
		remove(max(spare, 1), spare == 0)
	}
	remove(toRemove-removed, false)
	return steps
}

// protectionOf is what the list covers before the first change.
func protectionOf(keep, add, remove []netip.Prefix, l Limits) *protection {
	crowded := len(keep)+len(remove)+len(add) > l.List // there is no room for all additions before the removals
	return newProtection(keep, add, remove, crowded)
}
