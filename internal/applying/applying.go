// Package applying applies sorted changes to a list. It removes an entry only after there is proof of the addition that
// covers it. Proof is a response that shows the added entries or names a task, or the list itself. If a response is
// lost, it reads the list to find out whether the addition took effect. At the end it checks that the list is as
// expected.
//
// It knows steps, texts of entries, and ids of entries and tasks. It must not know HTTP, plans, the format of a
// response or of a task, or what an error means. The functions of a [Changes] know that.
//
// Entry points: [Changes.Do], [List] and [Added].
package applying

import (
	"context"
	"fmt"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/listorder"
)

// List is the list to change. Only Remove is called from several goroutines at once.
type List interface {
	// Read returns the meanings of the entries, and the number of entries: a list may hold a meaning twice.
	Read(ctx context.Context) (ipset.Meanings, int, error)
	// Add adds entries in one call.
	Add(ctx context.Context, texts []string) (Added, error)
	// Remove removes the entry with this id. It returns the id of the task, "" if there is none. If the entry is
	// already gone, it returns no error.
	Remove(ctx context.Context, id string) (task string, err error)
	// Await waits for all tasks. The first failed task ends the wait. waited is the duration of the earlier waits.
	Await(ctx context.Context, tasks []string, waited time.Duration) error
}

// Added is the response to an accepted addition.
type Added struct {
	Task     string                    // id of the task; "" if the response names none
	Failed   error                     // error of the task if it has already failed
	Shown    []string                  // entries in the response
	Unproven func(reason string) error // builds the error for a response that proves nothing; not nil
}

// Entry is an entry of the list.
type Entry struct{ ID, Text string }

// Changes are the changes to apply. All functions must be set.
type Changes struct {
	List   List
	Before ipset.Meanings // meanings in the list before; Do modifies it
	Size   int            // entries of the list before
	Most   int            // entries that the list can hold
	Add    []string
	Remove []Entry
	Steps  []listorder.Step // order of Add and Remove
	Wait   bool             // wait for tasks
	AtOnce int              // concurrent removals

	// NotApplied reports whether an error of Add means that nothing was added.
	NotApplied func(err error) bool
	// Guard calls work in a goroutine of this package. It then calls done, even if work panics or ends the goroutine.
	// notApplied is true if the error of work means that nothing was changed.
	Guard func(work func() error, done func(err error, notApplied bool))
	// Stale builds the error for a list that is not as expected at the end.
	Stale func(reason string) error
	// Report is called after each call that changes the list, and at the end. Calls do not overlap.
	Report func(Progress)
}

// Progress is the progress of Do.
type Progress struct {
	Status   string // "adding", "removing" or "done"
	Percent  int    // of the entries to add and remove
	Calls    int    // calls of Report so far, including this one
	Complete bool
}

// Result is what Do has done.
type Result struct {
	Added   int      // added entries, proven by a response or by the list
	Removed int      // removed entries
	Size    int      // entries of the list at the end; 0 if it was not read
	Tasks   []string // ids of all tasks
}

// turn is a lock under which user code may run. In a testing/synctest bubble, time stands still while a goroutine waits
// for a sync.Mutex, so a callback that sleeps under a mutex would hang the user's test.
type turn chan struct{}

func (t turn) Lock()   { t <- struct{}{} }
func (t turn) Unlock() { <-t }

// run is the state of Do.
type run struct {
	*Changes

	added, removed []string      // tasks to wait for
	waited         time.Duration // duration of all waits so far
	unproven       []addition    // accepted, but the response proves nothing

	turn      turn // guards the state while removals run concurrently
	calls     int
	result    Result
	uncertain bool // a change failed that may have been applied
}

// Do applies the changes. If it returns an error, changed reports whether the list was changed or may have been.
func (c *Changes) Do(ctx context.Context) (result *Result, changed bool, err error) {
	r := &run{Changes: c, turn: make(turn, 1)}
	err = r.carryOut(ctx)
	return &r.result, r.uncertain || len(r.unproven) > 0 || r.result.Added+r.result.Removed > 0, err
}

func (r *run) carryOut(ctx context.Context) error {
	size := r.Size // upper bound: without a wait, a removal may not be in effect yet
	for _, step := range r.Steps {
		if !step.Adds {
			if err := r.removeAfter(ctx, step); err != nil {
				return err
			}
			continue
		}
		texts := r.Add[step.From:step.To]
		if size+len(texts) > r.Most {
			if err := r.await(ctx, &r.removed); err != nil {
				return err
			}
			size = step.Size - len(texts)
		}
		if err := r.add(ctx, texts); err != nil {
			return err
		}
		size += len(texts)
	}
	if err := r.await(ctx, &r.added); err != nil {
		return err
	}
	if err := r.await(ctx, &r.removed); err != nil {
		return err
	}
	return r.verify(ctx)
}

// await waits for the tasks and clears them. Without Wait it does nothing.
func (r *run) await(ctx context.Context, tasks *[]string) error {
	if !r.Wait {
		return nil
	}
	began := time.Now()
	err := r.List.Await(ctx, *tasks, r.waited)
	r.waited += time.Since(began)
	*tasks = nil
	return err
}

// done adds the n changes of a call to counter, its task to pending, and reports the progress.
func (r *run) done(status string, counter *int, n int, task string, pending *[]string) {
	*counter += n
	if task != "" {
		r.result.Tasks, *pending = append(r.result.Tasks, task), append(*pending, task)
	}
	r.report(status)
}

func (r *run) report(status string) {
	r.calls++
	percent := 100
	if total := len(r.Add) + len(r.Remove); total > 0 {
		percent = 100 * (r.result.Added + r.result.Removed) / total
	}
	r.Report(Progress{Status: status, Percent: percent, Calls: r.calls, Complete: status == "done"})
}

// verify reads the list and compares it with the expected one.
func (r *run) verify(ctx context.Context) error {
	is, size, err := r.List.Read(ctx)
	if err != nil {
		return err
	}
	r.result.Size = size
	if err := r.prove(is); err != nil {
		return err
	}
	want, mine := r.Before, ipset.MeaningsOf(r.Add)
	for _, e := range r.Remove {
		m := ipset.Read(e.Text).Meaning
		mine[m] = true
		delete(want, m)
	}
	for _, text := range r.Add {
		want[ipset.Read(text).Meaning] = true
	}
	if missing, unexpected := want.Without(is), is.Without(want); missing+unexpected > 0 {
		for m := range mine {
			delete(want, m)
			delete(is, m)
		}
		return r.Stale(fmt.Sprintf("after the changes %d entries are missing and %d are unexpected; %s",
			missing, unexpected, r.likelyCause(want.Without(is)+is.Without(want) > 0)))
	}
	r.report("done")
	return nil
}

// likelyCause names the possible causes of an unexpected list. others is true if entries differ that the changes do not
// touch.
func (r *run) likelyCause(others bool) string {
	const notThisApply = "another client changed the list meanwhile, or a late request of an earlier Apply did"
	switch {
	case others:
		return notThisApply
	case r.uncertain:
		return "a change whose response was lost may have arrived late, or " + notThisApply
	default:
		return "a change of this Apply is not in effect yet, or " + notThisApply
	}
}
