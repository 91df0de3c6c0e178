package suite_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// The session id of a login fits in a cookie and is part of the response. If a response has no id, the error contains
// nothing of the response.
func FuzzSession(f *testing.F) {
	f.Add([]byte(`{"id":"s-1"}`), "application/json", "")
	f.Add([]byte(`{"session_id":12,"token":"x"}`), "", "authtoken=c-1; Path=/")
	f.Add([]byte(`"s-2"`), "application/json", "")
	f.Add([]byte("s-3\n"), "text/plain", "")
	f.Add([]byte(""), "", "authtoken=c-2")
	f.Add([]byte("<html>"), "text/html", "other=1")
	f.Add([]byte(`{"id":"a;b"}`), "", "")
	f.Add([]byte(`null`), "", "")
	f.Fuzz(func(t *testing.T, body []byte, contentType, setCookie string) {
		const mark = "zq7-not-to-be-seen"
		body = append(bytes.Clone(body), mark...)
		for _, body := range [][]byte{body, body[:len(body)-len(mark)]} {
			client := fixture.Answered(t, func(*http.Request) *http.Response {
				r := fixture.Response(http.StatusCreated, body)
				r.Header = http.Header{"Content-Type": {contentType}, "Set-Cookie": {setCookie}}
				return r
			})
			session, err := client.Sessions.Create(t.Context())
			if err != nil {
				require.Nil(t, session)
				assert.NotContains(t, err.Error(), mark)
				var e *webdelivery.Error
				require.ErrorAs(t, err, &e)
				assert.Empty(t, e.Body)
				continue
			}
			require.NotEmpty(t, session.ID)
			require.NoError(t, (&http.Cookie{Name: "authtoken", Value: session.ID}).Valid())
			cookies, err := http.ParseCookie("authtoken=" + session.ID)
			require.NoError(t, err)
			require.Equal(t, session.ID, cookies[0].Value)
			var text string
			var object map[string]any
			switch {
			case bytes.Contains(body, []byte(session.ID)), strings.Contains(setCookie, session.ID):
			case json.Unmarshal(body, &text) == nil:
				assert.Equal(t, text, session.ID)
			default: // an id that is written with escapes
				require.NoError(t, json.Unmarshal(body, &object))
				var texts []any
				for _, v := range object {
					texts = append(texts, v)
				}
				assert.Contains(t, texts, any(session.ID))
			}
		}
	})
}

// A rejection contains the password, in any of the forms in which services echo requests. The error is one line of
// valid text of limited length, with the status and without the password.
func FuzzErrorBody(f *testing.F) {
	for form := range byte(17) { // each of the forms below
		f.Add(400, []byte(`{"code":400,"description":"no configuration for "}`), 30, form, "application/json")
	}
	f.Add(500, []byte("<html>\x1b[31mBad\nGateway"), 3, byte(1), "text/html")
	f.Add(403, []byte(`{"message":"\ud800"}`), 12, byte(2), "")
	f.Add(409, []byte(`{"error_info":{"message":"first\nlevel=ERROR \u202etxt.exe","details":[]}}`), 28, byte(3), "\xff")
	f.Add(404, []byte(`{"description":"`+strings.Repeat(`long\u001b `, 20_000)+`"}`), 1, byte(4), "text/plain; charset")
	f.Add(302, []byte("moved"), 5, byte(5), "")
	f.Fuzz(func(t *testing.T, status int, body []byte, at int, form byte, contentType string) {
		status = 300 + max(status, -status)%300
		if status < 300 {
			return // the smallest int has no positive counterpart
		}
		const secret = `s3cr/t&"wört?>>?~?` // the two alphabets of Base64 write it differently
		quoted, err := json.Marshal(secret)
		require.NoError(t, err)
		forms := []string{
			secret, url.QueryEscape(secret), strings.Trim(string(quoted), `"`),
			`s3cr\u002ft\u0026\u0022w\u00F6rt\u003f>>?~?`, `s3cr\/t\u0026\"w\u00f6rt?>>?~?`, "s3cr%2ft%26%22w%c3%b6rt%3f>>?~?",
			"s3cr&#47;t&amp;&quot;w&#x00f6;rt?&gt;&gt;?~?",
		}
		for _, text := range []string{secret, fixture.Username + ":" + secret} {
			for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
				forms = append(forms, alphabet.EncodeToString([]byte(text)))
			}
		}
		forms = append(forms, "Basic "+forms[len(forms)-4])
		at = max(at, 0) % (len(body) + 1)
		echoed := forms[int(form)%len(forms)]
		body = bytes.Join([][]byte{body[:at], []byte(echoed), body[at:]}, nil)

		client := clientOf(t, webdelivery.BasicAuth(fixture.Username, secret), func(*http.Request) *http.Response {
			r := fixture.Response(status, body)
			r.Header = http.Header{"Content-Type": {contentType}, "X-Echo": {echoed}, "Location": {"https://" + echoed + "@example.com/"}}
			return r
		}, once)
		_, err = client.Tasks.Get(t.Context(), "t1")
		var e *webdelivery.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, status, e.StatusCode)
		assert.LessOrEqual(t, len(e.Body), 64<<10)
		text := err.Error()
		assert.True(t, utf8.ValidString(text), "%q", text)
		assert.False(t, strings.ContainsAny(text, "\n\x1b\u202e"), "%q", text)
		assert.Less(t, len(text), 2000)

		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Error("failed", "error", err)
		asJSON, err := json.Marshal(any(e))
		require.NoError(t, err)
		for _, seen := range []string{text, fmt.Sprintf("%+v %#v", e, *e), log.String(), string(asJSON), string(e.Body)} {
			for _, form := range forms {
				assert.NotContains(t, seen, strings.TrimRight(form, "="))
			}
		}
	})
}
