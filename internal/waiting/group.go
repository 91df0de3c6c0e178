package waiting

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

const (
	fewestListed = 3 // items that are still waited for, from which on a list is worth a request
	mostDoubts   = 3 // rounds in which a list was wrong, after which it is not read again
)

// probes is how many of so many pending items are read by themselves although the list shows that they go on.
func probes(pending int) int { return 1 + pending/50 }

// cutOff is the verdict on a read that the end of the context cut off.
const cutOff Verdict = -1

// Group waits for many items in rounds. In the first round each item is read by itself. Later rounds may read a list. It
// is only believed when it shows an item that goes on: an item that it does not show, or shows as ended, is read by itself
// in the same round. So are a few of the others, in turn. If one of these has ended, the list is behind, and the next
// round does without it. A list that saves nothing, or is behind again and again, is not read any more.
//
// The reads of a round stop at the first failure that is an outage, so that what is down is not asked for each item.
// What failed comes last in the next round, so that one item that can never be read does not hold up the others.
type Group[T any] struct {
	Loop

	Items    int  // how many; they are known by their index
	AtOnce   int  // reads that run at the same time
	FailFast bool // the first item with an error ends the wait

	// Read reads one item. Only one call for an item runs at a time.
	Read func(ctx context.Context, i int) (T, error)
	// Done tells whether an item has ended, and the error with which it did. Of an item that was never read it says false.
	Done func(item T) (bool, error)
	// List reads a list, in at most so many requests, and returns the pending items that it shows, and how many requests
	// it took. last has all items as they were read by themselves. If List is nil, there is none.
	List func(ctx context.Context, last []T, pending []int, most int) (shown map[int]T, requests int)
	// Report is called for each item that was read in a round, in the order of the items, after the round.
	Report func(i, round int, item T, err error)
	// Guard calls read in a goroutine of this package, and then done, also if read panics or ends the goroutine.
	Guard func(read func() error, done func(error))

	last    []T     // as they were read by themselves
	errs    []error // with which items ended, or cannot be read
	pending []int   // in the order in which they are read
	rounds  int
	useless bool // the list
	doubts  int  // how often it was wrong
	doubted bool // in the last round
}

// Wait returns the items as they were last read by themselves, and the error of each item, by index. Its own error is an
// [*Ended], which says that the items of Pending were not seen to the end. Wait may be called once.
func (g *Group[T]) Wait(ctx context.Context) (items []T, errs []error, err error) {
	g.last, g.errs = make([]T, g.Items), make([]error, g.Items)
	for i := range g.Items {
		g.pending = append(g.pending, i)
	}
	if g.Items > 0 {
		err = g.Run(ctx, g.round)
	}
	return g.last, g.errs, err
}

// Pending are the items that have not ended, in their order.
func (g *Group[T]) Pending() []int { return slices.Sorted(slices.Values(g.pending)) }

// Unfinished says after so many rounds how many items have not ended, and names some of them.
func (g *Group[T]) Unfinished(rounds int, name func(i int) string) string {
	const most = 5
	pending := g.Pending()
	names := make([]string, 0, most)
	for _, i := range pending[:min(len(pending), most)] {
		names = append(names, name(i))
	}
	more := ""
	if len(pending) > most {
		more = fmt.Sprintf(" and %d more", len(pending)-most)
	}
	return fmt.Sprintf("%d: %s%s; %d polls", len(pending), strings.Join(names, ", "), more, rounds)
}

// round is one round.
type round[T any] struct {
	*Group[T]

	unlisted int          // items that the list should have shown
	requests int          // for the list
	probes   map[int]bool // read by themselves although the list shows that they go on

	mu     sync.Mutex
	read   map[int]T     // what the reads gave, or the list showed
	failed map[int]error // of reads
	stop   error         // the first of these that is not about one item
}

