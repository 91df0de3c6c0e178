package webdelivery

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// TasksService reads the records of long-running operations. Use it as [Client.Tasks]. It is safe for concurrent use.
// (Service document, [section 4.1].)
//
// [section 4.1]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#41-tasks
type TasksService struct{ conn *conn }

// Task is the record of a long-running operation. If the service omits a member, its field has the zero value. Times
// are in UTC. (Service document, [section 2.1].)
//
// [section 2.1]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#21-task
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

// UnmarshalJSON reads a task as the service sends it. A timestamp may lack the colon in its zone. A timestamp without
// a zone is in UTC.
func (t *Task) UnmarshalJSON(b []byte) error {
	type plain Task
	return wire.Decode(b, (*plain)(t))
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
	MaxPages  int       `url:"-"`                                                     // if more pages follow or may follow, All ends with a *IncompleteError; 0: no limit
}

// Get returns one task. A task that ended with an error condition is no error here.
//
// If the task does not exist, Get returns [ErrNotFound]. If id is empty, it returns a [*ValidationError]. If the
// response has no id or another one, it returns [ErrBadReply].
func (s *TasksService) Get(ctx context.Context, id string) (*Task, error) {
	return fetch[Task](ctx, s.conn, s.taskCall(id))
}

// List returns one page of tasks. Page.HasMore is also true if the response does not say whether more pages exist,
// see [Page].
//
// If a number is below 0, or Since is outside the years 1 to 9999, List returns a [*ValidationError]. If the service
// rejects the parameters, it returns [ErrBadRequest]. If the response is not a page, it returns [ErrBadReply].
func (s *TasksService) List(ctx context.Context, options TaskListOptions) (*Page[Task], error) {
	return fetchPage[Task](ctx, s.conn, s.listCall(options))
}

// All returns a sequence of all tasks, from the page of the options to the last page. It reads one page at a time.
// Each range over the sequence sends new requests. After the first error, the sequence ends; its error comes with a
// zero Task. If an announced page cannot be read, the error is a [*IncompleteError]. If tasks start or change while
// All reads, it may miss some or return some twice.
//
// All sends the parameters of the options for every page, also if a next_uri leaves one out. If a next_uri has
// another value for one of them, All yields a [*IncompleteError].
//
// At the end, All compares what it read with what the pages announced. After the tasks, it yields a
// [*IncompleteError] if:
//   - it read fewer tasks than the last total,
//   - a page_count or a next_uri announced a page that did not come, or
//   - a page starts like an earlier page or has no new task. Only a short last page may have known tasks alone.
//
// The service document does not show the response. If no page announces anything, All asks for the next page number
// until a page is empty or shorter than the first (open point 2). This takes at least one more request, unless the
// first page is empty. If the second page has the same tasks as the first, the service does not use pages, and All
// ends without an error. All yields a [*IncompleteError] if the end is in doubt:
//   - the first page had exactly Count tasks,
//   - both pages have the same page_index,
//   - a later page has the same tasks as an earlier one,
//   - there are fewer tasks than the total, or
//   - MaxPages is reached.
//
// If the service answers 400 or 404 for a page past the end, the sequence ends with that error, after all tasks. In
// that case, set Count above the number of tasks. After a page of fewer than Count tasks, All takes a 400 or 404 as the
// end.
func (s *TasksService) All(ctx context.Context, options TaskListOptions) iter.Seq2[Task, error] {
	return eachItem[Task](ctx, s.conn, s.listCall(options), options.MaxPages, 0)
}

func (s *TasksService) listCall(options TaskListOptions) call {
	var p problems
	checkPaging(&p, options.Page, options.Count, options.MaxPages)
	options.Since = options.Since.UTC()
	checkYear(&p, "since", options.Since)
	return pagedCall(&p, s.conn.dialect.TasksPrefix+"/tasks", options)
}

// Wait polls a task until it has ended, and returns it. The first poll comes at once, the others at growing intervals
// (see [PollEvery]). If the task ended with an error condition, Wait returns a [*TaskError] that holds the task. If
// an error ends Wait, the task itself goes on, and its outcome is [OutcomeUnknown].
//
// A transient failure does not end Wait: no connection, no response in time, 408, 429 or 5xx. Nor does a response
// that is not a task ([ErrBadReply]), such as a maintenance page. Wait polls again after the usual interval, and
// [OnProgress] gets the error. If the service asks for a longer wait with Retry-After, Wait waits as long. Without a
// deadline and without [WaitTimeout], Wait polls for as long as the task runs and can be read.
//
// These errors end Wait:
//   - any other 4xx, so a task that does not exist is [ErrNotFound]
//   - failed authentication
//   - a response longer than [WithMaxResponseBytes] allows
//   - before the first successful poll: a redirect, an unknown host, or an untrusted certificate
//   - 10 minutes without a successful poll ([WaitMaxOutage])
//   - the end of the context or of WaitTimeout. If the last poll failed, the error matches that of the poll, too.
//
// Wait polls /tasks/{id}, whatever the task's own uri says (open point 1). (Service document, [section 2.1].)
//
// [section 2.1]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#21-task
func (s *TasksService) Wait(ctx context.Context, id string, options ...WaitOption) (*Task, error) {
	cl := s.taskCall(id)
	if cl.invalid != nil {
		return nil, cl.invalid
	}
	var task *Task
	err := poll(ctx, "task", id, false, options, func(ctx context.Context) (Progress, error) {
		read, err := fetch[Task](ctx, s.conn, cl)
		if err != nil {
			return Progress{}, err
		}
		task = read
		return s.progress(task), nil
	})
	switch {
	case err != nil:
		return nil, err
	case task.ErrorInfo != nil:
		return nil, s.failed(task)
	default:
		return task, nil
	}
}

// taskCall describes the call that reads a task by its id.
func (s *TasksService) taskCall(id string) call {
	return objectCall(s.conn.dialect.TasksPrefix+"/tasks/{task_id}", "", id)
}

// progress returns what a poll has shown of a task.
func (s *TasksService) progress(t *Task) Progress {
	return Progress{Status: s.conn.secrets.Text(t.Status), Percent: t.Progress, Complete: t.ended()}
}

// TaskError means that a task ended with an error condition, although all calls succeeded. The task may have made a
// part of its changes, so the outcome is [OutcomeUnknown].
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
