package webdeliverytest_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// Many servers run in parallel, on TCP and in memory. They share nothing, and each stops with its test.
func TestServersSideBySide(t *testing.T) {
	t.Parallel()
	for i := range 40 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			var options []webdeliverytest.Option
			var conn net.Conn  // to a server on TCP; another server may get the port later
			t.Cleanup(func() { // runs after that of the server
				if conn != nil {
					_, err := conn.Read(make([]byte, 1))
					require.Error(t, err, "closed by the server")
					require.NoError(t, conn.Close())
				}
			})
			if i%2 == 0 {
				options = append(options, webdeliverytest.InMemory())
			}
			srv := webdeliverytest.NewServer(t, options...)
			id := srv.AddTask(webdeliverytest.TaskSpec{Operation: fmt.Sprint("operation ", i)})
			task, err := srv.Client(t).Tasks.Get(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprint("operation ", i), task.Operation)
			assert.Equal(t, 1, srv.Count("", ""))
			if i%2 != 0 {
				conn, err = new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(srv.URL, "http://"))
				require.NoError(t, err)
			}
		})
	}
}

// A server belongs to the bubble in which it was started. Its cleanup runs there and leaves no goroutine, even if
// requests are still in flight.
func TestInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var srv *webdeliverytest.Server
		t.Cleanup(func() { // runs after that of the server
			_, err := srv.HTTPClient().Get(srv.URL)
			assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		})
		srv = webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		client := srv.Client(t)
		srv.Fail(webdeliverytest.FaultRule{Path: "/tasks/slow", Delay: time.Hour})
		go func() {
			_, err := client.Tasks.Get(t.Context(), "slow")
			assert.Error(t, err)
		}()
		_, err := client.Tasks.List(t.Context(), webdelivery.TaskListOptions{})
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, 2, srv.Count(http.MethodGet, "/tasks/**"))
	})
}

// Clients as each kind of user; the first user is the default.
func TestClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory(), webdeliverytest.WithUsers(
			webdeliverytest.User{Name: "carol", Password: "secret-one"},
			webdeliverytest.User{Name: "dave", Password: "secret-two"},
		))
		assert.Equal(t, "carol", srv.Username)
		assert.Equal(t, "secret-one", srv.Password)
		for _, client := range []*webdelivery.Client{
			srv.Client(t, webdelivery.WithUserAgent("mine/1")),
			srv.ClientAs(t, webdelivery.SessionAuth(srv.Username, srv.Password)),
			srv.ClientAs(t, webdelivery.BasicAuth("dave", "secret-two")),
		} {
			_, err := client.Tasks.List(t.Context(), webdelivery.TaskListOptions{})
			require.NoError(t, err)
		}
		_, err := srv.ClientAs(t, webdelivery.BasicAuth("dave", "wrong")).Tasks.List(t.Context(), webdelivery.TaskListOptions{})
		require.ErrorIs(t, err, webdelivery.ErrUnauthorized)

		type line struct{ user, path, agent string }
		var got []line
		for _, r := range srv.Requests() {
			got = append(got, line{r.User, r.Path, r.Header.Get("User-Agent")})
		}
		sdk := "webdelivery-go/" + webdelivery.Version
		assert.Equal(t, []line{
			{"carol", "/acme/v1/tasks", "mine/1"},
			{"carol", "/acme/v1/sessions", sdk},
			{"carol", "/acme/v1/tasks", sdk},
			{"dave", "/acme/v1/tasks", sdk},
			{"", "/acme/v1/tasks", sdk},
		}, got)
		assert.Equal(t, 1, srv.Logins())
	})
}

// The clock of the server is that of the process plus the advances.
func TestClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		began := time.Now()
		assert.Equal(t, began, srv.Clock.Now())
		id := srv.AddTask(webdeliverytest.TaskSpec{Duration: time.Hour})
		time.Sleep(20 * time.Minute) // fake time
		srv.Clock.Advance(40*time.Minute - 1)
		assert.Equal(t, began.Add(time.Hour-1), srv.Clock.Now())
		client := srv.Client(t)
		task, err := client.Tasks.Get(t.Context(), id)
		require.NoError(t, err)
		assert.False(t, task.Complete)
		srv.Clock.Advance(1)
		task, err = client.Tasks.Get(t.Context(), id)
		require.NoError(t, err)
		assert.True(t, task.Complete)
	})
}
