package objects_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/objects"
)

// An object is of another kind if it has a member of other kinds only, and none of its own kind only. (Service
// document, sections 2.1 and 2.6.)
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	all := map[objects.Kind]string{objects.Task: "task", objects.List: "list", objects.Entry: "entry", objects.EntryInfo: "info"}
	for _, tt := range []struct {
		object string
		as     []objects.Kind // the kinds that it may be of
		member string         // the proof that it is of no other kind
	}{
		{`{"id":"a","operation":"x"}`, []objects.Kind{objects.Task}, "operation"},
		{`{"id":"a","error_info":null}`, []objects.Kind{objects.Task}, "error_info"},
		{`{"name":"n"}`, []objects.Kind{objects.List}, "name"},
		{`{"entry":"192.0.2.1"}`, []objects.Kind{objects.Entry}, "entry"},
		{`{"network_list_uri":"/n"}`, []objects.Kind{objects.EntryInfo}, "network_list_uri"},
		{`{"type":"IP"}`, []objects.Kind{objects.List, objects.EntryInfo}, "type"},
		{`{"creation_timestamp":""}`, []objects.Kind{objects.List, objects.Entry}, "creation_timestamp"},
		{`{"id":"a","uri":"/u","new":1}`, []objects.Kind{objects.Task, objects.List, objects.Entry, objects.EntryInfo}, ""},
		{`{}`, []objects.Kind{objects.Task, objects.List, objects.Entry, objects.EntryInfo}, ""},
		{`{"name":"n","operation":"x"}`, []objects.Kind{objects.List, objects.Task}, "operation"},
		{`{"type":"IP","operation":"x"}`, []objects.Kind{objects.Task}, "operation"}, // type may belong to several
		{`{"new":{"operation":"x"},"name":"n"}`, []objects.Kind{objects.List}, "name"},
	} {
		for kind, name := range all {
			want := tt.member
			for _, may := range tt.as {
				if may == kind {
					want = ""
				}
			}
			assert.Equal(t, want, objects.Foreign(kind, []byte(tt.object)), "%s as %s", tt.object, name)
		}
	}
}

// Which responses to a change are a task, and where its id is (open point 21).
func TestTasksInAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body, uri, id string
		noTask        bool
	}{
		{`{"task_id":"t"}`, "", "t", false},
		{`{"task_id":7,"id":"x","name":"n"}`, "", "7", true},
		{`{"id":"t"}`, "", "t", false},
		{`{"id":9007199254740993}`, "", "9007199254740993", false},
		{`{"id":"t","new":null}`, "", "t", false},
		{`{"id":"t","new":1}`, "", "", false},
		{`{"id":"t","uri":"u"}`, "/v1/tasks/t", "t", false},
		{`{"id":"a b","uri":"u"}`, "/v1/tasks/a%20b", "a b", false},
		{`{"id":"t","uri":"u"}`, "/v1/tasks/s", "", false},
		{`{"id":"t","operation":"x"}`, "", "t", false},
		{`{"id":"t","status":"x"}`, "", "t", false},
		{`{"id":"t","begin_time":"x"}`, "", "t", false},
		{`{"id":"t","complete":false,"new":1}`, "", "t", false},
		{`{"id":"t","operation":"x","name":"n"}`, "", "", true},
		{`{"id":"t","complete":true,"name":"n"}`, "", "t", false},
		{`{"id":"t","complete":null,"name":"n"}`, "", "", true},
		{`{"id":null,"operation":"x"}`, "", "", false},
		{`{"id":{},"operation":"x"}`, "", "", false},
		{`{"operation":"x"}`, "", "", false},
		{`{"id":"s","id":"t"}`, "", "", false},
		{`{"id":"t"`, "", "", false},
		{`[{"id":"t"}]`, "", "", false},
		{`null`, "/v1/tasks/", "", false},
		{``, "", "", false},
	} {
		answer := objects.ReadAnswer([]byte(tt.body))
		assert.Equal(t, tt.id, answer.TaskID(tt.uri), "%s %s", tt.body, tt.uri)
		assert.Equal(t, tt.noTask, answer.IsNoTask(), tt.body)
	}
}

// Text returns the text of a string and the digits of a number.
func TestTexts(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"a\n"`: "a\n", `7`: "7", `-1.50e3`: "-1.50e3", `9007199254740993`: "9007199254740993", `true`: "", `{}`: "", `["a"]`: "", ``: "", `null`: "", `x`: "",
	} {
		assert.Equal(t, want, objects.Text([]byte(raw)), raw)
	}
}

// An object that lacks a required member, or proves to be of another kind, is not what was requested.
func TestWhyAnObjectIsAnother(t *testing.T) {
	t.Parallel()
	const list = `{"id":"a","name":"n"}`
	assert.Equal(t, "no id", objects.Problem(objects.List, []byte(list), "id", true))
	assert.Empty(t, objects.Problem(objects.List, []byte(list), "", false))
	assert.Equal(t, "another resource, which has name", objects.Problem(objects.Task, []byte(list), "", false))
	assert.Empty(t, objects.Problem(objects.Task, []byte(list), "", true), "it has a member of a task, too")
}

// TaskIn decodes a task. If the object is no task, or a member has another type, only the id counts (open point 21).
func TestTasksThatAreDecoded(t *testing.T) {
	t.Parallel()
	type task struct {
		ID, URI, Status string
	}
	for body, want := range map[string]struct {
		task task
		id   string
	}{
		`{"id":"t","status":"x"}`:                 {task{ID: "t", Status: "x"}, "t"},
		`{"task_id":"s","id":"t","status":"x"}`:   {task{ID: "t", Status: "x"}, "s"},
		`{"id":"t","uri":"/tasks/t","new":1}`:     {task{ID: "t", URI: "/tasks/t"}, "t"},
		`{"id":7,"status":"x"}`:                   {task{}, "7"},
		`{"id":"t","name":"n","task_id":"s"}`:     {task{}, "s"},
		`{"id":"t","name":"n","uri":"/tasks/t"}`:  {task{}, ""},
		`{"id":"t","uri":"/lists/t","status":""}`: {task{ID: "t", URI: "/lists/t"}, "t"},
		`<html>`: {task{}, ""},
		``:       {task{}, ""},
	} {
		got, id := objects.TaskIn([]byte(body), func(t *task) string { return t.URI })
		assert.Equal(t, want.task, got, body)
		assert.Equal(t, want.id, id, body)
	}
}

// Only true and false say whether a task is complete.
func TestWhatSaysWhetherATaskIsComplete(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]bool{
		`{"complete":true}`: true, `{"complete":false}`: true, `{"complete":null}`: false, `{"complete":"yes"}`: false,
		`{"completed":true}`: false, `{"in":{"complete":true}}`: false, `{}`: false, `[]`: false, ``: false,
	} {
		assert.Equal(t, want, objects.HasComplete([]byte(object)), object)
	}
}
