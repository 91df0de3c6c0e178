package soak

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

const (
	fixedTasks     = 37
	fixedOperation = "soak-fixed" // operation of the tasks that have ended, so that they never change
)

func fixedTask(i int) string { return fmt.Sprintf("fixed-%02d", i) }

// isFixed checks a task that has ended (service document, section 2.1).
func (w *worker) isFixed(operation, id string, t webdelivery.Task) {
	if t.ID != id || t.Operation != fixedOperation || !t.Complete || t.ErrorInfo != nil || t.BeginTime.IsZero() {
		w.problem(operation, "task %s reads as %+v", id, t)
	}
}

func (w *worker) getTask(ctx context.Context, c *webdelivery.Client) error {
	id := fixedTask(w.IntN(fixedTasks))
	task, err := c.Tasks.Get(ctx, id)
	if w.read("Tasks.Get", err) {
		w.isFixed("Tasks.Get", id, *task)
	}
	return err
}

func (w *worker) getMissingTask(ctx context.Context, c *webdelivery.Client) error {
	_, err := c.Tasks.Get(ctx, "nobody-made-it")
	if errors.Is(err, webdelivery.ErrNotFound) {
		w.tally.note("Tasks.Get, missing", done, "")
		return nil
	}
	if w.read("Tasks.Get, missing", err) {
		w.problem("Tasks.Get", "a task that does not exist was read")
	}
	return err
}

func (w *worker) listTasks(ctx context.Context, c *webdelivery.Client) error {
	page, count := 1+w.IntN(3), 1+w.IntN(20)
	got, err := c.Tasks.List(ctx, webdelivery.TaskListOptions{Operation: fixedOperation, Page: page, Count: count})
	if w.read("Tasks.List", err) {
		want := max(0, min(count, fixedTasks-(page-1)*count))
		if got.Total != fixedTasks || len(got.Items) != want || got.HasMore != (page*count < fixedTasks) {
			w.problem("Tasks.List", "page %d of %d tasks each has %d of %d, more %t", page, count, len(got.Items), got.Total, got.HasMore)
		}
		for _, t := range got.Items {
			w.isFixed("Tasks.List", t.ID, t)
		}
	}
	return err
}

func (w *worker) allTasks(ctx context.Context, c *webdelivery.Client) error {
	seen := map[string]bool{}
	var failure error
	for t, err := range c.Tasks.All(ctx, webdelivery.TaskListOptions{Operation: fixedOperation, Count: 1 + w.IntN(20)}) {
		if failure = err; err == nil {
			w.isFixed("Tasks.All", t.ID, t)
			seen[t.ID] = true
		}
	}
	if w.read("Tasks.All", failure) && len(seen) != fixedTasks {
		w.problem("Tasks.All", "%d tasks of %d", len(seen), fixedTasks)
	}
	return failure
}

// waitForTask waits for a task that succeeds, fails, or never ends.
func (w *worker) waitForTask(ctx context.Context, c *webdelivery.Client) error {
	spec := testserver.TaskSpec{Operation: "soak-wait", Duration: w.upTo(300*time.Millisecond) + 1}
	kind := w.IntN(4)
	switch kind {
	case 0:
		spec.Error = &testserver.TaskError{Message: "it did not work", Type: "SOAK"}
	case 1:
		spec.Duration = -1
	}
	id := w.srv.AddTask(spec)
	task, err := c.Tasks.Wait(ctx, id, webdelivery.PollEvery(20*time.Millisecond+w.upTo(80*time.Millisecond)),
		webdelivery.WaitTimeout(500*time.Millisecond))
	var failedTask *webdelivery.TaskError
	switch {
	case kind == 0 && errors.As(err, &failedTask):
		if failedTask.Task.ID != id || failedTask.Task.ErrorInfo.Message != spec.Error.Message {
			w.problem("Tasks.Wait", "task %s: %v", id, err)
		}
		w.tally.note("Tasks.Wait, ends badly", done, "")
		return nil
	case kind == 1 && errors.Is(err, context.DeadlineExceeded):
		w.tally.note("Tasks.Wait, never ends", done, "")
		return nil
	case w.awaited("Tasks.Wait", err) && (kind < 2 || task.ID != id || !task.Complete):
		w.problem("Tasks.Wait", "kind %d ended well: %+v", kind, task)
	}
	return err
}

// doTask reads a task with Do. A response of null is valid JSON, and leaves the result unchanged.
func (w *worker) doTask(ctx context.Context, c *webdelivery.Client) error {
	id := fixedTask(w.IntN(fixedTasks))
	var task *webdelivery.Task
	err := c.Do(ctx, http.MethodGet, "/tasks/"+id, nil, &task)
	if w.read("Do GET", err) && task != nil {
		w.isFixed("Do GET", id, *task)
	}
	return err
}
