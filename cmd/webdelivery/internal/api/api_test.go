package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/api"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// The body is printed as it is, also that of an error, which ends with 1. Wrong usage prints nothing, and sends nothing.
func TestAPI(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t)
	srv.Fail(webdeliverytest.FaultRule{Path: "/good", Status: 200, Body: "{ \"id\":1e3 } \n", Header: http.Header{"X-A": {"b"}, "Set-Cookie": {"authtoken=s"}, "Date": nil}})
	srv.Fail(webdeliverytest.FaultRule{Path: "/cut", Cut: webdeliverytest.CutAfterRead})
	srv.Fail(webdeliverytest.FaultRule{Path: "/bad", Status: 409, Body: `{"message":"locked"}`, Header: http.Header{"Retry-After": {"7"}}})
	for _, tt := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"GET", "/good"}, cli.Done, "{ \"id\":1e3 } \n", ""},
		{[]string{"get", srv.URL + "/acme/v1/good", "-i"}, cli.Done, "200 OK\r\nContent-Length: 14\r\nContent-Type: application/json\r\nX-A: b\r\nX-Request-Id: request-2\r\n\r\n{ \"id\":1e3 } \n", ""},
		{[]string{"GET", "/bad"}, cli.Failed, `{"message":"locked"}`, "409 Conflict: locked"},
		{[]string{"POST", "/cut", "-i"}, cli.Failed, "", "the service may have done it"},
		{[]string{"GET", "https://www.example.com/acme/v1/good"}, cli.Misuse, "", "leads to another origin"},
		{[]string{"GET", "good"}, cli.Misuse, "", "does not begin with a slash"},
		{[]string{"GET"}, cli.Misuse, "", "accepts 2 arg(s), received 1; see webdelivery api --help"},
		{[]string{"POST", "/cache/purge"}, cli.Misuse, "", "a purge needs a body"},
		{[]string{"PUT", "/good", "-f", "-"}, cli.Misuse, "", "unexpected end of JSON input"},
		{[]string{"PUT", "/good", "-f", "none.json"}, cli.Misuse, "", "open none.json"},
	} {
		r := clitest.Run(t, srv, api.Command, "{", append([]string{"api"}, tt.args...)...)
		assert.Equal(t, tt.code, r.Code, tt.args)
		assert.Equal(t, tt.stdout, r.Stdout, tt.args)
		assert.Contains(t, r.Stderr, tt.stderr, tt.args)
	}
	assert.Equal(t, 4, srv.Count("", ""))
	r := clitest.Run(t, srv, api.Command, "", "api", "GET", "/bad", "-i")
	assert.Contains(t, r.Stdout, "409 Conflict\r\n")
	assert.Contains(t, r.Stdout, "\r\nRetry-After: 7\r\n")
}

// A query is escaped, and keeps that of the path. A body is sent as it was given.
func TestRequest(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t)
	srv.Fail(webdeliverytest.FaultRule{Path: "/x", Status: 200, Body: "{}"})
	for _, tt := range []struct {
		path  string
		query []string
		want  string
	}{
		{"/x", nil, ""},
		{"/x?a=%3B", nil, "a=%3B"},
		{"/x", []string{"filters=a==b;c!=d e", "b="}, "filters=a%3D%3Db%3Bc%21%3Dd+e&b="},
		{"/x?a=1", []string{"a=2"}, "a=1&a=2"},
	} {
		args := []string{"api", "POST", tt.path, "-f", "-"}
		for _, pair := range tt.query {
			args = append(args, "--query", pair)
		}
		require.Equal(t, clitest.Result{Stdout: "{}"}, clitest.Run(t, srv, api.Command, `{"html":"<a>"}`, args...))
		last := srv.Requests()[srv.Count("", "")-1]
		assert.Equal(t, []string{"POST", tt.want, `{"html":"<a>"}`}, []string{last.Method, last.RawQuery, string(last.Body)})
	}
}
