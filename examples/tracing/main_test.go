package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const styles = "https://www.example.com/app.css"

// tracedClient makes a client whose spans are kept.
func tracedClient(t *testing.T, srv *webdeliverytest.Server, auth webdelivery.Auth) (*webdelivery.Client, *sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	provider, err := newProvider(t.Context(), sdktrace.WithSyncer(kept))
	require.NoError(t, err)
	httpClient := &http.Client{Transport: transport(srv.HTTPClient().Transport, provider)}
	return srv.ClientAs(t, auth, webdelivery.WithHTTPClient(httpClient)), provider, kept
}

// shown is what a test compares of a span.
type shown struct {
	name, parent, method, path, status string
	failed                             bool
}

// show lists spans in the order in which they ended.
func show(srv *webdeliverytest.Server, spans tracetest.SpanStubs) []shown {
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	var all []shown
	for _, s := range spans {
		attributes := map[string]string{}
		for _, a := range s.Attributes {
			attributes[string(a.Key)] = a.Value.String()
		}
		all = append(all, shown{
			name: s.Name, parent: names[s.Parent.SpanID().String()], method: attributes["http.request.method"],
			path:   strings.TrimPrefix(attributes["url.full"], srv.URL+"/acme/v1"),
			status: attributes["http.response.status_code"], failed: s.Status.Code == codes.Error,
		})
	}
	return all
}

// A retry has a span of its own, and so has a login. Each belongs to the call that needed it.
func TestEachAttemptIsASpan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory(), webdeliverytest.WithPurgeDuration(0))
		failOnce(srv)
		client, provider, kept := tracedClient(t, srv, webdelivery.SessionAuth(srv.Username, srv.Password))
		require.NoError(t, purge(t.Context(), provider.Tracer("test"), client, []string{styles}, true))

		assert.Equal(t, []shown{
			{name: "HTTP POST", parent: "Purge.Submit", method: "POST", path: "/sessions", status: "201"},
			{name: "HTTP POST", parent: "Purge.Submit", method: "POST", path: "/cache/purge", status: "503", failed: true},
			{name: "HTTP POST", parent: "Purge.Submit", method: "POST", path: "/cache/purge", status: "201"},
			{name: "Purge.Submit", parent: "purge"},
			{name: "HTTP GET", parent: "Purge.Wait", method: "GET", path: "/transactions/9007199254740993", status: "200"},
			{name: "Purge.Wait", parent: "purge"},
			{name: "purge"},
		}, show(srv, kept.GetSpans()))
		require.Len(t, srv.Purged(), 1)
		assert.Equal(t, []webdelivery.PurgeURI{webdelivery.Exact(styles)}, srv.Purged()[0].URIs)
	})
}

// The span of an attempt without a response has failed, and has no status.
func TestAnAttemptWithoutAReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		srv.Fail(webdeliverytest.FaultRule{Path: "/cache/purge", Count: 1, Cut: webdeliverytest.CutAfterRead})
		client, provider, kept := tracedClient(t, srv, webdelivery.BasicAuth(srv.Username, srv.Password))
		require.NoError(t, purge(t.Context(), provider.Tracer("test"), client, []string{styles}, false))

		assert.Equal(t, []shown{
			{name: "HTTP POST", parent: "Purge.Submit", method: "POST", path: "/cache/purge", failed: true},
			{name: "HTTP POST", parent: "Purge.Submit", method: "POST", path: "/cache/purge", status: "201"},
			{name: "Purge.Submit", parent: "purge"},
			{name: "purge"},
		}, show(srv, kept.GetSpans()))
	})
}

// A query reaches the service, but no span.
func TestNoSpanHoldsAQuery(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
	client, _, kept := tracedClient(t, srv, webdelivery.BasicAuth(srv.Username, srv.Password))
	_, err := client.Tasks.List(t.Context(), webdelivery.TaskListOptions{Operation: "deploy"})
	require.NoError(t, err)

	assert.Equal(t, "operation=deploy", srv.Requests()[0].RawQuery)
	assert.Equal(t, []shown{{name: "HTTP GET", method: "GET", path: "/tasks", status: "200"}}, show(srv, kept.GetSpans()))
}

// No field of a span holds a password or a session, with any authentication and any fault.
func TestNoSpanHoldsASecret(t *testing.T) {
	t.Parallel()
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{"description": "no: " + r.Header.Get("Authorization") + r.Header.Get("Cookie")})
	}
	faults := map[string]webdeliverytest.FaultRule{
		"none":                {Path: "/nowhere", Status: http.StatusTeapot},
		"503":                 {Path: "/cache/purge", Count: 1, Status: http.StatusServiceUnavailable},
		"cut":                 {Path: "/cache/purge", Count: 1, Cut: webdeliverytest.CutAfterExecute},
		"ended session":       {Path: "/cache/purge", Count: 1, Status: http.StatusForbidden},
		"refusal with echo":   {Path: "/cache/purge", Handler: echo},
		"login lost":          {Path: "/sessions", Count: 1, Cut: webdeliverytest.CutBody},
		"transactions failed": {Path: "/transactions/*", Status: http.StatusInternalServerError},
	}
	for name, fault := range faults {
		for _, way := range []string{"basic", "session"} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory(), webdeliverytest.WithPurgeDuration(0))
					srv.Fail(fault)
					auth := webdelivery.BasicAuth(srv.Username, srv.Password)
					if way == "session" {
						auth = webdelivery.SessionAuth(srv.Username, srv.Password)
					}
					client, provider, kept := tracedClient(t, srv, auth)
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a wait outlives an outage
					defer cancel()
					_ = purge(ctx, provider.Tracer("test"), client, []string{styles}, true) // some faults end it, some do not

					var spans bytes.Buffer
					require.NoError(t, json.NewEncoder(&spans).Encode(kept.GetSpans()))
					require.Contains(t, spans.String(), "/cache/purge")
					secrets := []string{srv.Password, base64.StdEncoding.EncodeToString([]byte(srv.Username + ":" + srv.Password))}
					for _, r := range srv.Requests() {
						if _, id, found := strings.Cut(r.Header.Get("Cookie"), "="); found {
							secrets = append(secrets, id)
						}
					}
					if way == "session" {
						require.Greater(t, len(secrets), 2)
					}
					for _, secret := range secrets {
						assert.NotContains(t, spans.String(), secret)
					}
					for _, header := range []string{"authorization", "cookie", "authtoken"} {
						assert.NotContains(t, strings.ToLower(spans.String()), header)
					}
				})
			})
		}
	}
}

