package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/applying"
	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// ApplyOptions are the options of Apply. With the zero value, Apply does not wait for tasks.
type ApplyOptions struct {
	// Wait waits for the tasks in the responses to the changes, as [TasksService.WaitAll] does. The first task that
	// failed ends Apply. An entry that an addition covers is removed only after the task of that addition has ended.
	// If the list is full, entries are added only after the tasks of the removals that make room. If a response names
	// no task, and always without Wait, a change counts as in effect when its call is accepted, see
	// [NetworkListsService.Apply]. Wait does not know the tasks of an earlier Apply.
	Wait bool
	// Concurrency is how many removals run at once. 0 means 4; below 0 it is invalid.
	Concurrency int
}

// ApplyResult says what Apply has changed, also if it failed halfway.
type ApplyResult struct {
	Added   int      `json:"added"`   // entries that were added: a response proves it, or the list shows them
	Removed int      `json:"removed"` // entries that were removed
	Size    int      `json:"size"`    // entries in the list at the end; 0 if Apply failed before it read them
	Tasks   []string `json:"tasks"`   // ids of the tasks in the responses, ended or not; nil if there were none
}

// Apply carries out a plan. It reads the list first. If the list is not what the plan was made for, Apply returns
// [ErrPlanStale] before any change. It reads the list again at the end, and returns ErrPlanStale if the list is not
// what the plan should have made of it. Apply does not change the plan. (Service document, [section 4.6].)
//
// Apply checks the plan again, because a stored one may have been edited. If the plan is nil, or if Plan could not
// have made it for any list, Apply returns a [*ValidationError]. If it is beyond its own guards or does not fit the
// list, Apply returns a [*PlanError]; for MaxRemove a [*TooManyRemovalsError]. In these cases nothing was changed.
//
// Additions come before the removals that they cover. A response to an addition must name a task or show the entries.
// After any other response, Apply reads the list before it removes what the addition covers. If an entry is not
// there, Apply returns [ErrBadReply] with the beginning of the response. If a response is lost, Apply reads the list
// and adds what is missing, in at most 3 calls. With [ApplyOptions].Wait it first sends the addition again once, to
// get its task.
//
// Without Wait, Apply considers an addition in effect if its call was accepted or the list shows it. If your service
// puts it into effect only when the task ends, set Wait. Then a failed task ends Apply with a [*TaskError], before
// anything is removed that the addition covers.
//
// If a change fails, the changes before it stay. The result says how far Apply came, and the outcome of the error is
// [OutcomeUnknown] if anything was changed. The result is nil if the error came before the first change. To go on,
// plan and apply again. After an Apply with Wait, first wait for the tasks of its result ([TasksService.WaitAll]).
// The list already shows an entry whose task still runs, so the next Plan would take it as in effect. If such a task
// failed, remove the entries that it was to add, and add them again.
//
// The wait options are those of tasks. WaitTimeout limits all waits together. [OnProgress] is called after each call
// that changes the list, one call at a time, with the completed share in percent.
//
// [section 4.6]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#46-network-lists
func (s *NetworkListsService) Apply(ctx context.Context, plan *Plan, options ApplyOptions, wait ...WaitOption) (*ApplyResult, error) {
	if plan == nil {
		return nil, invalid("plan", "is nil; create a plan with NetworkLists.Plan")
	}
	if options.Concurrency < 0 {
		return nil, invalid("Concurrency", "%d is below 0", options.Concurrency)
	}
	options.Concurrency = cmp.Or(options.Concurrency, bulkConcurrency)
	w, err := newWaiter(wait)
	if err != nil {
		return nil, err
	}
	plan, add, err := readyToApply(*plan)
	if err != nil {
		return nil, err
	}
	place := func(i int) string { return fmt.Sprintf("add[%d]", i) }
	if plan.check(place) != nil {
		return nil, s.shown(plan).check(place)
	}
	current, err := s.snapshot(ctx, plan.ListID)
	if err != nil {
		return nil, err
	}
	steps, err := s.stepsFor(plan, current, add)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	changes := applying.Changes{
		List: &plannedList{s, plan.ListID, wait}, Before: meanings(current), Size: len(current), Most: maxListEntries,
		Add: plan.Add, Remove: make([]applying.Entry, len(plan.Remove)), Steps: steps, Wait: options.Wait, AtOnce: options.Concurrency,
		NotApplied: func(err error) bool { return OutcomeOf(err) == OutcomeNotApplied },
		Guard: func(work func() error, done func(error, bool)) {
			err := work()
			done(err, err != nil && OutcomeOf(err) == OutcomeNotApplied)
		},
		Stale: func(reason string) error { return fmt.Errorf("%w: %s", ErrPlanStale, reason) },
		Report: func(p applying.Progress) {
			w.report(Progress{
				Kind: ProgressNetworkList, ID: plan.ListID, Status: p.Status, Percent: p.Percent, Complete: p.Complete, Polls: p.Calls,
				Elapsed: time.Since(began),
			})
		},
	}
	for i, e := range plan.Remove {
		changes.Remove[i] = applying.Entry{ID: e.ID, Text: e.Entry}
	}
	result, changed, err := changes.Do(ctx)
	switch {
	case err == nil:
		return (*ApplyResult)(result), nil
	case changed:
		return (*ApplyResult)(result), &changeError{err, OutcomeUnknown}
	default:
		return (*ApplyResult)(result), &changeError{err, OutcomeNotApplied}
	}
}

// plannedList is the list of a plan, as internal/applying uses it.
type plannedList struct {
	service *NetworkListsService
	id      string
	wait    []WaitOption
}

func (l *plannedList) Read(ctx context.Context) (ipset.Meanings, int, error) {
	current, err := l.service.snapshot(ctx, l.id)
	return meanings(current), len(current), err
}

func (l *plannedList) Add(ctx context.Context, texts []string) (applying.Added, error) {
	reply, r, err := l.service.addPart(ctx, l.id, texts)
	if err != nil {
		return applying.Added{}, err
	}
	added := applying.Added{Unproven: func(reason string) error { return r.bad(reason, nil) }}
	for _, e := range reply.Entries {
		added.Shown = append(added.Shown, e.Entry)
	}
	if reply.Task != nil {
		added.Task = reply.Task.ID
		if reply.Task.ErrorInfo != nil {
			added.Failed = l.service.tasks.failed(reply.Task)
		}
	}
	return added, nil
}

// Remove removes an entry. If the service does not find it, Remove tries to read it. If the entry cannot be read
// either, it is gone already. Otherwise the address for deletions is wrong (open point 22).
func (l *plannedList) Remove(ctx context.Context, id string) (string, error) {
	task, err := l.service.DeleteEntry(ctx, l.id, id)
	if errors.Is(err, ErrNotFound) {
		if _, readErr := l.service.GetEntry(ctx, l.id, id); errors.Is(readErr, ErrNotFound) {
			return "", nil
		}
	}
	if err != nil || task == nil {
		return "", err
	}
	return task.ID, nil
}

// Await waits for tasks. It does not report their progress, which is not that of the whole. WaitTimeout limits all
// waits together.
func (l *plannedList) Await(ctx context.Context, tasks []string, waited time.Duration) error {
	w, err := newWaiter(append(slices.Clone(l.wait), OnProgress(func(Progress) {})))
	if err != nil {
		return err
	}
	loop := w.loop(true)
	if loop.Timeout > 0 {
		loop.Timeout = max(1, loop.Timeout-waited)
	}
	_, err = l.service.tasks.waitAll(ctx, tasks, w, loop, true)
	return err
}
