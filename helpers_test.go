package webdelivery_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
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

// refusedAs checks that the client refused a call because of this field.
func refusedAs(t *testing.T, field string, err error, call string) {
	t.Helper()
	var refused *webdelivery.ValidationError
	require.ErrorAs(t, err, &refused, call)
	assert.Equal(t, field, refused.Field, call)
	assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err), call)
}

// failedURIs returns the URIs of an error.
func failedURIs(e *webdelivery.QueueError) (uris []webdelivery.PurgeURI) {
	for _, f := range e.Failures {
		uris = append(uris, f.URI)
	}
	return uris
}
