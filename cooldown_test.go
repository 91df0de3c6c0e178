package webdelivery_test

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// wrong are credentials that the service rejects, of each kind.
var wrong = map[string]webdelivery.Auth{
	"Basic":   webdelivery.BasicAuth(username, "wrong-password"),
	"session": webdelivery.SessionAuth(username, "wrong-password"),
	"token":   webdelivery.SessionToken("expired"),
}

// 18 parallel calls with rejected credentials send one request, whatever they do, and the errors of the others say
// so. No error matches ErrInvalid, and no call changes anything.
func TestRefusedCredentialsSendOneRequest(t *testing.T) {
	t.Parallel()
	for kind, auth := range wrong {
		for _, op := range operations.All() {
			if kind == "token" && op.Kind == operations.LogsIn {
				continue // it sends no password
			}
			t.Run(kind+" "+op.String(), func(t *testing.T) {
				t.Parallel()
				inReliableService(t, setup{}, func(f *fixture) {
					use, err := op.Prepare(f.Context(), operations.Fill(f.srv, f.client))
					require.NoError(f, err)
					stranger := f.newClient(f.srv.URL(), setup{auth: auth})
					before := len(f.srv.Requests())
					var wg sync.WaitGroup
					for range 18 {
						wg.Go(func() {
							own := *use
							err := op.Run(f.Context(), stranger, &own)
							assert.ErrorIs(f, err, webdelivery.ErrUnauthorized)
							assert.NotErrorIs(f, err, webdelivery.ErrInvalid)
							if op.Changes() {
								assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err), "%v", err)
							}
						})
					}
					wg.Wait()
					assert.Len(f, f.srv.Requests(), before+1)
					assert.Equal(f, 1, f.srv.Refused())
					assert.False(f, op.Applied(f.srv, use))
				})
			})
		}
	}
}

// A caller with rejected credentials sees these requests, at these times, and these errors between them. The
// cool-down ends when the service accepts a password again.
func TestCallsBetweenRefusedOnes(t *testing.T) {
	t.Parallel()
	for kind, auth := range wrong {
		inService(t, setup{auth: auth}, func(f *fixture) {
			began := time.Now()
			for time.Since(began) < 100*time.Second {
				err := getTask.call(f.Context(), f.client)
				var e *webdelivery.Error
				require.ErrorAs(f, err, &e)
				require.ErrorIs(f, err, webdelivery.ErrUnauthorized)
				assert.Equal(f, 401, e.StatusCode)
				if f.srv.Refused() > 0 && kind != "session" && e.Attempts == 0 {
					assert.ErrorContains(f, err, "not sent: credentials: not tried again for ")
					assert.ErrorContains(f, err, "GET /acme/v1/tasks/")
					assert.ErrorContains(f, err, " got 401 Unauthorized")
				}
				time.Sleep(100 * time.Millisecond)
			}
			var gaps []time.Duration
			for i, r := range f.srv.Requests() {
				if i > 0 {
					gaps = append(gaps, r.Time.Sub(f.srv.Requests()[i-1].Time).Round(time.Second))
				}
			}
			assert.Equal(f, []time.Duration{
				time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second,
			}, gaps, kind)
		})
	}
	inService(t, setup{}, func(f *fixture) {
		for range 3 {
			f.fail(testserver.Fault{Count: 1, Status: http.StatusUnauthorized})
			require.ErrorIs(f, getTask.call(f.Context(), f.client), webdelivery.ErrUnauthorized)
			err := getTask.call(f.Context(), f.client)
			require.EqualError(f, err, "webdelivery: GET "+f.host()+"/acme/v1"+getTask.path+": 401 Unauthorized: "+
				"not sent: credentials: not tried again for 1s: GET /acme/v1"+getTask.path+" got 401 Unauthorized")
			time.Sleep(time.Second)
			require.NoError(f, getTask.call(f.Context(), f.client))
		}
	})
}

// A user who may not purge can make all other calls, also while the purges cool down.
func TestAForbiddenPurgeStopsNothingElse(t *testing.T) {
	t.Parallel()
	inService(t, setup{}, func(f *fixture) {
		f.fail(testserver.Fault{Path: "/cache/purge", Status: http.StatusForbidden})
		for range 5 {
			require.ErrorIs(f, submit.call(f.Context(), f.client), webdelivery.ErrUnauthorized)
			require.NoError(f, getTask.call(f.Context(), f.client))
		}
		for range 5 {
			require.ErrorIs(f, submit.call(f.Context(), f.client), webdelivery.ErrUnauthorized)
		}
		assert.Equal(f, 5+2, f.requests(submit), "the first 403 of an accepted password starts no cool-down, the second one does")
		require.NoError(f, getTask.call(f.Context(), f.client))
	})
}

