package webdelivery

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/objects"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// TasksService reads the records of long-running operations (service-interface section 4.1). It is [Client.Tasks], and
// safe for concurrent use.
type TasksService struct{ funnel *funnel }

// Task is the record of a long-running operation (service-interface section 2.1). A member that the service leaves out
// is the zero value of its field. Times are in UTC.
type Task struct {
	ID          string     `json:"id"`                    // unique
	URI         string     `json:"uri,omitempty"`         // address of the task
	Operation   string     `json:"operation,omitempty"`   // what the task runs
	Status      string     `json:"status,omitempty"`      // the service's own words; no list of them is documented
	Complete    bool       `json:"complete"`              // true when the task has ended, well or not
	Progress    int        `json:"progress"`              // its range is not documented
	BeginTime   time.Time  `json:"begin_time,omitzero"`   // when the operation began
	EndTime     time.Time  `json:"end_time,omitzero"`     // zero while it runs
	LastUpdated time.Time  `json:"last_updated,omitzero"` // what Since of TaskListOptions goes by
	User        Reference  `json:"user,omitzero"`         // who began it
	Target      Reference  `json:"target,omitzero"`       // what it works on
	ErrorInfo   *ErrorInfo `json:"error_info,omitempty"`  // not nil when it ended with an error condition
}

func (t *Task) resourceKind() objects.Kind { return objects.Task }
func (t *Task) identity() string           { return t.ID }
func (t *Task) lacks() string              { return lacksID(t.ID) }
func (t *Task) evident() bool              { return t.Operation != "" || t.Status != "" || t.Complete }

// Reference names another resource: the user or the target of a task (service-interface section 2.1).
type Reference struct {
	ID  string `json:"id"`            // of that resource
	URI string `json:"uri,omitempty"` // its address; the document says no more of it
}

// ErrorInfo is the error condition with which a task ended (service-interface section 2.1, error_info).
type ErrorInfo struct {
	Details []ErrorDetail `json:"details,omitempty"` // may be empty
	Message string        `json:"message,omitempty"` // the service's words
	Type    string        `json:"type,omitempty"`    // no list of them is documented
}

// ErrorDetail is one detail of an error condition (service-interface section 2.1).
type ErrorDetail struct {
	Message string `json:"message"` // the service's words
}

// UnmarshalJSON reads a task as the service sends it: its timestamps may lack the colon in the zone, or the zone, which
// then is UTC.
func (t *Task) UnmarshalJSON(b []byte) error {
	type plain Task
	w := struct {
		*plain
		BeginTime   wire.Timestamp `json:"begin_time"`
		EndTime     wire.Timestamp `json:"end_time"`
		LastUpdated wire.Timestamp `json:"last_updated"`
	}{plain: (*plain)(t)}
	if err := wire.Decode(b, &w); err != nil {
		return err
	}
	t.BeginTime, t.EndTime, t.LastUpdated = w.BeginTime.Time, w.EndTime.Time, w.LastUpdated.Time
	return nil
}

// Ended: complete, or with an error condition (open point 4).
func (t *Task) ended() bool { return t.Complete || t.ErrorInfo != nil }

// TaskListOptions selects tasks (service-interface section 4.1). A zero field is not sent: the service's defaults hold.
type TaskListOptions struct {
	Since     time.Time `url:"since,omitempty" layout:"2006-01-02T15:04:05.000-0700"` // updated at or after, in the years 1 to 9999; sent in UTC with milliseconds
	Status    string    `url:"status,omitempty"`                                      // of tasks in this status
	Operation string    `url:"operation,omitempty"`                                   // of tasks that run this
	Page      int       `url:"page,omitempty"`                                        // from 1; All begins there
	Count     int       `url:"count,omitempty"`                                       // tasks a page
	MaxPages  int       `url:"-"`                                                     // All ends with a *PaginationError when more pages follow or may follow; 0: no bound
}

// Get reads one task (service-interface section 4.1). A task that does not exist is [ErrNotFound], an empty id a
// [*ValidationError]. If the response has no id or another one, or is another resource, Get
// returns [ErrBadReply]. A task that ended with
// an error condition is no error here.
func (s *TasksService) Get(ctx context.Context, id string) (*Task, error) {
	poller, err := s.poller(ctx, id)
	if err != nil {
		return nil, err
	}
	return fetch[Task](ctx, s.funnel, poller.own)
}

