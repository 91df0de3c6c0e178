package webdelivery_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// sessionResponse answers a login.
func sessionResponse(body, contentType string, cookies ...string) testserver.Fault {
	header := http.Header{"Set-Cookie": cookies, "Content-Type": nil}
	if contentType != "" {
		header["Content-Type"] = []string{contentType}
	}
	return testserver.Fault{Path: "/sessions", Status: http.StatusCreated, Body: body, Header: header}
}

func TestSessionIsReadInTheOrderOfTheDecision(t *testing.T) {
	t.Parallel()
	const other = "authtoken=from-cookie; Path=/; HttpOnly"
	tests := []struct {
		name    string
		body    string
		cookies []string
		want    string
	}{
		{"id first", `{"token":"5","authtoken":"4","sessionid":"3","session_id":"2","id":"1"}`, []string{other}, "1"},
		{"then session_id", `{"token":"5","authtoken":"4","sessionid":"3","session_id":"2"}`, nil, "2"},
		{"then sessionid", `{"token":"5","authtoken":"4","sessionid":"3"}`, nil, "3"},
		{"then authtoken", `{"token":"5","authtoken":"4"}`, nil, "4"},
		{"then token", `{"token":"5"}`, []string{other}, "5"},
		{"null and empty ids do not count", `{"id":null,"session_id":"","sessionid":{},"authtoken":"4"}`, []string{other}, "4"},
		{"number", `{"id":12345678901234567890}`, nil, "12345678901234567890"},
		{"unknown members", `{"user":"alice","ttl":3600}`, []string{other}, "from-cookie"},
		{"empty object", `{}`, []string{other}, "from-cookie"},
		{"null", `null`, []string{other}, "from-cookie"},
		{"JSON string", `"from-body"`, []string{other}, "from-body"},
		{"JSON string among blanks", " \"from-body\"\r\n", nil, "from-body"},
		{"JSON string with an escape", `"from\u002dbody"`, nil, "from-body"},
		{"empty JSON string", `""`, []string{other}, "from-cookie"},
		{"cookie before text", `welcome`, []string{other}, "from-cookie"},
		{"cookie among others", ``, []string{"lang=en", "AUTHTOKEN2=x; Path=/", other}, "from-cookie"},
		{"cookie in quotes", ``, []string{`authtoken="from-cookie"; Secure`}, "from-cookie"},
		{"cookie that deletes the old session", ``, []string{"authtoken=; Max-Age=0", other}, "from-cookie"},
		{"text", "from-text\r\n", nil, "from-text"},
		{"text of digits", "12345678901234567890", nil, "12345678901234567890"},
		{"text that looks like base64", "aGVsbG8+d29ybGQ/Zm9v==", nil, "aGVsbG8+d29ybGQ/Zm9v=="},
		{"text with another cookie", "from-text", []string{"lang=en"}, "from-text"},
	}
	for _, tt := range tests {
		for _, contentType := range []string{"application/json", "text/plain; charset=utf-8", ""} {
			t.Run(tt.name+" as "+contentType, func(t *testing.T) {
				t.Parallel()
				fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
					f.AddFault(sessionResponse(tt.body, contentType, tt.cookies...))
					session, err := f.Client.Sessions.Create(f.Context())
					require.NoError(f, err)
					assert.Equal(f, tt.want, session.ID)
				})
			})
		}
	}
}

