package webdelivery_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// The fake has this one user.
const (
	customer = "acme"
	username = "alice"
	password = "correct-horse-battery"
)

// fixture is a fake service in memory with one client for it. It lives in a bubble of fake time, so waits take no
// time, and a goroutine that is left makes the test fail.
type fixture struct {
	*testing.T
	srv    *testserver.Server
	client *webdelivery.Client
	http   *http.Client // what the client sends through
}

// setup describes a fixture; the zero value is Basic authentication and defaults everywhere.
type setup struct {
	server  testserver.Config
	auth    webdelivery.Auth
	options []webdelivery.Option
}

// inFakeTime runs a test in a bubble of its own.
func inFakeTime(t *testing.T, s setup, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := testserver.New(s.server)
		url := srv.ListenMemory()
		transport := srv.Transport()
		defer func() {
			transport.CloseIdleConnections()
			require.NoError(t, srv.Close())
		}()
		f := &fixture{T: t, srv: srv, http: &http.Client{Transport: transport}}
		f.client = f.newClient(url, s)
		test(f)
	})
}

func (f *fixture) newClient(url string, s setup) *webdelivery.Client {
	f.Helper()
	auth := s.auth
	if auth.String() == "" {
		auth = webdelivery.BasicAuth(username, password)
	}
	options := append([]webdelivery.Option{webdelivery.WithHTTPClient(f.http)}, s.options...)
	client, err := webdelivery.NewClient(url, customer, auth, options...)
	require.NoError(f, err)
	return client
}

// warm lets the service accept the client's credentials, so that the calls that follow do not wait for the first one.
func (f *fixture) warm() { _, _ = f.client.Tasks.List(f.Context(), webdelivery.TaskListOptions{}) }

// fail adds a fault to the service.
func (f *fixture) fail(fault testserver.Fault) { f.srv.Fail(fault) }

// purgeOf is the smallest purge. Its URIs are sent as they are.
func purgeOf(uris ...string) webdelivery.PurgeRequest {
	request := webdelivery.PurgeRequest{Action: webdelivery.ActionPurge}
	for _, uri := range uris {
		request.URIs = append(request.URIs, webdelivery.PurgeURI{MatchMode: webdelivery.MatchExact, URIPattern: uri})
	}
	return request
}

const anObject = operations.NewObject

// operation is one call of each kind that the retry policy distinguishes.
type operation struct {
	name string
	path string // below the base, for the fault
	call func(ctx context.Context, c *webdelivery.Client) error
}

const taskID = "task-1"

var (
	getTask       = listed("GET", "Tasks.Get")
	submit        = listed("purge", "Purge.Submit")
	createSession = listed("login", "Sessions.Create")

	// Things have no method of their own in the SDK, and no address in the fake.
	postWrite = operation{"POST", "/config/things", func(ctx context.Context, c *webdelivery.Client) error {
		return c.Do(ctx, http.MethodPost, "/config/things", map[string]int{"n": 1}, nil)
	}}
	deleteOne = operation{"DELETE", "/config/things/1", func(ctx context.Context, c *webdelivery.Client) error {
		return c.Do(ctx, http.MethodDelete, "/config/things/1", nil, nil)
	}}
)

// listed is an operation of internal/operations.
func listed(name, of string) operation {
	all := operations.All()
	op := all[slices.IndexFunc(all, func(op operations.Operation) bool { return op.String() == of })]
	use := operations.Use{Task: taskID, Transaction: 7, Show: func(...any) {}}
	return operation{name, op.PathOf(&use), func(ctx context.Context, c *webdelivery.Client) error {
		use := use
		return op.Run(ctx, c, &use)
	}}
}

// inService runs a test with a task to read, and with addresses that the fake itself lacks.
func inService(t *testing.T, s setup, test func(f *fixture)) {
	t.Helper()
	inFakeTime(t, s, func(f *fixture) {
		f.srv.AddTask(testserver.TaskSpec{ID: taskID})
		test(f)
	})
}

// answerThings makes the addresses below /config/things work after the faults that were added before.
func (f *fixture) answerThings() {
	f.fail(testserver.Fault{Path: "/config/things/**", Handler: func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}})
}

