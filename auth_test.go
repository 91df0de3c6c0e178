package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Section 5, method 1: the word Basic, a blank, and the Base64 encoding of <username>:<password>.
func TestBasicAuth(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
		h := f.Sent(fixture.GetTask)[0]
		assert.Equal(f, []string{"Basic YWxpY2U6Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"}, h["Authorization"])
		assert.Empty(f, h["Cookie"])
		assert.Equal(f, []string{"application/json"}, h["Accept"])
		assert.Equal(f, []string{"webdelivery-go/" + webdelivery.Version}, h["User-Agent"])
		assert.Empty(f, h["Content-Type"], "a request without a body has none")
		assert.Empty(f, h["Idempotency-Key"], "net/http would resend a POST by itself")
	})
}

// Section 5, method 2: POST /sessions with Basic; later requests send the id as the cookie authtoken, and no password.
func TestSessionAuth(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		for range 3 {
			require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
		}
		assert.Equal(f, 1, f.Srv.Logins())
		assert.Equal(f, []string{"Basic YWxpY2U6Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"}, f.Sent(fixture.CreateSession)[0]["Authorization"])
		for _, h := range f.Sent(fixture.GetTask) {
			assert.Empty(f, h["Authorization"])
			require.Len(f, h["Cookie"], 1)
			assert.Regexp(f, `^authtoken=[^;=]+$`, h["Cookie"][0])
		}
	})
}

func TestSessionToken(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		session, err := f.Client.Sessions.Create(f.Context())
		require.NoError(f, err)
		client := f.NewClient(f.Srv.URL(), fixture.Setup{Auth: webdelivery.SessionToken(session.ID)})
		require.NoError(f, fixture.GetTask.Call(f.Context(), client))

		f.Srv.ExpireSessions()
		err = fixture.GetTask.Call(f.Context(), client)
		require.ErrorIs(f, err, webdelivery.ErrUnauthorized)
		assert.Equal(f, 2, f.Requests(fixture.GetTask), "a fixed token cannot be renewed")
		assert.Equal(f, 1, f.Srv.Logins())
	})
}

// A 401 anywhere, and a 403 on purges and transactions, mean that the session is rejected. For every kind of
// operation, the client logs in once and sends the request again once (open point 6).
func TestAnExpiredSessionIsRenewedOnce(t *testing.T) {
	t.Parallel()
	status := fixture.Operation{Name: "transaction", Path: "/transactions/9007199254740993", Call: func(ctx context.Context, c *webdelivery.Client) error {
		_, err := c.Purge.Status(ctx, 9007199254740993)
		return err
	}}
	for _, op := range []fixture.Operation{fixture.GetTask, fixture.Submit, status, fixture.PostWrite, fixture.DeleteOne} {
		t.Run(op.Name, func(t *testing.T) {
			t.Parallel()
			fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
				require.NoError(f, fixture.Submit.Call(f.Context(), f.Client)) // creates the transaction
				if op.Path == fixture.PostWrite.Path || op.Path == fixture.DeleteOne.Path {
					f.AddFault(testserver.Fault{Path: op.Path, Status: 401, Count: 1})
					f.AnswerThings()
				}
				f.Srv.ExpireSessions()
				before := f.Requests(op)
				require.NoError(f, op.Call(f.Context(), f.Client))
				assert.Equal(f, before+2, f.Requests(op))
				assert.Equal(f, 2, f.Srv.Logins())
			})
		})
	}
}

