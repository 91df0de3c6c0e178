package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

// If the body of the caller's transport returns an error of the SDK, the failure has its text and does not match it. The
// body's own errors stay.
func TestErrorsOfTheSDKFromABody(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("an error of the SDK")
	owns := func(c *transport.Config) {
		c.Own = func(err error) bool { return err == errOwn } //nolint:errorlint // without what it wraps
		c.Policy.MaxAttempts = 1
	}
	taken, begun := aRead, aRead
	taken.Take, begun.Begin = begins(0, nil), begins(0, nil)
	for name, r := range map[string]transport.Request{"whole": aRead, "taken": taken, "begun": begun, "written": aWrite} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{errOwn, fmt.Errorf("%w: %w", errLost, errOwn)} {
				inFakeTime(t, owns, func(f *fixture) {
					failure := f.fails(r)
					require.EqualError(f, failure.Cause, err.Error())
					require.NotErrorIs(f, failure, errOwn)
					assert.Equal(f, errors.Is(err, errLost), errors.Is(failure, errLost))
				}, withBody(200, func(context.Context) io.Reader { return failing{err} }))
			}
		})
	}
	inFakeTime(t, owns, func(f *fixture) { // behind the beginning of a stream
		response := f.succeeds(begun)
		_, err := io.ReadAll(response.Stream)
		require.EqualError(f, err, errOwn.Error())
		require.NotErrorIs(f, err, errOwn)
		require.NotErrorIs(f, response.Broken(err), errOwn)
		response.Stream.Close()
	}, withBody(200, func(context.Context) io.Reader { return io.MultiReader(strings.NewReader("ab"), failing{errOwn}) }))
}
