package webdelivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// TasksService reads the records of long-running operations. (Section 4.1.)
type TasksService struct{ conn *conn }

// Task is the record of a long-running operation. If the service omits a member, its field has the zero value. Times
// are in UTC. (Section 2.1.)
type Task struct {
	ID          string     `json:"id"`                    // unique
	URI         string     `json:"uri,omitempty"`         // address of the task
	Operation   string     `json:"operation,omitempty"`   // what the task runs
	Status      string     `json:"status,omitempty"`      // the service's own words; no list of them is documented
	Complete    bool       `json:"complete"`              // true when the task has ended, with or without success
	Progress    int        `json:"progress"`              // its range is not documented
	BeginTime   time.Time  `json:"begin_time,omitzero"`   // when the operation began
	EndTime     time.Time  `json:"end_time,omitzero"`     // zero while it runs
	LastUpdated time.Time  `json:"last_updated,omitzero"` // TaskListOptions.Since selects by it
	User        Reference  `json:"user,omitzero"`         // who started it
	Target      Reference  `json:"target,omitzero"`       // what it works on
	ErrorInfo   *ErrorInfo `json:"error_info,omitempty"`  // not nil when it ended with an error condition
}

func (t *Task) identity() string { return t.ID }
func (t *Task) lacks() string    { return lacksID(t.ID) }

// Reference names another resource: the user or the target of a task.
type Reference struct {
	ID  string `json:"id"`            // of that resource
	URI string `json:"uri,omitempty"` // its address; the document says no more about it
}

// ErrorInfo is the error condition with which a task ended: error_info.
type ErrorInfo struct {
	Details []ErrorDetail `json:"details,omitempty"` // may be empty
	Message string        `json:"message,omitempty"` // free text of the service
	Type    string        `json:"type,omitempty"`    // the document has no list of types
}

// ErrorDetail is one detail of an error condition.
type ErrorDetail struct {
	Message string `json:"message"` // free text of the service
}

// ended reports whether the task is complete or has an error condition (open point 4).
func (t *Task) ended() bool { return t.Complete || t.ErrorInfo != nil }

// TaskListOptions selects tasks. A zero field is not sent, so the service uses its default.
type TaskListOptions struct {
	Since     time.Time `url:"since,omitempty" layout:"2006-01-02T15:04:05.000-0700"` // only tasks updated at or after it; years 1 to 9999; sent in UTC with milliseconds
	Status    string    `url:"status,omitempty"`                                      // only tasks in this status
	Operation string    `url:"operation,omitempty"`                                   // only tasks that run this operation
	Page      int       `url:"page,omitempty"`                                        // from 1; All starts at this page
	Count     int       `url:"count,omitempty"`                                       // tasks per page
}

// Get returns one task. A task that ended with an error condition is not an error here.
func (s *TasksService) Get(ctx context.Context, id string) (*Task, error) {
	return fetch[Task](ctx, s.conn, s.taskCall(id))
}

// List returns one page of tasks.
func (s *TasksService) List(ctx context.Context, options TaskListOptions) (*Page[Task], error) {
	return fetchPage[Task](ctx, s.conn, s.listCall(options))
}

// All returns all tasks, from the page of the options to the last. If the number of tasks changes meanwhile, if the
// pages contradict each other, if they end before all announced tasks have arrived, or do not show where the end is,
// All yields an [*IncompleteError] after the tasks that it read. With a large Count there are few pages, so this is
// rare.
func (s *TasksService) All(ctx context.Context, options TaskListOptions) iter.Seq2[Task, error] {
	return eachItem[Task](ctx, s.conn, s.listCall(options), 0)
}

func (s *TasksService) listCall(options TaskListOptions) call {
	var p problems
	checkPaging(&p, options.Page, options.Count)
	options.Since = options.Since.UTC()
	checkYear(&p, "since", options.Since)
	return pagedCall(&p, "Tasks.List", s.conn.dialect.TasksPrefix+"/tasks", options)
}

// Wait polls a task until it has ended, and returns it. The first poll comes at once, the others at growing intervals
// (see [WaitInterval]). If the task ended with an error condition, Wait returns a [*TaskError] that holds the task.
//
// A transient failure does not end Wait: no connection, no response in time, 408, 429, 5xx, or a response that is not
// a task. Wait polls again after the usual interval, or the longer one that Retry-After asks for. It ends with any
// other 4xx, failed authentication, a response that is too large, after 10 minutes without a successful poll
// ([WaitMaxOutage]), with the context, and before the first successful poll, with a redirect, an unknown host or an
// untrusted certificate. (Section 2.1.)
func (s *TasksService) Wait(ctx context.Context, id string, options ...WaitOption) (*Task, error) {
	cl := s.taskCall(id)
	if cl.invalid != nil {
		return nil, cl.invalid
	}
	w, err := newWaiter(options)
	if err != nil {
		return nil, err
	}
	var task *Task
	if err := w.wait(ctx, s.polled(cl, &task)); err != nil {
		return nil, err
	}
	return task, nil
}

// WaitAll waits until all tasks have ended, even if some fail, and returns them in the order of the ids, with the
// joined errors: a [*TaskError] for each task that ended with an error condition, and the error of the call for each
// that cannot be read. [TasksService.Wait] says which failures are only transient, and what ends the whole wait. With
// an error, each task is the last state that was read, or nil.
//
// WaitAll polls up to 4 pending tasks in each interval, in their order; those that have not ended come behind the
// others. (Section 2.1.)
func (s *TasksService) WaitAll(ctx context.Context, ids []string, options ...WaitOption) ([]*Task, error) {
	w, err := newWaiter(options)
	if err != nil {
		return nil, err
	}
	return s.waitAll(ctx, ids, w)
}

