package webdelivery

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/lists"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// ApplyOptions are the options of Apply. With the zero value, Apply does not wait for tasks.
type ApplyOptions struct {
	// Wait waits for the tasks named in the responses; the first one that is found to have failed ends Apply. An entry
	// that an addition covers is removed only after the task of that addition, and if the list is full, entries are
	// added only after the tasks of the removals that make room. Without it, a change counts as in effect once its
	// call is accepted.
	Wait bool
	// MaxOutage is how long nothing may be readable before a wait gives up. 0 means 10 minutes.
	MaxOutage time.Duration
	// Progress, if not nil, is called after each change, one call at a time.
	Progress func(added, removed, total int)
}

// ApplyResult says what Apply changed, even if it failed.
type ApplyResult struct {
	Added   int      `json:"added"`   // entries that were added, according to a response or the list
	Removed int      `json:"removed"` // entries that were removed
	Size    int      `json:"size"`    // entries in the list at the end; 0 if Apply failed before it read them
	Tasks   []string `json:"tasks"`   // ids of the tasks in the responses, ended or not; nil if there were none
}

// Apply carries out a plan for this service and customer, within its guards; one that was carried out may be applied
// again. It reads the list before and after the changes, and returns [ErrPlanStale] if it is not what the plan was made
// for, in which case nothing was changed, or not as planned.
//
// Entries are added before the ones that they cover are removed. The result is nil if nothing can have been changed;
// otherwise it says how far Apply got, and the outcome of an error is [OutcomeUnknown]. To continue, plan and apply
// again; after an Apply with Wait, first wait for the tasks in its result. If one failed, the list shows a change that
// is not in effect, and a new plan does not repeat it: the [guide] says what to do.
//
// [guide]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/guide.md#network-lists
func (s *NetworkListsService) Apply(ctx context.Context, plan *Plan, options ApplyOptions) (*ApplyResult, error) {
	if plan == nil {
		return nil, invalid("plan", "is nil; create a plan with NetworkLists.Plan")
	}
	if options.MaxOutage < 0 {
		return nil, invalid("MaxOutage", "%v is below 0", options.MaxOutage)
	}
	checked := *plan
	add, err := s.ready(&checked)
	if err != nil {
		return nil, err
	}
	_, held, err := s.snapshot(ctx, plan.ListID)
	if err != nil {
		return nil, err
	}
	changes, err := s.changesOf(&checked, add, held)
	if err != nil {
		return nil, err
	}
	order := checked.order(changes, s.limits)
	if err := s.guard(&checked, changes, len(changes.Held), func(i int) string { return fmt.Sprintf("add[%d]", i) }); err != nil {
		return nil, err
	}
	a := &apply{NetworkListsService: s, id: plan.ListID, changes: changes, options: options}
	err = a.run(ctx, order.Steps)
	switch {
	case err == nil:
		return &a.result, nil
	case a.uncertain || len(a.unproven)+a.result.Added+a.result.Removed > 0:
		return &a.result, &outcomeError{err, OutcomeUnknown}
	default:
		return nil, &outcomeError{err, OutcomeNotApplied}
	}
}

// apply is one call of Apply. Only the goroutine of that call uses it, so Progress runs there, too.
type apply struct {
	*NetworkListsService

	id      string // of the list
	changes *lists.Changes
	options ApplyOptions

	removing  bool       // the last change was a removal
	pending   []string   // tasks to wait for
	unproven  []addition // accepted, but the response proves nothing
	uncertain bool       // a change may have been applied, and its response does not say so
	result    ApplyResult
}

// addition is an accepted call that added entries.
type addition struct {
	entries  []lists.Entry
	response *response
}

func (a *apply) run(ctx context.Context, steps []lists.Step) error {
	for _, step := range steps {
		for entries := range slices.Chunk(step.Add, a.limits.Call) {
			if err := a.turn(ctx, false); err != nil {
				return err
			}
			if err := a.add(ctx, entries); err != nil {
				return err
			}
		}
		if len(step.Remove) == 0 {
			continue
		}
		if err := a.turn(ctx, true); err != nil {
			return err
		}
		if err := a.remove(ctx, step.Remove); err != nil {
			return err
		}
	}
	if err := a.settle(ctx); err != nil {
		return err
	}
	return a.verify(ctx)
}

// turn verifies the changes so far when removals follow additions or vice versa.
func (a *apply) turn(ctx context.Context, removing bool) error {
	if a.removing == removing {
		return nil
	}
	a.removing = removing
	if err := a.settle(ctx); err != nil || len(a.unproven) == 0 {
		return err
	}
	_, held, err := a.snapshot(ctx, a.id)
	if err != nil {
		return err
	}
	return a.prove(held)
}

// settle waits for the tasks of the changes so far.
func (a *apply) settle(ctx context.Context) error {
	if !a.options.Wait || len(a.pending) == 0 {
		return nil
	}
	w := waiterFor(a.options.MaxOutage)
	w.exists, w.failsFast = true, true
	_, err := a.tasks.waitAll(ctx, a.pending, w)
	a.pending = nil
	return err
}

// maxAdditions limits how often the same entries are sent.
const maxAdditions = 3

