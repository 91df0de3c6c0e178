package webdelivery_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Open point 5: the id is a member, in this order, or a JSON string, or the cookie, or the whole text. Services remove an old
// cookie before they set the new one, so the last one that has not expired counts.
func TestSessionIsReadInTheOrderOfTheDecision(t *testing.T) {
	t.Parallel()
	const other = "authtoken=from-cookie; Path=/; HttpOnly"
	for _, tt := range []struct {
		body    string
		cookies []string
		want    string
	}{
		{`{"token":"5","authtoken":"4","sessionid":"3","session_id":"2","id":"1"}`, []string{other}, "1"},
		{`{"token":"5","authtoken":"4","sessionid":"3","session_id":"2"}`, nil, "2"},
		{`{"token":"5","authtoken":"4","sessionid":"3"}`, nil, "3"},
		{`{"token":"5","authtoken":"4"}`, nil, "4"},
		{`{"token":"5"}`, []string{other}, "5"},
		{`{"id":null,"session_id":"","sessionid":{},"authtoken":"4"}`, []string{other}, "4"},
		{`{"id":12345678901234567890}`, nil, "12345678901234567890"},
		{`{"user":"alice","ttl":3600}`, []string{other}, "from-cookie"},
		{`null`, []string{other}, "from-cookie"},
		{" \"from-body\"\r\n", []string{other}, "from-body"},
		{`"from\u002dbody"`, nil, "from-body"},
		{`""`, []string{other}, "from-cookie"},
		{`welcome`, []string{other}, "from-cookie"},
		{"from-text\r\n", []string{"lang=en"}, "from-text"},
		{"12345678901234567890", nil, "12345678901234567890"},
		{"aGVsbG8+d29ybGQ/Zm9v==", nil, "aGVsbG8+d29ybGQ/Zm9v=="},

		{``, []string{"lang=en", "AUTHTOKEN2=x; Path=/", other, "other=x"}, "from-cookie"},
		{``, []string{`authtoken="from-cookie"; Secure`}, "from-cookie"},
		{``, []string{"authtoken=; Max-Age=0", other}, "from-cookie"},
		{``, []string{"authtoken=old", "authtoken=new; Path=/; Max-Age=3600"}, "new"},
		{``, []string{"authtoken=new", "authtoken=old; Max-Age=0"}, "new"},
		{``, []string{"authtoken=new", "authtoken=old; Expires=Thu, 01 Jan 1970 00:00:00 GMT"}, "new"},
		{``, []string{"authtoken=old", "authtoken=new; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT"}, "new"},
		{``, []string{"authtoken=new; Expires=Fri, 31 Dec 2100 00:00:00 GMT"}, "new"},
	} {
		for _, contentType := range []string{"application/json", "text/plain; charset=utf-8", ""} {
			session, err := answersLogin(t, tt.body, contentType, tt.cookies).Sessions.Create(t.Context())
			require.NoError(t, err, "%q %q", tt.body, tt.cookies)
			assert.Equal(t, tt.want, session.ID, "%q %q", tt.body, tt.cookies)
		}
	}
}

// answersLogin is a client whose logins get this response.
func answersLogin(t *testing.T, body, contentType string, cookies []string) *webdelivery.Client {
	t.Helper()
	return fixture.Answered(t, func(*http.Request) *http.Response {
		r := fixture.Response(http.StatusCreated, []byte(body))
		r.Header = http.Header{"Set-Cookie": cookies}
		if contentType != "" {
			r.Header["Content-Type"] = []string{contentType}
		}
		return r
	})
}

