package testserver_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Section 2.1: every field, as time passes.
func TestSection21TaskFields(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.AddTask(testserver.TaskSpec{
		ID: "t1", Operation: "deploy", Duration: 10 * time.Second,
		User:   testserver.Ref{ID: "alice", URI: "/users/alice"},
		Target: testserver.Ref{ID: "l1", URI: "/config/networklists/l1"},
	})
	always := `"id":"t1","uri":"/tasks/t1","operation":"deploy","begin_time":"2026-11-20T12:00:00.000Z",
		"user":{"id":"alice","uri":"/users/alice"},"target":{"id":"l1","uri":"/config/networklists/l1"},`
	for _, tc := range []struct {
		advance time.Duration
		want    string
	}{
		{0, `"status":"IN_PROGRESS","complete":false,"progress":0,"last_updated":"2026-11-20T12:00:00.000Z"`},
		{2550 * time.Millisecond, `"status":"IN_PROGRESS","complete":false,"progress":25,"last_updated":"2026-11-20T12:00:02.500Z"`},
		{7449 * time.Millisecond, `"status":"IN_PROGRESS","complete":false,"progress":99,"last_updated":"2026-11-20T12:00:09.900Z"`},
		{time.Millisecond, `"status":"COMPLETE","complete":true,"progress":100,
			"last_updated":"2026-11-20T12:00:10.000Z","end_time":"2026-11-20T12:00:10.000Z"`},
		{time.Hour, `"status":"COMPLETE","complete":true,"progress":100,
			"last_updated":"2026-11-20T12:00:10.000Z","end_time":"2026-11-20T12:00:10.000Z"`},
	} {
		f.Clock().Advance(tc.advance)
		assert.JSONEq(t, "{"+always+tc.want+"}", f.get("/tasks/t1").body)
	}
}

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

// Section 4.1: 404 when the task does not exist.
func TestSection41UnknownTask(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.AddTask(testserver.TaskSpec{ID: "task-1"})
	assert.Equal(t, "task-2", f.AddTask(testserver.TaskSpec{}), "an id that is not taken")
	assert.Equal(t, 404, f.get("/tasks/task-3").status)
	assert.Equal(t, 200, f.get("/tasks/task-2").status)
}

// Section 4.1: since, page, count, status, operation; section 2.6: the envelope.
func TestSection41TaskFilters(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.AddTask(testserver.TaskSpec{ID: "b", Operation: "deploy"})
	f.AddTask(testserver.TaskSpec{ID: "a", Operation: "deploy", Error: &testserver.TaskError{Message: "m"}})
	f.Clock().Advance(time.Second)
	f.AddTask(testserver.TaskSpec{ID: "c", Operation: "remove all"})
	for query, want := range map[string][]string{
		"":                                      {"c", "a", "b"}, // updated last first, then by id
		"?status=COMPLETE":                      {"c", "b"},
		"?status=complete":                      {},
		"?operation=remove+all":                 {"c"},
		"?operation=deploy&status=FAILED":       {"a"},
		"?since=2026-11-20T12:00:00.000Z":       {"c", "a", "b"},
		"?since=2026-11-20T12:00:00.001Z":       {"c"},
		"?since=2026-11-20T12:00:01.000Z":       {"c"},
		"?since=2026-11-20T12:00:01.001Z":       {},
		"?since=2026-11-20":                     {"c", "a", "b"},
		"?since=2026-11-21":                     {},
		"?count=2":                              {"c", "a"},
		"?count=2&page=2":                       {"b"},
		"?count=2&page=3":                       {},
		"?count=2147483647&page=2147483647":     {},
		"?page=1":                               {"c", "a", "b"},
		"?since=2026-11-20T12:00:01.000%2B0000": {"c"},
	} {
		ids := []string{}
		items, _ := f.get("/tasks" + query).object(t)["items"].([]any)
		for _, item := range items {
			task, _ := item.(map[string]any)
			ids = append(ids, fmt.Sprint(task["id"]))
		}
		assert.Equal(t, want, ids, query)
	}
}

