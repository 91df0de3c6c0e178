package webdelivery_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

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
		client := answered(t, func(r *http.Request) *http.Response {
			var err error
			sent, err = io.ReadAll(r.Body)
			require.NoError(t, err)
			return response(http.StatusCreated, []byte(`{"code":201,"transaction_id":7}`))
		})
		uri, mode := webdelivery.Exact(pattern), "EXACT_LITERAL"
		if prefix {
			uri, mode = webdelivery.Prefix(pattern), "PREFIX_LITERAL"
		}
		if modifier != "" {
			uri = uri.WithCacheKeyModifier(modifier)
		}
		// Between what is wrong and what is plain, purgeuri.go decides; purge_internal_test.go has its rules.
		hidden := regexp.MustCompile(`[\x00-\x1f\x7f\x{80}-\x{9f}\p{Z}\x{200b}\x{2060}\x{feff}]`)
		star := regexp.MustCompile(`^(https?://)?[a-z.]+/.*\*`)
		regex := regexp.MustCompile(`[\\^$+?()\[\]{}|]|\*.|^\.\*$`)
		wrong := pattern == "" || !utf8.ValidString(pattern) || !utf8.ValidString(modifier) || strings.Contains(pattern, "#") ||
			hidden.MatchString(pattern) || hidden.MatchString(strings.ReplaceAll(modifier, " ", "")) || prefix && star.MatchString(pattern) ||
			modifier != "" && (!prefix || regex.MatchString(modifier))
		plain := regexp.MustCompile(`^[!-"$-)+-~]+$`).MatchString(pattern) &&
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

// The client waits as long as Retry-After asks, or as its own policy says. It never waits longer than MaxWait: if the
// service asks for more, the client does not retry.
func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{
		"0", "1", "20", "21", "-1", "1.5", "9223372037", "99999999999999999999", "20000000000000000000A", " 7 ", "", "soon",
		"Fri, 20 Nov 2026 08:30:05 GMT", "Friday, 20-Nov-26 08:30:05 GMT", "Fri Nov 20 08:30:05 2026", "Fri, 20 Nov 1926 08:30:05 GMT",
	} {
		f.Add(value, "Fri, 20 Nov 2026 08:30:00 GMT", 503)
		f.Add(value, "", 429)
	}
	const most = 20 * time.Second
	f.Fuzz(func(t *testing.T, value, date string, status int) {
		if status != http.StatusTooManyRequests {
			status = http.StatusServiceUnavailable
		}
		synctest.Test(t, func(t *testing.T) {
			var at []time.Time
			transport := roundTripper(func(*http.Request) (*http.Response, error) {
				at = append(at, time.Now())
				if len(at) > 1 {
					return response(http.StatusOK, []byte(`{"id":"t1"}`)), nil
				}
				r := response(status, nil)
				r.Header = http.Header{"Retry-After": {value}, "Date": {date}}
				return r, nil
			})
			began := time.Now()
			client, err := webdelivery.NewClient("https://api.example.com", customer, webdelivery.BasicAuth(username, password),
				webdelivery.WithHTTPClient(&http.Client{Transport: transport}),
				webdelivery.WithRetry(webdelivery.RetryPolicy{MinWait: time.Second, MaxWait: most}))
			require.NoError(t, err)
			_, err = client.Tasks.Get(t.Context(), "t1")

			asked, said := wanted(value, date, began)
			if said && asked > most {
				require.Error(t, err)
				assert.Len(t, at, 1)
				assert.Zero(t, time.Since(began))
				return
			}
			require.NoError(t, err)
			require.Len(t, at, 2)
			wait := at[1].Sub(at[0])
			if said && asked > 0 {
				assert.Equal(t, asked, wait)
			} else {
				assert.GreaterOrEqual(t, wait, time.Duration(0))
				assert.Less(t, wait, time.Second)
			}
		})
	})
}

// wanted reads a Retry-After by RFC 9110 section 10.2.3: seconds, or a date in one of three forms, relative to the
// Date of the response. If the value is too long for a Duration, wanted returns the longest one.
func wanted(value, date string, now time.Time) (wait time.Duration, said bool) {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64((1<<63-1)/time.Second) {
			return 1<<63 - 1, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if sent, err := http.ParseTime(date); err == nil {
		now = sent
	}
	return at.Sub(now), true
}
