package suite_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// echoing answers with the contents of the request, as debugging proxies do and as a malicious service may.
type echoing struct {
	name     string
	status   int
	password bool          // echoes the header, and also the decoded password
	rows     bool          // also in the rows
	address  string        // what is before the echo in an address
	html     bool          // the response claims to be a page of HTML
	timeout  time.Duration // of the caller
	response everyResponse
}

// handler echoes to one step of a client with this password.
func (e echoing) handler(password string) http.HandlerFunc {
	var polls atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		said := strings.TrimSpace(r.Header.Get("Authorization") + " " + r.Header.Get("Cookie"))
		if e.password {
			said += " " + password
		}
		response := e.response
		response.page = 1
		response.pending = response.pending && (e.timeout > 0 || polls.Add(1) == 1)
		response.text = func(member string) string {
			if member == "rows" && !e.rows {
				return "DE"
			}
			return member + " " + said
		}
		response.address = func(string) string { return e.address + said }
		header := w.Header()
		for _, name := range []string{
			"X-Echo", "Link", "Refresh", "Content-Location", "Www-Authenticate", "Authorization", "Cookie", "Set-Cookie", "Etag",
			"X-Request-Id", "X-Correlation-Id",
			"X-" + strings.TrimPrefix(said, "authtoken="),
		} {
			header.Set(name, said)
		}
		header.Set("Location", e.address+said)
		header.Set("Content-Type", "application/json")
		if e.html {
			header.Set("Content-Type", `text/html; said="`+said+`"`)
		}
		w.WriteHeader(e.status)
		_, _ = w.Write(response.to(r))
	}
}

const (
	ticket = "ticket-of-the-caller"
	marker = "5e5510n" // a session in the response to a login, in a form that is not known
)

func echoes() []echoing {
	all := []echoing{
		{name: "more pages, waits", status: 200, response: everyResponse{more: true, pending: true}},
		{name: "more pages here", status: 200, address: "/tasks?", response: everyResponse{more: true, pending: true}},
		{name: "more pages in another collection", status: 200, address: "/", response: everyResponse{more: true}},
		{name: "elsewhere", status: 200, address: "http://evil.example.com/", response: everyResponse{more: true, lacking: true}},
		{name: "ended badly", status: 200, response: everyResponse{failed: true}},
		{name: "rows are missing", status: 200, response: everyResponse{lacking: true}},
		{name: "with the password", status: 400, password: true},
		{name: "see other", status: 303, address: "/transactions/1?x=", response: everyResponse{lacking: true}},
		{name: "a page", status: 200, html: true},
		{name: "out of patience", status: 200, timeout: 5 * time.Second, response: everyResponse{pending: true}},
		{name: "values that do not fit", status: 200, rows: true},
	}
	for _, status := range []int{302, 401, 500} {
		all = append(all, echoing{name: fmt.Sprint(status), status: status})
	}
	return all
}

// A complete run with every kind of trouble. No response, error or log record shows the password, its encoding or a
// session, however it is printed. Complete means that every call of a client is made, each at every second echo.
func TestNothingShowsASecret(t *testing.T) {
	t.Parallel()
	const given = "0123456789abcdef+/=given"
	for _, tt := range []struct {
		name, password string
		auth           webdelivery.Auth
	}{
		{"Basic", fixture.Password, webdelivery.BasicAuth(fixture.Username, fixture.Password)},
		{"session", fixture.Password, webdelivery.SessionAuth(fixture.Username, fixture.Password)},
		{"token", "", webdelivery.SessionToken(given)},
		{"wrong password", `wr"ong-\päßwörd/<&>`, webdelivery.SessionAuth(fixture.Username, `wr"ong-\päßwörd/<&>`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			encoded := base64.StdEncoding.EncodeToString([]byte(fixture.Username + ":" + tt.password))
			s := &showcase{hidden: []string{encoded, "Basic ", "authtoken=", given, ticket, marker}, prints: map[reflect.Type]int{}}
			if tt.password != "" {
				s.hidden = append(s.hidden, tt.password)
			}
			debug := &slog.HandlerOptions{Level: slog.LevelDebug}
			logger := slog.New(slog.NewMultiHandler(slog.NewTextHandler(s, debug), slog.NewJSONHandler(s, debug)))
			settings := fixture.Setup{Server: testserver.Config{EventsPerSecond: 0.01}, Auth: tt.auth, Options: []webdelivery.Option{webdelivery.WithLogger(logger)}}
			fixture.WithList(t, settings, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
				f.Srv.AddTask(testserver.TaskSpec{ID: fixture.TaskID})
				s.showSettings(f, settings, tt.password)
				if tt.password == fixture.Password {
					s.showRefusedPlans(f)
				}
				s.showFaults(f)
				switch tt.name {
				case "session": // its requests carry the most: the credentials at the login, then the session
					s.showEchoes(f, settings, tt.password, func(i int) []step { return everyNthStep(fixture.Cases(2, 6), i) })
				case "wrong password":
					s.showEchoes(f, settings, tt.password, func(int) []step {
						return slices.DeleteFunc(everyStep(), func(op step) bool { return op.Kind != operations.LogsIn })
					})
				}
			})
			assert.Greater(t, s.shown, 200)
		})
	}
}

