// Package applying carries out changes of a list that are in order already. It removes nothing before there is proof of
// the addition that covers it: a response that shows the entries, a task that it names, or the list itself. If a response
// is lost, it reads the list to find out what became of the addition. Afterwards it compares the list with what the
// changes should have made of it.
//
// It knows steps, texts of entries, and ids of entries and tasks. It must not know HTTP, plans, the shape of a response or
// of a task, or what an error means: that is told by the functions of a [Changes].
//
// Entry points: [Changes.Do], [List] and [Added].
package applying

import (
	"context"
	"fmt"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/listorder"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// List is the list that is changed. Only Remove is called in several goroutines at once.
type List interface {
	// Read returns what the entries mean, and how many they are: a list may hold a meaning twice.
	Read(ctx context.Context) (ipset.Meanings, int, error)
	// Add adds entries in one call.
	Add(ctx context.Context, texts []string) (Added, error)
	// Remove removes the entry with this id. It returns the id of the task, "" if there is none. An entry that is gone
	// already counts as removed.
	Remove(ctx context.Context, id string) (task string, err error)
	// Await waits for tasks together; the first that failed ends the wait. Earlier waits have taken so long.
	Await(ctx context.Context, tasks []string, waited time.Duration) error
}

// Added is the response to an addition that was accepted.
type Added struct {
	Task     string                    // id of the task that it names; "" if it names none
	Failed   error                     // with which that task has ended already
	Shown    []string                  // entries that it shows
	Unproven func(reason string) error // the error for a response that proves nothing; not nil
}

// Entry is an entry of the list.
type Entry struct{ ID, Text string }

// Changes are what is to be done. All functions are set.
type Changes struct {
	List   List
	Before ipset.Meanings // what the list means before; Do changes it
	Size   int            // entries of the list before
	Most   int            // entries that the list can hold
	Add    []string
	Remove []Entry
	Steps  []listorder.Step // which of these come when
	Wait   bool             // for tasks
	AtOnce int              // removals that run at the same time

	// NotApplied tells whether an error of Add says that nothing was added.
	NotApplied func(err error) bool
	// Guard calls work in a goroutine of this package, and then done, also if work panics or ends the goroutine. notApplied
	// says that the error of work means that nothing was changed.
	Guard func(work func() error, done func(err error, notApplied bool))
	// Stale makes the error for a list that is not what it should be afterwards.
	Stale func(reason string) error
	// Report is called after each call that changes the list, and at the end, one call at a time.
	Report func(Progress)
}

// Progress is how far the changes have come.
type Progress struct {
	Status   string // "adding", "removing" or "done"
	Percent  int    // of the entries that change
	Calls    int    // of Report, this one included
	Complete bool
}

// Result is what was done.
type Result struct {
	Added   int      // entries that were added: by a response that proves it, or seen in the list
	Removed int      // entries that were removed
	Size    int      // entries of the list at the end; 0 if it was not read
	Tasks   []string // ids of all tasks
}

// run is a Do under way.
type run struct {
	*Changes

	added, removed []string      // tasks that are not waited for yet
	waited         time.Duration // for tasks so far
	unproven       []addition    // accepted without a word of what was added

	turn      usercode.Turn // of the removals that run side by side
	calls     int
	result    Result
	uncertain bool // a change failed of which nobody knows whether it was made
}

// Do carries out the changes. With an error, changed tells whether the list was changed or may have been.
func (c *Changes) Do(ctx context.Context) (result *Result, changed bool, err error) {
	r := &run{Changes: c, turn: usercode.NewTurn()}
	err = r.carryOut(ctx)
	return &r.result, r.uncertain || len(r.unproven) > 0 || r.result.Added+r.result.Removed > 0, err
}

func (r *run) carryOut(ctx context.Context) error {
	size := r.Size // entries that the list may hold at most, until the pending removals are in effect
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

// await waits for tasks together, and forgets them.
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

// done counts what a call has done, and reports it. pending are the tasks that its task belongs to.
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

// verify reads the list and compares it with what the changes should have made of it.
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
		return r.Stale(fmt.Sprintf("afterwards %d entries are missing, and %d are there that should not be; %s",
			missing, unexpected, r.whoChanged(want.Without(is)+is.Without(want) > 0)))
	}
	r.report("done")
	return nil
}

// whoChanged tells who made the list what it is, as far as that is known. others: it differs also in what the changes
// have not touched.
func (r *run) whoChanged(others bool) string {
	switch {
	case others:
		return "somebody else changed it meanwhile, or an earlier Apply whose request arrived late"
	case r.uncertain:
		return "a change whose response was lost may have come late, or somebody else changed it meanwhile, or an earlier Apply " +
			"whose request arrived late"
	default:
		return "a change of this Apply is not in effect yet, or somebody else changed it meanwhile, or an earlier Apply whose " +
			"request arrived late"
	}
}
