// Package listorder sorts the changes of a full list so that the fewest addresses are uncovered on the way.
//
// Additions come first, as far as the list has room. When it has none, removals that uncover nothing make room. If
// there is no such removal, one that uncovers addresses makes room for the next addition.
//
// When does that happen? A range that replaces several narrower entries needs room for one entry and frees room for
// several. An entry that several narrower ranges replace needs room for all of them and frees room for one. So the
// former come first, and then the latter fit one after the other. Room for one entry can only be missing at two
// moments:
//   - At the beginning, if the list is full and each removal uncovers something. No order uncovers less than the
//     removal of the fewest addresses.
//   - At the end, if the list will be full and each addition covers something. No order uncovers less than the addition
//     of the fewest addresses, which comes last.
//
// The orders also differ in how long addresses stay uncovered: several times for one change each, or a few addresses
// all the time. [Best] tries the possible beginnings and ends. It takes the order with the fewest uncovered addresses
// at once, and among these the one with the smallest sum over all changes.
//
// The package knows prefixes and limits. It must not know entries, plans, HTTP or the SDK. Its entry points are [Best]
// and [Steps].
package listorder

import "net/netip"

// Order is an order of changes and its properties.
type Order struct {
	Add, Remove []int // indexes of the additions and of the removals, in order
	Covering    int   // additions that cover addresses of removals; they come first
	Largest     int   // largest number of entries on the way
	Calls       int   // number of calls
	Uncovering  int   // removals before the additions that cover their addresses
}

// Best returns the best order of changes. keep, add and remove are the entries that stay, are added and are removed. An
// entry without addresses is the zero prefix. The additions must differ from each other and from the entries of the
// list. The list may hold a range twice.
func Best(keep, add, remove []netip.Prefix, l Limits) Order {
	guard, size := protectionOf(keep, add, remove, l), len(keep)+len(remove)
	o := bestOrder(guard, l.List-size, l.Call)
	best := Order{Add: o.add, Remove: o.remove, Largest: size}
	for _, x := range guard.adds {
		if x >= 0 {
			best.Covering++
		}
	}
	for _, step := range stepsOf(inOrder(guard, o), size, l) {
		best.Largest = max(best.Largest, step.Size)
		best.Calls += step.Calls()
		if step.Uncovers {
			best.Uncovering++
		}
	}
	return best
}

// inOrder returns the protection before the first change, with the changes sorted by o.
func inOrder(p *protection, o order) *protection {
	c := *p
	c.adds, c.removes = make([]int32, len(o.add)), make([]int32, len(o.remove))
	for at, i := range o.add {
		c.adds[at] = p.adds[i]
	}
	for at, i := range o.remove {
		c.removes[at] = p.removes[i]
	}
	return &c
}