// add adds entries. If the response is lost, they may have been added.
func (a *apply) add(ctx context.Context, entries []lists.Entry) error {
	added, err := a.addPart(ctx, a.id, lists.Texts(entries))
	switch {
	case err == nil:
		return a.accepted(entries, added)
	case OutcomeOf(err) == OutcomeNotApplied:
		return err
	}
	a.uncertain = true
	if a.options.Wait {
		return a.addAgain(ctx, entries, err)
	}
	return a.addMissing(ctx, entries, err)
}

// addAgain sends entries whose response was lost until a response names their task. The list does not tell, because it
// may show entries that are not in effect (open point 26).
func (a *apply) addAgain(ctx context.Context, entries []lists.Entry, lost error) error {
	for calls := 1; ctx.Err() == nil; calls++ {
		if calls == maxAdditions {
			return fmt.Errorf("%w: the response to an addition of %d entries was lost, and %d calls did not name its task, so Apply cannot wait for it; "+
				"wait until no task of the list runs, then plan and apply again", cmp.Or(lost, ErrBadResponse), len(entries), maxAdditions)
		}
		added, err := a.addPart(ctx, a.id, lists.Texts(entries))
		if err == nil && added.task != nil {
			return a.accepted(entries, added)
		}
		lost = err
	}
	return cmp.Or(lost, ctx.Err())
}

// addMissing sends those entries whose response was lost that the list does not hold.
func (a *apply) addMissing(ctx context.Context, entries []lists.Entry, lost error) error {
	for calls := 1; ctx.Err() == nil; calls++ {
		_, held, err := a.snapshot(ctx, a.id)
		if err != nil {
			return join(lost, err)
		}
		missing := lists.SetOf(held).Lacking(entries)
		a.done(&a.result.Added, len(entries)-len(missing), nil)
		if len(missing) == 0 {
			return nil
		}
		if calls == maxAdditions || OutcomeOf(lost) == OutcomeNotApplied {
			return lost
		}
		added, err := a.addPart(ctx, a.id, lists.Texts(missing))
		if err == nil {
			return a.accepted(missing, added)
		}
		entries, lost = missing, err
	}
	return lost
}

// accepted records what a response proves. A response that neither names a task nor shows the entries proves nothing:
// it may come from a proxy.
func (a *apply) accepted(entries []lists.Entry, added *addedEntries) error {
	switch {
	case added.task != nil:
		a.done(&a.result.Added, len(entries), added.task)
		if added.task.ErrorInfo != nil {
			return a.tasks.failed(added.task)
		}
	case len(lists.SetOf(readEntries(added.entries)).Lacking(entries)) == 0:
		a.done(&a.result.Added, len(entries), nil)
	default:
		a.unproven = append(a.unproven, addition{entries, added.response})
		a.report()
	}
	return nil
}

// prove looks up the unproven additions in the list, and returns the error of the first one that is not there.
func (a *apply) prove(held []lists.Entry) (failed error) {
	is := lists.SetOf(held)
	for _, added := range a.unproven {
		missing := is.Lacking(added.entries)
		a.result.Added += len(added.entries) - len(missing)
		if len(missing) > 0 && failed == nil {
			a.uncertain = true
			failed = added.response.bad(fmt.Sprintf("it names no task, and %d of %d added entries are not in the list, for example %s",
				len(missing), len(added.entries), redact.Line(missing[0].Text)), nil)
		}
	}
	a.unproven = nil
	return failed
}

func (a *apply) remove(ctx context.Context, indexes []int) error {
	ids := make([]string, len(indexes))
	for n, i := range indexes {
		ids[n] = a.changes.Held[i].ID
	}
	return a.removeEach(ctx, a.id, ids, func(_ int, task *Task, err error) {
		if err == nil {
			a.done(&a.result.Removed, 1, task)
		} else {
			a.uncertain = a.uncertain || OutcomeOf(err) != OutcomeNotApplied
		}
	})
}

// done adds the n changes of a call to a counter of the result, records the task, and reports the progress.
func (a *apply) done(counter *int, n int, task *Task) {
	*counter += n
	if task != nil && task.ID != "" {
		a.result.Tasks, a.pending = append(a.result.Tasks, task.ID), append(a.pending, task.ID)
	}
	a.report()
}

func (a *apply) report() {
	if a.options.Progress != nil {
		a.options.Progress(a.result.Added, a.result.Removed, len(a.changes.Add)+len(a.changes.Remove))
	}
}

// verify reads the list and compares it with the expected one. The error names the possible causes.
func (a *apply) verify(ctx context.Context) error {
	_, held, err := a.snapshot(ctx, a.id)
	if err != nil {
		return err
	}
	a.result.Size = len(held)
	if err := a.prove(held); err != nil {
		return err
	}
	missing, unexpected, others := a.changes.Check(held)
	if missing+unexpected == 0 {
		a.report()
		return nil
	}
	cause := "another client changed the list meanwhile, or a late request of an earlier Apply did"
	switch {
	case others:
	case a.uncertain:
		cause = "a change whose response was lost may have arrived late, or " + cause
	default:
		cause = "a change of this Apply is not in effect yet, or " + cause
	}
	return fmt.Errorf("%w: after the changes %d entries are missing and %d are unexpected; %s", ErrPlanStale, missing, unexpected, cause)
}
