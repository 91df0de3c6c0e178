package waiting

import (
	"cmp"
	"context"
	"slices"
)

const (
	fewestListed = 3 // fewest pending items for which reading a list is worthwhile
	mostDoubts   = 3 // number of outdated lists after which none is read again
)

// Items are the items that a [Group] waits for, numbered from 0.
type Items[T any] interface {
	// Read reads one item. Calls for different items overlap.
	Read(ctx context.Context, i int) (T, error)
	// Ended reports whether an item has ended, and its error. It returns false for the zero item.
	Ended(item T) (bool, error)
	// List reads a list with up to most requests. It returns the pending items in it and the number of requests. last
	// holds all items as they were last read individually.
	List(ctx context.Context, last []T, pending []int, most int) (shown map[int]T, requests int)
	// Report is called after each round for every item that was read in it, in order.
	Report(i, round int, item T, err error)
}

// Group waits for many items in rounds. The first round reads each item. Later ones may read a list instead: Group
// trusts it for most items that it shows as running, and individually reads a few of these, in turn, and all other
// items. If one of the few has ended, the list is outdated, and the next round does not read it. A list that saves no
// requests, or is outdated often, is not read again.
//
// A round stops at the first outage, so that a service that is down does not get a request per item. Failed items come
// last in the next round, so that an item that can never be read does not delay the others.
type Group[T any] struct {
	Loop
	Items[T]

	AtOnce   int     // concurrent reads
	FailFast bool    // the first item with an error ends the wait
	Last     []T     // the items as they were last read individually; its length is the number of items
	Errs     []error // after Wait, the errors of items that have ended or cannot be read

	pending []int // in reading order
	rounds  int
	useless bool // the list saves no requests
	doubts  int  // rounds in which the list was outdated
	doubted bool // the list was outdated in the last round
}

// Wait waits for all items. It must be called only once. If it returns an [*Ended], Pending returns the items that have
// not ended.
func (g *Group[T]) Wait(ctx context.Context) error {
	g.Errs = make([]error, len(g.Last))
	for i := range g.Last {
		g.pending = append(g.pending, i)
	}
	return g.Run(ctx, g.round)
}

// Pending returns the numbers of the items that have not ended, sorted.
func (g *Group[T]) Pending() []int { return slices.Sorted(slices.Values(g.pending)) }

// result is an item as read in a round, individually or from the list.
type result[T any] struct {
	item T
	err  error
}

func (g *Group[T]) round(ctx context.Context) (done, read bool, err error) {
	g.rounds++
	results := make(map[int]result[T], len(g.pending))
	alone, probes, useless := g.readList(ctx, results)
	err = g.readEach(ctx, alone, results)
	g.useless = g.useless || useless && err == nil // an outage does not show that the list is useless
	asked, failed := g.Pending(), g.settle(results, probes)
	for _, i := range asked {
		if r, found := results[i]; found {
			read = read || r.err == nil
			g.Report(i, g.rounds, r.item, r.err)
		}
	}
	return len(g.pending) == 0 || failed && g.FailFast, read, err
}

// readList reads the list if that may save requests. It returns the items to read individually, those of them that the
// list shows as running, and whether the list saved no requests.
func (g *Group[T]) readList(ctx context.Context, results map[int]result[T]) (alone []int, probes map[int]bool, useless bool) {
	n := len(g.pending)
	if g.useless || g.doubted || g.doubts >= mostDoubts || g.rounds == 1 || n < fewestListed {
		return g.pending, nil, false
	}
	shown, requests := g.List(ctx, g.Last, g.Pending(), n/2)
	probes = map[int]bool{}
	for _, i := range g.pending {
		item, found := shown[i]
		switch ended, _ := g.Ended(item); {
		case !found || ended:
			alone = append(alone, i)
		case len(probes) < 1+n/50:
			probes[i] = true
			alone = append(alone, i)
		default:
			results[i] = result[T]{item: item}
		}
	}
	return alone, probes, requests > 0 && requests >= len(shown)
}

// readEach reads items individually and concurrently. After the first failure that is not about a single item, it
// starts no further reads and returns that failure.
func (g *Group[T]) readEach(ctx context.Context, items []int, results map[int]result[T]) (stop error) {
	done := make(chan func())
	for underWay := 0; underWay > 0 || stop == nil && len(items) > 0; {
		if stop != nil || len(items) == 0 || underWay == g.AtOnce {
			(<-done)()
			underWay--
			continue
		}
		i := items[0]
		underWay, items = underWay+1, items[1:]
		go func() {
			item, err := g.Read(ctx, i)
			done <- func() { stop = cmp.Or(stop, g.keep(ctx, i, item, err, results)) }
		}()
	}
	return stop
}

// keep records the result of a read. It returns err unless it is about this item alone.
func (g *Group[T]) keep(ctx context.Context, i int, item T, err error, results map[int]result[T]) error {
	switch {
	case err == nil:
		g.Known, g.Last[i] = true, item
	case endedBy(ctx, err):
		return err
	}
	results[i] = result[T]{g.Last[i], err}
	if err != nil && g.Judge(err, g.Known).EndsOne {
		g.Errs[i], err = err, nil
	}
	return err
}

// settle removes the ended items and sorts the others: running ones first, then those not read, then failed ones. It
// reports whether an item ended with an error.
func (g *Group[T]) settle(results map[int]result[T], probes map[int]bool) (failed bool) {
	var goOn, probed, unread, again []int
	g.doubted = false
	for _, i := range g.pending {
		r, read := results[i]
		ended, err := g.Ended(r.item)
		switch {
		case g.Errs[i] != nil:
			failed = true
		case r.err != nil:
			again = append(again, i)
		case !read:
			unread = append(unread, i)
		case ended:
			g.Errs[i], failed, g.doubted = err, failed || err != nil, g.doubted || probes[i]
		case probes[i]:
			probed = append(probed, i) // behind the others, which then get their turn
		default:
			goOn = append(goOn, i)
		}
	}
	if g.doubted {
		g.doubts++
	}
	g.pending = slices.Concat(goOn, probed, unread, again)
	return failed
}