// A GET of a transaction answers with 400 for authentication errors (open point 6): one new login, one re-send; a
// second 400 is final. As 400 has other causes too, a wrong id causes a login only every 30 s.
func TestATransactionsBadRequest(t *testing.T) {
	t.Parallel()
	const good = 9007199254740993
	status := func(f *fixture.Fixture, id int64) error {
		_, err := f.Client.Purge.Status(f.Context(), id)
		return err
	}
	s := fixture.BySession
	s.Server.Dialect.TransactionDenied = "400"
	fixture.InService(t, s, func(f *fixture.Fixture) {
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client)) // creates the transaction
		for expired := range 3 {
			f.Srv.ExpireSessions()
			require.NoError(f, status(f, good))
			assert.Equal(f, expired+2, f.Srv.Logins())
		}
		f.AddFault(testserver.Fault{Path: "/transactions/7", Status: 400})
		before := len(f.Srv.Requests())
		require.ErrorIs(f, status(f, 7), webdelivery.ErrBadRequest)
		assert.Len(f, f.Srv.Requests(), before+3, "a request, a login, a request")
		f.Srv.ExpireSessions()
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client), "a 401 always causes a login")
		assert.Equal(f, 6, f.Srv.Logins())
	})
	// A session that still works stays in use when the new login fails.
	fixture.InService(t, s, func(f *fixture.Fixture) {
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
		f.AddFault(testserver.Fault{Path: "/transactions/7", Status: 400})
		for _, code := range []int{503, 403} {
			f.AddFault(testserver.Fault{Path: "/sessions", Status: code, Count: 2})
			require.Error(f, status(f, 7))
			require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
			time.Sleep(time.Minute)
		}
	})
	for _, auth := range []webdelivery.Auth{webdelivery.BasicAuth(fixture.Username, fixture.Password), webdelivery.SessionToken("0123456789abcdef")} {
		fixture.InService(t, fixture.Setup{Auth: auth}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: "/transactions/*", Status: 400})
			require.ErrorIs(f, status(f, good), webdelivery.ErrBadRequest)
			assert.Len(f, f.Srv.Requests(), 1)
		})
	}
}

// A session that is rejected again after the login is an authentication error, not a loop, and the retry policy does
// not change that. A 403 to other calls means that the user may not do this; a new login would not help (open point 6).
func TestOneResendPerCall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fixture.Operation
		status, attempts int // attempts of the policy
		is, not          error
		requests, logins int
	}{
		{fixture.GetTask, 401, 0, webdelivery.ErrUnauthorized, webdelivery.ErrForbidden, 3, 2},
		{fixture.GetTask, 401, 1, webdelivery.ErrUnauthorized, webdelivery.ErrForbidden, 3, 2},
		{fixture.Submit, 401, 0, webdelivery.ErrUnauthorized, webdelivery.ErrForbidden, 3, 2},
		{fixture.Submit, 403, 0, webdelivery.ErrUnauthorized, webdelivery.ErrNotFound, 3, 2},
		{fixture.GetTask, 403, 0, webdelivery.ErrForbidden, webdelivery.ErrUnauthorized, 2, 1},
	} {
		s := fixture.BySession
		s.Options = []webdelivery.Option{webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: tt.attempts})}
		fixture.InService(t, s, func(f *fixture.Fixture) {
			require.NoError(f, tt.Call(f.Context(), f.Client)) // the session works
			f.AddFault(testserver.Fault{Path: tt.Path, Status: tt.status})
			err := tt.Call(f.Context(), f.Client)
			require.ErrorIs(f, err, tt.is)
			require.NotErrorIs(f, err, tt.not)
			assert.Equal(f, tt.requests, f.Requests(tt.Operation))
			assert.Equal(f, tt.logins, f.Srv.Logins())
		})
	}
}

// 50 goroutines use an expired session: the client logs in once, and sends each request again once.
func TestFiftyExpiredCallsLogInOnce(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
		f.Srv.ExpireSessions()
		// Staggered, so that some rejections come while the login is under way and some after it.
		f.AddFault(testserver.Fault{Path: "/sessions", Delay: 20 * time.Millisecond})
		var wg sync.WaitGroup
		for i := range 50 {
			f.AddFault(testserver.Fault{Path: "/tasks/**", Skip: i, Count: 1, Delay: time.Duration(i) * time.Millisecond})
			wg.Go(func() { assert.NoError(f, fixture.GetTask.Call(f.Context(), f.Client)) })
		}
		wg.Wait()
		assert.Equal(f, 2, f.Srv.Logins())
		assert.LessOrEqual(f, f.Requests(fixture.GetTask), 1+100)
	})
}

