package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

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
func assertRefusedHere(f *fixture.Fixture, err error, fields ...string) {
	f.Helper()
	assert.ErrorIs(f, err, webdelivery.ErrInvalid)
	assert.Equal(f, fields, invalidFields(err))
	assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	assert.Empty(f, f.Srv.Requests())
}

func TestTaskFieldsAreThoseOfTheDocument(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body string
		want webdelivery.Task
	}{
		{
			`{"id":"t-1","uri":"/tasks/t-1","operation":"deploy","status":"done with faults","complete":true,
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
		{`{"id":"t-1"}`, webdelivery.Task{ID: "t-1"}},
		{`{"id":"t-1","uri":null,"operation":null,"status":null,"complete":null,"progress":null,"begin_time":null,
			"end_time":null,"last_updated":null,"user":null,"target":null,"error_info":null}`, webdelivery.Task{ID: "t-1"}},
		{
			`{"id":"t-1","user":{"id":"u-1","uri":null},"error_info":{"details":null,"message":null,"type":null}}`,
			webdelivery.Task{ID: "t-1", User: webdelivery.Reference{ID: "u-1"}, ErrorInfo: &webdelivery.ErrorInfo{}},
		},
		{
			`{"id":"t-1","status":"NEVER_HEARD_OF","new":{"id":"x"},"user":{"id":"u-1","name":"Alice"},"list":[1]}`,
			webdelivery.Task{
				ID: "t-1", Status: "NEVER_HEARD_OF", User: webdelivery.Reference{ID: "u-1"},
			},
		},
		{`{"id":"t-1","complete":true,"end_time":""}`, webdelivery.Task{ID: "t-1", Complete: true}},
	} {
		task, err := fixture.Always(t, []byte(tt.body)).Tasks.Get(t.Context(), "t-1")
		require.NoError(t, err, tt.body)
		assert.Equal(t, tt.want, *task)
	}
}

// A member of another type is an error that names it, in the service's own names.
func TestTaskOfAnotherShape(t *testing.T) {
	t.Parallel()
	for body, reason := range map[string]string{
		`{"id":5}`: "id: ", `{"id":"t-1","user":{"id":5}}`: "user.id: ", `{"id":"t-1","error_info":[]}`: "error_info: ",
		`{"ID":"t-1"}`: "no id", `{"id":"t-2"}`: "another object, whose id is \"t-2\"", `{"id":"t-1","id":"t-1"}`: "duplicate",
		`["t-1"]`: "not a JSON object", " ": "an empty body", "{\"id\":\"\xff\"}": "broken UTF-8",
	} {
		_, err := fixture.Always(t, []byte(body)).Tasks.Get(t.Context(), "t-1")
		require.ErrorIs(t, err, webdelivery.ErrBadResponse, body)
		assert.Regexp(t, `bad response \(Content-Type "application/json"\): (.*: )?`+reason, err.Error())
	}
}

// A zero field is not sent. Since is sent in UTC with milliseconds; more digits are cut off, as rounding up would lose tasks.
func TestTaskListSendsExactlyWhatIsSet(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 2*60*60)
	for _, tt := range []struct {
		options webdelivery.TaskListOptions
		want    url.Values
	}{
		{webdelivery.TaskListOptions{}, url.Values{}},
		{
			webdelivery.TaskListOptions{Since: time.Date(2026, 11, 20, 1, 0, 0, 123999999, east), Page: 3},
			url.Values{"since": {"2026-11-19T23:00:00.123+0000"}, "page": {"3"}},
		},
		{
			webdelivery.TaskListOptions{Since: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), Status: "a&b=c ü+%", Operation: "o;p", Count: 50},
			url.Values{"since": {"2026-01-02T03:04:05.006+0000"}, "status": {"a&b=c ü+%"}, "operation": {"o;p"}, "count": {"50"}},
		},
	} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			_, err := f.Client.Tasks.List(f.Context(), tt.options)
			require.NoError(f, err)
			_, err = readAll(f, tt.options)
			require.NoError(f, err)
			require.Len(f, f.Srv.Requests(), 2)
			for _, r := range f.Srv.Requests() {
				got, err := url.ParseQuery(r.RawQuery)
				require.NoError(f, err)
				assert.Equal(f, tt.want, got)
				assert.Equal(f, "GET /acme/v1/tasks", r.Method+" "+r.Path)
			}
		})
	}
}

// Negative numbers, and times that the pattern cannot express (open point 3).
func TestTaskListRefuses(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		for _, tt := range []struct {
			options webdelivery.TaskListOptions
			fields  []string
		}{
			{webdelivery.TaskListOptions{Page: -2, Count: -3}, []string{"page", "count"}},
			{webdelivery.TaskListOptions{Since: time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -2*3600))}, []string{"since"}},
			{webdelivery.TaskListOptions{Since: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)}, []string{"since"}},
		} {
			_, err := f.Client.Tasks.List(f.Context(), tt.options)
			assertRefusedHere(f, err, tt.fields...)
			ids, err := readAll(f, tt.options)
			assert.Empty(f, ids)
			assertRefusedHere(f, err, tt.fields...)
		}
	})
}

// addTasks adds so many tasks, which end one after the other, a second apart.
func addTasks(f *fixture.Fixture, n int) (ids []string) {
	for i := range n {
		id := fmt.Sprintf("t%03d", i)
		f.Srv.AddTask(testserver.TaskSpec{ID: id, Duration: time.Duration(i+1) * time.Second})
		ids = append(ids, id)
	}
	return ids
}

func idsOfTasks(tasks []*webdelivery.Task) (ids []string) {
	for _, task := range tasks {
		if task == nil {
			ids = append(ids, "")
		} else {
			ids = append(ids, task.ID)
		}
	}
	return ids
}

// WaitAll returns the tasks in the order of the ids. It sends one request for each task, and few more, wherever the last
// task to end is.
func TestWaitAllTakesFewRequests(t *testing.T) {
	t.Parallel()
	mixed := make([]time.Duration, 300) // a second apart; neighbours end at different times
	for i := range mixed {
		mixed[i] = time.Duration(i*7%300+1) * time.Second
	}
	for name, tt := range map[string]struct {
		tasks []time.Duration
		most  int // requests
	}{
		"no task":              {nil, 0},
		"3 tasks of a minute":  {slices.Repeat([]time.Duration{time.Minute}, 3), 60},
		"1000 that have ended": {make([]time.Duration, 1000), 1000},
		"1000 of 5 minutes":    {slices.Repeat([]time.Duration{5 * time.Minute}, 1000), 1300},
		"a second apart":       {mixed, 300 + 300},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				var ids []string
				var last time.Duration
				for i, d := range tt.tasks {
					ids, last = append(ids, f.Srv.AddTask(testserver.TaskSpec{ID: fmt.Sprint("t", i), Duration: d})), max(last, d)
				}
				began := time.Now()
				tasks, err := f.Client.Tasks.WaitAll(f.Context(), ids)
				require.NoError(f, err)
				assert.Equal(f, ids, idsOfTasks(tasks))
				for _, task := range tasks {
					assert.True(f, task.Complete)
				}
				assert.LessOrEqual(f, len(f.Srv.Requests()), tt.most)
				assert.LessOrEqual(f, time.Since(began), last+6*time.Second, "one interval after the last task")
			})
		})
	}
}

// WaitAll polls an id that comes twice once. An id in another letter case may be another task.
func TestWaitAllReadsAnIDOnce(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.Srv.AddTask(testserver.TaskSpec{ID: "a", Duration: 2 * time.Second})
		f.Srv.AddTask(testserver.TaskSpec{ID: "A", Duration: 4 * time.Second})
		tasks, err := f.Client.Tasks.WaitAll(f.Context(), []string{"a", "A", "a"}, webdelivery.WaitInterval(time.Second))
		require.NoError(f, err)
		assert.Equal(f, []string{"a", "A", "a"}, idsOfTasks(tasks))
		assert.Len(f, f.Srv.Requests(), 3+5, "until 2 s, and until 4 s")
	})
}

// If a task failed or cannot be read, WaitAll still waits for the others.
func TestWaitAllJoinsWhatFailed(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		failure := &testserver.TaskError{Message: "no route", Incomplete: true}
		f.Srv.AddTask(testserver.TaskSpec{ID: "fails", Duration: time.Second, Error: failure})
		f.Srv.AddTask(testserver.TaskSpec{ID: "fails-too", Duration: 3 * time.Second, Error: failure})
		f.Srv.AddTask(testserver.TaskSpec{ID: "slow", Duration: time.Minute})
		f.Srv.AddTask(testserver.TaskSpec{ID: "mine", Duration: time.Minute})
		f.AddFault(testserver.Fault{Path: "/tasks/mine", Skip: 1, Status: 403})
		tasks, err := f.Client.Tasks.WaitAll(f.Context(), []string{"fails", "gone", "slow", "mine", "fails-too"}, webdelivery.WaitInterval(time.Second))
		assert.Equal(f, []string{"fails", "", "slow", "mine", "fails-too"}, idsOfTasks(tasks))
		assert.True(f, tasks[2].Complete)
		assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		require.ErrorIs(f, err, webdelivery.ErrForbidden)
		var failed *webdelivery.TaskError
		require.ErrorAs(f, err, &failed)
		assert.Same(f, tasks[0], failed.Task)
		for _, text := range []string{"task fails failed", "waiting for task gone", "waiting for task mine", "task fails-too failed"} {
			assert.ErrorContains(f, err, text)
		}
		assert.NotContains(f, err.Error(), "pending")
		assert.Equal(f, 1, f.Srv.Count("", "/tasks/gone"))
	})
}

// If the context or an outage ends WaitAll, the error contains the number of pending tasks and the errors of the last
// polls. The outage is that of the whole wait.
func TestWaitAllThatEndsEarly(t *testing.T) {
	t.Parallel()
	const patience = 7500 * time.Millisecond
	for _, tt := range []struct {
		down   bool // from 2.5 s on
		outage time.Duration
		is     error
		took   time.Duration
		says   string
	}{
		{
			false, 0, context.DeadlineExceeded, patience,
			"waiting for 20 tasks, still pending (20: t000, t001, t002, t003, t004 and 15 more; 32 polls): context deadline exceeded",
		},
		{true, 0, context.DeadlineExceeded, patience, " and 15 more; 32 polls): context deadline exceeded; the last 20 polls failed: GET"},
		{true, 4 * time.Second, webdelivery.ErrServer, 6 * time.Second, "; 28 polls): nothing could be read for 4s; the last 16 polls failed: GET"},
	} {
		s := fixture.Setup{Options: []webdelivery.Option{webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1})}}
		fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
			var ids []string
			for i := range 20 {
				ids = append(ids, f.Srv.AddTask(testserver.TaskSpec{ID: fmt.Sprintf("t%03d", i), Duration: time.Minute}))
			}
			if tt.down {
				time.AfterFunc(2500*time.Millisecond, func() { f.AddFault(testserver.Fault{Status: 503}) })
			}
			ctx, cancel := context.WithTimeout(f.Context(), patience)
			defer cancel()
			began := time.Now()
			tasks, err := f.Client.Tasks.WaitAll(ctx, ids, webdelivery.WaitMaxOutage(tt.outage), webdelivery.WaitInterval(time.Second))
			assert.Equal(f, tt.took, time.Since(began))
			require.ErrorIs(f, err, tt.is)
			assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
			assert.Equal(f, "t000", tasks[0].ID, "a task that was read")
			assert.Equal(f, tt.down, errors.Is(err, webdelivery.ErrServer))
			assert.ErrorContains(f, err, tt.says)
		})
	}
}

// WaitProgress gets each task that was polled, in the goroutine that waits.
func TestWaitAllReportsEachTask(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		var seen []string
		_, err := f.Client.Tasks.WaitAll(f.Context(), addTasks(f, 3), webdelivery.WaitInterval(5*time.Second), webdelivery.WaitProgress(func(p webdelivery.Progress) {
			seen = append(seen, fmt.Sprint(p.ID, " ", p.Complete))
		}))
		require.NoError(f, err)
		assert.Equal(f, []string{"t000 false", "t001 false", "t002 false", "t000 true", "t001 true", "t002 true"}, seen)
	})
}

// A task that never ends or can never be read hides no other task. While the service is down, WaitAll does not send requests for
// each task.
func TestWaitAllWithATaskThatCannotBeRead(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		var ids []string
		for i := range 4 { // as many as are polled at once
			ids = append(ids, f.Srv.AddTask(testserver.TaskSpec{ID: fmt.Sprint("endless", i), Duration: 1000 * time.Hour}))
		}
		ids = append(append(ids, addTasks(f, 30)...), "broken", "gone")
		f.AddFault(testserver.Fault{Path: "/tasks/broken", Status: 500})
		began := time.Now()
		ctx, cancel := context.WithTimeout(f.Context(), 20*time.Minute)
		defer cancel()
		tasks, err := f.Client.Tasks.WaitAll(ctx, ids)
		assert.Equal(f, 20*time.Minute, time.Since(began))
		require.ErrorIs(f, err, context.DeadlineExceeded)
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		assert.ErrorContains(f, err, "waiting for 36 tasks, still pending (5: endless0, endless1, endless2, endless3, broken; ")
		assert.ErrorContains(f, err, "; waiting for task gone: GET")
		assert.NotContains(f, err.Error(), "\n")
		assert.False(f, tasks[3].Complete)
		assert.Equal(f, []*webdelivery.Task{nil, nil}, tasks[34:])
		for _, task := range tasks[4:34] {
			assert.True(f, task.Complete)
		}
	})
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) { // what is left is down
		ids := append(addTasks(f, 30), "broken")
		f.AddFault(testserver.Fault{Path: "/tasks/broken", Status: 500})
		began := time.Now()
		tasks, err := f.Client.Tasks.WaitAll(f.Context(), ids)
		require.ErrorIs(f, err, webdelivery.ErrServer)
		assert.ErrorContains(f, err, "still pending (1: broken; ")
		assert.InDelta(f, 10*time.Minute+30*time.Second, time.Since(began), float64(time.Minute))
		assert.True(f, tasks[29].Complete)
	})
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		ids := addTasks(f, 500)
		f.AddFault(testserver.Fault{Status: 503})
		ctx, cancel := context.WithTimeout(f.Context(), 10*time.Minute)
		defer cancel()
		_, err := f.Client.Tasks.WaitAll(ctx, ids, webdelivery.WaitInterval(time.Minute))
		require.ErrorIs(f, err, webdelivery.ErrServer)
		assert.LessOrEqual(f, len(f.Srv.Requests()), 11*4*4, "11 rounds of 4 polls with 4 attempts each")
	})
}