func (g *Group[T]) round(ctx context.Context) (done bool, err error) {
	g.rounds++
	r := &round[T]{Group: g, read: map[int]T{}, failed: map[int]error{}, probes: map[int]bool{}}
	r.readEach(ctx, r.readList(ctx))
	if r.requests > 0 && r.stop == nil { // in an outage, the list could do no better
		g.useless = r.requests+r.unlisted >= len(g.pending)
	}
	g.doubted = slices.ContainsFunc(g.pending, func(i int) bool {
		ended, _ := g.Done(r.read[i])
		return ended && r.probes[i]
	})
	if g.doubted {
		g.doubts++
	}
	failed := r.settle()
	return len(g.pending) == 0 || failed && g.FailFast, r.stop
}

// readList reads the list if that may be cheaper, and returns the items that must be read by themselves.
func (r *round[T]) readList(ctx context.Context) (alone []int) {
	if r.List == nil || r.useless || r.doubted || r.doubts >= mostDoubts || r.rounds == 1 || len(r.pending) < fewestListed {
		return r.pending
	}
	var shown map[int]T
	shown, r.requests = r.List(ctx, r.last, r.Pending(), len(r.pending)/2)
	for _, i := range r.pending {
		item, found := shown[i]
		if !found {
			r.unlisted++
		}
		switch ended, _ := r.Done(item); {
		case !found || ended:
			alone = append(alone, i)
		case len(r.probes) < probes(len(r.pending)):
			r.probes[i] = true
			alone = append(alone, i)
		default:
			r.read[i] = item
		}
	}
	return alone
}

// readEach reads items by themselves, some at once. The first failure that is not about its item alone stops those that
// have not begun.
func (r *round[T]) readEach(ctx context.Context, items []int) {
	var group errgroup.Group
	group.SetLimit(r.AtOnce)
	for _, i := range items {
		group.Go(func() error {
			var item T
			skip, verdict := false, EndsAll // of a read that panics
			r.Guard(func() (err error) {
				if skip = r.stopped(); skip {
					return nil
				}
				if item, err = r.Read(ctx, i); err != nil {
					verdict = r.verdict(ctx, err)
				}
				return err
			}, func(err error) {
				if !skip {
					r.keep(i, item, verdict, err)
				}
			})
			return nil
		})
	}
	_ = group.Wait()
}

func (r *round[T]) stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop != nil
}

// verdict judges the error of a read. The methods of an error may be code of the user's, so no lock is held.
func (r *round[T]) verdict(ctx context.Context, err error) Verdict {
	r.mu.Lock()
	known := r.Known
	r.mu.Unlock()
	if endedBy(ctx, err) {
		return cutOff
	}
	return r.Judge(err, known)
}

// keep notes what a read gave.
func (r *round[T]) keep(i int, item T, verdict Verdict, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.Known, r.read[i], r.last[i] = true, item, item
	case verdict == EndsOne:
		r.failed[i], r.errs[i] = err, err
	default:
		if verdict != cutOff {
			r.failed[i] = err
		}
		if r.stop == nil {
			r.stop = err
		}
	}
}

// settle reports the round, and orders what is still pending: what goes on, what was not read, what failed. It returns
// whether an item ended with an error.
func (r *round[T]) settle() (failed bool) {
	var goOn, probed, unread, again []int
	for _, i := range r.pending {
		item, read := r.read[i]
		ended, err := r.Done(item)
		switch {
		case r.errs[i] != nil:
			failed = true
		case r.failed[i] != nil:
			again = append(again, i)
		case !read:
			unread = append(unread, i)
		case !ended && r.probes[i]:
			probed = append(probed, i) // so that the others have their turn
		case !ended:
			goOn = append(goOn, i)
		case err != nil:
			r.errs[i], failed = err, true
		}
	}
	asked := r.Pending()
	r.pending = slices.Concat(goOn, probed, unread, again)
	for _, i := range asked {
		if item, read := r.read[i]; read {
			r.Report(i, r.rounds, item, nil)
		} else if err := r.failed[i]; err != nil {
			r.Report(i, r.rounds, r.last[i], err)
		}
	}
	return failed
}
