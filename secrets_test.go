package webdelivery_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// everyPrint is all that a program may do to show a value.
func everyPrint(v any) string {
	var b bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		fmt.Fprintf(&b, verb+"\n", v)
	}
	encoded, _ := json.Marshal(v)
	b.Write(encoded)
	slog.New(slog.NewTextHandler(&b, nil)).Info("text", "value", v)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("json", "value", v)
	for err, ok := v.(error); ok && err != nil; err = errors.Unwrap(err) {
		fmt.Fprintf(&b, "%v %+v %#v\n", err, err, err)
	}
	return b.String()
}

// echo answers with all that the request said, as debugging proxies do.
func echo(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization")+r.Header.Get("Cookie"))
		w.WriteHeader(status)
		_, sent, _ := r.BasicAuth()
		text, _ := json.Marshal(fmt.Sprint(r.Header) + sent)
		_, _ = fmt.Fprintf(w, `{"description":%s}`, text)
	}
}

// A whole run with every kind of trouble: none of its errors, replies and log records shows the password, its encoding
// or a session's id, however it is printed.
func TestNothingShowsASecret(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		auth     func(username, password string) webdelivery.Auth
		password string
	}{
		{"Basic", webdelivery.BasicAuth, password},
		{"session", webdelivery.SessionAuth, password},
		{"wrong password", webdelivery.SessionAuth, `wr"ong-\päßwörd<&>`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			auth := tt.auth(username, tt.password)
			encoded := base64.StdEncoding.EncodeToString([]byte(username + ":" + tt.password))
			s := setup{auth: auth, options: []webdelivery.Option{webdelivery.WithLogger(logger)}}
			inService(t, s, func(f *fixture) {
				shown := []string{everyPrint(auth), everyPrint(f.client), everyPrint(*f.client), everyPrint(s.options)}
				call := func() {
					for _, op := range []operation{getTask, submit, postWrite, deleteOne, createSession} {
						shown = append(shown, everyPrint(op.call(f.Context(), f.client)))
					}
				}
				session, err := f.client.Sessions.Create(f.Context())
				shown = append(shown, everyPrint(session), everyPrint(err))
				if err == nil {
					shown = append(shown, everyPrint(*session))
				}
				receipt, err := f.client.Purge.Submit(f.Context(), purgeOf(anObject))
				shown = append(shown, everyPrint(receipt), everyPrint(err))
				page, err := f.client.Tasks.List(f.Context(), webdelivery.TaskListOptions{})
				shown = append(shown, everyPrint(page), everyPrint(err))
				call()
				for _, fault := range []testserver.Fault{
					{Handler: echo(200)},
					{Handler: echo(400)},
					{Handler: echo(401)},
					{Handler: echo(500)},
					{Path: "/sessions", Handler: echo(401)},
					{Path: "/sessions", Status: 200, Body: `{"secret":"` + encoded + `"}`},
					{Cut: testserver.CutAfterRead},
					{Cut: testserver.CutBody},
					{Status: 302, Header: http.Header{"Location": {"http://x/" + encoded}}},
					{Status: 400, Header: http.Header{"Set-Cookie": {"authtoken=" + encoded}}},
				} {
					remove := f.srv.Fail(fault)
					f.srv.ExpireSessions()
					call()
					remove()
					time.Sleep(time.Minute) // what cools down is warm again
				}

				hidden := []string{tt.password, encoded, "Basic ", "authtoken="}
				for _, r := range f.srv.Requests() {
					if _, token, found := strings.Cut(r.Header.Get("Cookie"), "authtoken="); found {
						hidden = append(hidden, token)
					}
				}
				shown = append(shown, log.String())
				for _, secret := range hidden {
					for _, text := range shown {
						if at := strings.Index(text, secret); at >= 0 {
							assert.Fail(f, "a secret is shown", "%q in %s", secret, text[max(0, at-200):min(len(text), at+100)])
						}
					}
				}
				assert.NotZero(f, log.Len())
				if tt.name == "session" {
					assert.Greater(f, len(hidden), 4, "no session was made")
				}
			})
		})
	}
}

// What is clipped is clipped after the secrets are out of it: no beginning of one is left at the end.
func TestClippingLeavesNoPieceOfASecret(t *testing.T) {
	t.Parallel()
	inService(t, setup{}, func(f *fixture) {
		for _, place := range []int{180, 190, 505, 64<<10 - 10} {
			remove := f.srv.Fail(testserver.Fault{Status: 400, Body: strings.Repeat("x", place) + password})
			shown := everyPrint(getTask.call(f.Context(), f.client))
			remove()
			remove = f.srv.Fail(testserver.Fault{Status: 200, Body: strings.Repeat("x", place) + password})
			shown += everyPrint(getTask.call(f.Context(), f.client))
			remove()
			assert.NotContains(f, shown, password[:8])
			var e *webdelivery.Error
			require.ErrorAs(f, getTask.call(f.Context(), f.newClient(f.srv.URL()+"/elsewhere", setup{})), &e)
			assert.NotContains(f, string(e.Body), password[:8])
		}
	})
}

