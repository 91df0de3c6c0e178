package webdelivery_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// once checks that each line of a text contains "webdelivery:" once, at its start.
func once(t *testing.T, text string) {
	t.Helper()
	assert.True(t, strings.HasPrefix(text, "webdelivery: "), text)
	for line := range strings.SplitSeq(text, "\n") {
		assert.LessOrEqual(t, strings.Count(line, "webdelivery: "), 1, line)
	}
}

// Only the outermost error says "webdelivery:", whatever it wraps, joined errors too. Zero values have a text.
func TestAnErrorSaysOnceWhoseItIs(t *testing.T) {
	t.Parallel()
	inner := []error{
		webdelivery.ErrRefusedTogether, webdelivery.ErrBadResponse, webdelivery.ErrQueueClosed,
		&webdelivery.Error{Method: "GET", Host: "api.example.com", Path: "/acme/v1/tasks", StatusCode: 404},
		&webdelivery.ValidationError{Field: "uris", Reason: "is empty"},
		&webdelivery.PlanError{Field: "MaxRemove", Reason: "too many"},
		&webdelivery.TaskError{Task: &webdelivery.Task{ID: "t", ErrorInfo: &webdelivery.ErrorInfo{Message: "m"}}}, &webdelivery.TaskError{},
		&webdelivery.TransactionError{Transaction: &webdelivery.Transaction{Status: "FAILED"}}, &webdelivery.TransactionError{},
		&webdelivery.IncompleteError{Path: "/tasks", Reason: "a circle"}, &webdelivery.IncompleteError{Got: 1, Total: 2},
		&webdelivery.ScanError{Column: "c", Err: errors.New("no")},
		&webdelivery.PartialError{Err: webdelivery.ErrBadResponse}, queueError(webdelivery.ErrBadResponse), &webdelivery.UndecidedError{}, &webdelivery.UndecidedError{RefusedAlone: 1},
		&webdelivery.PartialError{}, &webdelivery.QueueError{}, &webdelivery.ScanError{}, &webdelivery.Error{},
	}
	for _, err := range inner {
		once(t, err.Error())
		wrapped := fmt.Errorf("login: %w", err)
		for _, cause := range []error{err, fmt.Errorf("a (%w)", err), fmt.Errorf("a, %w", err), wrapped, errors.Join(err, wrapped)} {
			for _, outer := range []error{
				queueError(cause),
				&webdelivery.PartialError{Err: cause},
				&webdelivery.ScanError{Column: "c", Value: "1", Err: cause},
				&webdelivery.ValidationError{Field: "request", Reason: cause.Error()},
				&webdelivery.PlanError{Field: "plan", Reason: cause.Error()},
				&webdelivery.IncompleteError{Path: "/tasks", Reason: cause.Error()},
				&webdelivery.Error{Method: "GET", Path: "/acme/v1/tasks", StatusCode: 403, Description: cause.Error()},
			} {
				text := outer.Error()
				assert.Equal(t, 1, strings.Count(text, "webdelivery: "), text)
				once(t, text)
			}
		}
	}
	assert.EqualError(t, queueError(webdelivery.ErrRefusedTogether),
		"webdelivery: purge of a: refused together with others and not sent alone; purge it again")
}

// An error names host and path also if there was no response. It does not contain the user's name or password.
func TestAnErrorNamesTheHost(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	client, err := webdelivery.NewClient("https://api.example.com:8443/root", fixture.Customer, webdelivery.BasicAuth(fixture.Username, fixture.Password),
		webdelivery.WithHTTPClient(&http.Client{Transport: fixture.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, lost })}),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
	require.NoError(t, err)
	_, err = client.Purge.Status(t.Context(), 7)
	require.EqualError(t, err, "webdelivery: GET api.example.com:8443/root/acme/v1/transactions/7: connection lost")
	var e *webdelivery.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "api.example.com:8443", e.Host)
}

// A 404 says what may be wrong.
func TestNotFoundSaysWhatToCheck(t *testing.T) {
	t.Parallel()
	const hint = "check the id, the customer and the base URL"
	client := fixture.Answered(t, func(*http.Request) *http.Response { return fixture.Response(http.StatusNotFound, nil) })
	_, err := client.Tasks.List(t.Context(), webdelivery.TaskListOptions{})
	require.ErrorContains(t, err, hint)
	_, err = client.Tasks.Get(t.Context(), "task-1")
	require.ErrorIs(t, err, webdelivery.ErrNotFound)
	require.ErrorContains(t, err, hint)
}

// queueError is the error of a call with one URI.
func queueError(cause error) *webdelivery.QueueError {
	return &webdelivery.QueueError{Failures: []webdelivery.URIFailure{{URI: webdelivery.Exact("a"), Err: cause}}}
}
