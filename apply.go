package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/listorder"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/usercode"
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
	if plan == nil {
		return nil, invalid("plan", "is nil")
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
	a := &applying{
		service: s, plan: plan, options: options, wait: wait, waiter: w, began: time.Now(), turn: usercode.NewTurn(), result: &ApplyResult{},
	}
	if err := a.carryOut(ctx, current, steps); err != nil {
		outcome := OutcomeNotApplied
		if a.uncertain || len(a.unproven) > 0 || a.result.Added+a.result.Removed > 0 {
			outcome = OutcomeUnknown
		}
		return a.result, &changeError{err, outcome}
	}
	return a.result, nil
}

func (a *applying) carryOut(ctx context.Context, before []held, steps []listorder.Step) error {
	size := len(before) // entries that the list may hold at most, until the pending removals are in effect
	for _, step := range steps {
		if !step.Adds {
			if err := a.removeAfter(ctx, step); err != nil {
				return err
			}
			continue
		}
		texts := a.plan.Add[step.From:step.To]
		if size+len(texts) > maxListEntries {
			if err := a.await(ctx, &a.removed); err != nil {
				return err
			}
			size = step.Size - len(texts)
		}
		if err := a.add(ctx, texts); err != nil {
			return err
		}
		size += len(texts)
	}
	if err := a.await(ctx, &a.added); err != nil {
		return err
	}
	if err := a.await(ctx, &a.removed); err != nil {
		return err
	}
	return a.verify(ctx, before)
}

// await waits for tasks together, and forgets them. The first that failed ends the wait. Their progress is no progress of
// the whole.
func (a *applying) await(ctx context.Context, tasks *[]string) error {
	if !a.options.Wait {
		return nil
	}
	w, err := newWaiter(append(slices.Clone(a.wait), OnProgress(func(Progress) {})))
	if err != nil {
		return err
	}
	loop := w.loop(true)
	if loop.Timeout > 0 { // for all waits together
		began := time.Now()
		defer func() { a.waited += time.Since(began) }()
		loop.Timeout = max(1, loop.Timeout-a.waited)
	}
	_, err = a.service.tasks.waitAll(ctx, *tasks, w, loop, true)
	*tasks = nil
	return err
}

// applying is an Apply under way.
type applying struct {
	service *NetworkListsService
	plan    *Plan
	options ApplyOptions
	wait    []WaitOption
	waiter  *waiter
	began   time.Time

	added, removed []string      // tasks that are not waited for yet
	waited         time.Duration // for tasks so far
	unproven       []addition    // accepted without a word of what was added

	turn      usercode.Turn // of the removals that run side by side
	calls     int
	result    *ApplyResult
	uncertain bool // a change failed of which nobody knows whether it was made
}

// addition is a part that was added, and its response.
type addition struct {
	texts    []string
	response *response
}

// add adds one part. When nobody can know whether the service took it, the list is read to find out. With Wait that is
// not enough, as the list may show what is not in effect: the part is sent once more for its task (open point 26).
func (a *applying) add(ctx context.Context, texts []string) error {
	const settlements = 3
	for try := 1; ; try++ {
		reply, r, err := a.service.addPart(ctx, a.plan.ListID, texts)
		if err == nil {
			return a.accepted(reply, addition{texts, r})
		}
		again := a.options.Wait && try == 2 // of what may be in the list
		refused := OutcomeOf(err) == OutcomeNotApplied
		if refused && !again {
			return err
		}
		a.uncertain = true
		switch {
		case ctx.Err() != nil || try == settlements:
			return err
		case a.options.Wait && try == 1:
			continue
		}
		missing, readErr := a.missing(ctx, texts)
		if readErr != nil {
			return errors.Join(err, readErr)
		}
		a.done("adding", &a.result.Added, len(texts)-len(missing), nil, nil)
		if len(missing) > 0 && refused {
			return err
		}
		if texts = missing; len(texts) == 0 {
			return nil
		}
	}
}

// accepted takes what a response proves: it names a task, or shows the entries. Any other was perhaps not written by
// what keeps the list.
func (a *applying) accepted(reply *AddEntriesReply, added addition) error {
	switch {
	case reply.Task != nil:
		a.done("adding", &a.result.Added, len(added.texts), reply.Task, &a.added)
		if reply.Task.ErrorInfo != nil {
			return a.service.tasks.failed(reply.Task)
		}
	case len(notIn(reply.Entries, added.texts)) == 0:
		a.done("adding", &a.result.Added, len(added.texts), nil, nil)
	default:
		a.unproven = append(a.unproven, added)
		a.report("adding", false)
	}
	return nil
}

// additionsHold returns nil if removals may rely on what was added so far.
func (a *applying) additionsHold(ctx context.Context) error {
	if err := a.await(ctx, &a.added); err != nil || len(a.unproven) == 0 {
		return err
	}
	current, err := a.service.snapshot(ctx, a.plan.ListID)
	if err != nil {
		return err
	}
	return a.prove(current)
}

// prove looks for additions in the list whose responses proved nothing. A response without any sign of its entries,
// there or in the list, is of no use.
func (a *applying) prove(current []held) error {
	has := meanings(current)
	var failed error
	for _, added := range a.unproven {
		missing := has.Lacking(added.texts)
		a.result.Added += len(added.texts) - len(missing)
		if len(missing) > 0 && failed == nil {
			failed = added.response.bad(fmt.Sprintf("it names no task, and of %d added entries %d are not in the list, for example %s",
				len(added.texts), len(missing), redact.Line(missing[0])), nil)
		}
	}
	if failed != nil {
		a.uncertain = true
	}
	a.unproven = nil
	return failed
}