// Each form in which a secret can come back is taken out of the body of an error.
func TestEveryFormOfASecretIsHidden(t *testing.T) {
	t.Parallel()
	const hard = `p&ss<wo"rd>/4 2`
	inFakeTime(t, setup{}, func(f *fixture) {
		client := f.newClient(f.srv.URL(), setup{auth: webdelivery.BasicAuth(username, hard)})
		for _, form := range []string{
			hard, `p\u0026ss\u003cwo\"rd\u003e/4 2`, `p&ss<wo\"rd>\/4 2`, `p&ss<wo\"rd>/4 2`, "p%26ss%3Cwo%22rd%3E%2F4+2",
		} {
			remove := f.srv.Fail(testserver.Fault{Status: 400, Body: "before " + form + " after"})
			var e *webdelivery.Error
			require.ErrorAs(f, getTask.call(f.Context(), client), &e)
			assert.Equal(f, "before [redacted] after", string(e.Body))
			remove()
		}
	})
}

// The reply to a login may hold a session in any shape, so an error keeps nothing of it but its words and a few headers.
func TestErrorsOfALoginKeepNoBody(t *testing.T) {
	t.Parallel()
	const token = "SESSIONTOKEN123456"
	for _, status := range []int{200, 303, 401, 500} {
		inFakeTime(t, setup{}, func(f *fixture) {
			f.fail(testserver.Fault{Status: status, Body: `{"code":400,"id":"` + token + `"}`, Header: http.Header{"X-Authtoken": {token}}})
			err := createSession.call(f.Context(), f.client)
			var e *webdelivery.Error
			require.ErrorAs(f, err, &e)
			assert.Empty(f, e.Body)
			assert.Equal(f, "application/json", e.Header.Get("Content-Type"))
			assert.NotContains(f, everyPrint(err), token)
		})
	}
}

// A session that was renewed is hidden as well: late replies may still speak of it.
func TestTheSessionBeforeIsHiddenToo(t *testing.T) {
	t.Parallel()
	inService(t, bySession, func(f *fixture) {
		require.NoError(f, getTask.call(f.Context(), f.client))
		old := strings.TrimPrefix(f.sent(getTask)[0].Get("Cookie"), "authtoken=")
		f.srv.ExpireSessions()
		require.NoError(f, getTask.call(f.Context(), f.client))
		f.fail(testserver.Fault{Status: 400, Body: "session " + old + " is over"})
		var e *webdelivery.Error
		require.ErrorAs(f, getTask.call(f.Context(), f.client), &e)
		assert.Equal(f, "session [redacted] is over", string(e.Body))
	})
}

// A transport of the user's that puts the request into its error.
func TestATransportThatTellsTooMuch(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		f.http.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("cannot send %v: %w", r.Header, io.ErrClosedPipe)
		})
		client := f.newClient(f.srv.URL(), setup{})
		err := postWrite.call(f.Context(), client)
		require.ErrorIs(f, err, io.ErrClosedPipe)
		assert.NotContains(f, everyPrint(err), "YWxpY2U6Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5")
	})
}

// What the service says cannot forge a line of a log, steer a terminal, or fill a disk.
func TestHostileTextsAreTamed(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"newline":   "first\nlevel=ERROR msg=forged",
		"ANSI":      "\x1b[2Jgone",
		"direction": "\u202etxt.exe",
		"1 MB":      strings.Repeat("long ", 200_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inService(t, setup{}, func(f *fixture) {
				body, err := json.Marshal(map[string]string{"description": text})
				require.NoError(f, err)
				f.fail(testserver.Fault{Status: 400, Body: string(body)})
				message := getTask.call(f.Context(), f.client).Error()
				assert.Less(f, len(message), 2000)
				assert.NotContains(f, message, "\n")
				assert.NotContains(f, message, "\x1b")
				assert.NotContains(f, message, "\u202e")
			})
		})
	}
}

// One record an attempt at Debug, one a retry at Warn, with the fields that are promised and no others.
func TestLogging(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	inService(t, setup{options: []webdelivery.Option{webdelivery.WithLogger(logger)}}, func(f *fixture) {
		f.fail(testserver.Fault{Status: 503, Count: 1, Header: http.Header{"Retry-After": {"2"}}, Body: "busy"})
		f.fail(testserver.Fault{Delay: 30 * time.Millisecond})
		var reply json.RawMessage
		require.NoError(f, f.client.Do(f.Context(), http.MethodGet, "/tasks?operation=secret-operation", nil, &reply))
		require.NoError(f, submit.call(f.Context(), f.client))
		require.NoError(f, submit.call(f.Context(), f.client))

		want := fmt.Sprintf(`time=2000-01-01T00:00:00.000Z level=DEBUG msg="webdelivery: attempt" method=GET path=/acme/v1/tasks status=503 duration=0s attempt=1 wait=0s bytes=4
time=2000-01-01T00:00:00.000Z level=WARN msg="webdelivery: retry" method=GET path=/acme/v1/tasks attempt=1 status=503 wait=2s
time=2000-01-01T00:00:02.030Z level=DEBUG msg="webdelivery: attempt" method=GET path=/acme/v1/tasks status=200 duration=30ms attempt=2 wait=0s bytes=%d
`, len(reply))
		got := log.String()
		require.True(f, strings.HasPrefix(got, want), "want\n%s\ngot\n%s", want, got)
		// The second purge waits for its permit, 550 ms after the first; the first took 30 ms.
		assert.Regexp(f, `method=POST path=/acme/v1/cache/purge status=201 duration=30ms attempt=1 wait=520ms bytes=\d+\n$`, got)
		assert.NotContains(f, got, "secret-operation")
	})
}

func TestALoggerThatIsOffGetsNothing(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	inService(t, setup{options: []webdelivery.Option{webdelivery.WithLogger(logger)}}, func(f *fixture) {
		require.NoError(f, getTask.call(f.Context(), f.client))
		assert.Zero(f, log.Len())
	})
}