// List reads one page of the tasks updated since a time (service-interface section 4.1). Numbers below 0, and a time
// outside of the years 1 to 9999, are a [*ValidationError], parameters that the service does not take [ErrBadRequest],
// a reply that is no page [ErrBadReply].
// HasMore of the page is true also when the reply does not say whether further pages exist, see [Page].
func (s *TasksService) List(ctx context.Context, options TaskListOptions) (*Page[Task], error) {
	cl, err := s.listCall(ctx, options)
	if err != nil {
		return nil, err
	}
	return fetchPage[Task](ctx, s.funnel, cl)
}

// All reads every task from the first page asked for to the last, a page at a time (service-interface section 4.1). It
// ends with the first error, which is yielded with a zero Task. A page that is announced and cannot be had is a
// [*PaginationError]. Tasks that begin or change while it reads may be missed or come twice. Each range over the
// sequence reads anew.
//
// The parameters of the options hold on every page. If a next_uri leaves one out, All sends it all the same. If it has
// another value of one, All yields a [*PaginationError].
//
// All compares the end with what the pages announced. If fewer tasks came than the last total, or if a page_count or a
// next_uri announces a page that did not come, All yields a [*PaginationError] after the tasks. It also does so if a
// page begins like an earlier one or has no new task. Only a short last page may have known tasks alone.
//
// The service document does not show the response. If no page announces anything, All asks for the next page number
// until a page is empty or shorter than the first one (open point 2). This takes at least one more request, unless the
// first page is empty. If the second page has the same tasks as the first, the service does not page, and All ends
// without an error. All yields a [*PaginationError] if that may not be the end: the first page had exactly Count tasks,
// both pages have the same page_index, a later page repeats an earlier one, fewer tasks came than the total, or
// MaxPages is reached. A 400 or 404 for a page past the end is the error of the sequence, after all tasks. If the
// service answers so, set Count above the number of tasks: after a page of fewer than Count tasks, a 400 or 404 is the
// end.
func (s *TasksService) All(ctx context.Context, options TaskListOptions) iter.Seq2[Task, error] {
	cl, err := s.listCall(ctx, options)
	if err != nil {
		return failing[Task](err)
	}
	return eachItem[Task](ctx, s.funnel, cl, options.MaxPages, 0)
}

func (s *TasksService) listCall(ctx context.Context, options TaskListOptions) (call, error) {
	if err := s.via().usable(ctx); err != nil {
		return call{}, err
	}
	var p problems
	checkPaging(&p, options.Page, options.Count, options.MaxPages)
	options.Since = options.Since.UTC()
	checkYear(&p, "since", options.Since)
	return pagedCall(&p, s.funnel.dialect.TasksPrefix+"/tasks", options)
}

