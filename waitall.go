package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/waiting"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// WaitAll waits until all tasks have ended, and returns them in the order of the ids. An id that is given twice is
// polled once. Without ids, WaitAll returns at once and sends nothing. If an id is empty, it returns a
// [*ValidationError] and sends nothing.
//
// WaitAll waits for all tasks, even if some fail, and then returns the tasks together with the joined errors: a
// [*TaskError] for each task that ended with an error condition, and the error of the call, such as [ErrNotFound], for
// each task that cannot be read. [TasksService.Wait] says which failures are only transient. Failed authentication ends
// the whole wait. If the context or [WaitTimeout] ends it, the error says how many tasks are pending and names some.
//
// If there is an error, each returned task is the last state that was read at /tasks/{id}, or nil if it was never read.
//
// The first poll reads each task by itself, 4 at a time. If at least 3 tasks are pending and the list of tasks needs
// fewer requests, later polls read the list. WaitAll trusts the list only about tasks that are still running: it reads
// a task by itself if the list does not show it or shows it as ended, and also a few of the others in turn (open point
// 2). (Service document, [section 2.1].)
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
	all := taskGroup{TasksService: s, report: w.report, began: time.Now()}
	at := map[string]int{}
	for n, id := range ids {
		if _, twice := at[id]; twice {
			continue
		}
		cl := s.taskCall(id)
		if wrong, ok := errors.AsType[*ValidationError](cl.invalid); ok {
			bad.add(fmt.Sprintf("ids[%d]", n), "%s", wrong.Reason)
		}
		at[id], all.calls = len(all.calls), append(all.calls, cl)
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	group := waiting.Group[*Task]{Loop: loop, Items: &all, AtOnce: bulkConcurrency, FailFast: failFast, Last: make([]*Task, len(all.calls))}
	err := group.Wait(ctx)
	tasks := make([]*Task, len(ids))
	for n, id := range ids {
		tasks[n] = group.Last[at[id]]
	}
	var errs []error
	if err != nil {
		errs = append(errs, newWaitError(counted(len(all.calls), "task", "tasks"), err, all.names(group.Pending())))
	}
	for i, err := range group.Errs {
		if _, failed := errors.AsType[*TaskError](err); err != nil && !failed {
			err = newWaitError("task "+redact.Line(all.calls[i].id), err, "")
		}
		errs = append(errs, err)
	}
	return tasks, errors.Join(errs...)
}

// taskGroup is what a [waiting.Group] needs to know about tasks.
type taskGroup struct {
	*TasksService

	calls  []call
	report func(Progress)
	began  time.Time
}

// names returns how many tasks are pending, and the ids of some.
func (g *taskGroup) names(pending []int) string {
	text, more := "", ""
	for n, i := range pending {
		if n == 5 {
			more = fmt.Sprintf(" and %d more", len(pending)-n)
			break
		}
		text += ", " + redact.Line(g.calls[i].id)
	}
	return fmt.Sprintf("%d: %s%s;", len(pending), strings.TrimPrefix(text, ", "), more)
}

// Read polls a task.
func (g *taskGroup) Read(ctx context.Context, i int) (*Task, error) {
	return fetch[Task](ctx, g.conn, g.calls[i])
}

// Report reports the poll of a task.
func (g *taskGroup) Report(i, round int, task *Task, err error) {
	var p Progress
	if task != nil {
		p = g.progress(task)
	}
	p.Kind, p.ID, p.Polls, p.Elapsed, p.Err = "task", g.calls[i].id, round, time.Since(g.began), err
	g.report(p)
}

// Ended reports whether a task has ended, and with which error.
func (g *taskGroup) Ended(task *Task) (bool, error) {
	if task == nil || task.ErrorInfo == nil {
		return task != nil && task.Complete, nil
	}
	return true, g.failed(task)
}

// List reads the list of the tasks that were updated since the oldest update of a pending task. That time comes from
// the service, so the clock of this machine does not matter.
func (g *taskGroup) List(ctx context.Context, last []*Task, pending []int, most int) (shown map[int]*Task, requests int) {
	at, times := map[string][]int{}, []time.Time(nil)
	for _, i := range pending {
		if task := last[i]; task != nil {
			at[task.ID] = append(at[task.ID], i)
			times = append(times, cmp.Or(task.LastUpdated, task.BeginTime))
		}
	}
	if times = slices.DeleteFunc(times, time.Time.IsZero); len(times) == 0 {
		return nil, 0
	}
	cl := g.listCall(TaskListOptions{Since: slices.MinFunc(times, time.Time.Compare), Count: 100})
	if cl.invalid != nil {
		return nil, 0
	}
	shown = map[int]*Task{}
	for items := range collectionOf[listedTask](g.conn, cl, most, 0).All(ctx) { //nolint:errcheck // an error ends it
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

// listedTask is a task in a list. It may be a mere reference {id, uri}, which never ends.
type listedTask struct {
	Task

	known bool // it has complete or error_info, so it says whether the task has ended
}

func (t *listedTask) UnmarshalJSON(b []byte) error {
	if err := t.Task.UnmarshalJSON(b); err != nil {
		return err
	}
	var has struct {
		Complete *bool `json:"complete"`
	}
	err := wire.Decode(b, &has)
	t.known = t.ErrorInfo != nil || has.Complete != nil
	return err
}