// A response without a usable id may still contain the session, so the error quotes nothing of it.
func TestSessionThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	const marker, json, text = "5e5510n", "application/json", "text/plain"
	for _, tt := range []struct {
		body, contentType string
		cookies           []string
	}{
		{" \n", text, nil},
		{`{"session":{"id":"5e5510n"}}`, json, nil},
		{`{"id":{"value":"5e5510n"}}`, json, nil},
		{`{"id":true,"note":"5e5510n"}`, json, nil},
		{`["5e5510n"]`, json, nil},
		{`null`, json, nil},
		{`""`, json, nil},
		{`{"id":"5e5510n`, json, nil},
		{`"5e5510n`, json, nil},
		{`{"id":"5e5510n"}{"id":"x"}`, json, nil},
		{`{"id":"5e5510n","id":"b"}`, json, nil},
		{`<html><body>5e5510n</body></html>`, text, nil},
		{`5e5510n`, "text/html; charset=utf-8", nil},
		{`5e5510n`, "application/xhtml+xml", nil},
		{`your session is 5e5510n`, text, nil},
		{``, "", []string{"session=5e5510n"}},
		{``, "", []string{"AuthToken=5e5510n"}},
		{``, "", []string{"authtoken=5e5510n; Max-Age=0", "authtoken=; Max-Age=60"}},
		{`{"ok":"5e5510n"}`, "", []string{"authtoken="}},
		{`{"id":"5e5510n;b"}`, json, nil},
		{`{"id":"5e5510n\r\nX-Evil: yes"}`, json, nil},
		{"5e5510n\xff", text, nil},
	} {
		session, err := answersLogin(t, tt.body, tt.contentType, tt.cookies).Sessions.Create(t.Context())
		assert.Nil(t, session)
		require.ErrorIs(t, err, webdelivery.ErrBadResponse, "%q", tt.body)
		var e *webdelivery.Error
		require.ErrorAs(t, err, &e)
		assert.Empty(t, e.Body)
		assert.Empty(t, e.Header.Values("Set-Cookie"))
		assert.NotContains(t, fixture.EveryPrint(err), marker)
		assert.ErrorContains(t, err, "session")
		assert.Equal(t, 1, e.Attempts)
	}
}

func TestSessionNeverShowsItsID(t *testing.T) {
	t.Parallel()
	session := webdelivery.Session{ID: "s3ss10n-1d/4567"}
	for name, v := range map[string]any{
		"value": session, "pointer": &session, "in a slice of pointers": []*webdelivery.Session{&session},
		"in a map": map[string]webdelivery.Session{"s": session}, "as a key": map[webdelivery.Session]int{session: 1},
		"in an error": fmt.Errorf("%v: %w", session, fmt.Errorf("%+v", &session)),
	} {
		shown := fixture.EveryPrint(v) + fmt.Sprintf("%X %10s %-5.3q %t %c %U %o", v, v, v, v, v, v, v)
		for _, secret := range []string{session.ID, session.ID[:6], hex.EncodeToString([]byte(session.ID))} {
			assert.NotContains(t, strings.ToLower(shown), secret, name)
		}
		if name != "as a key" { // such a map is not JSON; all other forms show [redacted]
			assert.Contains(t, shown, "redacted", name)
		}
	}
	var none *webdelivery.Session
	assert.NotPanics(t, func() { fixture.EveryPrint(none) })
}

// Sessions.Create is for other clients: a client that logs in by itself sends its password, not its session, and keeps
// its session. A rejected login is not retried: retries could lock the account.
func TestSessionCreateLeavesTheClientAsItIs(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
		session, err := f.Client.Sessions.Create(f.Context())
		require.NoError(f, err)
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
		assert.Equal(f, 2, f.Srv.Logins())
		own, created := f.Sent(fixture.GetTask), f.Sent(fixture.CreateSession)[1]
		assert.Equal(f, own[0]["Cookie"], own[1]["Cookie"])
		assert.NotEqual(f, "authtoken="+session.ID, own[0].Get("Cookie"))
		assert.Empty(f, created["Cookie"])
		assert.True(f, strings.HasPrefix(created.Get("Authorization"), "Basic "))

		f.AddFault(testserver.Fault{Path: "/sessions", Status: 401})
		session, err = f.Client.Sessions.Create(f.Context())
		assert.Nil(f, session)
		require.ErrorIs(f, err, webdelivery.ErrUnauthorized)
		assert.Equal(f, 3, f.Requests(fixture.CreateSession))
	})
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
