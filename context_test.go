package webdelivery_test

import (
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

// A call says what its last request was like, whether it succeeds or fails, and nothing of a login.
func TestContextWithResponse(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		id := http.Header{"X-Request-Id": {"abc-1"}, "Set-Cookie": {"authtoken=s3cret"}}
		f.AddFault(testserver.Fault{Path: "/tasks/*", Status: 503, Header: http.Header{"X-Request-Id": {"first"}}, Count: 1})
		f.AddFault(testserver.Fault{Path: "/tasks/" + fixture.TaskID, Status: 200, Header: id, Body: `{"id":"` + fixture.TaskID + `"}`})
		var r webdelivery.Response
		ctx := webdelivery.ContextWithResponse(f.Context(), &r)
		_, err := f.Client.Tasks.Get(ctx, fixture.TaskID)
		require.NoError(f, err)
		assert.Equal(f, "Tasks.Get", r.Operation)
		assert.Equal(f, 200, r.StatusCode)
		assert.Equal(f, "abc-1", r.RequestID)
		assert.Equal(f, 2, r.Attempts)
		assert.Positive(f, r.Duration)
		assert.Equal(f, "abc-1", r.Header.Get("X-Request-Id"))
		assert.NotContains(f, r.Header, "Set-Cookie")

		err = f.Client.Do(ctx, http.MethodGet, "/no/such/thing", nil, nil)
		require.ErrorIs(f, err, webdelivery.ErrNotFound)
		assert.Equal(f, "Do GET", r.Operation)
		assert.Equal(f, 404, r.StatusCode)
		assert.Regexp(f, `^request-\d+$`, r.RequestID, "each response has one")

		before := r
		_, err = f.Client.Tasks.Get(ctx, "")
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		assert.Equal(f, before, r, "nothing was sent")
	})
}

// A sequence has written the response of its page when it yields, also while others are read ahead, and so has a call
// that sends several requests at once, when it returns.
func TestContextWithResponseOfManyRequests(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		var entries []string
		for i := range 30 {
			entries = append(entries, fmt.Sprintf("192.0.2.%d", i))
		}
		list := f.Srv.AddNetworkList(testserver.NetworkListSpec{Name: "many", Entries: entries})
		var r webdelivery.Response
		ctx := webdelivery.ContextWithResponse(f.Context(), &r)
		n := 0
		for _, err := range f.Client.NetworkLists.AllEntries(ctx, list, webdelivery.EntryOptions{Count: 3, ReadAhead: 4}) {
			require.NoError(f, err)
			assert.Equal(f, "NetworkLists.Entries", r.Operation)
			if n++; n%3 == 0 {
				r = webdelivery.Response{} // the last entry of its page
			}
		}
		assert.Equal(f, 30, n)
		_, err := f.Client.NetworkLists.RemoveEntries(ctx, list, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"})
		require.NoError(f, err)
		assert.Equal(f, "NetworkLists.DeleteEntry", r.Operation)
		f.AddFault(testserver.Fault{Method: http.MethodDelete, Count: 1, Status: http.StatusForbidden})
		_, err = f.Client.NetworkLists.RemoveEntries(ctx, list, entries[4:])
		require.ErrorIs(f, err, webdelivery.ErrForbidden)
		assert.Equal(f, http.StatusForbidden, r.StatusCode, "those that were under way do not hide the failure")
	})
}

// Of the response to a login, nothing is told in which a session may be.
func TestContextWithResponseOfALogin(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/sessions", Status: 201, Body: `{"session_id":"s3cr3t"}`, Header: http.Header{"X-Auth-Token": {"s3cr3t"}, "Date": {"today"}}})
		var r webdelivery.Response
		_, err := f.Client.Sessions.Create(webdelivery.ContextWithResponse(f.Context(), &r))
		require.NoError(f, err)
		assert.Equal(f, http.Header{"Content-Type": {"application/json"}, "Date": {"today"}}, r.Header)
	})
}

// The headers of a context are sent with each attempt of a call, but not with its login.
func TestContextWithHeader(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/tasks/*", Status: 503, Count: 1})
		ctx := webdelivery.ContextWithHeader(f.Context(), http.Header{"traceparent": {"00-abc"}, "X-Ticket": {"old"}})
		ctx = webdelivery.ContextWithHeader(ctx, http.Header{"x-ticket": {"T-2"}, "X-Ticket": {"T-1"}})
		var sent []http.Header
		f.HTTP.Transport = observed(f.HTTP.Transport, func(r *http.Request) { sent = append(sent, r.Header.Clone()) })
		require.NoError(f, fixture.GetTask.Call(ctx, f.NewClient(f.Srv.URL(), fixture.BySession)))
		require.Len(f, sent, 3)
		assert.NotContains(f, sent[0], "Traceparent", "the login")
		for _, h := range sent[1:] {
			assert.Equal(f, []string{"00-abc"}, h["Traceparent"])
			assert.Equal(f, []string{"T-1", "T-2"}, h["X-Ticket"])
		}
	})
}

func observed(next http.RoundTripper, see func(*http.Request)) http.RoundTripper {
	return fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
		see(r)
		return next.RoundTrip(r)
	})
}

// A header that changes who asks, or how a request or response is read, is refused with its name and without its value.
func TestHeadersThatAreNotTheCallers(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		for _, name := range []string{
			"Authorization", "proxy-authorization", "Proxy-Connection", "cookie", "Host", "user-agent", "Content-Type", "content-length", "Accept",
			"Accept-Encoding", "Range", "If-Match", "if-none-match", "Expect", "TE", "Trailer", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade",
			"", "two words", "X-\u00e9",
		} {
			ctx := webdelivery.ContextWithHeader(f.Context(), http.Header{name: {"s3cret-value"}})
			err := fixture.GetTask.Call(ctx, f.Client)
			var invalid *webdelivery.ValidationError
			require.ErrorAs(f, err, &invalid, name)
			assert.Contains(f, strings.ToLower(invalid.Field), strings.ToLower(name))
			assert.NotContains(f, err.Error(), "s3cret-value")
		}
		ctx := webdelivery.ContextWithHeader(f.Context(), http.Header{"X-Ticket": {"a\r\nCookie: b"}})
		require.ErrorIs(f, fixture.GetTask.Call(ctx, f.Client), webdelivery.ErrInvalid)
		assert.Empty(f, f.Srv.Requests())
	})
}

// The id of a request stands in the error and in its text, on one line, cut and without secrets.
func TestRequestIDs(t *testing.T) {
	t.Parallel()
	for want, header := range map[string]http.Header{
		"abc-1":                  {"X-Request-Id": {"abc-1"}, "X-Correlation-Id": {"def"}},
		"def":                    {"X-Request-Id": {""}, "X-Correlation-Id": {"def"}},
		"id-[redacted]":          {"X-Request-Id": {"id-" + fixture.Password}},
		strings.Repeat("x", 128): {"X-Request-Id": {strings.Repeat("x", 1000)}},
		"":                       {"X-Request-Id": {""}},
	} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Status: 404, Header: header})
			var e *webdelivery.Error
			require.ErrorAs(f, fixture.GetTask.Call(f.Context(), f.Client), &e)
			assert.Equal(f, want, e.RequestID)
			assert.Equal(f, want != "", strings.HasSuffix(e.Error(), " [request "+want+"]"), e.Error())
		})
	}
}
