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
	tests := []struct {
		name   string
		op     fixture.Operation
		faults []testserver.Fault
		want   webdelivery.Outcome
	}{
		{"rejected", fixture.PostWrite, []testserver.Fault{{Status: 400}}, webdelivery.OutcomeNotApplied},
		{"cut after the service read it", fixture.PostWrite, []testserver.Fault{{Cut: testserver.CutAfterRead}}, webdelivery.OutcomeUnknown},
		{"500", fixture.PostWrite, []testserver.Fault{{Status: 500}}, webdelivery.OutcomeUnknown},
		{"503 with Retry-After, on every attempt", fixture.PostWrite, []testserver.Fault{{Status: 503, Header: http.Header{"Retry-After": {"1"}}}}, webdelivery.OutcomeNotApplied},
		{
			"a purge cut, and its retry rejected: the first attempt may have been accepted", fixture.Submit,
			[]testserver.Fault{{Count: 1, Cut: testserver.CutAfterRead}, {Status: 400}},
			webdelivery.OutcomeUnknown,
		},
		{"a purge is rejected", fixture.Submit, []testserver.Fault{{Status: 400}}, webdelivery.OutcomeNotApplied},
		{
			"a success that is an HTML page", fixture.Submit,
			[]testserver.Fault{{Status: 201, Body: "<html>", Header: http.Header{"Content-Type": {"text/html"}}}},
			webdelivery.OutcomeUnknown,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
				for _, fault := range tt.faults {
					fault.Path = tt.op.Path
					f.AddFault(fault)
				}
				err := tt.op.Call(f.Context(), f.Client)
				require.Error(f, err)
				assert.Equal(f, tt.want, webdelivery.OutcomeOf(err))
			})
		})
	}
}

// A DELETE may have worked in its first attempt, and its retry gets 404: Do returns nil. After a first 404, or an
// attempt that was certainly rejected, a 404 is ErrNotFound.
func TestDelete404(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		first testserver.Fault
		found bool
	}{
		{"after a cut connection", testserver.Fault{Cut: testserver.CutAfterRead}, true},
		{"after 502", testserver.Fault{Status: 502}, true},
		{"after 429", testserver.Fault{Status: 429}, false},
		{"at once", testserver.Fault{Status: 404}, false},
	}
	t.Run("with something to read into", func(t *testing.T) {
		t.Parallel()
		fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Status: 502, Count: 1})
			f.AddFault(testserver.Fault{Status: 404})
			var task webdelivery.Task
			require.NoError(f, f.Client.Do(f.Context(), http.MethodDelete, fixture.DeleteOne.Path, nil, &task))
			assert.Zero(f, task)
		})
	})
	t.Run("of a read", func(t *testing.T) {
		t.Parallel()
		fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Status: 502, Count: 1})
			f.AddFault(testserver.Fault{Status: 404})
			require.ErrorIs(f, fixture.GetTask.Call(f.Context(), f.Client), webdelivery.ErrNotFound)
		})
	})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
				tt.first.Count = 1
				f.AddFault(tt.first)
				f.AddFault(testserver.Fault{Status: 404})
				err := fixture.DeleteOne.Call(f.Context(), f.Client)
				if tt.found {
					assert.NoError(f, err)
				} else {
					assert.ErrorIs(f, err, webdelivery.ErrNotFound)
				}
			})
		})
	}
}

// The error of a page that is not JSON contains the status and the beginning of the body.
func TestErrorPages(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100<<10)
	tests := []struct {
		name, contentType, body, description string
		kept                                 int
	}{
		{"code and description", "application/json", `{"code":404,"description":"no such task"}`, "no such task", 41},
		{"message", "application/json", `{"message":"no such task"}`, "no such task", 26},
		{"error_info", "application/json", `{"error_info":{"message":"no such task"}}`, "no such task", 41},
		{"HTML", "text/html", "<html>gone</html>", "Not Found", 17},
		{"nothing", "", "", "Not Found", 0},
		{"more than 64 KiB", "text/plain", long, "Not Found", 64 << 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
				f.AddFault(testserver.Fault{Status: 404, Body: tt.body, Header: http.Header{"Content-Type": {tt.contentType}, "X-Request-Id": {"r-1"}}})
				err := fixture.GetTask.Call(f.Context(), f.Client)
				require.ErrorIs(f, err, webdelivery.ErrNotFound)
				var e *webdelivery.Error
				require.ErrorAs(f, err, &e)
				assert.Equal(f, tt.description, e.Description)
				assert.Len(f, e.Body, tt.kept)
				assert.Equal(f, "r-1", e.Header.Get("X-Request-Id"))
			})
		})
	}
}

