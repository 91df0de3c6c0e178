// Package listorder decides in which order the entries of a full list are changed, so that the fewest addresses are
// uncovered on the way.
//
// Additions come first, as far as the list has room. When it has none, entries are removed to make some: first those that
// uncover nothing. Only if there is no such entry, one goes that uncovers something, so that the next addition fits.
//
// When is that? A range that covers several entries which go needs room for one, and makes room for several. An entry
// that several narrower ranges replace needs room for all of them, and makes room for one. So the former come first, and
// the latter fit one after the other, unless room for one entry is missing at two moments:
//   - At the beginning, if the list is full and each removal uncovers something. No order uncovers less than the
//     removal of the fewest addresses.
//   - At the end, if the list will be full and each addition covers something. No order uncovers less than the addition
//     of the fewest addresses, which comes last.
//
// What remains is how long something stays uncovered: again and again for one change, or a few addresses all the time.
// [Best] tries what it can begin and end with. It takes the order with the fewest uncovered addresses at once, and of
// these the one with the smallest sum over all changes.
//
// The package knows prefixes and limits. It may know nothing of entries, plans, HTTP and the SDK. Its entry points are
// [Best] and [Steps].
package listorder

import "net/netip"

// Order is an order of changes, and what comes of it.
type Order struct {
	Add, Remove []int // indexes of the additions and of the removals, in the order in which they come
	Covering    int   // additions that cover addresses of removals; they come first
	Largest     int   // the most entries that the list holds on the way
	Calls       int   // how many calls the changes need
	Uncovering  int   // removals that come before the additions which cover their addresses
}

// Best returns the best order of changes. keep, add and remove are the entries that stay, come and go; one without
// addresses is the zero prefix. The additions differ from each other and from what is in the list, which may hold a range
// twice.
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

// inOrder is the protection before the first change, of the same changes in an order.
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