// Wait polls a task until it has ended (service-interface section 2.1, open point 4), at once and then at growing
// intervals ([PollEvery]). If the task ended with an error condition, Wait returns a [*TaskError], which holds the
// task. Without a deadline and without [WaitTimeout], Wait goes on for as long as the task does not end.
//
// A poll that fails after its retries does not end Wait, if the failure may pass: no connection, no response in time,
// 408, 429, 5xx, or a response that is no task ([ErrBadReply]), such as a maintenance page. Wait polls again after the
// usual interval, and [OnProgress] gets the error. These errors end Wait: any other 4xx, so that a task that does not
// exist is [ErrNotFound]; failed authentication; a response above [WithMaxResponseBytes]; a panic of a function of
// yours. Before the first successful poll, a redirect, an unknown host and a certificate that is not trusted end it,
// too. If the context or WaitTimeout ends, the error also matches that of the last poll, if it failed. The task itself
// goes on after an error of Wait, and its outcome is [OutcomeUnknown].
//
// Wait first reads /tasks/{id}. If the task then gives an address of its own, at this service, Wait polls that, and
// /tasks/{id} at every tenth poll (open point 1). If the address returns an error, anything but this task, or a uri
// that leads elsewhere, Wait goes back to /tasks/{id} in the same poll and stays there.
func (s *TasksService) Wait(ctx context.Context, id string, options ...WaitOption) (*Task, error) {
	poller, err := s.poller(ctx, id)
	if err != nil {
		return nil, err
	}
	var task *Task
	err = poll(ctx, ProgressTask, id, false, options, func(ctx context.Context) (Progress, error) {
		read, err := poller.read(ctx)
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

func (s *TasksService) poller(ctx context.Context, id string) (*taskPoller, error) {
	if err := s.via().usable(ctx); err != nil {
		return nil, err
	}
	path, err := expand(s.funnel.dialect.TasksPrefix+"/tasks/{task_id}", id)
	return &taskPoller{funnel: s.funnel, own: objectCall(path, "", id)}, err
}

// progress is what a poll has seen of a task.
func (s *TasksService) progress(t *Task) Progress {
	return Progress{Status: s.funnel.secrets.Text(t.Status), Percent: t.Progress, Complete: t.ended()}
}

// ownPathEvery: each so many polls, a task that has an address of its own is read at /tasks/{id} all the same, as what
// its address returns may never change.
const ownPathEvery = 10

// taskPoller reads one task again and again. The task may know its own address best, but the document does not say what
// uri means (open point 1), so nothing that it leads to is believed unless it is this task.
type taskPoller struct {
	funnel *funnel
	own    call   // the task by its id
	at     *call  // its uri, where that is another address
	id     string // as the task itself gives it
	polls  int    // so far
	stay   bool   // the uri was no use
}

func (p *taskPoller) read(ctx context.Context) (*Task, error) {
	p.polls++
	if p.at == nil {
		return p.readAtOwn(ctx)
	}
	var failed error
	if p.polls%ownPathEvery == 0 {
		task, err := p.readAtOwn(ctx)
		if err == nil || ctx.Err() != nil {
			return task, err
		}
		failed = err
	}
	there, err := fetch[taskAtURI](ctx, p.funnel, *p.at)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err == nil && there.known && there.ID == p.id && (there.ended() || !p.leadsOn(&there.Task)):
		return &there.Task, nil
	}
	p.at, p.stay = nil, true
	if failed != nil {
		return nil, failed
	}
	return p.readAtOwn(ctx)
}

// readAtOwn reads the task by its id, and takes its own address for the next polls. It never leads away from this
// service.
func (p *taskPoller) readAtOwn(ctx context.Context) (*Task, error) {
	task, err := fetch[Task](ctx, p.funnel, p.own)
	if err != nil || p.stay {
		return task, err
	}
	p.id, p.at = task.ID, nil
	path, query, err := p.funnel.resolve("uri", task.URI)
	if err == nil && task.ID != "" && (path != p.own.Path || query != p.own.Query) {
		at := getCall(path, query)
		at.KeepSession = true // a refusal there says nothing of the session
		p.at = &at
	}
	return task, nil
}

// leadsOn: the task at its own address names another one. That may go on for ever.
func (p *taskPoller) leadsOn(task *Task) bool {
	path, query, err := p.funnel.resolve("uri", task.URI)
	return err == nil && (path != p.at.Path || query != p.at.Query)
}

// taskAtURI is what a task's uri leads to. Without the member complete or error_info it is not known whether the task
// has ended: a reference {id, uri} would be waited for in vain.
type taskAtURI struct {
	Task

	known bool
}

func (t *taskAtURI) UnmarshalJSON(b []byte) error {
	if err := t.Task.UnmarshalJSON(b); err != nil {
		return err
	}
	var m struct {
		Complete *bool `json:"complete"`
	}
	_ = wire.Decode(b, &m) // it was decoded before
	t.known = m.Complete != nil || t.ErrorInfo != nil
	return nil
}

// TaskError is a task that ended with an error condition (service-interface section 2.1, error_info). The calls that
// led to it succeeded; what the task was to change may be changed in part, so its outcome is [OutcomeUnknown].
type TaskError struct {
	Task *Task // the task as it was last read; its ErrorInfo is not nil
}

// Error gives the id of the task with type, message and details of its error_info, on one line.
func (e *TaskError) Error() string {
	task := cmp.Or(e.Task, &Task{}) // a user's test may leave it or its ErrorInfo out
	info := cmp.Or(task.ErrorInfo, &ErrorInfo{})
	texts := []string{info.Message}
	for _, d := range info.Details {
		texts = append(texts, d.Message)
	}
	text := joinNonEmpty(": ", info.Type, joinNonEmpty("; ", texts...))
	return joinNonEmpty(": ", "webdelivery: task "+redact.Line(task.ID)+" failed", redact.Line(text))
}

// LogValue gives id, operation and error_info of the task.
func (e *TaskError) LogValue() slog.Value {
	task := cmp.Or(e.Task, &Task{})
	return slog.GroupValue(
		slog.String("task", redact.Line(task.ID)),
		slog.String("operation", redact.Line(task.Operation)),
		slog.String("error", e.Error()))
}

// failed makes the error of a task. Errors hold no credential, whatever the service says.
func (s *TasksService) failed(t *Task) *TaskError {
	texts := []*string{
		&t.ID, &t.URI, &t.Operation, &t.Status, &t.User.ID, &t.User.URI, &t.Target.ID, &t.Target.URI, &t.ErrorInfo.Type, &t.ErrorInfo.Message,
	}
	for i := range t.ErrorInfo.Details {
		texts = append(texts, &t.ErrorInfo.Details[i].Message)
	}
	s.funnel.secrets.Texts(texts...)
	return &TaskError{t}
}