// The body of a 101 is the connection, which the service keeps open. The client does not read from it, in a login
// neither, and works afterwards.
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
	for _, op := range []fixture.Operation{fixture.DeleteOne, fixture.GetTask, fixture.Submit, fixture.PostWrite} {
		fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Handler: keepOpen})
			began := time.Now()
			require.ErrorIs(f, op.Call(f.Context(), f.Client), webdelivery.ErrBadResponse, op.Name)
			assert.Zero(f, time.Since(began), op.Name)
		})
	}
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Path: "/sessions", Count: 1, Handler: keepOpen})
		require.ErrorIs(f, fixture.GetTask.Call(f.Context(), f.Client), webdelivery.ErrBadResponse)
		time.Sleep(time.Minute)
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
	})
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

func TestAResponseOfExactlyTheLimitIsRead(t *testing.T) {
	t.Parallel()
	const body = `{"id":"task-1"}`
	limit := webdelivery.WithMaxResponseBytes(int64(len(body)))
	fixture.InService(t, fixture.Setup{Options: []webdelivery.Option{limit}}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 200, Body: body})
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
	})
}

// Timeout of the user's http.Client limits one attempt, as the SDK's own timeout does: each retry has its own.
func TestHTTPClientTimeoutIsPerAttempt(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.HTTP.Timeout = 3 * time.Second
		client := f.NewClient(f.Srv.URL(), fixture.Setup{})
		f.AddFault(testserver.Fault{Delay: time.Hour, Count: 2})
		require.NoError(f, fixture.GetTask.Call(f.Context(), client))
		assert.Equal(f, 3, f.Requests(fixture.GetTask))
		assert.Equal(f, 3*time.Second, f.HTTP.Timeout, "the user's client is unchanged")
	})
}

// The client follows no redirect, whatever its status and wherever it leads. The error does not contain its address.
func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{300, 301, 302, 303, 307, 308} {
		for _, op := range []fixture.Operation{fixture.GetTask, fixture.PostWrite, fixture.DeleteOne, fixture.Submit, fixture.CreateSession} {
			t.Run(fmt.Sprint(status, op.Name), func(t *testing.T) {
				t.Parallel()
				fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
					f.AddFault(testserver.Fault{Status: status, Header: http.Header{"Location": {"http://evil.example.com/login?token=t0ps3cret"}}})
					err := op.Call(f.Context(), f.Client)
					require.Error(f, err)
					var e *webdelivery.Error
					require.ErrorAs(f, err, &e)
					assert.Equal(f, status, e.StatusCode)
					assert.ErrorIs(f, err, webdelivery.ErrBadResponse)
					assert.Contains(f, err.Error(), "http://evil.example.com")
					assert.NotContains(f, fmt.Sprintf("%v %#v", err, e), "t0ps3cret")
					assert.Equal(f, 1, f.Requests(op))
					assert.Zero(f, f.Srv.ForeignDials())
				})
			})
		}
	}
}

