package webdelivery_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// answerWith makes the service answer the next requests of one path with these bodies, one after the other.
func answerWith(f *fixture, path string, bodies ...string) {
	for _, body := range bodies {
		f.fail(testserver.Fault{Path: path, Count: 1, Status: http.StatusOK, Body: body})
	}
}

// invalidFields returns the invalid fields of an error, in order.
func invalidFields(err error) []string {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var fields []string
		for _, e := range joined.Unwrap() {
			fields = append(fields, invalidFields(e)...)
		}
		return fields
	}
	var invalid *webdelivery.ValidationError
	if errors.As(err, &invalid) {
		return []string{invalid.Field}
	}
	return nil
}

// assertRefusedHere checks that the client refused a request because of these fields, and did not send it.
func assertRefusedHere(f *fixture, err error, fields ...string) {
	f.Helper()
	assert.ErrorIs(f, err, webdelivery.ErrInvalid)
	assert.Equal(f, fields, invalidFields(err))
	assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	assert.Empty(f, f.srv.Requests())
}

func TestTaskFieldsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		want       webdelivery.Task
	}{
		{
			"all", `{"id":"t-1","uri":"/tasks/t-1","operation":"deploy","status":"done with faults","complete":true,
			"progress":42,"begin_time":"2026-11-20T08:30:00.250Z","end_time":"2026-11-20T08:31:00Z",
			"last_updated":"2026-11-20T08:30:59Z","user":{"id":"u-1","uri":"/users/u-1"},
			"target":{"id":"n-1","uri":"/config/networklists/n-1"},
			"error_info":{"details":[{"message":"first"},{"message":"second"}],"message":"it broke","type":"BROKEN"}}`,
			webdelivery.Task{
				ID: "t-1", URI: "/tasks/t-1", Operation: "deploy", Status: "done with faults", Complete: true, Progress: 42,
				BeginTime:   time.Date(2026, 11, 20, 8, 30, 0, 250e6, time.UTC),
				EndTime:     time.Date(2026, 11, 20, 8, 31, 0, 0, time.UTC),
				LastUpdated: time.Date(2026, 11, 20, 8, 30, 59, 0, time.UTC),
				User:        webdelivery.Reference{ID: "u-1", URI: "/users/u-1"},
				Target:      webdelivery.Reference{ID: "n-1", URI: "/config/networklists/n-1"},
				ErrorInfo: &webdelivery.ErrorInfo{
					Message: "it broke", Type: "BROKEN",
					Details: []webdelivery.ErrorDetail{{Message: "first"}, {Message: "second"}},
				},
			},
		},
		{"absent", `{"id":"t-1"}`, webdelivery.Task{ID: "t-1"}},
		{"null", `{"id":"t-1","uri":null,"operation":null,"status":null,"complete":null,"progress":null,"begin_time":null,
			"end_time":null,"last_updated":null,"user":null,"target":null,"error_info":null}`, webdelivery.Task{ID: "t-1"}},
		{
			"null inside", `{"id":"t-1","user":{"id":"u-1","uri":null},"error_info":{"details":null,"message":null,"type":null}}`,
			webdelivery.Task{ID: "t-1", User: webdelivery.Reference{ID: "u-1"}, ErrorInfo: &webdelivery.ErrorInfo{}},
		},
		{
			"unknown members", `{"id":"t-1","status":"NEVER_HEARD_OF","new":{"id":"x"},"user":{"id":"u-1","name":"Alice"},"list":[1]}`,
			webdelivery.Task{ID: "t-1", Status: "NEVER_HEARD_OF", User: webdelivery.Reference{ID: "u-1"}},
		},
		{
			"complete, without an end", `{"id":"t-1","complete":true,"end_time":""}`,
			webdelivery.Task{ID: "t-1", Complete: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, setup{}, func(f *fixture) {
				answerWith(f, "/tasks/t-1", tt.body)
				task, err := f.client.Tasks.Get(f.Context(), "t-1")
				require.NoError(f, err)
				assert.Equal(f, tt.want, *task)
			})
		})
	}
}