// notIn are the texts that a response does not show.
func notIn(shown []NetworkListEntry, texts []string) []string {
	has := make(ipset.Meanings, len(shown))
	for _, e := range shown {
		has[ipset.Read(e.Entry).Meaning] = true
	}
	return has.Lacking(texts)
}

// missing are the entries that the list does not hold.
func (a *applying) missing(ctx context.Context, texts []string) ([]string, error) {
	current, err := a.service.snapshot(ctx, a.plan.ListID)
	if err != nil {
		return nil, err
	}
	return meanings(current).Lacking(texts), nil
}

// remove removes entries, some at once. The first failure stops those that have not begun; what is under way is seen
// through.
func (a *applying) remove(ctx context.Context, entries []NetworkListEntry) error {
	var group errgroup.Group
	group.SetLimit(a.options.Concurrency)
	var failed error
	for _, e := range entries {
		group.Go(func() error {
			a.service.funnel.caught(func() error {
				a.turn.Lock()
				stop := failed != nil
				a.turn.Unlock()
				if stop {
					return nil
				}
				task, err := a.removeOne(ctx, e.ID)
				if err != nil {
					return err
				}
				a.turn.Lock()
				defer a.turn.Unlock()
				a.done("removing", &a.result.Removed, 1, task, &a.removed)
				return nil
			}, func(now *failure) {
				if now == nil {
					return
				}
				a.turn.Lock()
				defer a.turn.Unlock()
				a.uncertain = a.uncertain || now.outcome != OutcomeNotApplied
				if failed == nil {
					failed = now.err
				}
			})
			return nil
		})
	}
	_ = group.Wait()
	return failed
}

// removeAfter removes the entries of a step, as soon as it may rely on the additions before it.
func (a *applying) removeAfter(ctx context.Context, step listorder.Step) error {
	if step.Relies {
		if err := a.additionsHold(ctx); err != nil {
			return err
		}
	}
	return a.remove(ctx, a.plan.Remove[step.From:step.To])
}

// removeOne removes an entry. One that cannot be found is gone already, if it cannot be read either; else the address
// for deletions is wrong (open point 22).
func (a *applying) removeOne(ctx context.Context, id string) (*Task, error) {
	task, err := a.service.DeleteEntry(ctx, a.plan.ListID, id)
	if !errors.Is(err, ErrNotFound) {
		return task, err
	}
	if _, readErr := a.service.GetEntry(ctx, a.plan.ListID, id); errors.Is(readErr, ErrNotFound) {
		return nil, nil //nolint:nilnil // no task, as DeleteEntry says
	}
	return nil, err
}

// done counts what a call has done, and tells how far it is, in percent of the entries that change.
func (a *applying) done(status string, counter *int, n int, task *Task, pending *[]string) {
	*counter += n
	if task != nil {
		a.result.Tasks, *pending = append(a.result.Tasks, task.ID), append(*pending, task.ID)
	}
	a.report(status, false)
}

// verify reads the list and compares it with what the plan should have made of it.
func (a *applying) verify(ctx context.Context, before []held) error {
	current, err := a.service.snapshot(ctx, a.plan.ListID)
	if err != nil {
		return err
	}
	a.result.Size = len(current)
	if err := a.prove(current); err != nil {
		return err
	}
	want := meanings(before)
	for _, e := range a.plan.Remove {
		delete(want, ipset.Read(e.Entry).Meaning)
	}
	for _, text := range a.plan.Add {
		want[ipset.Read(text).Meaning] = true
	}
	is := meanings(current)
	if missing, unexpected := want.Without(is), is.Without(want); missing+unexpected > 0 {
		return fmt.Errorf("%w: afterwards %d entries are missing, and %d are there that should not be; %s",
			ErrPlanStale, missing, unexpected, a.whoChanged(before, is))
	}
	a.report("done", true)
	return nil
}

// whoChanged tells who made the list what it is, as far as that is known: what the plan neither adds nor removes, this
// Apply has not touched.
func (a *applying) whoChanged(before []held, is ipset.Meanings) string {
	mine := ipset.MeaningsOf(a.plan.Add)
	for _, e := range a.plan.Remove {
		mine[ipset.Read(e.Entry).Meaning] = true
	}
	was := meanings(before)
	for m := range mine {
		delete(was, m)
		delete(is, m)
	}
	switch {
	case was.Without(is)+is.Without(was) > 0:
		return "somebody else changed it meanwhile, or an earlier Apply whose request arrived late"
	case a.uncertain:
		return "a change whose response was lost may have come late, or somebody else changed it meanwhile, or an earlier Apply " +
			"whose request arrived late"
	default:
		return "a change of this Apply is not in effect yet, or somebody else changed it meanwhile, or an earlier Apply whose " +
			"request arrived late"
	}
}

func (a *applying) report(status string, complete bool) {
	a.calls++
	percent := 100
	if total := len(a.plan.Add) + len(a.plan.Remove); total > 0 {
		percent = 100 * (a.result.Added + a.result.Removed) / total
	}
	a.waiter.report(Progress{
		Kind: ProgressNetworkList, ID: a.plan.ListID, Status: status, Percent: percent, Complete: complete, Polls: a.calls,
		Elapsed: time.Since(a.began),
	})
}