// A queue with rejected credentials returns the service's error to each caller at once, and sends one request.
func TestAQueueWithRefusedCredentials(t *testing.T) {
	t.Parallel()
	for kind, auth := range wrong {
		inFakeTime(t, setup{auth: auth}, func(f *fixture) {
			queue := f.client.Purge.NewQueue(webdelivery.QueueOptions{Action: webdelivery.ActionPurge, Wait: true})
			began := time.Now()
			var wg sync.WaitGroup
			var mu sync.Mutex
			var attempts []int
			for range 100 {
				wg.Go(func() {
					_, err := queue.Purge(f.Context(), webdelivery.Exact(anObject))
					assert.ErrorIs(f, err, webdelivery.ErrUnauthorized)
					assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
					if e, ok := errors.AsType[*webdelivery.Error](err); assert.True(f, ok) {
						mu.Lock()
						defer mu.Unlock()
						attempts = append(attempts, e.Attempts)
					}
				})
			}
			wg.Wait()
			assert.Less(f, time.Since(began), time.Second)
			_, err := queue.Purge(f.Context(), webdelivery.Exact(anObject))
			require.ErrorIs(f, err, webdelivery.ErrUnauthorized)
			require.NoError(f, queue.Close(f.Context()))
			assert.Equal(f, 1, f.srv.Refused(), kind)
			assert.Len(f, f.srv.Requests(), 1)
			assert.LessOrEqual(f, slices.Max(attempts), 1)
		})
	}
}

// If the service has accepted the credentials, one endpoint or area that refuses them holds only itself. A password that
// changes costs two requests.
func TestOneEndpointThatRefuses(t *testing.T) {
	t.Parallel()
	inService(t, setup{}, func(f *fixture) {
		require.NoError(f, getTask.call(f.Context(), f.client))
		f.fail(testserver.Fault{Path: "/cache/purge", Status: http.StatusUnauthorized})
		began := time.Now()
		for time.Since(began) < 62*time.Second {
			require.ErrorIs(f, submit.call(f.Context(), f.client), webdelivery.ErrUnauthorized)
			require.NoError(f, getTask.call(f.Context(), f.client))
			time.Sleep(100 * time.Millisecond)
		}
		assert.Equal(f, 7, f.requests(submit), "after 0, 1, 3, 7, 15, 31 and 61 s")
	})
	inService(t, bySession, func(f *fixture) {
		require.NoError(f, getTask.call(f.Context(), f.client))
		f.fail(testserver.Fault{Path: "/config/**", Status: http.StatusUnauthorized})
		began := time.Now()
		for time.Since(began) < 62*time.Second {
			for _, op := range []operation{postWrite, deleteOne} {
				require.ErrorIs(f, op.call(f.Context(), f.client), webdelivery.ErrUnauthorized)
			}
			require.NoError(f, getTask.call(f.Context(), f.client))
			time.Sleep(100 * time.Millisecond)
		}
		assert.LessOrEqual(f, f.srv.Logins(), 3)
	})
	inService(t, setup{}, func(f *fixture) {
		require.NoError(f, getTask.call(f.Context(), f.client))
		f.fail(testserver.Fault{Path: "/**", Status: http.StatusUnauthorized})
		before := len(f.srv.Requests())
		var wg sync.WaitGroup
		for _, op := range []operation{getTask, submit, postWrite, deleteOne, getTask, submit, postWrite, deleteOne} {
			require.ErrorIs(f, op.call(f.Context(), f.client), webdelivery.ErrUnauthorized)
			wg.Go(func() { assert.ErrorIs(f, op.call(f.Context(), f.client), webdelivery.ErrUnauthorized) })
		}
		wg.Wait()
		assert.Len(f, f.srv.Requests(), before+2)
	})
}

// If a user with a session may not purge, all other calls work, and the purges cause one login in 30 s.
func TestAPurgeThatASessionMayNot(t *testing.T) {
	t.Parallel()
	inService(t, bySession, func(f *fixture) {
		require.NoError(f, getTask.call(f.Context(), f.client))
		f.fail(testserver.Fault{Path: "/cache/purge", Status: http.StatusForbidden})
		for range 29 {
			require.ErrorIs(f, submit.call(f.Context(), f.client), webdelivery.ErrUnauthorized)
			require.NoError(f, getTask.call(f.Context(), f.client))
			assert.Equal(f, 2, f.srv.Logins())
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		require.ErrorIs(f, submit.call(f.Context(), f.client), webdelivery.ErrUnauthorized)
		assert.Equal(f, 3, f.srv.Logins())
		require.NoError(f, getTask.call(f.Context(), f.client))
	})
}
