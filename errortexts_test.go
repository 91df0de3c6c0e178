package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
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
		webdelivery.ErrRefusedTogether, webdelivery.ErrBadReply, webdelivery.ErrQueueClosed,
		&webdelivery.Error{Method: "GET", Host: "api.example.com", Path: "/acme/v1/tasks", StatusCode: 404},
		&webdelivery.ValidationError{Field: "uris", Reason: "is empty"},
		&webdelivery.PlanError{Field: "MaxRemove", Reason: "too many"},
		&webdelivery.TaskError{Task: &webdelivery.Task{ID: "t", ErrorInfo: &webdelivery.ErrorInfo{Message: "m"}}}, &webdelivery.TaskError{},
		&webdelivery.TransactionError{Transaction: &webdelivery.Transaction{Status: "FAILED"}}, &webdelivery.TransactionError{},
		&webdelivery.IncompleteError{Path: "/tasks", Reason: "a circle"}, &webdelivery.IncompleteError{Got: 1, Total: 2},
		&webdelivery.ScanError{Column: "c", Err: errors.New("no")}, &webdelivery.EntriesLeftError{Left: 1},
		&webdelivery.PartialError{Err: webdelivery.ErrBadReply}, &webdelivery.QueueError{Err: webdelivery.ErrBadReply},
		&webdelivery.PartialError{}, &webdelivery.QueueError{}, &webdelivery.ScanError{}, &webdelivery.Error{},
	}
	for _, err := range inner {
		once(t, err.Error())
		wrapped := fmt.Errorf("login: %w", err)
		for _, cause := range []error{err, fmt.Errorf("a (%w)", err), fmt.Errorf("a, %w", err), wrapped, errors.Join(err, wrapped)} {
			for _, outer := range []error{
				&webdelivery.QueueError{URIs: []webdelivery.PurgeURI{webdelivery.Exact("a")}, Err: cause},
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
	assert.EqualError(t, &webdelivery.QueueError{URIs: []webdelivery.PurgeURI{webdelivery.Exact("a")}, Err: webdelivery.ErrRefusedTogether},
		"webdelivery: purge of a: refused together with others and not sent alone; purge it again")
}

// The same for errors of calls: a login, a wait in an outage, a change that failed in part, a queue, and an option.
func TestErrorsOfCallsSayOnceWhoseTheyAre(t *testing.T) {
	t.Parallel()
	sessions := setup{auth: webdelivery.SessionAuth(username, "wrong-password")}
	inFakeTime(t, sessions, func(f *fixture) {
		_, err := f.client.Tasks.Get(f.Context(), taskID)
		require.ErrorIs(f, err, webdelivery.ErrUnauthorized)
		once(f.T, err.Error())
		queue := f.newQueue(webdelivery.QueueOptions{})
		_, err = queue.Purge(f.Context(), webdelivery.Exact(anObject))
		require.ErrorIs(f, err, webdelivery.ErrUnauthorized)
		once(f.T, err.Error())
		require.NoError(f, queue.Close(f.Context()))
	})
	inReliableService(t, setup{}, func(f *fixture) {
		f.fail(testserver.Fault{Status: http.StatusServiceUnavailable})
		_, err := f.client.Tasks.Wait(f.Context(), "task-1", webdelivery.WaitTimeout(time.Minute))
		require.ErrorIs(f, err, context.DeadlineExceeded)
		once(f.T, err.Error())
		_, err = f.client.Tasks.WaitAll(f.Context(), []string{"task-1", "task-2"}, webdelivery.WaitTimeout(time.Minute))
		once(f.T, err.Error())
		_, err = f.client.NetworkLists.AddEntries(f.Context(), reliableList, []string{newEntry})
		once(f.T, err.Error())
		assert.ErrorContains(f, err, "1 unknown: POST "+f.host()+"/acme/v1/config/networklists/")
		_, err = f.client.NetworkLists.Apply(f.Context(), &webdelivery.Plan{}, webdelivery.ApplyOptions{})
		require.EqualError(f, err, "webdelivery: invalid version: the plan has none; create a plan with NetworkLists.Plan "+
			"(one that an earlier SDK stored: plan again)")
		_, err = f.client.NetworkLists.Apply(f.Context(), &webdelivery.Plan{Version: 1}, webdelivery.ApplyOptions{})
		require.EqualError(f, err, `webdelivery: invalid list_id: "" is no id of a list; create a plan with NetworkLists.Plan`)
	})
	_, err := webdelivery.NewClient("https://api.example.com", customer, webdelivery.BasicAuth(username, password),
		webdelivery.WithDialect(webdelivery.Dialect{EntryDeletePath: "/a"}))
	once(t, err.Error())
}

// An error names host and path also if there was no response. It does not contain the user's name or password.
func TestAnErrorNamesTheHost(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	client, err := webdelivery.NewClient("https://api.example.com:8443/root", customer, webdelivery.BasicAuth(username, password),
		webdelivery.WithHTTPClient(&http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, lost })}),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
	require.NoError(t, err)
	_, err = client.Purge.Status(t.Context(), 7)
	require.EqualError(t, err, "webdelivery: GET api.example.com:8443/root/acme/v1/transactions/7: connection lost")
	var e *webdelivery.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "api.example.com:8443", e.Host)
}

// The error for a missing column names its field, and what to do.
func TestAMissingColumn(t *testing.T) {
	t.Parallel()
	inFakeTime(t, setup{}, func(f *fixture) {
		_, err := scanOne[int](f, []string{"b"}, "[1]")
		require.EqualError(f, err, "webdelivery: row 1, column a for field A (int): there is no such column; ask for the column in the query, or remove the tag")
	})
}