func (s *showcase) showSettings(f *fixture.Fixture, settings fixture.Setup, password string) {
	s.show(settings.Auth, f.Client, settings.Options, webdelivery.Dialect{}, webdelivery.RetryPolicy{}, "hits",
		webdelivery.WAFByBrowser, webdelivery.TrafficShapingByBrowser, webdelivery.OutcomeUnknown, webdelivery.ListTypeGEO, webdelivery.Permit{},
		webdelivery.TrendsQuery{}, webdelivery.TopKQuery{})
	for _, url := range []string{
		"https://alice:" + password + "@api.example.com", "alice:" + password + "@api.example.com", "https://api.example.com?password=" + password,
		"https://" + password + "\x7f", "https://api.example.com#" + password,
	} {
		_, err := webdelivery.NewClient(url, fixture.Customer, settings.Auth)
		require.Error(f, err)
		s.show(err)
	}
	for _, broken := range []webdelivery.Auth{
		webdelivery.BasicAuth(fixture.Username, password+"\n"), webdelivery.BasicAuth("", password), webdelivery.SessionToken(password + ";"),
	} {
		_, err := webdelivery.NewClient(f.Srv.URL(), fixture.Customer, broken)
		require.Error(f, err)
		s.show(broken, err)
	}
	// A transport that puts the request into its error.
	telling := fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("%v: %w", r.Header, io.ErrUnexpectedEOF)
	})
	client, err := webdelivery.NewClient(f.Srv.URL(), fixture.Customer, settings.Auth, webdelivery.WithHTTPClient(&http.Client{Transport: telling}))
	require.NoError(f, err)
	for _, call := range []fixture.Operation{fixture.GetTask, fixture.Listed("queue", "PurgeQueue.Purge")} {
		err := call.Call(f.Context(), client)
		require.ErrorIs(f, err, io.ErrUnexpectedEOF)
		s.show(err)
	}
	s.check(f, "settings")
}

// showRefusedPlans shows errors that contain a plan, of a list that repeats the password wherever it can.
func (s *showcase) showRefusedPlans(f *fixture.Fixture) {
	said, err := json.Marshal("x " + fixture.Password)
	require.NoError(f, err)
	entries := fmt.Sprintf(`{"items":[{"id":%[1]s,"uri":%[1]s,"entry":%[1]s,"added_by":%[1]s}],"total":1}`, said)
	removePage := f.Srv.Fail(testserver.Fault{Path: "/config/networklists/*/entries", Status: 200, Body: entries})
	defer removePage()
	removeList := f.Srv.Fail(testserver.Fault{Path: "/config/networklists/*", Status: 200, Body: fmt.Sprintf(`{"id":%q,"type":"IP","name":%s}`, fixture.ListID, said)})
	defer removeList()
	for _, options := range []webdelivery.PlanOptions{{}, {MaxRemove: -1}} {
		_, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"0.0.0.0/0"}, options)
		var refused *webdelivery.PlanError
		require.ErrorAs(f, err, &refused)
		assert.Equal(f, "x [redacted]", refused.Plan.Name)
		s.show(err, refused, *refused, refused.Plan)
	}
	for _, edit := range []func(*webdelivery.Plan){
		func(p *webdelivery.Plan) { p.Options.MaxRemove = 0 },
		func(p *webdelivery.Plan) { p.Remove = append(p.Remove, p.Remove[0]) },
	} {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.1"}, webdelivery.PlanOptions{MaxRemove: -1})
		require.NoError(f, err)
		edit(plan)
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		var refused *webdelivery.PlanError
		require.ErrorAs(f, err, &refused)
		assert.Equal(f, "x "+fixture.Password, plan.Remove[0].Entry, "the plan of the caller stays as it is")
		s.show(err, refused, *refused, refused.Plan)
	}
	s.check(f, "plans")
}

// showFaults makes all calls of a client, at a service that works and at one that has faults.
func (s *showcase) showFaults(f *fixture.Fixture) {
	seen := 0
	for _, fault := range []testserver.Fault{
		{Path: "/nothing"},
		{Path: "/sessions", Status: 401, Body: `{"code":401,"message":"` + marker + `"}`, Header: http.Header{"X-Session": {marker}}},
		{Path: "/sessions", Status: 500, Body: "<html>" + marker},
		{Path: "/sessions", Status: 201, Body: `{"id":{"` + marker + `":"` + fixture.Password + `"}}`, Header: http.Header{"Set-Cookie": {"sid=" + marker}}},
		{Cut: testserver.CutAfterRead},
		{Cut: testserver.CutBody},
		{Status: 200, Body: "{}", Dribble: 2 * time.Minute},
		{Status: 404},
	} {
		f.Srv.ExpireSessions()
		remove := f.Srv.Fail(fault)
		for _, op := range everyStep() {
			s.show(op.run(f.Context(), f.Client, s.show))
		}
		remove()
		time.Sleep(time.Minute) // the cooling down of logins ends
		requests := f.Srv.Requests()
		for _, r := range requests[seen:] {
			s.hide(r.Header)
		}
		seen = len(requests)
		s.check(f, fmt.Sprintf("with the fault %+v", fault))
	}
}

