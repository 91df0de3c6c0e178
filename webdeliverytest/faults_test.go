package webdeliverytest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// An unsteady service: the same requests fail in each run, and with retries every call of the SDK succeeds.
func TestFailWithProbability(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (statuses []int) {
		t.Run("", func(t *testing.T) {
			inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, _ *webdelivery.Client) {
				client := srv.Client(t, webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 20}))
				srv.AddTask(webdeliverytest.TaskSpec{ID: "t"})
				srv.Fail(webdeliverytest.FaultRule{Probability: 0.3, Seed: seed, Status: 503})
				for range 60 {
					_, err := client.Tasks.Get(t.Context(), "t")
					require.NoError(t, err)
				}
				for _, r := range srv.Requests() {
					statuses = append(statuses, r.Status)
				}
			})
		})
		return statuses
	}
	first := run(2)
	assert.Greater(t, len(first), 60)
	assert.Equal(t, first, run(2))
	assert.NotEqual(t, first, run(3))
}

// Each fault of a rule has its effect on the client.
func TestFailActs(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, _ *webdelivery.Client) {
		client := srv.Client(t, webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
		srv.AddTask(webdeliverytest.TaskSpec{ID: "t", Operation: "deploy"})
		get := func(rule webdeliverytest.FaultRule) (*webdelivery.Task, time.Duration, error) {
			defer srv.Fail(rule)()
			began := time.Now()
			task, err := client.Tasks.Get(t.Context(), "t")
			return task, time.Since(began), err
		}
		task, took, err := get(webdeliverytest.FaultRule{Delay: 5 * time.Second})
		require.NoError(t, err)
		assert.Equal(t, 5*time.Second, took)
		assert.Equal(t, "deploy", task.Operation)

		task, took, err = get(webdeliverytest.FaultRule{Body: `{"id":"T"}`, Dribble: time.Second})
		require.NoError(t, err)
		assert.Equal(t, 10*time.Second, took, "ten bytes")
		assert.Equal(t, "T", task.ID)

		_, took, err = get(webdeliverytest.FaultRule{Stall: time.Second, CutAfter: 1})
		require.NoError(t, err)
		assert.Equal(t, time.Second, took)

		var e *webdelivery.Error
		_, _, err = get(webdeliverytest.FaultRule{Status: 404, Body: `{"message":"gone fishing"}`, Header: http.Header{"X-Why": {"fish"}}})
		require.ErrorAs(t, err, &e)
		assert.Equal(t, "gone fishing", e.Description)
		assert.Equal(t, "fish", e.Header.Get("X-Why"))

		_, _, err = get(webdeliverytest.FaultRule{Cut: webdeliverytest.CutBody})
		require.Error(t, err)

		defer srv.Fail(webdeliverytest.FaultRule{Status: 502, Execute: true})()
		_, err = client.Sessions.Create(t.Context())
		require.ErrorIs(t, err, webdelivery.ErrServer)
		assert.Equal(t, 1, srv.Logins())
	})
}