// A response without a usable id may still contain the session, so the error quotes nothing of it.
func TestSessionThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	const marker = "5e5510n"
	tests := []struct {
		name, body, contentType string
		cookies                 []string
	}{
		{"nothing", ``, "", nil},
		{"blanks", " \n", "text/plain", nil},
		{"unknown members", `{"sid":"5e5510n"}`, "application/json", nil},
		{"nested", `{"session":{"id":"5e5510n"}}`, "application/json", nil},
		{"object for an id", `{"id":{"value":"5e5510n"}}`, "application/json", nil},
		{"array for an id", `{"id":["5e5510n"]}`, "application/json", nil},
		{"boolean for an id", `{"id":true,"note":"5e5510n"}`, "application/json", nil},
		{"array", `["5e5510n"]`, "application/json", nil},
		{"null", `null`, "application/json", nil},
		{"empty string", `""`, "application/json", nil},
		{"cut short", `{"id":"5e5510n`, "application/json", nil},
		{"string cut short", `"5e5510n`, "application/json", nil},
		{"two objects", `{"id":"5e5510n"}{"id":"x"}`, "application/json", nil},
		{"HTML", `<html><body>5e5510n</body></html>`, "text/html; charset=utf-8", nil},
		{"HTML that says it is not", `<html><body>5e5510n</body></html>`, "text/plain", nil},
		{"a word as HTML", `5e5510n`, "text/html", nil},
		{"a word as XHTML", `5e5510n`, "application/xhtml+xml", nil},
		{"sentence", `your session is 5e5510n`, "text/plain", nil},
		{"another cookie", ``, "", []string{"session=5e5510n"}},
		{"empty cookie", `{"ok":"5e5510n"}`, "", []string{"authtoken="}},
		{"cookie of another letter case", ``, "", []string{"AuthToken=5e5510n"}},
		{"semicolon", `{"id":"5e5510n;b"}`, "application/json", nil},
		{"blank", `{"id":"5e5510n b"}`, "application/json", nil},
		{"comma", `{"id":"5e5510n,b"}`, "application/json", nil},
		{"quote", `{"id":"5e5510n\"b"}`, "application/json", nil},
		{"backslash", `{"id":"5e5510n\\b"}`, "application/json", nil},
		{"line break", `{"id":"5e5510n\r\nX-Evil: yes"}`, "application/json", nil},
		{"NUL", `{"id":"5e5510n\u0000"}`, "application/json", nil},
		{"letter beyond ASCII", `{"id":"5e5510nü"}`, "application/json", nil},
		{"text beyond ASCII", "5e5510n\xff", "text/plain", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				f.AddFault(sessionResponse(tt.body, tt.contentType, tt.cookies...))
				session, err := f.Client.Sessions.Create(f.Context())
				assert.Nil(f, session)
				assert.ErrorIs(f, err, webdelivery.ErrBadResponse)
				var e *webdelivery.Error
				require.ErrorAs(f, err, &e)
				assert.Empty(f, e.Body)
				assert.Empty(f, e.Header.Values("Set-Cookie"))
				assert.NotContains(f, fixture.EveryPrint(err), marker)
				assert.ErrorContains(f, err, "session")
				assert.Len(f, f.Srv.Requests(), 1)
			})
		})
	}
}

func TestSessionNeverShowsItsID(t *testing.T) {
	t.Parallel()
	session := webdelivery.Session{ID: "s3ss10n-1d/4567"}
	type holder struct {
		Session webdelivery.Session
		Pointer *webdelivery.Session
	}
	for name, v := range map[string]any{
		"value": session, "pointer": &session, "in a struct": holder{session, &session}, "in a struct behind a pointer": &holder{session, &session},
		"in a slice": []webdelivery.Session{session}, "in a slice of pointers": []*webdelivery.Session{&session},
		"in a map": map[string]webdelivery.Session{"s": session}, "as a key": map[webdelivery.Session]int{session: 1},
		"in an error": fmt.Errorf("%v: %w", session, fmt.Errorf("%+v", &session)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown := fixture.EveryPrint(v) + fmt.Sprintf("%X %10s %-5.3q %t %c %U %o", v, v, v, v, v, v, v)
			for _, secret := range []string{session.ID, session.ID[:6], hex.EncodeToString([]byte(session.ID))} {
				assert.NotContains(t, strings.ToLower(shown), secret)
			}
			if name != "as a key" { // such a map is not JSON; all other forms show [redacted]
				assert.Contains(t, shown, "redacted")
			}
		})
	}
	var none *webdelivery.Session
	assert.NotPanics(t, func() { fixture.EveryPrint(none) })
}

// A rejected login is not retried: retries could lock the account.
func TestSessionRefusedIsUnauthorized(t *testing.T) {
	t.Parallel()
	for _, auth := range []func(username, password string) webdelivery.Auth{webdelivery.BasicAuth, webdelivery.SessionAuth} {
		wrong := auth(fixture.Username, "wrong-password")
		t.Run(wrong.String(), func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{Auth: wrong}, func(f *fixture.Fixture) {
				session, err := f.Client.Sessions.Create(f.Context())
				assert.Nil(f, session)
				assert.ErrorIs(f, err, webdelivery.ErrUnauthorized)
				var e *webdelivery.Error
				require.ErrorAs(f, err, &e)
				assert.Equal(f, []any{401, "Unauthorized", 1}, []any{e.StatusCode, e.Description, e.Attempts})
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				assert.Len(f, f.Srv.Requests(), 1)
				assert.Zero(f, f.Srv.Logins())
			})
		})
	}
}