// When all callers have canceled, the login ends with the last of them, and the next call starts a new one.
func TestTheLastOneToGiveUpEndsTheLogin(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		began, next := time.Now(), f.HTTP.Transport
		var logins []time.Duration // when their attempts ended
		f.HTTP.Transport = fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if strings.HasSuffix(r.URL.Path, "/sessions") {
				logins = append(logins, time.Since(began))
			}
			return resp, err
		})
		client := f.NewClient(f.Srv.URL(), fixture.BySession)
		f.AddFault(testserver.Fault{Path: "/sessions", Count: 1, Delay: time.Hour})
		ctx, cancel := context.WithCancel(f.Context())
		time.AfterFunc(time.Second, cancel)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { assert.ErrorIs(f, fixture.GetTask.Call(ctx, client), context.Canceled) })
		}
		wg.Wait()
		synctest.Wait()
		require.NoError(f, fixture.GetTask.Call(f.Context(), client))
		assert.Equal(f, []time.Duration{time.Second, time.Second}, logins)
	})
}

// A wrong password is sent once. While it cools down (1, 2, 4 to 30 s), calls get the same error and nothing is sent.
func TestARefusedLoginCoolsDown(t *testing.T) {
	t.Parallel()
	wrong := fixture.Setup{Auth: webdelivery.SessionAuth(fixture.Username, "wrong-password")}
	fixture.InService(t, wrong, func(f *fixture.Fixture) {
		logins := func() int { return f.Requests(fixture.CreateSession) }
		for i, cool := range []int{1, 2, 4, 8, 16, 30, 30} {
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					err := fixture.Submit.Call(f.Context(), f.Client)
					assert.ErrorIs(f, err, webdelivery.ErrUnauthorized)
					assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				})
			}
			wg.Wait()
			assert.Equal(f, i+1, logins())
			time.Sleep(time.Duration(cool)*time.Second - time.Millisecond)
			require.Error(f, fixture.GetTask.Call(f.Context(), f.Client))
			assert.Equal(f, i+1, logins(), "still cooling down")
			time.Sleep(2 * time.Millisecond)
		}
		assert.Zero(f, f.Requests(fixture.Submit))
		assert.Zero(f, f.Requests(fixture.GetTask))
	})
	// After a session that has worked, the first refusal cools down for 1 s again.
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		for range 4 {
			f.AddFault(testserver.Fault{Path: "/sessions", Status: 403, Count: 1})
			require.ErrorIs(f, fixture.GetTask.Call(f.Context(), f.Client), webdelivery.ErrUnauthorized)
			time.Sleep(time.Second)
			require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
			f.Srv.ExpireSessions()
		}
	})
}

