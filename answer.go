package webdelivery

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// optionalTask reads the task, or only its id, from the response to a change. It returns nil if there is none (open
// point 21): the service accepted the change, so an unknown shape is not an error. changed lists the ids of the changed
// resources.
func (r *response) optionalTask(changed ...string) (*Task, error) {
	task := taskIn(r.Body, changed)
	if task.ID == "" {
		return nil, nil //nolint:nilnil // no task is not an error
	}
	if !address.Fits(task.ID) { // Get could not read it
		return nil, r.bad("a task whose id cannot be part of an address", nil)
	}
	return &task, nil
}

// membersOfTask lists the members that, in the service document, only a task has.
var membersOfTask = []string{"complete", "operation", "status", "progress", "begin_time", "error_info"}

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