// requests returns how many requests arrived for the operation.
func (f *fixture) requests(op operation) int { return f.srv.Count("", op.path) }

// roundTripper is a transport that does not report its connections.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

const listID = "5e1f0d2c-0000-4000-8000-000000000001"

// addresses returns n different addresses of 198.18.0.0/15, which is reserved for tests of devices.
func addresses(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("198.%d.%d.%d", 18+i>>16, i>>8&255, i&255)
	}
	return all
}

// withList runs a test with one list of these entries.
func withList(t *testing.T, s setup, entries []string, test func(f *fixture)) {
	t.Helper()
	inFakeTime(t, s, func(f *fixture) {
		f.srv.AddNetworkList(testserver.NetworkListSpec{ID: listID, Name: "blocklist", Description: "feeds", Entries: entries})
		test(f)
	})
}

// takeSlots sends the two purges that may leave at once.
func (f *fixture) takeSlots() {
	f.Helper()
	for range 2 {
		require.NoError(f, submit.call(f.Context(), f.client))
	}
}

// newQueue returns a queue of the client, or of one with these options.
func (f *fixture) newQueue(options webdelivery.QueueOptions, clientOptions ...webdelivery.Option) *webdelivery.PurgeQueue {
	f.Helper()
	client := f.client
	if len(clientOptions) > 0 {
		client = f.newClient(f.srv.URL(), setup{options: clientOptions})
	}
	q, err := client.Purge.NewQueue(options)
	require.NoError(f, err)
	return q
}

// callsFor returns a take of PurgeFrom: one call for each list of URIs.
func callsFor(calls ...[]webdelivery.PurgeURI) func(context.Context) ([][]webdelivery.PurgeURI, error) {
	return func(context.Context) ([][]webdelivery.PurgeURI, error) { return calls, nil }
}

// aDay is a valid query; the responses of these tests do not depend on it.
var aDay = webdelivery.EventsQuery{
	Dimensions: []string{webdelivery.DimClientIP},
	Start:      time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC),
	End:        time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
}

// firstRows asks for the first ten events of that day, which is one request.
var firstRows = webdelivery.EventsQuery{Dimensions: aDay.Dimensions, Start: aDay.Start, End: aDay.End, Limit: 10}

const eventsData = "/stats/security/events/data"

// answerWith makes the service answer the next requests of one path with these bodies, one after the other.
func answerWith(f *fixture, path string, bodies ...string) {
	for _, body := range bodies {
		f.fail(testserver.Fault{Path: path, Count: 1, Status: http.StatusOK, Body: body})
	}
}

var bySession = setup{auth: webdelivery.SessionAuth(username, password)}

// sent returns the headers of the requests to an operation, in order of arrival.
func (f *fixture) sent(op operation) []http.Header {
	var headers []http.Header
	for _, r := range f.srv.Requests() {
		if r.Path == "/acme/v1"+op.path {
			headers = append(headers, r.Header)
		}
	}
	return headers
}

// unlimited is a Limiter that never waits.
type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

// answered is a client without a network: it gives each request to the function, and does not retry.
func answered(t testing.TB, answer func(*http.Request) *http.Response) *webdelivery.Client {
	t.Helper()
	transport := roundTripper(func(r *http.Request) (*http.Response, error) { return answer(r), nil })
	client, err := webdelivery.NewClient("https://api.example.com", customer, webdelivery.BasicAuth(username, password),
		webdelivery.WithHTTPClient(&http.Client{Transport: transport}),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}),
		webdelivery.WithPurgeLimiter(unlimited{}))
	require.NoError(t, err)
	return client
}

// response is a response with a body of JSON, if it has one.
func response(status int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// always is a client that gets a 200 with the same body for every request.
func always(t testing.TB, body []byte) *webdelivery.Client {
	t.Helper()
	return answered(t, func(*http.Request) *http.Response { return response(http.StatusOK, body) })
}

// gather reads a sequence to its end or its error.
func gather[T any](seq iter.Seq2[T, error]) (items []T, err error) {
	items = []T{}
	for item, err := range seq {
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, nil
}