// 30 calls use one connection: responses with a length, chunked ones, errors, and errors longer than what the client
// keeps of them.
func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	chunked := func(status int, size int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.WriteString(w, `{"id":"a","description":"`+strings.Repeat("d", size)+`"}`)
		}
	}
	tests := []struct {
		name  string
		fault testserver.Fault
	}{
		{"with a length", testserver.Fault{}},
		{"chunked", testserver.Fault{Handler: chunked(200, 100<<10)}},
		{"404", testserver.Fault{Status: 404}},
		{"chunked 404", testserver.Fault{Handler: chunked(404, 10)}},
		{"long chunked 404", testserver.Fault{Handler: chunked(404, 200<<10)}},
		{"HTML", testserver.Fault{Status: 200, Body: "<html>", Header: http.Header{"Content-Type": {"text/html"}}}},
		{"503", testserver.Fault{Status: 503}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InService(t, fixture.Setup{}, func(f *fixture.Fixture) {
				tt.fault.Path = "/tasks/**"
				f.AddFault(tt.fault)
				for range 30 {
					_ = fixture.GetTask.Call(f.Context(), f.Client)
				}
				assert.GreaterOrEqual(f, f.Requests(fixture.GetTask), 30)
				assert.Equal(f, 1, f.Srv.Connections())
			})
		})
	}
}

// A transport of the user's that does not report its connections cannot prove that a request was not sent.
func TestAnUnknownTransportProvesNothing(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		calls := 0
		f.HTTP.Transport = fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
			calls++
			return nil, errors.New("broken")
		})
		client := f.NewClient(f.Srv.URL(), fixture.Setup{})
		err := fixture.PostWrite.Call(f.Context(), client)
		assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		assert.Equal(f, 1, calls)
	})
}

// When an attempt ends, in whatever way, the context of its request has ended too.
func TestAnAttemptEndsItsContext(t *testing.T) {
	t.Parallel()
	task := func(c *webdelivery.Client) error {
		_, err := c.Tasks.Get(t.Context(), fixture.TaskID)
		return err
	}
	tests := []struct {
		name   string
		status int
		body   string
		call   func(*webdelivery.Client) error
		fails  bool
	}{
		{"a response", http.StatusOK, `{"id":"task-1"}`, task, false},
		{"a refusal", http.StatusNotFound, `{}`, task, true},
		{"a stream read to its end", http.StatusOK, resultOf([]string{"a"}, `[1]`, `[2]`), func(c *webdelivery.Client) error {
			rows, err := collect(c.Stats.Events.All(t.Context(), fixture.FirstRows))
			assert.Len(t, rows, 2)
			return err
		}, false},
		{"a stream left early", http.StatusOK, resultOf([]string{"a"}, `[1]`, `[2]`), func(c *webdelivery.Client) error {
			for _, err := range c.Stats.Events.All(t.Context(), fixture.FirstRows) {
				return err
			}
			return errors.New("no row")
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var attempt context.Context
			client := fixture.Answered(t, func(r *http.Request) *http.Response {
				attempt = r.Context()
				assert.NoError(t, attempt.Err())
				return fixture.Response(tt.status, []byte(tt.body))
			})
			assert.Equal(t, tt.fails, tt.call(client) != nil)
			assert.ErrorIs(t, attempt.Err(), context.Canceled)
		})
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

// Whatever the status, the client closes the body, so that the connection can be used again. A final status below 200
// is an error.
func TestEveryBodyIsClosed(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{
		101: webdelivery.ErrBadResponse, 200: nil, 300: webdelivery.ErrBadResponse, 404: webdelivery.ErrNotFound, 503: webdelivery.ErrServer,
	} {
		body := &closing{Reader: strings.NewReader(`{"id":"task-1"}`)}
		client := fixture.Answered(t, func(*http.Request) *http.Response {
			r := fixture.Response(status, nil)
			r.Body = body
			return r
		})
		_, err := client.Tasks.Get(t.Context(), fixture.TaskID)
		require.ErrorIs(t, err, want, "%d", status)
		assert.Equal(t, 1, body.times, "%d", status)
	}
	page := &closing{Reader: strings.NewReader("log in")}
	client := fixture.Answered(t, func(*http.Request) *http.Response {
		r := fixture.Response(http.StatusOK, nil)
		r.Header, r.Body = http.Header{"Content-Type": {"text/html"}}, page
		return r
	})
	_, err := collect(client.Stats.Events.All(t.Context(), fixture.FirstRows))
	require.ErrorIs(t, err, webdelivery.ErrBadResponse)
	assert.Equal(t, 1, page.times, "a login page instead of rows")
}