// Section 4.1: 400 for invalid query parameters.
func TestSection41InvalidParameters(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	for _, query := range []string{
		"page=0", "page=-1", "page=x", "page=1.0", "page=%2B1", "page=99999999999999999999", "count=0", "count=-5", "count=%201",
		"since=yesterday", "since=1763640000", "since=2026-11-20T12:00:00", "since=2026-11-20T12:00:00Z",
		"since=2026-11-20T12:00:00.00Z", "since=2026-11-20T12:00:00.0000Z", "since=2026-11-20T12:00:00,000Z",
		"since=2026-11-20T12:00:00.000", "since=2026-11-20T12:00:00.000%2B00:00", "since=2026-11-20T12:00:00.000%2B0200",
		"since=2026-11-20T12:00:00.000+0000", // an unescaped plus is a space
		"since=2026-11-20T2:00:00.000Z", "since=2026-11-20T24:00:00.000Z", "since=2026-02-30", "since=2026-11-20T", "since=20261120",
	} {
		r := f.get("/tasks?" + query)
		assert.Equal(t, http.StatusBadRequest, r.status, query)
		assert.Equal(t, "400", fmt.Sprint(r.object(t)["code"]), query)
	}
}

// Section 2.6: the paged envelope; page_index is 1-based, prev_uri and next_uri are null at the ends.
func TestSection26Envelope(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	assert.JSONEq(t, `{"uri":"/tasks?count=10&page=1","items":[],"total":0,"has_more":false,"page_count":0,"page_index":1,
		"prev_uri":null,"next_uri":null}`, f.get("/tasks").body)
	for range 5 {
		f.AddTask(testserver.TaskSpec{Operation: "o&p"})
	}
	for query, want := range map[string]string{
		"count=2": `{"uri":"/tasks?count=2&page=1","total":5,"has_more":true,"page_count":3,"page_index":1,
			"prev_uri":null,"next_uri":"/tasks?count=2&page=2"}`,
		"page=2&count=2&operation=o%26p": `{"uri":"/tasks?count=2&operation=o%26p&page=2","total":5,"has_more":true,"page_count":3,
			"page_index":2,"prev_uri":"/tasks?count=2&operation=o%26p&page=1","next_uri":"/tasks?count=2&operation=o%26p&page=3"}`,
		"page=3&count=2": `{"uri":"/tasks?count=2&page=3","total":5,"has_more":false,"page_count":3,"page_index":3,
			"prev_uri":"/tasks?count=2&page=2","next_uri":null}`,
		"count=5": `{"uri":"/tasks?count=5&page=1","total":5,"has_more":false,"page_count":1,"page_index":1,
			"prev_uri":null,"next_uri":null}`,
	} {
		var got map[string]any
		r := f.get("/tasks?" + query)
		got = r.object(t)
		delete(got, "items")
		assert.JSONEq(t, want, marshal(t, got), query)
	}
}

// Open points 2 and 29, and timestamps: the dialects of responses.
func TestSection41TaskDialects(t *testing.T) {
	t.Parallel()
	const members = `"id":"t","status":"COMPLETE","complete":true,"progress":100`
	times := func(zone string) string {
		const at = "2026-11-20T12:00:00.000"
		return fmt.Sprintf(`,"begin_time":"%[1]s%[2]s","end_time":"%[1]s%[2]s","last_updated":"%[1]s%[2]s"`, at, zone)
	}
	for name, tc := range map[string]struct {
		dialect testserver.Dialect
		path    string
		want    string // %s is scheme and host
	}{
		"array":       {testserver.Dialect{TaskPage: "array"}, "/tasks", `[{` + members + `,"uri":"/tasks/t"` + times("Z") + `}]`},
		"tasks":       {testserver.Dialect{TaskPage: "tasks"}, "/tasks", `{"tasks":[{` + members + `,"uri":"/tasks/t"` + times("Z") + `}]}`},
		"prefix":      {testserver.Dialect{TasksPrefix: "/ops"}, "/ops/tasks/t", `{` + members + `,"uri":"/ops/tasks/t"` + times("Z") + `}`},
		"prefixed":    {testserver.Dialect{NextURI: "prefixed"}, "/tasks/t", `{` + members + `,"uri":"/root/acme/v1/tasks/t"` + times("Z") + `}`},
		"absolute":    {testserver.Dialect{NextURI: "absolute"}, "/tasks/t", `{` + members + `,"uri":"%s/root/acme/v1/tasks/t"` + times("Z") + `}`},
		"zone number": {testserver.Dialect{Timestamps: "+0000"}, "/tasks/t", `{` + members + `,"uri":"/tasks/t"` + times("+0000") + `}`},
		"no zone":     {testserver.Dialect{Timestamps: "none"}, "/tasks/t", `{` + members + `,"uri":"/tasks/t"` + times("") + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, testserver.Config{BasePath: "root", Dialect: tc.dialect})
			f.AddTask(testserver.TaskSpec{ID: "t"})
			want := tc.want
			if name == "absolute" {
				u, err := url.Parse(f.URL())
				require.NoError(t, err)
				want = fmt.Sprintf(want, "http://"+u.Host)
			}
			assert.JSONEq(t, want, f.get(tc.path).body)
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
