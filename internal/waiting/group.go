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
	fewestListed = 3 // smallest number of pending items for which a list is worth a request
	mostDoubts   = 3 // rounds with an outdated list after which it is not read again
)

// probes returns how many of the pending items to read individually although the list shows them as running.
func probes(pending int) int { return 1 + pending/50 }

// Group waits for many items in rounds. The first round reads each item individually. Later rounds may read a list. If
// the list shows an item as running, Group relies on it. It individually reads the items that the list does not show or
// shows as ended, and a few of the others in turn. If one of these has ended, the list is outdated, and the next round
// does not read it. A list that saves no request, or is outdated several times, is not read again.
//
// A round stops at the first failure that is an outage, so that a service that is down does not get a request per item.
// Failed items come last in the next round, so that an item that can never be read does not delay the others.
type Group[T any] struct {
	Loop

	Items    int  // number of items; their ids are the indexes from 0
	AtOnce   int  // concurrent reads
	FailFast bool // the first item with an error ends the wait

	// Read reads one item. Calls for the same item do not overlap.
	Read func(ctx context.Context, i int) (T, error)
	// Done reports whether an item has ended, and its error. It must return false for the zero item.
	Done func(item T) (bool, error)
	// List reads a list with at most most requests. It returns the pending items in the list, and the number of
	// requests. last has all items as they were last read individually. If List is nil, Group reads no list.
	List func(ctx context.Context, last []T, pending []int, most int) (shown map[int]T, requests int)
	// Report is called for each item that was read in a round, in the order of the items, after the round.
	Report func(i, round int, item T, err error)

	last    []T     // the items as they were last read individually
	errs    []error // errors of items that have ended or cannot be read
	pending []int   // in reading order
	rounds  int
	useless bool // the list saves no request
	doubts  int  // rounds in which the list was outdated
	doubted bool // the list was outdated in the last round
}

// Wait returns the items as they were last read individually, and the error of each item, by index. err is an [*Ended]
// if the wait ended early; then Pending has the items that have not ended. Wait may be called once.
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

// Pending returns the items that have not ended, sorted.
func (g *Group[T]) Pending() []int { return slices.Sorted(slices.Values(g.pending)) }

// Unfinished returns a text with the number of items that have not ended, some of their names, and the number of
// rounds.
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

// round is the state of one round.
type round[T any] struct {
	*Group[T]

	unlisted int          // pending items that the list does not show
	requests int          // requests for the list
	probes   map[int]bool // items to read individually although the list shows them as running

	mu     sync.Mutex
	read   map[int]T     // items from reads and from the list
	failed map[int]error // errors of reads
	stop   error         // the first error that is not about one item alone
}

func (g *Group[T]) round(ctx context.Context) (done, read bool, err error) {
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
	return len(g.pending) == 0 || failed && g.FailFast, len(r.read) > 0, r.stop
}

// readList reads the list if that may be cheaper, and returns the items to read individually.
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

// readEach reads items individually and concurrently. After the first failure that is not about one item alone, it
// starts no further read.
func (r *round[T]) readEach(ctx context.Context, items []int) {
	var group errgroup.Group
	group.SetLimit(r.AtOnce)
	for _, i := range items {
		group.Go(func() error {
			if r.stopped() {
				return nil
			}
			item, err := r.Read(ctx, i)
			r.keep(ctx, i, item, err)
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

// keep records the result of a read.
func (r *round[T]) keep(ctx context.Context, i int, item T, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.Known, r.read[i], r.last[i] = true, item, item
		return
	}
	cutOff := endedBy(ctx, err)
	if !cutOff {
		r.failed[i] = err
		if r.Judge(err, r.Known) == EndsOne {
			r.errs[i] = err
			return
		}
	}
	if r.stop == nil {
		r.stop = err
	}
}

// settle reports the round and sorts the pending items: running ones first, then those not read, then failed ones. It
// returns whether an item ended with an error.
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
