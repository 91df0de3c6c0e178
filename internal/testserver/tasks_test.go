package testserver_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Section 2.1: error_info is present if the task ended with an error condition. Absent members are omitted.
func TestSection21TaskEndings(t *testing.T) {
	t.Parallel()
	const at = `"begin_time":"2026-11-20T12:00:00.000Z","last_updated":"2026-11-20T12:00:00.000Z"`
	failure := &testserver.TaskError{Message: "deployment failed", Type: "deploy", Details: []string{"node a", "node b"}}
	for name, tc := range map[string]struct {
		spec testserver.TaskSpec
		want string
	}{
		"complete at once": {
			testserver.TaskSpec{}, `"uri":"/tasks/t","status":"COMPLETE","complete":true,"progress":100,"end_time":"2026-11-20T12:00:00.000Z"`,
		},
		"never complete": {
			testserver.TaskSpec{Duration: -1, Error: failure}, `"uri":"/tasks/t","status":"IN_PROGRESS","complete":false,"progress":0`,
		},
		"not failed yet": {
			testserver.TaskSpec{Duration: 1e9, Error: failure}, `"uri":"/tasks/t","status":"IN_PROGRESS","complete":false,"progress":0`,
		},
		"failed": {
			testserver.TaskSpec{Error: failure}, `"uri":"/tasks/t","status":"FAILED","complete":true,"progress":100,
			"end_time":"2026-11-20T12:00:00.000Z","error_info":{"message":"deployment failed","type":"deploy",
			"details":[{"message":"node a"},{"message":"node b"}]}`,
		},
		"failed and not complete": {
			testserver.TaskSpec{Error: &testserver.TaskError{Message: "m", Incomplete: true}}, `"uri":"/tasks/t",
			"status":"FAILED","complete":false,"progress":100,"end_time":"2026-11-20T12:00:00.000Z","error_info":{"message":"m"}`,
		},
		"own status, foreign uri": {
			testserver.TaskSpec{Status: "queued", ForeignURI: "https://evil.example.net/t"}, `"uri":"https://evil.example.net/t",
			"status":"queued","complete":true,"progress":100,"end_time":"2026-11-20T12:00:00.000Z"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{})
			tc.spec.ID = "t"
			assert.Equal(t, "t", f.AddTask(tc.spec))
			assert.JSONEq(t, `{"id":"t",`+at+`,`+tc.want+`}`, f.get("/tasks/t").body)
		})
	}
}

// Open point 29: following next_uri in any of its forms returns every task once.
func TestSection26FollowingNextURI(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"relative", "prefixed", "absolute"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{BasePath: "/root", Dialect: testserver.Dialect{NextURI: form}})
			for range 5 {
				f.AddTask(testserver.TaskSpec{})
			}
			host, err := url.Parse(f.URL())
			require.NoError(t, err)
			front := map[string]string{"relative": f.URL() + "/acme/v1", "prefixed": "http://" + host.Host}[form]
			seen := map[string]int{}
			next, more := f.URL()+"/acme/v1/tasks?count=2", true
			for more {
				envelope := f.get(next).object(t)
				items, _ := envelope["items"].([]any)
				for _, item := range items {
					task, _ := item.(map[string]any)
					seen[fmt.Sprint(task["id"])]++
				}
				var uri string
				uri, more = envelope["next_uri"].(string)
				next = front + uri
			}
			assert.Equal(t, map[string]int{"task-1": 1, "task-2": 1, "task-3": 1, "task-4": 1, "task-5": 1}, seen)
		})
	}
}