// streams are those of a program without a terminal.
func streams() (s program.Streams, out, told *bytes.Buffer) {
	out, told = &bytes.Buffer{}, &bytes.Buffer{}
	return program.Streams{Out: out, Err: told}, out, told
}

// names returns the names of the printed spans, one per line.
func names(t *testing.T, out *bytes.Buffer) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(out.String()) {
		var span struct {
			Name string `json:"Name"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &span))
		all = append(all, span.Name)
	}
	return all
}

// Without settings it uses a fake service, which fails once.
func TestOnItsOwn(t *testing.T) { //nolint:paralleltest // the environment is the process's
	programtest.NoService(t)
	s, out, told := streams()
	require.NoError(t, run(t.Context(), []string{"-wait=false"}, s))
	assert.Equal(t, []string{"HTTP POST", "HTTP POST", "HTTP POST", "Purge.Submit", "purge"}, names(t, out))
	assert.Contains(t, told.String(), "fake service")
}

// If the environment is set, it uses that service. The exit code is the result, and the spans are always printed.
func TestOnAService(t *testing.T) {
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0), webdeliverytest.WithUnlimitedPurges())
	programtest.UseService(t, srv)
	t.Setenv("OTEL_SERVICE_NAME", "deploys")
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	submitted := []string{"HTTP POST", "Purge.Submit", "purge"}
	tests := []struct {
		name  string
		ctx   context.Context
		args  []string
		code  int
		spans []string
	}{
		{"done", t.Context(), []string{styles}, program.Done, []string{"HTTP POST", "Purge.Submit", "HTTP GET", "Purge.Wait", "purge"}},
		{"not waited for", t.Context(), []string{"-wait=false", styles}, program.Done, submitted},
		{"refused by the service", t.Context(), []string{"https://www.example.org/not-ours.css"}, program.Failed, submitted},
		{"refused before it was sent", t.Context(), []string{"https://www.example.com/a#b"}, program.Misuse, []string{"Purge.Submit", "purge"}},
		{"interrupted", interrupted, []string{styles}, program.Failed, []string{"Purge.Submit", "purge"}},
		{"nothing to purge", t.Context(), nil, program.Misuse, nil},
		{"empty URI", t.Context(), []string{""}, program.Misuse, nil},
		{"late flag", t.Context(), []string{styles, "-wait=false"}, program.Misuse, nil},
		{"wrong flag", t.Context(), []string{"-no-such-flag"}, program.Misuse, nil},
		{"help", t.Context(), []string{"-h"}, program.Done, nil},
	}
	for _, tt := range tests { //nolint:paralleltest // the environment is the process's
		t.Run(tt.name, func(t *testing.T) {
			s, out, told := streams()
			assert.Equal(t, tt.code, program.Code("tracing", told, run(tt.ctx, tt.args, s)), told.String())
			assert.Equal(t, tt.spans, names(t, out))
			assert.Equal(t, len(tt.spans) > 0, strings.Contains(out.String(), `"deploys"`))
		})
	}
	assert.Len(t, srv.Purged(), 2)
}

// A purge whose transaction fails has failed, although the service accepted it.
func TestAFailedTransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory(), webdeliverytest.WithPurgeDuration(0))
		srv.FailTransactions(1, "FAILED", "three caches are silent", 0)
		client, provider, kept := tracedClient(t, srv, webdelivery.BasicAuth(srv.Username, srv.Password))
		err := purge(t.Context(), provider.Tracer("test"), client, []string{styles}, true)

		assert.Equal(t, program.Failed, program.Code("tracing", &bytes.Buffer{}, err))
		spans := kept.GetSpans()
		assert.Equal(t, codes.Unset, spans[len(spans)-3].Status.Code) // the poll of the transaction succeeded
		assert.Equal(t, shown{name: "Purge.Wait", parent: "purge", failed: true}, show(srv, spans)[len(spans)-2])
		assert.Contains(t, spans[len(spans)-2].Status.Description, "three caches are silent")
	})
}

// If spans cannot be written, the program fails. This error does not hide that of the purge.
func TestAFullDisk(t *testing.T) { //nolint:paralleltest // the environment is the process's
	programtest.NoService(t)
	s, _, _ := streams()
	s.Out = fullDisk{}
	err := run(t.Context(), []string{"-wait=false"}, s)
	require.ErrorIs(t, err, errFull)
	assert.Equal(t, program.Partly, program.Code("tracing", s.Err, err))

	err = run(t.Context(), []string{"https://www.example.org/not-ours.css"}, s)
	require.ErrorIs(t, err, errFull)
	require.ErrorIs(t, err, webdelivery.ErrBadRequest)
	assert.Equal(t, program.Failed, program.Code("tracing", s.Err, err))
}

type fullDisk struct{}

var errFull = errors.New("no space left")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }
