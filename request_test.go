package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// The outcome of a write after faults that leave it unknown, and after faults that do not.
func TestOutcomeOfAFailedWrite(t *testing.T) {
	t.Parallel()
	cut, refused := testserver.Fault{Cut: testserver.CutAfterRead}, testserver.Fault{Status: 400}
	lost := cut
	lost.Count = 1
	page := testserver.Fault{Status: 201, Body: "<html>", Header: http.Header{"Content-Type": {"text/html"}}}
	busy := testserver.Fault{Status: 503, Header: http.Header{"Retry-After": {"1"}}}
	for name, tt := range map[string]struct {
		op       fixture.Operation
		faults   []testserver.Fault
		want     webdelivery.Outcome
		requests int
	}{
		"rejected":                {fixture.PostWrite, []testserver.Fault{refused}, webdelivery.OutcomeNotApplied, 1},
		"cut after it was read":   {fixture.PostWrite, []testserver.Fault{cut}, webdelivery.OutcomeUnknown, 1},
		"500":                     {fixture.PostWrite, []testserver.Fault{{Status: 500}}, webdelivery.OutcomeUnknown, 1},
		"told to come later":      {fixture.PostWrite, []testserver.Fault{busy}, webdelivery.OutcomeNotApplied, 3},
		"a purge is rejected":     {fixture.Submit, []testserver.Fault{refused}, webdelivery.OutcomeNotApplied, 1},
		"a purge, after a cut":    {fixture.Submit, []testserver.Fault{lost, refused}, webdelivery.OutcomeUnknown, 2},
		"a success without JSON":  {fixture.Submit, []testserver.Fault{page}, webdelivery.OutcomeUnknown, 1},
		"a delete":                {fixture.DeleteOne, []testserver.Fault{{Status: 502}}, webdelivery.OutcomeUnknown, 4},
		"a read that nobody sees": {fixture.GetTask, []testserver.Fault{cut}, webdelivery.OutcomeNotApplied, 4},
	} {
		fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
			for _, fault := range tt.faults {
				fault.Path = tt.op.Path
				f.AddFault(fault)
			}
			err := tt.op.Call(f.Context(), f.Client)
			require.Error(f, err, name)
			assert.Equal(f, tt.want, webdelivery.OutcomeOf(err), name)
			assert.Equal(f, tt.requests, f.Requests(tt.op), name)
		})
	}
}

// A DELETE may have worked in its first attempt, and its retry gets 404: Do returns nil, and leaves out unchanged. After a
// first 404, or an attempt that was certainly rejected, a 404 is ErrNotFound, and so it is for a read.
func TestDelete404(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op    fixture.Operation
		first testserver.Fault
		gone  bool
	}{
		{fixture.DeleteOne, testserver.Fault{Cut: testserver.CutAfterRead}, true},
		{fixture.DeleteOne, testserver.Fault{Status: 502}, true},
		{fixture.DeleteOne, testserver.Fault{Status: 429}, false},
		{fixture.DeleteOne, testserver.Fault{Status: 404}, false},
		{fixture.GetTask, testserver.Fault{Status: 502}, false},
	} {
		fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
			tt.first.Count = 1
			f.AddFault(tt.first)
			f.AddFault(testserver.Fault{Status: 404})
			task := webdelivery.Task{ID: "unchanged"}
			method := http.MethodDelete
			if tt.op.Name == fixture.GetTask.Name {
				method = http.MethodGet
			}
			if err := f.Client.Do(f.Context(), method, tt.op.Path, nil, &task); tt.gone {
				require.NoError(f, err, "%+v", tt.first)
			} else {
				require.ErrorIs(f, err, webdelivery.ErrNotFound, "%+v", tt.first)
			}
			assert.Equal(f, webdelivery.Task{ID: "unchanged"}, task)
		})
	}
}

// An error has the words of the body, or the text of the status, the headers, and the first 64 KiB of the body.
func TestErrorPages(t *testing.T) {
	t.Parallel()
	const json = "application/json"
	for _, tt := range []struct {
		contentType, body, description string
		kept                           int
	}{
		{json, `{"code":404,"description":"no such task"}`, "no such task", 41},
		{json, `{"message":"no such task"}`, "no such task", 26},
		{json, `{"error_info":{"message":"no such task"}}`, "no such task", 41},
		{"text/html", "<html>gone</html>", "Not Found", 17},
		{"", "", "Not Found", 0},
		{"text/plain", strings.Repeat("x", 100<<10), "Not Found", 64 << 10},
	} {
		fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Status: 404, Body: tt.body, Header: http.Header{"Content-Type": {tt.contentType}, "X-Request-Id": {"r-1"}}})
			var e *webdelivery.Error
			require.ErrorAs(f, fixture.GetTask.Call(f.Context(), f.Client), &e)
			require.ErrorIs(f, e, webdelivery.ErrNotFound)
			require.ErrorContains(f, e, "; check the id, the customer and the base URL")
			assert.Equal(f, tt.description, e.Description)
			assert.Len(f, e.Body, tt.kept)
			assert.Equal(f, "r-1", e.Header.Get("X-Request-Id"))
		})
	}
}

// The body of a 101 is the connection, which the service keeps open. The client does not read from it.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	keepOpen := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
			_, _ = conn.Read(make([]byte, 1)) // until the client closes it
			_ = conn.Close()
		}
	}
	for _, op := range []fixture.Operation{fixture.GetTask, fixture.Submit, fixture.CreateSession} {
		fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Count: 1, Handler: keepOpen})
			began := time.Now()
			require.ErrorIs(f, op.Call(f.Context(), f.Client), webdelivery.ErrBadResponse, op.Name)
			assert.Zero(f, time.Since(began), op.Name)
			require.NoError(f, op.Call(f.Context(), f.Client), op.Name)
		})
	}
}

// A transport gets a clone of the request: its changes to the header do not appear in the next attempt.
func TestEachAttemptHasARequestOfItsOwn(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		var marks []string
		f.HTTP.Transport = fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
			assert.Nil(f, r.GetBody, "with it, net/http would send the request again by itself")
			marks = append(marks, r.Header.Get("X-Mark")+r.Header.Get("Accept"))
			r.Header.Set("X-Mark", "was here ")
			return &http.Response{StatusCode: 503}, nil
		})
		client := f.NewClient(f.Srv.URL(), fixture.Setup{})
		require.Error(f, fixture.GetTask.Call(f.Context(), client))
		assert.Equal(f, []string{"application/json", "application/json", "application/json", "application/json"}, marks)
		require.Error(f, fixture.Submit.Call(f.Context(), client))
	})
}

// WithMaxResponseBytes counts the bytes of the body: exactly so many are read, and one more is an error that no retry meets.
func TestAResponseOfExactlyTheLimitIsRead(t *testing.T) {
	t.Parallel()
	const body = `{"id":"task-1"}`
	for beyond, want := range map[int]error{0: nil, 1: webdelivery.ErrResponseTooLarge} {
		limit := webdelivery.WithMaxResponseBytes(int64(len(body) - beyond))
		fixture.InService(t, fixture.Setup{Options: []webdelivery.Option{limit}}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Status: 200, Body: body})
			require.ErrorIs(f, fixture.GetTask.Call(f.Context(), f.Client), want)
			assert.Equal(f, 1, f.Requests(fixture.GetTask))
		})
	}
}

// Timeout of the user's http.Client limits one attempt, as the SDK's own timeout does: each retry has its own.
func TestHTTPClientTimeoutIsPerAttempt(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.HTTP.Timeout = 3 * time.Second
		client := f.NewClient(f.Srv.URL(), fixture.Setup{})
		f.AddFault(testserver.Fault{Delay: time.Hour, Count: 2})
		began := time.Now()
		require.NoError(f, fixture.GetTask.Call(f.Context(), client))
		assert.Less(f, time.Since(began), 30*time.Second, "the SDK's own limit of one attempt")
		assert.Equal(f, 3, f.Requests(fixture.GetTask))
		assert.Equal(f, 3*time.Second, f.HTTP.Timeout, "the user's client is unchanged")
	})
}

// The client follows no redirect, wherever it leads (internal/suite has every status and operation). The error does not
// contain its address.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 302, Header: http.Header{"Location": {"http://evil.example.com/login?token=t0ps3cret"}}})
		var e *webdelivery.Error
		require.ErrorAs(f, fixture.GetTask.Call(f.Context(), f.Client), &e)
		require.ErrorIs(f, e, webdelivery.ErrBadResponse)
		assert.Equal(f, 302, e.StatusCode)
		assert.Contains(f, e.Error(), "http://evil.example.com")
		assert.NotContains(f, fmt.Sprintf("%v %#v", e, e), "t0ps3cret")
		assert.Equal(f, 1, f.Requests(fixture.GetTask))
		assert.Zero(f, f.Srv.ForeignDials())
	})
}

// 30 calls use one connection: responses with a length, chunked ones, errors, and errors longer than what the client
// keeps of them.
func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	chunked := func(status int, size int) testserver.Fault {
		return testserver.Fault{Handler: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, `{"id":"a","description":"`+strings.Repeat("d", size)+`"}`)
		}}
	}
	for name, fault := range map[string]testserver.Fault{
		"with a length": {}, "chunked": chunked(200, 100<<10), "503": {Status: 503}, "chunked 404": chunked(404, 10), "long chunked 404": chunked(404, 200<<10),
		"HTML": {Status: 200, Body: "<html>", Header: http.Header{"Content-Type": {"text/html"}}},
	} {
		fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
			fault.Path = "/tasks/**"
			f.AddFault(fault)
			for range 30 {
				_ = fixture.GetTask.Call(f.Context(), f.Client)
			}
			assert.GreaterOrEqual(f, f.Requests(fixture.GetTask), 30, name)
			assert.Equal(f, 1, f.Srv.Connections(), name)
		})
	}
}

// A transport of the user's that does not report its connections cannot prove that a request was not sent. Only what
// net/http says of one that the server of HTTP/2 did not process does (internal/hostile shows that it says so).
func TestAnUnknownTransportProvesNothing(t *testing.T) {
	t.Parallel()
	for text, proves := range map[string]bool{
		"broken": false, "stream error: stream ID 3; CANCEL; received from peer": false, "http2: server sent GOAWAY and closed the connection": false,
		"stream error: stream ID 3; REFUSED_STREAM; received from peer": true, "http2: Transport received Server's graceful shutdown GOAWAY": true,
	} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			calls := 0
			f.HTTP.Transport = fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
				calls++
				return nil, errors.New(text)
			})
			err := fixture.PostWrite.Call(f.Context(), f.NewClient(f.Srv.URL(), fixture.Setup{}))
			want, attempts := webdelivery.OutcomeUnknown, 1
			if proves {
				want, attempts = webdelivery.OutcomeNotApplied, 3
			}
			assert.Equal(f, want, webdelivery.OutcomeOf(err), text)
			assert.Equal(f, attempts, calls, text)
		})
	}
}

// When an attempt ends, in whatever way, the context of its request has ended too, and its body is closed once, so that the
// connection can be used again. A final status below 200 is an error.
func TestAnAttemptEndsItsContext(t *testing.T) {
	t.Parallel()
	task := func(c *webdelivery.Client) error {
		_, err := c.Tasks.Get(t.Context(), fixture.TaskID)
		return err
	}
	left := errors.New("left early")
	const aTask = `{"id":"task-1"}`
	for _, tt := range []struct {
		status int
		body   string
		call   func(*webdelivery.Client) error
		want   error
	}{
		{101, aTask, task, webdelivery.ErrBadResponse},
		{200, aTask, task, nil},
		{300, aTask, task, webdelivery.ErrBadResponse},
		{404, aTask, task, webdelivery.ErrNotFound},
		{503, aTask, task, webdelivery.ErrServer},
		{200, resultOf([]string{"a"}, `[1]`, `[2]`), func(c *webdelivery.Client) error {
			rows, err := collect(c.Stats.Events.All(t.Context(), fixture.FirstRows))
			assert.Len(t, rows, 2)
			return err
		}, nil},
		{200, resultOf([]string{"a"}, `[1]`, `[2]`), func(c *webdelivery.Client) error {
			for range c.Stats.Events.All(t.Context(), fixture.FirstRows) {
				return left
			}
			return nil
		}, left},
		{200, "<title>log in</title>", func(c *webdelivery.Client) error {
			_, err := collect(c.Stats.Events.All(t.Context(), fixture.FirstRows))
			return err
		}, webdelivery.ErrBadResponse},
	} {
		var attempt context.Context
		body := &closing{Reader: strings.NewReader(tt.body)}
		client := fixture.Answered(t, func(r *http.Request) *http.Response {
			attempt = r.Context()
			assert.NoError(t, attempt.Err())
			answer := fixture.Response(tt.status, nil)
			answer.Body = body
			if strings.HasPrefix(tt.body, "<") {
				answer.Header = http.Header{"Content-Type": {"text/html"}}
			}
			return answer
		})
		require.ErrorIs(t, tt.call(client), tt.want, "%d", tt.status)
		require.ErrorIs(t, attempt.Err(), context.Canceled)
		assert.Equal(t, 1, body.times, "%d %s", tt.status, tt.body)
	}
}

// closing counts how often it is closed.
type closing struct {
	io.Reader
	times int
}

func (c *closing) Close() error {
	c.times++
	return nil
}
