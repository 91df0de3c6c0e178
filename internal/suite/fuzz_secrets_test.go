package suite_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
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
	f.Add(400, []byte(`{"code":400,"description":"no configuration for "}`), 20, byte(0), "application/json")
	f.Add(500, []byte("<html>\x1b[31mBad\nGateway"), 3, byte(1), "text/html")
	f.Add(403, []byte(`{"message":"\ud800"}`), 12, byte(2), "")
	f.Add(409, []byte(`{"error_info":{"message":"x","details":[]}}`), 28, byte(3), "\xff")
	f.Add(404, []byte{}, 0, byte(4), "text/plain; charset")
	f.Add(302, []byte("moved"), 5, byte(5), "")
	f.Fuzz(func(t *testing.T, status int, body []byte, at int, form byte, contentType string) {
		status = 300 + max(status, -status)%300
		if status < 300 {
			return // the smallest int has no positive counterpart
		}
		const secret = `s3cr/t&"wört`
		quoted, err := json.Marshal(secret)
		require.NoError(t, err)
		forms := []string{
			secret, url.QueryEscape(secret), strings.Trim(string(quoted), `"`),
			base64.StdEncoding.EncodeToString([]byte(fixture.Username + ":" + secret)),
			"Basic " + base64.StdEncoding.EncodeToString([]byte(fixture.Username+":"+secret)),
			`s3cr\u002ft\u0026\u0022w\u00F6rt`, `s3cr\/t\u0026\"w\u00f6rt`, "s3cr%2ft%26%22w%c3%b6rt",
			"s3cr&#47;t&amp;&quot;w&#x00f6;rt", base64.RawURLEncoding.EncodeToString([]byte(secret)),
		}
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
		assert.NotContains(t, text, "\n")
		assert.LessOrEqual(t, len(text), 4<<10)

		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Error("failed", "error", err)
		asJSON, err := json.Marshal(any(e))
		require.NoError(t, err)
		for _, seen := range []string{text, fmt.Sprintf("%+v %#v", e, *e), log.String(), string(asJSON), string(e.Body)} {
			for _, form := range forms {
				assert.NotContains(t, seen, form)
			}
		}
	})
}

// A pattern that is sent reaches the service byte for byte, in valid JSON with the members of section 2.2. If the
// client refuses a pattern, a rule of section 4.4 is the reason, the error names the field, and nothing is sent.
func FuzzPurge(f *testing.F) {
	for _, pattern := range []string{
		"https://www.example.com/app.css", "*.example.com/a<b>&c", "http://www.example.com/\u2028\\\"", "a#b", "", "\xff", "www.example.com/%zz?q=*\x00",
	} {
		f.Add(pattern, "", false)
		f.Add(pattern, "v1*", true)
	}
	f.Add("www.example.com/", "v*1", true)
	f.Add("www.example.com/", "v1", false)
	f.Add("www.example.com/a b", "v 1", true)
	f.Add("*://www.example.com", "v1.*", true)
	f.Add("www.example.com/*", ".*", true)
	f.Add("\xe0", "\xa0\xa0", true)
	f.Add("www.example.com/", "\xff*", true)
	f.Fuzz(func(t *testing.T, pattern, modifier string, prefix bool) {
		var sent []byte
		client := fixture.Answered(t, func(r *http.Request) *http.Response {
			var err error
			sent, err = io.ReadAll(r.Body)
			require.NoError(t, err)
			return fixture.Response(http.StatusCreated, []byte(`{"code":201,"transaction_id":7}`))
		})
		uri, mode := fixture.PurgeOf(pattern).URIs[0], "EXACT_LITERAL"
		if prefix {
			uri, mode = webdelivery.Prefix(pattern), "PREFIX_LITERAL"
		}
		uri.CacheKeyModifierRegex = modifier
		// Between what is wrong and what is plain, purgeuri.go decides; purge_internal_test.go has its rules.
		hidden := regexp.MustCompile(`[\x00-\x1f\x7f\x{80}-\x{9f}\p{Z}\x{200b}\x{2060}\x{feff}]`)
		star := regexp.MustCompile(`^(https?://)?[a-z.]+/.*\*`)
		wrong := pattern == "" || !utf8.ValidString(pattern) || !utf8.ValidString(modifier) || strings.Contains(pattern, "#") ||
			hidden.MatchString(pattern) || prefix && star.MatchString(pattern) ||
			modifier != "" && (!prefix || strings.Contains(strings.TrimSuffix(modifier, "*"), "*"))
		plain := (prefix || strings.Contains(pattern, "://")) && // an exact one needs its protocol
			regexp.MustCompile(`^(https?://)?[a-z.]+(/[!-"$-)+-~]*)?$`).MatchString(pattern) &&
			(modifier == "" || prefix && regexp.MustCompile(`^[0-9A-Za-z_-]+\*?$`).MatchString(modifier))
		_, err := client.Purge.Submit(t.Context(), webdelivery.PurgeRequest{Action: webdelivery.ActionExpire, URIs: []webdelivery.PurgeURI{uri}})
		require.False(t, wrong && plain)
		if wrong || err != nil {
			var refused *webdelivery.ValidationError
			require.ErrorAs(t, err, &refused)
			require.False(t, plain)
			assert.Contains(t, []string{"uris[0].uri_pattern", "uris[0].cache_key_modifier_regex"}, refused.Field)
			assert.Nil(t, sent)
			return
		}
		want := map[string]any{"match_mode": mode, "uri_pattern": pattern}
		if modifier != "" {
			want["cache_key_modifier_regex"] = modifier
		}
		var got any
		require.NoError(t, json.Unmarshal(sent, &got))
		assert.Equal(t, map[string]any{"purge_request": map[string]any{"action": "EXPIRE", "uris": []any{want}}}, got)
	})
}
