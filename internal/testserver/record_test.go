package testserver_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Every request is recorded, whatever its result.
func TestRequestsAreRecorded(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	f.Fail(testserver.Fault{Path: "/tasks/cut", Cut: testserver.CutAfterRead})
	f.get("/tasks?page=1&count=5", header("X-Test", "a", "b"))
	f.Clock().Advance(time.Minute)
	f.purge(`{"x":1}`, anonymous)
	f.get(f.URL() + "/elsewhere")
	_, err := f.try(http.MethodGet, "/tasks/cut", "")
	require.Error(t, err)

	seen := f.Requests()
	type line struct {
		at                        time.Duration
		method, path, query, body string
		user                      string
		status                    int
	}
	var got []line
	for _, r := range seen[:3] {
		got = append(got, line{r.Time.Sub(noon), r.Method, r.Path, r.RawQuery, string(r.Body), r.User, r.Status})
	}
	assert.Equal(t, []line{
		{0, "GET", "/acme/v1/tasks", "page=1&count=5", "", "alice", 200},
		{time.Minute, "POST", "/acme/v1/cache/purge", "", `{"x":1}`, "", 403},
		{time.Minute, "GET", "/elsewhere", "", "", "alice", 404},
	}, got)
	for _, r := range seen[3:] { // net/http retries a GET by itself if a reused connection breaks
		assert.Equal(t, "/acme/v1/tasks/cut", r.Path)
		assert.Zero(t, r.Status)
	}
	assert.Equal(t, []string{"a", "b"}, seen[0].Header["X-Test"])

	seen[0].Header.Set("X-Test", "changed")
	seen[1].Body[0] = 'X'
	assert.Equal(t, []string{"a", "b"}, f.Requests()[0].Header["X-Test"], "copies are handed out")
	assert.Equal(t, `{"x":1}`, string(f.Requests()[1].Body))
}

// The log gets every request after its end, whatever its result. The server stores none.
func TestRequestLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logged := make(chan testserver.Request, 1)
		f := start(t, testserver.Config{RequestLog: func(r testserver.Request) { logged <- r }})
		f.Fail(testserver.Fault{Path: "/sessions", Cut: testserver.CutAfterRead})
		f.Fail(testserver.Fault{Path: "/tasks/slow", Stall: time.Minute, Status: 200, Body: "12"})

		assert.Equal(t, 403, f.purge(onePurge, anonymous).status)
		refused := <-logged
		assert.Equal(t, 403, refused.Status)
		assert.Equal(t, "/acme/v1/cache/purge", refused.Path)
		assert.Equal(t, onePurge, string(refused.Body))
		assert.Empty(t, refused.User)

		_, err := f.try(http.MethodPost, "/sessions", "")
		require.Error(t, err)
		cut := <-logged
		assert.Zero(t, cut.Status)
		assert.Equal(t, "alice", cut.User)

		began := time.Now()
		go func() { _, _ = f.try(http.MethodGet, "/tasks/slow", "") }()
		slow := <-logged
		assert.Equal(t, time.Minute, time.Since(began), "told when it is over")
		assert.Equal(t, 200, slow.Status)

		assert.Empty(t, f.Requests())
		assert.Zero(t, f.Count("", ""))
	})
}

// Forget drops only the data that grow with the number of requests. Ids continue, and the purge rate, sessions, lists
// and counts stay.
func TestForget(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	list := f.AddNetworkList(testserver.NetworkListSpec{Entries: []string{"192.0.2.1"}})
	f.AddEvents(testserver.Event{Time: noon.Add(-time.Hour), Type: testserver.TypeWAF})
	f.Fail(testserver.Fault{Path: "/elsewhere", Status: 418})
	f.get("/elsewhere")
	id, task := f.login(), f.AddTask(testserver.TaskSpec{})
	f.purge(onePurge)
	first := f.Purged()[0].TransactionID

	f.Forget()

	assert.Empty(t, f.Requests())
	assert.Zero(t, f.Count("", ""))
	assert.Empty(t, f.Purged())
	assert.Zero(t, f.EventCount(noon.Add(-2*time.Hour), noon))
	assert.Equal(t, 404, f.get("/tasks/"+task).status)
	assert.Equal(t, 404, f.get(fmt.Sprintf("/transactions/%d", first)).status)

	assert.Equal(t, 418, f.get("/elsewhere").status)
	assert.Equal(t, 2, f.FaultHits())
	assert.Equal(t, []string{"192.0.2.1"}, f.Entries(list))
	assert.Equal(t, 1, f.Logins())
	assert.Equal(t, 200, f.get("/tasks", session(id)).status)
	assert.NotEqual(t, task, f.AddTask(testserver.TaskSpec{}))
	assert.Equal(t, 201, f.purge(onePurge).status)
	assert.NotEqual(t, first, f.Purged()[0].TransactionID)
	assert.Equal(t, 503, f.purge(onePurge).status, "the one before counts")
}

// All methods are safe for concurrent use.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{PurgeRate: -1})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			remove := f.Fail(testserver.Fault{Path: "/tasks", Count: 1, Status: 503})
			defer remove()
			f.AddTask(testserver.TaskSpec{Duration: time.Second})
			id := f.login()
			assert.Equal(t, 201, f.purge(onePurge, session(id)).status)
			f.Clock().Advance(time.Millisecond)
			f.get("/tasks")
			f.Requests()
			f.Purged()
		})
	}
	all.Wait()
	assert.Equal(t, 20, f.Logins())
	assert.Equal(t, 20, f.Count(http.MethodPost, "/cache/purge"))
	ids := map[int64]bool{}
	for _, p := range f.Purged() {
		ids[p.TransactionID] = true
	}
	assert.Len(t, ids, 20)
}