func (s *TasksService) waitAll(ctx context.Context, ids []string, w *waiter) ([]*Task, error) {
	var bad problems
	var items []*item
	tasks, first := make([]*Task, len(ids)), map[string]int{}
	for n, id := range ids {
		if _, twice := first[id]; twice {
			continue
		}
		cl := s.taskCall(id)
		if wrong, ok := errors.AsType[*ValidationError](cl.invalid); ok {
			bad.add(fmt.Sprintf("ids[%d]", n), "%s", wrong.Reason)
		}
		first[id], items = n, append(items, s.polled(cl, &tasks[n]))
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	err := w.wait(ctx, items...)
	for n, id := range ids {
		tasks[n] = tasks[first[id]]
	}
	return tasks, err
}

// polled returns a task as the item of a wait. Each good poll sets last.
func (s *TasksService) polled(cl call, last **Task) *item {
	it := &item{kind: "task", Progress: Progress{ID: cl.id}}
	it.read = func(ctx context.Context) (Progress, error) {
		t, err := fetch[Task](ctx, s.conn, cl)
		if err != nil {
			return Progress{}, err
		}
		*last = t
		if t.ErrorInfo != nil {
			it.err = s.failed(t)
		}
		return Progress{Status: s.conn.secrets.Text(t.Status), Percent: t.Progress, Complete: t.ended()}, nil
	}
	return it
}

// taskCall describes the call that reads a task by its id.
func (s *TasksService) taskCall(id string) call {
	return objectCall("Tasks.Get", s.conn.dialect.TasksPrefix+"/tasks/{task_id}", "", id)
}

// TaskError means that a task ended with an error condition, although all calls succeeded. The task may have made part
// of its changes, so the outcome is [OutcomeUnknown].
type TaskError struct {
	Task *Task // the last state that was read; its ErrorInfo is not nil
}

// Error returns one line with the id of the task, and the type, message and details of its error_info.
func (e *TaskError) Error() string {
	task := cmp.Or(e.Task, &Task{}) // a user's test may omit it or its ErrorInfo
	info := cmp.Or(task.ErrorInfo, &ErrorInfo{})
	texts := []string{info.Message}
	for _, d := range info.Details {
		texts = append(texts, d.Message)
	}
	text := joinNonEmpty(": ", info.Type, joinNonEmpty("; ", texts...))
	return joinNonEmpty(": ", "webdelivery: task "+redact.Line(task.ID)+" failed", redact.Line(text))
}

func (e *TaskError) outcomeOfWrite() Outcome { return OutcomeUnknown }

// failed returns the error of a task that failed. An error holds no credential, so the texts of the service are
// redacted.
func (s *TasksService) failed(t *Task) *TaskError {
	texts := []*string{
		&t.ID, &t.URI, &t.Operation, &t.Status, &t.User.ID, &t.User.URI, &t.Target.ID, &t.Target.URI, &t.ErrorInfo.Type, &t.ErrorInfo.Message,
	}
	for i := range t.ErrorInfo.Details {
		texts = append(texts, &t.ErrorInfo.Details[i].Message)
	}
	s.conn.redactAll(texts...)
	return &TaskError{t}
}

// optionalTask reads the task, or only its id, from the response to a change. It returns nil if there is none (open
// point 21): the service accepted the change, so an unknown shape is not an error. changed lists the ids of the changed
// resources.
func (r *response) optionalTask(changed ...string) (*Task, error) {
	task := taskIn(r.Body, changed)
	if task.ID == "" {
		return nil, nil // no task is not an error
	}
	if !address.Fits(task.ID) { // Get could not read it
		return nil, r.bad("a task whose id cannot be part of an address", nil)
	}
	return &task, nil
}

// taskIn returns the task in the response to a change, perhaps with nothing but its ID. The ID is "" if there is no
// task (open point 21).
func taskIn(body []byte, changed []string) (task Task) {
	var members map[string]json.RawMessage
	if wire.Decode(body, &members) != nil {
		return Task{}
	}
	maps.DeleteFunc(members, func(_ string, value json.RawMessage) bool { return string(value) == "null" }) // null proves nothing
	if wire.Decode(body, &task) != nil {
		task = Task{} // a member does not have the type that it has in a task
	}
	has := func(name string) bool { return members[name] != nil }
	id, named := textOf(members["id"]), textOf(members["task_id"])
	isChanged := slices.ContainsFunc(changed, func(other string) bool { return sameID(id, other) })
	switch {
	case named != "" && id != "" && id != named: // another object, which names its task
		return Task{ID: named}
	case named != "":
		task.ID = named
	case id == "", isChanged && !has("complete"): // the changed list or entry itself
		return Task{}
	case len(members) == 1 || slices.ContainsFunc(membersOfTask, has) || strings.HasSuffix(task.URI, "/tasks/"+url.PathEscape(id)):
		task.ID = id
	default:
		return Task{}
	}
	return task
}

// textOf returns the text of a JSON string or the digits of a JSON number, and "" for anything else.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		return number.String()
	}
	return ""
}

// membersOfTask lists the members that, in the service document, only a task has.
var membersOfTask = []string{"complete", "operation", "status", "progress", "begin_time", "error_info"}
