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

// ApplyOptions say how a plan is carried out. The zero value does not wait.
type ApplyOptions struct {
	// Wait waits for the tasks that the service returns for the changes, as [TasksService.WaitAll] does; the first that
	// failed ends Apply. An entry that is covered by an addition is removed only after the task of that addition has ended. If the list
	// is full, entries are added only after the tasks of the removals that make room. If a response names no task, and
	// always without Wait, a change counts as in effect when its call was accepted, see [NetworkListsService.Apply]. Wait
	// protects within one Apply: it does not know of tasks that an earlier one left running.
	Wait bool
	// Concurrency is how many removals run at once; below 0 it is refused. 0 means 4.
	Concurrency int
}

// ApplyResult is what a plan came to, also one that failed on its way.
type ApplyResult struct {
	Added   int      `json:"added"`   // entries that were added: by a response that proves it, or seen in the list
	Removed int      `json:"removed"` // entries that were removed
	Size    int      `json:"size"`    // entries in the list at the end; 0 when Apply failed before it read them
	Tasks   []string `json:"tasks"`   // ids of the tasks that the service gave, ended or not; nil when it gave none
}

// Apply carries out a plan (service-interface section 4.6). It reads the list first, and returns [ErrPlanStale] before
// any change if the list is not what the plan was made for. It reads the list again at the end, and returns
// ErrPlanStale if the list is not what it should be. The plan itself is not changed.
//
// Apply checks the plan again, because a stored one may have been edited. If the plan is nil, or could not have been
// made for any list, Apply returns a [*ValidationError]. If it is beyond its own guards, or does not fit the list, Apply
// returns a [*PlanError]; for MaxRemove a [*TooManyRemovalsError]. With any of these, nothing was changed.
//
// Additions come before the removals that they cover. A response to an addition must name a task or show the entries.
// After any other response Apply reads the list before it removes what the addition covers. If an entry is not there,
// Apply returns [ErrBadReply] with the beginning of the response. If a response is lost, Apply reads the list and adds
// what is missing, in 3 calls at most. With [ApplyOptions].Wait it first repeats the addition once, to get its task.
//
// Without Wait, Apply assumes that an addition is in effect if its call was accepted or if the list shows it. If a
// service puts it into effect with the task that it returns, set Wait: then a task that failed ends Apply with a
// [*TaskError] before anything is removed that the addition covers.
//
// When a change fails, what was done stays done; the result says how far it came, and the outcome of the error is
// [OutcomeUnknown] as soon as anything was changed. The result is nil only when the error came before any change was
// tried. To mend the list, plan and apply again. After an Apply with Wait, first wait for the tasks of its result
// ([TasksService.Wait]): the list shows an entry whose task still runs, so the next Plan counts it as in effect. If
// such a task failed, remove the entries that it was to add, and add them again.
//
// The wait options are those of tasks; WaitTimeout bounds the waits for all of them together. [OnProgress] is called
// after each call that changes the list, one call at a time, with the part done in percent.
func (s *NetworkListsService) Apply(ctx context.Context, plan *Plan, options ApplyOptions, wait ...WaitOption) (*ApplyResult, error) {
	if err := s.via().usable(ctx); err != nil {
		return nil, err
	}
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
	current, err := s.snapshot(ctx, plan.ListID)
	if err != nil {
		return nil, err
	}
	steps, err := plan.stepsFor(current, add)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	changes := applying.Changes{
		List: &plannedList{s, plan.ListID, wait}, Before: meanings(current), Size: len(current), Most: maxListEntries,
		Add: plan.Add, Remove: make([]applying.Entry, len(plan.Remove)), Steps: steps, Wait: options.Wait, AtOnce: options.Concurrency,
		NotApplied: func(err error) bool { return OutcomeOf(err) == OutcomeNotApplied },
		Guard: func(work func() error, done func(error, bool)) {
			s.funnel.caught(work, func(failed *failure) { done(failed.cause(), failed != nil && failed.outcome == OutcomeNotApplied) })
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

// plannedList is the list of a plan to internal/applying.
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

// Remove removes an entry. One that cannot be found is gone already, if it cannot be read either; else the address for
// deletions is wrong (open point 22).
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

// Await waits for tasks. Their progress is no progress of the whole; WaitTimeout is that of all waits together.
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
