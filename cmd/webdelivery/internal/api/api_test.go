package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/api"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// A query is escaped, and keeps that of the path. Bodies are sent and printed as they are, also that of an error, which
// ends with 1. Wrong usage prints nothing, and sends nothing.
func TestAPI(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t)
	srv.Fail(webdeliverytest.FaultRule{Path: "/good", Status: 200, Body: "{ \"id\":1e3 } \n", Header: http.Header{"X-A": {"b"}, "Set-Cookie": {"authtoken=s"}, "Date": nil}})
	srv.Fail(webdeliverytest.FaultRule{Path: "/cut", Cut: webdeliverytest.CutAfterRead})
	srv.Fail(webdeliverytest.FaultRule{Path: "/bad", Status: 409, Body: `{"message":"locked"}`, Header: http.Header{"Retry-After": {"7"}, "Date": nil}})
	const head = "Content-Type: application/json\r\n"
	for _, tt := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"POST", "/good?a=%3B", "-f", "-", "--query", "filters=a==b;c!=d e", "--query", "b="}, cli.Done, "{ \"id\":1e3 } \n", ""},
		{[]string{"get", srv.URL + "/acme/v1/good", "-i"}, cli.Done, "200 OK\r\nContent-Length: 14\r\n" + head + "X-A: b\r\nX-Request-Id: request-2\r\n\r\n{ \"id\":1e3 } \n", ""},
		{[]string{"GET", "/bad", "-i"}, cli.Failed, "409 Conflict\r\nContent-Length: 20\r\n" + head + "Retry-After: 7\r\nX-Request-Id: request-3\r\n\r\n{\"message\":\"locked\"}", "409 Conflict: locked"},
		{[]string{"POST", "/cut", "-i", "--query", "b=&"}, cli.Failed, "", "the service may have done it"},
		{[]string{"GET", "https://www.example.com/acme/v1/good"}, cli.Misuse, "", "leads to another origin"},
		{[]string{"GET"}, cli.Misuse, "", "accepts 2 arg(s), received 1; see webdelivery api --help"},
		{[]string{"PUT", "/good", "-f", "/dev/null"}, cli.Misuse, "", "unexpected end of JSON input"},
		{[]string{"PUT", "/good", "-f", ""}, cli.Misuse, "", "--file is empty: set the variable"},
	} {
		r := clitest.Run(t, srv, api.Command, `{"html":"<a>"}`, append([]string{"api"}, tt.args...)...)
		assert.Equal(t, tt.code, r.Code, tt.args)
		assert.Equal(t, tt.stdout, r.Stdout, tt.args)
		assert.Contains(t, r.Stderr, tt.stderr, tt.args)
	}
	sent := srv.Requests()
	assert.Len(t, sent, 4)
	assert.Equal(t, `POST a=%3B&filters=a%3D%3Db%3Bc%21%3Dd+e&b= {"html":"<a>"}`, sent[0].Method+" "+sent[0].RawQuery+" "+string(sent[0].Body))
	assert.Equal(t, "b=%26", sent[3].RawQuery)
}
