package objects

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Members that distinguish a task from other objects with an id.
var (
	// In the service document, these are members of a network list, an entry or a page, and never of a task.
	membersOfNoTask = []string{
		"type", "list", "name", "deprecated", "entries_uri", "entries_batch_deletion_uri", "creation_timestamp",
		"modified_timestamp", "entry", "added_by", "network_list_uri", "items",
	}
	// These are members of a task. complete is one too, and outweighs those above.
	membersOfTask = []string{"operation", "status", "progress", "begin_time", "error_info"}
)

// Answer is the body of the response to a change. It may hold a task, or just the id of one (open point 21). The zero
// Answer holds no task.
type Answer map[string]json.RawMessage

// ReadAnswer reads a body. It returns the zero Answer if the body is not an object.
func ReadAnswer(body []byte) Answer {
	var members Answer
	if wire.Decode(body, &members) != nil {
		return nil
	}
	maps.DeleteFunc(members, func(_ string, value json.RawMessage) bool { return string(value) == "null" }) // null proves nothing
	return members
}

func (a Answer) has(name string) bool { return a[name] != nil }

// IsNoTask reports whether the object is something else than a task. Then only its task_id can name a task.
func (a Answer) IsNoTask() bool {
	return slices.ContainsFunc(membersOfNoTask, a.has) && !a.has("complete")
}

// TaskID returns the id of the task, "" if there is none. uri is the object's own uri, or "" if that is unreadable.
func (a Answer) TaskID(uri string) string {
	if id := Text(a["task_id"]); id != "" {
		return id
	}
	id := Text(a["id"])
	isTask := a.has("complete") || slices.ContainsFunc(membersOfTask, a.has) || len(a) == 1 ||
		strings.HasSuffix(uri, "/tasks/"+url.PathEscape(id))
	if a.IsNoTask() || !isTask {
		return ""
	}
	return id
}

// TaskIn decodes the body of the response to a change into a task, and returns it with its id. uri returns the uri of
// a task. The id is "" if the body holds no task. The task is zero if a member has another type or meaning than in a
// task.
func TaskIn[T any](body []byte, uri func(*T) string) (task T, id string) {
	answer := ReadAnswer(body)
	if wire.Decode(body, &task) != nil || answer.IsNoTask() {
		task = *new(T)
	}
	return task, answer.TaskID(uri(&task))
}

// HasComplete reports whether an object says that a task is complete or not. A null says nothing.
func HasComplete(object []byte) bool {
	var m struct {
		Complete *bool `json:"complete"`
	}
	return wire.Decode(object, &m) == nil && m.Complete != nil
}

// Text returns the text of a JSON string or the digits of a JSON number; "" for anything else.
func Text(raw json.RawMessage) string {
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
