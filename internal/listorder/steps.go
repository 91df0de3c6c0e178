package listorder

import "net/netip"

// Limits are the largest numbers of entries in a list, and of entries that one call may add.
type Limits struct{ List, Call int }

// Step is one part of the changes: a call that adds entries, or removals that may run concurrently.
type Step struct {
	Adds     bool // the step adds; otherwise it removes
	From, To int  // the additions or removals of the step: those with index From up to, but not including, To
	Relies   bool // the removals rely on earlier additions that cover their addresses
	Uncovers bool // the removal uncovers addresses until a later addition
	Size     int  // entries of the list afterwards
}

// Calls returns how many calls the step needs. A removal needs one each.
func (s Step) Calls() int {
	if s.Adds {
		return 1
	}
	return s.To - s.From
}

// Steps returns the steps of changes that are already sorted. Additions come as early as there is room. When there is
// none, removals that uncover nothing make room for the next call, or one removal that uncovers something. The other
// removals come last. An entry without addresses is the zero prefix.
func Steps(keep, add, remove []netip.Prefix, l Limits) []Step {
	return stepsOf(protectionOf(keep, add, remove, l), len(keep)+len(remove), l)
}

// stepsOf is Steps for a list of this size. It applies the steps to guard.
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

// protectionOf returns the protection before the first change.
func protectionOf(keep, add, remove []netip.Prefix, l Limits) *protection {
	crowded := len(keep)+len(remove)+len(add) > l.List // there is no room for all additions before the removals
	return newProtection(keep, add, remove, crowded)
}