// showEchoes makes calls at services that echo, each by a client of its own. Logins continue to work, except when the
// login itself is the call.
func (s *showcase) showEchoes(f *fixture.Fixture, settings fixture.Setup, password string, steps func(i int) []step) {
	for i, e := range echoes() {
		if e.password && password == "" {
			continue
		}
		for _, op := range steps(i) {
			logins := f.Srv.Fail(testserver.Fault{Path: "/sessions"})
			if op.Kind == operations.LogsIn {
				logins()
			}
			echo := e.handler(password)
			remove := f.Srv.Fail(testserver.Fault{Handler: func(w http.ResponseWriter, r *http.Request) {
				s.hide(r.Header)
				echo(w, r)
			}})
			ctx, cancel := context.WithCancel(f.Context())
			if e.timeout > 0 {
				ctx, cancel = context.WithTimeout(f.Context(), e.timeout)
			}
			// The result of a call that succeeds contains the service's own words, unchanged. Errors, logs and what is said of the
			// response do not, and nothing shows the headers of the call.
			var response webdelivery.Response
			ctx = webdelivery.ContextWithHeader(webdelivery.ContextWithResponse(ctx, &response), http.Header{"X-Ticket": {ticket}})
			s.show(op.run(ctx, f.NewClient(f.Srv.URL(), settings), func(...any) {}))
			s.show(response)
			s.check(f, e.name+": "+op.String())
			cancel()
			remove()
			logins()
		}
	}
}

// A session that was renewed is hidden as well: late responses may still contain it.
func TestTheSessionBeforeIsHiddenToo(t *testing.T) {
	t.Parallel()
	fixture.InService(t, fixture.BySession, func(f *fixture.Fixture) {
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
		old := strings.TrimPrefix(f.Sent(fixture.GetTask)[0].Get("Cookie"), "authtoken=")
		f.Srv.ExpireSessions()
		require.NoError(f, fixture.GetTask.Call(f.Context(), f.Client))
		f.AddFault(testserver.Fault{Status: 400, Body: "session " + old + " is over"})
		var e *webdelivery.Error
		require.ErrorAs(f, fixture.GetTask.Call(f.Context(), f.Client), &e)
		assert.Equal(f, "session [redacted] is over", string(e.Body))
	})
}

// An error contains no header that carries credentials, however its name is spelled. It contains no user information
// of a URL, whether of the client or of others.
func TestForeignCredentialsAreHidden(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.HTTP.Transport = fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
			r := fixture.Response(http.StatusBadRequest, []byte(`{"description":"see http:\/\/bob:s3cr3t@proxy.example.com:8080\/x"}`))
			r.Header = http.Header{}
			for _, name := range []string{"set-cookie", "SET-COOKIE2", "Proxy-Authorization", "authentication-info", "location", "X-Via"} {
				r.Header[name] = []string{"https://bob:s3cr3t@example.com/"}
			}
			return r, nil
		})
		err := fixture.GetTask.Call(f.Context(), f.NewClient(f.Srv.URL(), fixture.Setup{}))
		var e *webdelivery.Error
		require.ErrorAs(f, err, &e)
		assert.Equal(f, http.Header{"X-Via": {"https://[redacted]@example.com/"}}, e.Header)
		assert.Equal(f, "see http://[redacted]@proxy.example.com:8080/x", e.Description)
		assert.NotContains(f, fixture.EveryPrint(err), "s3cr3t")
	})
}

// Where an error, the SDK or the connection cuts off a text within a secret, no piece of the secret is left at the end.
func TestACutBodyShowsNoPieceOfASecret(t *testing.T) {
	t.Parallel()
	get := func(status int, body string, end error) (e *webdelivery.Error) {
		client := fixture.Answered(t, func(*http.Request) *http.Response {
			r := fixture.Response(status, nil)
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), iotest.ErrReader(end)))
			return r
		})
		require.ErrorAs(t, fixture.GetTask.Call(t.Context(), client), &e)
		return e
	}
	for _, place := range []int{180, 190, 505, 64<<10 - 10} {
		body := strings.Repeat("x", place) + fixture.Password
		for _, status := range []int{http.StatusOK, http.StatusBadRequest} {
			assert.NotContains(t, fixture.EveryPrint(get(status, body, io.EOF)), fixture.Password[:8])
		}
	}
	body := string(get(http.StatusBadRequest, strings.Repeat(fixture.Password+" ", 5000), io.EOF).Body)
	assert.Contains(t, "[redacted] ", strings.ReplaceAll(body, "[redacted] ", ""), "the mark may be cut off")
	for _, cut := range []string{fixture.Password[:12], `\u0063\u006f\u0072\u0072\u00`, "Y29ycmVjdC1o"} {
		assert.Empty(t, get(http.StatusBadRequest, "no "+cut, io.ErrUnexpectedEOF).Body)
	}
}
