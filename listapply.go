package webdelivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// check refuses a plan that was not made for this list, or not made by Plan.
func (p *Plan) check(current []held) error {
	if fingerprint(current) != p.Before {
		return fmt.Errorf("%w: it was changed after the plan was made", ErrPlanStale)
	}
	if _, err := parseEntries("add", p.Type, p.Add); err != nil {
		return err
	}
	if p.Keep < 0 || p.Keep+len(p.Remove) != len(current) || p.Size() > maxListEntries {
		return invalid("plan", "does not fit the list: keep %d, remove %d, add %d, and there are %d entries",
			p.Keep, len(p.Remove), len(p.Add), len(current))
	}
	return nil
}

// ApplyOptions say how a plan is carried out.
type ApplyOptions struct {
	// Wait waits for the tasks that the service gives for the changes, until all of them have ended.
	Wait bool
	// Concurrency is how many removals run at once. 0 means 4.
	Concurrency int
}

// ApplyResult is what a plan came to.
type ApplyResult struct {
	Added   int      `json:"added"`
	Removed int      `json:"removed"`
	Size    int      `json:"size"`  // entries in the list at the end
	Tasks   []string `json:"tasks"` // ids of the tasks that the service gave
}

// Apply carries out a plan (service-interface section 4.6). It reads the list first, and ends with [ErrPlanStale] before
// any change if it is not what the plan was made for; and it reads it again at the end, and ends with ErrPlanStale if it
// is not what it should be.
//
// When a change fails, what was done stays done, and the error's outcome is that of the change; the result says how far
// it came. Planning and applying again mends it, whatever happened.
//
// The wait options are those of tasks; [OnProgress] is called after each step, with the part done in percent.
func (s *NetworkListsService) Apply(ctx context.Context, plan *Plan, options ApplyOptions, wait ...WaitOption) (*ApplyResult, error) {
	if plan == nil {
		return nil, invalid("plan", "is nil")
	}
	if options.Concurrency < 0 {
		return nil, invalid("Concurrency", "%d is below 0", options.Concurrency)
	}
	setDefault(&options.Concurrency, bulkConcurrency)
	w, err := newWaiter(wait)
	if err != nil {
		return nil, err
	}
	a := &applying{service: s, plan: plan, options: options, waiter: w, began: time.Now(), result: &ApplyResult{}}
	current, err := s.snapshot(ctx, plan.ListID)
	if err != nil {
		return nil, err
	}
	if err := plan.check(current); err != nil {
		return nil, err
	}
	for _, step := range plan.steps() {
		if err := a.run(ctx, step); err != nil {
			return a.result, err
		}
	}
	if options.Wait {
		for _, id := range a.result.Tasks {
			if _, err := s.client.Tasks.Wait(ctx, id, a.quietly(wait)...); err != nil {
				return a.result, err
			}
		}
	}
	return a.result, a.verify(ctx, current)
}

// applying is an Apply under way.
type applying struct {
	service *NetworkListsService
	plan    *Plan
	options ApplyOptions
	waiter  *waiter
	began   time.Time
	steps   int
	result  *ApplyResult
}

func (a *applying) run(ctx context.Context, s step) error {
	var err error
	status := "removing"
	if s.add != nil {
		status = "adding"
		err = a.add(ctx, s.add)
	} else {
		err = a.remove(ctx, s.remove)
	}
	a.report(status, false)
	return err
}

// add adds one part. When nobody can know whether the service took it, the list is read to find out.
func (a *applying) add(ctx context.Context, texts []string) error {
	path, err := expand(entriesPath, a.plan.ListID)
	if err != nil {
		return err
	}
	const settlements = 3
	for try := 1; ; try++ {
		reply, err := a.service.addPart(ctx, path, texts)
		if err == nil {
			a.result.Added += len(texts)
			a.task(reply.Task)
			return nil
		}
		if OutcomeOf(err) != Unknown || ctx.Err() != nil || try == settlements {
			return err
		}
		missing, readErr := a.missing(ctx, texts)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		a.result.Added += len(texts) - len(missing)
		if texts = missing; len(texts) == 0 {
			return nil
		}
	}
}

// missing are the entries that the list does not hold.
func (a *applying) missing(ctx context.Context, texts []string) ([]string, error) {
	current, err := a.service.snapshot(ctx, a.plan.ListID)
	if err != nil {
		return nil, err
	}
	has := meanings(current)
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return has[heldEntry(text).meaning] }), nil
}

// remove removes entries, some at once. An entry that is gone already is removed. The first failure stops the others
// that have not begun.
func (a *applying) remove(ctx context.Context, entries []NetworkListEntry) error {
	tasks := make([]*Task, len(entries))
	done := make([]bool, len(entries))
	var group errgroup.Group // without a context of its own: what is under way is seen through
	var failed atomic.Bool
	group.SetLimit(a.options.Concurrency)
	for i, e := range entries {
		group.Go(func() error {
			if failed.Load() {
				return nil
			}
			var err error
			tasks[i], err = a.service.DeleteEntry(ctx, a.plan.ListID, e.ID)
			if errors.Is(err, ErrNotFound) {
				err = nil
			}
			done[i] = err == nil
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	err := group.Wait()
	for i, t := range tasks {
		if done[i] {
			a.result.Removed++
			a.task(t)
		}
	}
	return err
}

func (a *applying) task(t *Task) {
	if t != nil {
		a.result.Tasks = append(a.result.Tasks, t.ID)
	}
}

// verify reads the list and compares it with what the plan should have made of it.
func (a *applying) verify(ctx context.Context, before []held) error {
	current, err := a.service.snapshot(ctx, a.plan.ListID)
	if err != nil {
		return err
	}
	a.result.Size = len(current)
	want := meanings(before)
	for _, e := range a.plan.Remove {
		delete(want, heldEntry(e.Entry).meaning)
	}
	for _, text := range a.plan.Add {
		want[heldEntry(text).meaning] = true
	}
	is := meanings(current)
	missing, unexpected := without(want, is), without(is, want)
	if missing+unexpected > 0 {
		return fmt.Errorf("%w: afterwards %d entries are missing, and %d are there that should not be", ErrPlanStale, missing, unexpected)
	}
	a.report("done", true)
	return nil
}

func meanings(entries []held) map[meaning]bool {
	set := make(map[meaning]bool, len(entries))
	for _, e := range entries {
		set[e.meaning] = true
	}
	return set
}

// without counts what is in one set and not in the other.
func without(a, b map[meaning]bool) (n int) {
	for m := range a {
		if !b[m] {
			n++
		}
	}
	return n
}

// report tells how far it is, in percent of the entries that change.
func (a *applying) report(status string, complete bool) {
	a.steps++
	percent := 100
	if total := len(a.plan.Add) + len(a.plan.Remove); total > 0 {
		percent = 100 * (a.result.Added + a.result.Removed) / total
	}
	a.waiter.report(Progress{
		Kind: "networklist", ID: a.plan.ListID, Status: status, Percent: percent, Complete: complete, Looks: a.steps,
		Elapsed: time.Since(a.began),
	})
}

// quietly are the wait options for a task of a change, whose progress is no progress of the whole.
func (a *applying) quietly(wait []WaitOption) []WaitOption {
	return append(slices.Clone(wait), OnProgress(func(Progress) {}))
}