func TestTaskListSendsExactlyWhatIsSet(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 2*60*60)
	tests := []struct {
		name    string
		options webdelivery.TaskListOptions
		want    url.Values
	}{
		{"nothing", webdelivery.TaskListOptions{}, url.Values{}},
		{"MaxPages is not sent", webdelivery.TaskListOptions{MaxPages: 3}, url.Values{}},
		{"page", webdelivery.TaskListOptions{Page: 3}, url.Values{"page": {"3"}}},
		{"count", webdelivery.TaskListOptions{Count: 50}, url.Values{"count": {"50"}}},
		{
			"since in another zone",
			webdelivery.TaskListOptions{Since: time.Date(2026, 11, 20, 10, 30, 0, 0, east)},
			url.Values{"since": {"2026-11-20T08:30:00.000+0000"}},
		},
		{
			"since on the day before in UTC",
			webdelivery.TaskListOptions{Since: time.Date(2026, 11, 20, 1, 0, 0, 0, east)},
			url.Values{"since": {"2026-11-19T23:00:00.000+0000"}},
		},
		// More digits than the pattern has are cut off: rounding up would lose tasks.
		{
			"since with nanoseconds",
			webdelivery.TaskListOptions{Since: time.Date(2026, 11, 20, 8, 30, 0, 123999999, time.UTC)},
			url.Values{"since": {"2026-11-20T08:30:00.123+0000"}},
		},
		{"all", webdelivery.TaskListOptions{
			Since: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), Status: "a&b=c ü+%",
			Operation: "o;p", Page: 1, Count: 1,
		}, url.Values{
			"since": {"2026-01-02T03:04:05.006+0000"}, "status": {"a&b=c ü+%"},
			"operation": {"o;p"}, "page": {"1"}, "count": {"1"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, setup{}, func(f *fixture) {
				_, err := f.client.Tasks.List(f.Context(), tt.options)
				require.NoError(f, err)
				for range f.client.Tasks.All(f.Context(), tt.options) {
					assert.Fail(f, "All yields a task")
				}
				require.Len(f, f.srv.Requests(), 2)
				for _, r := range f.srv.Requests() {
					got, err := url.ParseQuery(r.RawQuery)
					require.NoError(f, err)
					assert.Equal(f, tt.want, got)
					assert.Equal(f, "GET /acme/v1/tasks", r.Method+" "+r.Path)
				}
			})
		})
	}
}

// Negative numbers, and times that the pattern cannot express (open point 3).
func TestTaskListRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		options webdelivery.TaskListOptions
		fields  []string
	}{
		{webdelivery.TaskListOptions{Page: -1}, []string{"page"}},
		{webdelivery.TaskListOptions{Count: -1}, []string{"count"}},
		{webdelivery.TaskListOptions{MaxPages: -1}, []string{"MaxPages"}},
		{webdelivery.TaskListOptions{Page: -2, Count: -3}, []string{"page", "count"}},
		{webdelivery.TaskListOptions{Since: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, []string{"since"}},
		{webdelivery.TaskListOptions{Since: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -2*3600))}, []string{"since"}},
		{webdelivery.TaskListOptions{Since: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}, []string{"since"}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.fields, " "), func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, setup{}, func(f *fixture) {
				_, err := f.client.Tasks.List(f.Context(), tt.options)
				assertRefusedHere(f, err, tt.fields...)
				ids, err := readAll(f, tt.options)
				assert.Empty(f, ids)
				assertRefusedHere(f, err, tt.fields...)
			})
		})
	}
}

// The prefix is escaped in the SDK's dialect, as in a path; the fake has it unescaped.
func TestTaskPathsFollowTheDialect(t *testing.T) {
	t.Parallel()
	for prefix, plain := range map[string]string{
		"/ops": "/ops", "/ops/v2": "/ops/v2", "/long%20running": "/long running", "/a,b": "/a,b",
	} {
		t.Run(plain, func(t *testing.T) {
			t.Parallel()
			s := setup{
				server:  testserver.Config{Dialect: testserver.Dialect{TasksPrefix: plain}},
				options: []webdelivery.Option{webdelivery.WithDialect(webdelivery.Dialect{TasksPrefix: prefix})},
			}
			inFakeTime(t, s, func(f *fixture) {
				for _, id := range []string{"a", "b"} {
					f.srv.AddTask(testserver.TaskSpec{ID: id})
				}
				_, err := f.client.Tasks.Get(f.Context(), "a")
				require.NoError(f, err)
				_, err = f.client.Tasks.Wait(f.Context(), "a")
				require.NoError(f, err)
				_, err = f.client.Tasks.List(f.Context(), webdelivery.TaskListOptions{})
				require.NoError(f, err)
				ids, err := readAll(f, webdelivery.TaskListOptions{Count: 1})
				require.NoError(f, err)
				assert.Equal(f, []string{"a", "b"}, ids)
				for _, r := range f.srv.Requests() {
					assert.Regexp(f, "^/acme/v1"+prefix+"/tasks(/a)?$", r.Path)
				}
			})
		})
	}
}
