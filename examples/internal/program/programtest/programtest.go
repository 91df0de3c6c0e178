// Package programtest has what the tests of the example programs share: the environment of a program, and runs of it.
package programtest

import (
	"bytes"
	"testing"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// NoService clears the environment of a test, so that a program starts a fake service of its own.
func NoService(t *testing.T) {
	t.Helper()
	for _, name := range program.Variables {
		t.Setenv(name, "")
	}
}

// UseService sets the environment of a test, so that a program works with this service and sends the password with each
// request.
func UseService(t *testing.T, srv *webdeliverytest.Server) {
	t.Helper()
	t.Setenv("WEBDELIVERY_BASE_URL", srv.URL)
	t.Setenv("WEBDELIVERY_CUSTOMER", srv.Customer)
	t.Setenv("WEBDELIVERY_USERNAME", srv.Username)
	t.Setenv("WEBDELIVERY_PASSWORD", srv.Password)
	t.Setenv("WEBDELIVERY_AUTH", "")
}

// Run runs a program, or a part of one, as a shell would. It replaces Out and Err of the streams, and returns their
// text.
func Run(name string, s program.Streams, run func(program.Streams) error) (code int, stdout, stderr string) {
	var out, told bytes.Buffer
	s.Out, s.Err = &out, &told
	code = program.Code(name, &told, run(s))
	return code, out.String(), told.String()
}