// If a service rejects each new session at once, not every call requests another one.
func TestSessionsThatNeverWorkCoolDown(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/tasks/**", Status: 401})
		for range 10 {
			require.ErrorIs(f, fixture.GetTask.Call(f.Context(), f.Client), webdelivery.ErrUnauthorized)
		}
		assert.Equal(f, 2, f.Srv.Logins())
		assert.Equal(f, 2, f.Requests(fixture.GetTask), "the second 401 ends the session for the other calls at once")
		time.Sleep(time.Second)
		require.Error(f, fixture.GetTask.Call(f.Context(), f.Client))
		assert.Equal(f, 3, f.Srv.Logins())
	})
}

// The error of a call whose login fails has the status of the login. Any 4xx of a login but 408 and 429 is failed
// authentication, and does not mean that a task, a list or an entry does not exist. After a 5xx the next call logs in again,
// without a pause; after any other failure it gets the same error.
func TestFailedLogins(t *testing.T) {
	t.Parallel()
	sentinels := []error{
		webdelivery.ErrBadRequest, webdelivery.ErrUnauthorized, webdelivery.ErrForbidden, webdelivery.ErrNotFound,
		webdelivery.ErrRateLimited, webdelivery.ErrServer, webdelivery.ErrBadResponse,
	}
	redirect := http.Header{"Location": {"/login"}}
	for _, tt := range []struct {
		fault       testserver.Fault
		want        error
		once, twice int // logins of one call, and of two
	}{
		{testserver.Fault{Status: 400}, webdelivery.ErrUnauthorized, 1, 1},
		{testserver.Fault{Status: 401}, webdelivery.ErrUnauthorized, 1, 1},
		{testserver.Fault{Status: 403}, webdelivery.ErrUnauthorized, 1, 1},
		{testserver.Fault{Status: 404}, webdelivery.ErrUnauthorized, 1, 1},
		{testserver.Fault{Status: 422}, webdelivery.ErrUnauthorized, 1, 1},
		{testserver.Fault{Status: 200, Body: `{"ok":true}`}, webdelivery.ErrBadResponse, 1, 1},
		{testserver.Fault{Status: 200, Body: `{"id":"a; b"}`}, webdelivery.ErrBadResponse, 1, 1}, // no cookie can carry it
		{testserver.Fault{Status: 302, Header: redirect}, webdelivery.ErrBadResponse, 1, 1},
		{testserver.Fault{Status: 408}, nil, 4, 4},
		{testserver.Fault{Status: 429}, webdelivery.ErrRateLimited, 4, 4},
		{testserver.Fault{Status: 500}, webdelivery.ErrServer, 4, 8},
		{testserver.Fault{Status: 503}, webdelivery.ErrServer, 4, 8},
	} {
		t.Run(fmt.Sprint(tt.fault.Status, tt.fault.Body), func(t *testing.T) {
			t.Parallel()
			fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
				tt.fault.Path = "/sessions"
				f.AddFault(tt.fault)
				for _, logins := range []int{tt.once, tt.twice} {
					err := fixture.Submit.Call(f.Context(), f.Client)
					var e *webdelivery.Error
					require.ErrorAs(f, err, &e)
					for _, sentinel := range sentinels {
						assert.Equal(f, errors.Is(tt.want, sentinel), errors.Is(err, sentinel), sentinel)
					}
					assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
					assert.Equal(f, "/acme/v1/cache/purge", e.Path)
					assert.Equal(f, tt.fault.Status, e.StatusCode)
					assert.Equal(f, logins, f.Requests(fixture.CreateSession))
				}
				assert.Zero(f, f.Requests(fixture.Submit), "no request with an empty cookie")
			})
		})
	}
}

// A wait for many tasks ends as a whole when its login is refused, whatever the status says of a task, and goes on when the
// login fails for a moment.
func TestAWaitWhoseLoginFails(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{404: webdelivery.ErrUnauthorized, 429: nil} {
		fixture.InFakeTime(t, fixture.BySession, func(f *fixture.Fixture) {
			ids := addTasks(f, 5)
			f.Warm()
			f.AddFault(testserver.Fault{Path: "/tasks/**", Status: 401, Count: 1})
			f.AddFault(testserver.Fault{Path: "/sessions", Status: status, Count: 2})
			_, err := f.Client.Tasks.WaitAll(f.Context(), ids)
			require.ErrorIs(f, err, want)
			if want != nil {
				assert.ErrorContains(f, err, "waiting for 5 tasks")
				assert.NotContains(f, err.Error(), "waiting for task ", "no task is dropped")
			}
		})
	}
}

// A login never comes between a permit and its purge: otherwise the requests would leave closer together than their
// permits.
func TestTheLoginComesBeforeThePermit(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/sessions", Delay: 5 * time.Second})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { assert.NoError(f, fixture.Submit.Call(f.Context(), f.Client)) })
		}
		wg.Wait()
		assert.Equal(f, inPairs(3), arrivals(f))
	})
}

// However an Auth is printed, it shows its kind and its user, and nothing else.
func TestAnAuthIsPrintedByWayAndUser(t *testing.T) {
	t.Parallel()
	for want, auth := range map[string]webdelivery.Auth{
		"basic alice":   webdelivery.BasicAuth(fixture.Username, fixture.Password),
		"session alice": webdelivery.SessionAuth(fixture.Username, fixture.Password),
		"token":         webdelivery.SessionToken("a-token"),
		"":              {},
	} {
		for _, verb := range []string{"%v", "%+v", "%s"} {
			assert.Equal(t, want, fmt.Sprintf(verb, auth), verb)
		}
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "auth", auth)
		assert.NotContains(t, log.String()+fmt.Sprintf("%#v", auth), fixture.Password)
	}
}

// The client refuses credentials that Basic authentication cannot carry, wherever they contain the invalid character
// (service document, section 5; RFC 7617).
func TestCredentialsThatNoHeaderCarries(t *testing.T) {
	t.Parallel()
	for says, pairs := range map[string][][2]string{
		"invalid user name: ":              {{"", "p"}, {":", "p"}, {":a", "p"}, {"a:", "p"}},
		"invalid password: ":               {{"a", ""}},
		"invalid user name and password: ": {{"\x00", "p"}, {"\na", "p"}, {"a\x7f", "p"}, {"a", "\tp"}, {"a", "p\r"}},
		"":                                 {{"a", ":"}, {"a b", " p "}, {"ü", "ß"}},
	} {
		for _, pair := range pairs {
			for _, way := range []func(string, string) webdelivery.Auth{webdelivery.BasicAuth, webdelivery.SessionAuth} {
				_, err := webdelivery.NewClient("https://api.example.com", fixture.Customer, way(pair[0], pair[1]))
				if says == "" {
					require.NoError(t, err, "%q", pair)
					continue
				}
				require.ErrorIs(t, err, webdelivery.ErrInvalid, "%q", pair)
				require.ErrorContains(t, err, says)
			}
		}
	}
}

// A token contains what a cookie can carry (RFC 6265, section 4.1.1): visible ASCII except five characters.
func TestTokensThatACookieCarries(t *testing.T) {
	t.Parallel()
	for r := rune(0); r < 0x100; r++ {
		carried := r > ' ' && r < 0x7f && !strings.ContainsRune("\",;\\", r)
		for _, token := range []string{string(r), "a" + string(r), string(r) + "a"} {
			_, err := webdelivery.NewClient("https://api.example.com", fixture.Customer, webdelivery.SessionToken(token))
			assert.Equal(t, carried, err == nil, "%q: %v", token, err)
		}
	}
	_, err := webdelivery.NewClient("https://api.example.com", fixture.Customer, webdelivery.SessionToken(""))
	require.ErrorIs(t, err, webdelivery.ErrInvalid)
}

// A login that takes longer than every caller waits succeeds all the same, and once: callers that come later use it.
func TestALoginOutlivesImpatientCallers(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.BySession, func(f *fixture.Fixture) {
		f.Srv.AddTask(testserver.TaskSpec{ID: fixture.TaskID})
		f.AddFault(testserver.Fault{Path: "/sessions", Delay: time.Second})
		var wg sync.WaitGroup
		var succeeded atomic.Int64
		for range 5 {
			wg.Go(func() {
				for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
					ctx, cancel := context.WithTimeout(f.Context(), 500*time.Millisecond)
					if err := fixture.GetTask.Call(ctx, f.Client); err == nil {
						succeeded.Add(1)
						time.Sleep(100 * time.Millisecond)
					} else {
						assert.ErrorIs(f, err, context.DeadlineExceeded)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		assert.Equal(f, 1, f.Srv.Logins())
		assert.Equal(f, int64(5*20), succeeded.Load(), "all calls from the second second on")
	})
}

// A secret lookup that hangs has the time of one attempt: then the next login asks again, even if the function ignores
// its context. The error is a timeout, and not that of the caller's context.
func TestASecretLookupThatHangs(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		for _, way := range []func(func(context.Context) (string, string, error)) webdelivery.Auth{webdelivery.BasicAuthFunc, webdelivery.SessionAuthFunc} {
			fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
				var asked atomic.Int32
				over := make(chan struct{})
				defer close(over)
				auth := way(func(ctx context.Context) (string, string, error) {
					if asked.Add(1) > 1 {
						return fixture.Username, fixture.Password, nil
					}
					if deaf {
						ctx = context.WithoutCancel(ctx)
					}
					select {
					case <-ctx.Done():
					case <-over:
					}
					return "", "", ctx.Err()
				})
				client := f.NewClient(f.Srv.URL(), fixture.Setup{Auth: auth, Options: []webdelivery.Option{webdelivery.WithAttemptTimeout(2 * time.Second)}})
				began := time.Now()
				err := fixture.GetTask.Call(f.Context(), client)
				require.ErrorIs(f, err, os.ErrDeadlineExceeded)
				require.NotErrorIs(f, err, context.DeadlineExceeded)
				assert.Equal(f, 2*time.Second, time.Since(began))
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				require.NoError(f, fixture.GetTask.Call(f.Context(), client))
				assert.Equal(f, int32(2), asked.Load())
			})
		}
	}
}

// A wrong transaction id causes one login in 30 s, also beside one that the user may not see, and does not keep a purge
// from renewing a session that has ended.
func TestAWrongTransactionAndASessionThatEnds(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		wrong := func(id int64, want error) {
			_, err := f.Client.Purge.Status(f.Context(), id)
			require.ErrorIs(f, err, want)
		}
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		f.AddFault(testserver.Fault{Path: "/transactions/7", Status: 400})
		f.AddFault(testserver.Fault{Path: "/transactions/8", Status: 403})
		for range 10 {
			wrong(7, webdelivery.ErrBadRequest)
		}
		assert.Equal(f, 2, f.Srv.Logins())
		f.Srv.ExpireSessions()
		require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		assert.Equal(f, 3, f.Srv.Logins())
		for range 10 { // 30 s
			wrong(7, webdelivery.ErrBadRequest)
			wrong(8, webdelivery.ErrUnauthorized)
			time.Sleep(3 * time.Second)
		}
		assert.Equal(f, 4, f.Srv.Logins(), "one for the 403")
		wrong(7, webdelivery.ErrBadRequest)
		assert.Equal(f, 5, f.Srv.Logins())
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client), "no login cools down")
	})
}

// A refusal of an earlier session that arrives late says nothing about the present one: the call is sent again, without
// another login. The first purge causes the login, and its own retry takes so long that nothing has cured the doubt yet.
func TestALateRefusalOfAnEarlierSession(t *testing.T) {
	t.Parallel()
	for status, op := range map[int]fixture.Operation{403: fixture.Submit, 401: fixture.GetTask} {
		fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
			require.NoError(f, op.Call(f.Context(), f.Client))
			time.Sleep(2 * time.Second) // both may be sent at once
			var late sync.WaitGroup
			for i := range 2 {
				f.AddFault(testserver.Fault{Path: op.Path, Status: status, Delay: time.Duration(2*i+1) * time.Second, Count: 1})
				late.Go(func() { assert.NoError(f, op.Call(f.Context(), f.Client)) })
				time.Sleep(time.Nanosecond)
			}
			f.AddFault(testserver.Fault{Path: op.Path, Delay: 10 * time.Second, Count: 1})
			late.Wait()
			assert.Equal(f, 2, f.Srv.Logins())
		})
	}
}

// A lost session is replaced although every caller leaves before its purge could be sent again, and so is the next one: a
// login goes on after the deadlines of those who wait for it, and one that nobody has used has not been in vain.
func TestCallersLeaveWhileTheSessionIsRenewed(t *testing.T) {
	t.Parallel()
	s := fixture.BySession
	s.Options = []webdelivery.Option{webdelivery.WithPurgeLimiter(rate.NewLimiter(rate.Inf, 1))}
	fixture.InService(t, s, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/sessions", Delay: 300 * time.Millisecond})
		f.AddFault(testserver.Fault{Path: "/cache/purge", Delay: 300 * time.Millisecond})
		q := f.NewQueue(webdelivery.QueueOptions{})
		purge := func() error {
			ctx, cancel := context.WithTimeout(f.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := q.Purge(ctx, webdelivery.Exact(fixture.AnObject))
			time.Sleep(time.Second)
			return err
		}
		require.Error(f, purge(), "the first login takes so long")
		for range 3 {
			require.NoError(f, purge())
			f.Srv.ExpireSessions()
			require.ErrorIs(f, purge(), context.DeadlineExceeded)
		}
		require.NoError(f, purge())
		assert.Equal(f, 4, f.Srv.Logins())
	})
}

// While a login is told to wait, so is the wait that needs it.
func TestAWaitHonorsTheRetryAfterOfALogin(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		f.Srv.AddTask(testserver.TaskSpec{ID: "slow", Duration: time.Minute})
		f.Warm()
		f.Srv.ExpireSessions()
		f.AddFault(testserver.Fault{Path: "/sessions", Status: 503, Header: http.Header{"Retry-After": {"300"}}, Count: 1})
		began := time.Now()
		_, err := f.Client.Tasks.Wait(f.Context(), "slow")
		require.NoError(f, err)
		assert.Equal(f, 5*time.Minute, time.Since(began))
		assert.Equal(f, 2+1, f.Requests(fixture.CreateSession))
	})
}

const yesterdays = "yesterdays-password"

// rotating returns a function whose password is rotated after it was asked so often.
func rotating(asked *int, after int) func(context.Context) (string, string, error) {
	return func(context.Context) (string, string, error) {
		if *asked++; *asked <= after {
			return fixture.Username, yesterdays, nil
		}
		return fixture.Username, fixture.Password, nil
	}
}

// A call whose password was rotated meanwhile is sent once more, and no other is: section 7 has 401, and 403 for purges.
func TestAPasswordThatIsRotated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		auth     func(func(context.Context) (string, string, error)) webdelivery.Auth
		op       fixture.Operation
		after    int // passwords of yesterday
		requests int
		err      error
	}{
		"401":                      {webdelivery.BasicAuthFunc, fixture.GetTask, 1, 2, nil},
		"401 and no new password":  {webdelivery.BasicAuthFunc, fixture.GetTask, 9, 1, webdelivery.ErrUnauthorized},
		"403 of a purge":           {webdelivery.BasicAuthFunc, fixture.Submit, 1, 2, nil},
		"403 without new password": {webdelivery.BasicAuthFunc, fixture.Submit, 9, 1, webdelivery.ErrForbidden},
		"a login":                  {webdelivery.SessionAuthFunc, fixture.GetTask, 1, 3, nil},
		"a refused login":          {webdelivery.SessionAuthFunc, fixture.GetTask, 9, 1, webdelivery.ErrUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			fixture.InService(t, fixture.Setup{Auth: c.auth(rotating(&asked, c.after))}, func(f *fixture.Fixture) {
				require.ErrorIs(f, c.op.Call(f.Context(), f.Client), c.err)
				assert.Len(f, f.Srv.Requests(), c.requests)
			})
		})
	}
}

// What the function returns has the rules of BasicAuth, its error is that of the call, and nothing is sent with either.
func TestAFunctionWithoutAPassword(t *testing.T) {
	t.Parallel()
	locked := errors.New("the vault is locked")
	for want, pair := range map[string]func(context.Context) (string, string, error){
		locked.Error():          func(context.Context) (string, string, error) { return "", "", locked },
		"the password is empty": func(context.Context) (string, string, error) { return fixture.Username, "", nil },
	} {
		for _, auth := range []webdelivery.Auth{webdelivery.BasicAuthFunc(pair), webdelivery.SessionAuthFunc(pair)} {
			fixture.InService(t, fixture.Setup{Auth: auth}, func(f *fixture.Fixture) {
				err := fixture.PostWrite.Call(f.Context(), f.Client)
				require.ErrorContains(f, err, want)
				assert.Equal(f, want == locked.Error(), errors.Is(err, locked))
				require.NotErrorIs(f, err, webdelivery.ErrInvalid, "an earlier attempt of a call may have been sent")
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				assert.Empty(f, f.Srv.Requests())
			})
		}
	}
	_, err := webdelivery.NewClient("https://api.example.com", fixture.Customer, webdelivery.BasicAuthFunc(nil))
	require.ErrorIs(t, err, webdelivery.ErrInvalid)
}

// The passwords before a rotation are hidden, too: a slow call may have sent an old one.
func TestRotatedPasswordsAreHidden(t *testing.T) {
	t.Parallel()
	day := 0
	of := func(day int) string { return fmt.Sprintf("password-of-day-%02d", day) }
	pair := func(context.Context) (string, string, error) { day++; return fixture.Username, of(day), nil }
	fixture.InService(t, fixture.Setup{Auth: webdelivery.BasicAuthFunc(pair)}, func(f *fixture.Fixture) {
		for range 4 {
			require.ErrorIs(f, fixture.GetTask.Call(f.Context(), f.Client), webdelivery.ErrUnauthorized)
		}
		f.AddFault(testserver.Fault{Status: 400, Body: of(1) + ", " + of(2)})
		e, _ := errors.AsType[*webdelivery.Error](fixture.GetTask.Call(f.Context(), f.Client))
		require.NotNil(f, e)
		assert.Equal(f, "[redacted], [redacted]", string(e.Body))
	})
}

// Callers with pairs of their own do not make each other's calls be sent again.
func TestAPairForEachCaller(t *testing.T) {
	t.Parallel()
	type caller struct{}
	pair := func(ctx context.Context) (string, string, error) {
		name, _ := ctx.Value(caller{}).(string)
		return name, "password-of-" + name, nil
	}
	fixture.InService(t, fixture.Setup{Auth: webdelivery.BasicAuthFunc(pair)}, func(f *fixture.Fixture) {
		for _, name := range []string{"bob", "eve", "bob"} {
			require.ErrorIs(f, fixture.GetTask.Call(context.WithValue(f.Context(), caller{}, name), f.Client), webdelivery.ErrUnauthorized)
		}
		assert.Len(f, f.Srv.Requests(), 3)
	})
}

// A queue whose password cannot be read holds no permits while it waits: another client purges as fast as alone.
func TestAHangingPasswordHoldsNoPermit(t *testing.T) {
	t.Parallel()
	hangs := webdelivery.BasicAuthFunc(func(ctx context.Context) (string, string, error) {
		<-ctx.Done()
		return "", "", ctx.Err()
	})
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		for range 4 {
			q, err := f.NewClient(f.Srv.URL(), fixture.Setup{Auth: hangs}).Purge.NewQueue(webdelivery.QueueOptions{})
			require.NoError(f, err)
			go func() { _, _ = q.Purge(f.Context(), webdelivery.Exact(fixture.AnObject)) }()
		}
		time.Sleep(time.Second)
		began := time.Now()
		for range 10 {
			require.NoError(f, fixture.Submit.Call(f.Context(), f.Client))
		}
		assert.Less(f, time.Since(began), 6*time.Second)
	})
}

// If a user with a session may not purge, all other calls work, and the purges cause one login in 30 s, also if each caller
// leaves before its purge could be sent again.
func TestAPurgeThatASessionMayNot(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
		f.AddFault(testserver.Fault{Path: "/cache/purge", Status: http.StatusForbidden})
		for range 29 {
			require.ErrorIs(f, fixture.Submit.Call(f.Context(), f.Client), webdelivery.ErrUnauthorized)
			require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
			assert.Equal(f, 2, f.Srv.Logins())
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		f.AddFault(testserver.Fault{Path: "/sessions", Delay: 300 * time.Millisecond})
		for range 60 {
			ctx, cancel := context.WithTimeout(f.Context(), 200*time.Millisecond)
			defer cancel()
			require.Error(f, fixture.Submit.Call(ctx, f.Client))
			time.Sleep(time.Second)
		}
		assert.LessOrEqual(f, f.Srv.Logins(), 2+3)
	})
}
