package testserver

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Ref names the user or the target of a task (service document, section 2.1).
type Ref struct {
	ID  string `json:"id,omitempty"`
	URI string `json:"uri,omitempty"`
}

// TaskError is the failure that a task ends with: the members of error_info.
type TaskError struct {
	Message, Type string
	Details       []string

	Incomplete bool // the member complete stays false although the task has ended
}

// TaskSpec describes a task that begins now.
type TaskSpec struct {
	ID         string        // "" creates a new id; the id of an existing task replaces that task
	Operation  string        // operation
	Status     string        // status at all times; "" means IN_PROGRESS, then COMPLETE or FAILED
	Duration   time.Duration // time until the end, by the clock; 0 means already ended, negative means never
	Error      *TaskError    // the failure that the task ends with; nil means that it succeeds
	User       Ref           // the zero value omits the member
	Target     Ref           // the zero value omits the member
	ForeignURI string        // replaces the task's own address in uri; "" keeps it
}

// AddTask adds a task and returns its id.
func (s *Server) AddTask(spec TaskSpec) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newTask(spec).ID
}

// newTask starts a task. Endpoints whose changes take time return it. The caller holds s.mu.
func (s *Server) newTask(spec TaskSpec) *task {
	for spec.ID == "" {
		s.taskNumber++
		if id := fmt.Sprintf("task-%d", s.taskNumber); s.tasks[id] == nil {
			spec.ID = id
		}
	}
	t := &task{TaskSpec: spec, begin: s.cfg.Clock.Now().Truncate(time.Millisecond)}
	s.tasks[spec.ID] = t
	return t
}

// task is a task as it began. Only the clock decides how far it is.
type task struct {
	TaskSpec

	begin time.Time
}

func (t *task) end() time.Time { return t.begin.Add(t.Duration).Truncate(time.Millisecond) }

func (t *task) ended(now time.Time) bool {
	return t.Duration >= 0 && !now.Before(t.end())
}

// progress is the percentage of the duration that has passed; it stays below 100 until the end.
func (t *task) progress(now time.Time) int {
	switch {
	case t.ended(now):
		return 100
	case t.Duration < 0:
		return 0
	default:
		return percent(now.Sub(t.begin), t.Duration)
	}
}

// updated returns when the progress last changed.
func (t *task) updated(now time.Time) time.Time {
	if t.ended(now) {
		return t.end()
	}
	return t.begin.Add(t.Duration / 100 * time.Duration(t.progress(now))).Truncate(time.Millisecond)
}

func (t *task) status(now time.Time) string {
	switch {
	case t.Status != "":
		return t.Status
	case !t.ended(now):
		return "IN_PROGRESS"
	case t.Error != nil:
		return "FAILED"
	default:
		return "COMPLETE"
	}
}

// percent is rounded down, and at most 99 because the operation has not ended.
func percent(part, whole time.Duration) int {
	return min(99, int(part/max(1, whole/100)))
}

type taskJSON struct {
	ID          string     `json:"id"`
	URI         string     `json:"uri"`
	Operation   string     `json:"operation,omitempty"`
	Status      string     `json:"status"`
	Complete    bool       `json:"complete"`
	Progress    int        `json:"progress"`
	BeginTime   string     `json:"begin_time"`
	EndTime     string     `json:"end_time,omitempty"`
	LastUpdated string     `json:"last_updated"`
	User        Ref        `json:"user,omitzero"`
	Target      Ref        `json:"target,omitzero"`
	ErrorInfo   *errorInfo `json:"error_info,omitempty"`
}

type errorInfo struct {
	Details []detail `json:"details,omitempty"`
	Message string   `json:"message"`
	Type    string   `json:"type,omitempty"`
}

type detail struct {
	Message string `json:"message"`
}

// taskJSON returns the current state of the task, with every field of section 2.1 of the service document that applies.
func (c *call) taskJSON(t *task) taskJSON {
	out := taskJSON{
		ID: t.ID, URI: t.ForeignURI, Operation: t.Operation, Status: t.status(c.now),
		Complete: t.ended(c.now), Progress: t.progress(c.now),
		BeginTime: taskStamp(t.begin), LastUpdated: taskStamp(t.updated(c.now)),
		User: t.User, Target: t.Target,
	}
	if out.URI == "" {
		out.URI = c.address(c.s.dialect.TasksPrefix + "/tasks/" + url.PathEscape(t.ID))
	}
	if !t.ended(c.now) {
		return out
	}
	out.EndTime = taskStamp(t.end())
	if t.Error != nil {
		out.Complete = !t.Error.Incomplete
		out.ErrorInfo = &errorInfo{Message: t.Error.Message, Type: t.Error.Type}
		for _, text := range t.Error.Details {
			out.ErrorInfo.Details = append(out.ErrorInfo.Details, detail{text})
		}
	}
	return out
}

func (s *Server) taskRoutes() []route {
	path := s.dialect.TasksPrefix + "/tasks"
	return []route{
		{method: http.MethodGet, path: path, params: []string{"since", "page", "count", "status", "operation"}, handle: listTasks},
		{method: http.MethodGet, path: path + "/{task_id}", handle: getTask},
	}
}

// getTask is GET /tasks/{task_id} (service document, section 4.1).
func getTask(c *call) (response, error) {
	t := c.s.tasks[c.vars["task_id"]]
	if t == nil {
		return response{}, refuse(http.StatusNotFound, "task %q does not exist", c.vars["task_id"])
	}
	return jsonResponse(http.StatusOK, c.taskJSON(t)), nil
}

// listTasks is GET /tasks (service document, section 4.1). The document leaves the order and the defaults of page and
// count open. The defaults here are those of network lists (section 8).
func listTasks(c *call) (response, error) {
	found, err := c.findTasks()
	if err != nil {
		return response{}, err
	}
	return pageResponse(c, c.s.dialect.TaskPage, found, 10, c.taskJSON)
}

// findTasks returns the tasks that match the filters, the last updated one first.
func (c *call) findTasks() ([]*task, error) {
	since, err := parseSince(c.query.Get("since"))
	if err != nil {
		return nil, err
	}
	var found []*task
	for _, t := range c.s.tasks {
		if !t.updated(c.now).Before(since) && c.wanted("status", t.status(c.now)) && c.wanted("operation", t.Operation) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *task) int {
		return cmp.Or(b.updated(c.now).Compare(a.updated(c.now)), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// wanted compares a value with the query parameter that filters by it.
func (c *call) wanted(param, value string) bool {
	return !c.query.Has(param) || c.query.Get(param) == value
}

// parseSince reads yyyy-MM-dd'T'HH:mm:ss.SSSZ, with any numeric zone or Z, or a date alone. It formats the result again
// and compares it with the text, because time.Parse accepts more than the layout.
func parseSince(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05.000-0700", "2006-01-02T15:04:05.000Z", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil && t.Format(layout) == text {
			return t, nil
		}
	}
	return time.Time{}, refuse(http.StatusBadRequest, "since must have the form yyyy-MM-dd'T'HH:mm:ss.SSSZ")
}
