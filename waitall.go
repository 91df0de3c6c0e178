package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/waiting"
)

// WaitAll waits until all tasks have ended, and returns them in the order of the ids. An id that comes twice is
// polled once. Without ids, WaitAll returns at once and sends nothing. If an id is empty, it returns a
// [*ValidationError] and sends nothing.
//
// WaitAll waits for all tasks, also if some have failed. Then it returns the tasks together with the joined errors.
// There is a [*TaskError] for each task that ended with an error condition. For a task that cannot be read there is
// the error of the call, such as [ErrNotFound]. [TasksService.Wait] says which failures end nothing. Failed
// authentication ends the whole wait. If the context or [WaitTimeout] ends, the error says how many tasks are pending
// and names some.
//
// If there is an error, each returned task is its last state that was read at /tasks/{id}. A task that was never read
// is nil.
//
// The first poll reads each task by itself, 4 at a time. If at least 3 tasks are pending and the list of tasks needs
// fewer requests, later polls read the list. WaitAll believes the list only about tasks that still run. It reads a
// task by itself if the list does not show it or shows it as ended. In turn, it also reads a few of the others (open
// point 2). (Service document, [section 2.1].)
//
// [section 2.1]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#21-task
func (s *TasksService) WaitAll(ctx context.Context, ids []string, options ...WaitOption) ([]*Task, error) {
	w, err := newWaiter(options)
	if err != nil {
		return nil, err
	}
	return s.waitAll(ctx, ids, w, w.loop(false), false)
}

// waitAll waits as WaitAll does. If failFast is true, the first failed task ends it.
func (s *TasksService) waitAll(ctx context.Context, ids []string, w *waiter, loop waiting.Loop, failFast bool) ([]*Task, error) {
	var bad problems
	var pollers []*taskPoller
	at := map[string]int{}
	for n, id := range ids {
		if _, twice := at[id]; twice {
			continue
		}
		poller, err := s.poller(id)
		if wrong, ok := errors.AsType[*ValidationError](err); ok {
			bad.add(fmt.Sprintf("ids[%d]", n), "%s", wrong.Reason)
		}
		at[id], pollers = len(pollers), append(pollers, poller)
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	began := time.Now()
	group := waiting.Group[*Task]{
		Loop: loop, Items: len(pollers), AtOnce: bulkConcurrency, FailFast: failFast, Done: s.endOf, List: s.listed,
		Read: func(ctx context.Context, i int) (*Task, error) { return pollers[i].Read(ctx) },
		Report: func(i, round int, task *Task, err error) {
			var p Progress
			if task != nil {
				p = s.progress(task)
			}
			p.Kind, p.ID, p.Polls, p.Elapsed, p.Err = ProgressTask, pollers[i].own.id, round, time.Since(began), err
			w.report(p)
		},
	}
	read, errs, err := group.Wait(ctx)
	tasks := make([]*Task, len(ids))
	for n, id := range ids {
		tasks[n] = read[at[id]]
	}
	all := make([]error, 0, len(errs)+1)
	if err != nil {
		all = append(all, newWaitError(fmt.Sprintf("%d tasks", len(pollers)), err, func(polls int) string {
			return group.Unfinished(polls, func(i int) string { return redact.Line(pollers[i].own.id) })
		}))
	}
	for i, err := range errs {
		if _, failed := errors.AsType[*TaskError](err); err != nil && !failed {
			err = newWaitError("task "+redact.Line(pollers[i].own.id), err, nil)
		}
		all = append(all, err)
	}
	return tasks, errors.Join(all...)
}

// endOf reports whether a task has ended, and with which error.
func (s *TasksService) endOf(task *Task) (bool, error) {
	switch {
	case task == nil || !task.ended():
		return false, nil
	case task.ErrorInfo != nil:
		return true, s.failed(task)
	default:
		return true, nil
	}
}

// pageOfTasks is how many tasks WaitAll asks for per page.
const pageOfTasks = 100

// listed reads the list of the tasks that were updated since the oldest update of a pending task. That time comes
// from the service, so the clock of this machine does not matter.
func (s *TasksService) listed(ctx context.Context, last []*Task, pending []int, most int) (shown map[int]*Task, requests int) {
	at, oldest := map[string][]int{}, time.Time{}
	for _, i := range pending {
		if task := last[i]; task != nil {
			at[task.ID] = append(at[task.ID], i)
			if updated := cmp.Or(task.LastUpdated, task.BeginTime); oldest.IsZero() || updated.Before(oldest) {
				oldest = updated
			}
		}
	}
	cl, err := s.listCall(TaskListOptions{Since: oldest, Count: pageOfTasks})
	if oldest.IsZero() || err != nil {
		return nil, 0
	}
	shown = map[int]*Task{}
	for items := range collectionOf[taskAtURI](s.funnel, cl, most, 0).All(ctx) { // its error ends it
		requests++
		for n := range items {
			for _, i := range at[items[n].ID] {
				if items[n].known && (shown[i] == nil || !shown[i].ended()) { // of two, the one that has ended
					shown[i] = &items[n].Task
				}
			}
		}
		if len(shown) == len(pending) {
			break
		}
	}
	return shown, requests
}