// Sessions.Create is for other clients: a client that logs in by itself sends its password, not its session, and keeps
// its session.
func TestSessionCreateLeavesTheClientAsItIs(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{Auth: webdelivery.SessionAuth(fixture.Username, fixture.Password)}, func(f *fixture.Fixture) {
		list := func() string {
			_, err := f.Client.Tasks.List(f.Context(), webdelivery.TaskListOptions{})
			require.NoError(f, err)
			all := f.Srv.Requests()
			return all[len(all)-1].Header.Get("Cookie")
		}
		own := list()
		session, err := f.Client.Sessions.Create(f.Context())
		require.NoError(f, err)
		all := f.Srv.Requests()
		assert.True(f, strings.HasPrefix(all[len(all)-1].Header.Get("Authorization"), "Basic "))
		assert.Empty(f, all[len(all)-1].Header.Values("Cookie"))
		assert.NotEqual(f, "authtoken="+session.ID, own)
		assert.Equal(f, own, list())
		assert.Equal(f, 2, f.Srv.Logins())
		assert.False(f, slices.ContainsFunc(all[1:2], func(r testserver.Request) bool { return r.Header.Get("Authorization") != "" }))
	})
}

// Services remove an old cookie before they set the new one, so the last one that has not expired counts. Of two ids, the
// client takes none.
func TestSessionsOfSeveralCookies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		cookies []string
		body    string
		id      string // "": ErrBadResponse
	}{
		{"the last one", []string{"authtoken=old", "authtoken=new; Path=/; Max-Age=3600"}, "", "new"},
		{"the last one was removed", []string{"authtoken=new", "authtoken=old; Max-Age=0"}, "", "new"},
		{"the last one has expired", []string{"authtoken=new", "authtoken=old; Expires=Thu, 01 Jan 1970 00:00:00 GMT"}, "", "new"},
		{"Max-Age has priority", []string{"authtoken=old", "authtoken=new; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT"}, "", "new"},
		{"it will expire", []string{"authtoken=new; Expires=Fri, 31 Dec 2100 00:00:00 GMT"}, "", "new"},
		{"another cookie", []string{"authtoken=new", "other=x"}, "", "new"},
		{"all have expired", []string{"authtoken=old; Max-Age=0", "authtoken=; Max-Age=60"}, "", ""},
		{"an id in the body", []string{"authtoken=other"}, `{"id":"new"}`, "new"},
		{"two ids", nil, `{"id":"a","id":"b"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := fixture.Answered(t, func(*http.Request) *http.Response {
				r := fixture.Response(http.StatusOK, []byte(tt.body))
				r.Header["Set-Cookie"] = tt.cookies
				return r
			})
			session, err := client.Sessions.Create(t.Context())
			if tt.id == "" {
				require.ErrorIs(t, err, webdelivery.ErrBadResponse)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, tt.id, session.ID)
		})
	}
}

// What Sessions.Create has created is removed from errors at once, and however many follow, the session that the client
// uses is, too.
func TestCreatedSessionsAreRemoved(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
		cookies := f.Srv.Requests()
		own := strings.TrimPrefix(cookies[len(cookies)-1].Header.Get("Cookie"), "authtoken=")
		require.NotEmpty(f, own)
		var last string
		for range 20 {
			session, err := f.Client.Sessions.Create(f.Context())
			require.NoError(f, err)
			last = session.ID
		}
		f.AddFault(testserver.Fault{Path: "/tasks/**", Status: 400, Body: `{"description":"` + own + ` and ` + last + `"}`})
		_, err := f.Client.Tasks.Get(f.Context(), last)
		require.ErrorIs(f, err, webdelivery.ErrBadRequest)
		assert.NotContains(f, err.Error(), own)
		assert.NotContains(f, err.Error(), last)
	})
}
