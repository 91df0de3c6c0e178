package webdelivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// logged returns what a text log shows of an error.
func logged(err error) string {
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key != "err" {
			return slog.Attr{}
		}
		return a
	}})).Error("x", "err", err)
	return b.String()
}

// A failed task or transaction may have changed something. A foreign error gives no outcome; no error means that the
// change was applied.
func TestOutcomeOfOtherErrors(t *testing.T) {
	t.Parallel()
	assert.Equal(t, webdelivery.OutcomeApplied, webdelivery.OutcomeOf(nil))
	assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(assert.AnError))
	assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(&webdelivery.TaskError{Task: &webdelivery.Task{}}))
	require.EqualError(t, &webdelivery.TaskError{Task: &webdelivery.Task{ID: "made-up"}}, "webdelivery: task made-up failed")
	assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(&webdelivery.TransactionError{Transaction: &webdelivery.Transaction{}}))
	wrapped := fmt.Errorf("deploy: %w", &webdelivery.ValidationError{Field: "uris", Reason: "is empty"})
	assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(wrapped))
	assert.Equal(t, "unknown not applied applied",
		fmt.Sprint(webdelivery.OutcomeUnknown, " ", webdelivery.OutcomeNotApplied, " ", webdelivery.OutcomeApplied))
}

// The outcome of joined errors does not depend on their order.
func TestOutcomeOfJoinedErrors(t *testing.T) {
	t.Parallel()
	foreign, refused := errors.New("disk full"), &webdelivery.ValidationError{Field: "uris", Reason: "is empty"}
	failed := &webdelivery.TaskError{Task: &webdelivery.Task{}}
	purged := &webdelivery.QueueError{Outcome: webdelivery.OutcomeApplied}
	for name, tt := range map[string]struct {
		members []error
		want    webdelivery.Outcome
	}{
		"none has one":                     {[]error{foreign, context.Canceled}, webdelivery.OutcomeUnknown},
		"others do not count":              {[]error{foreign, refused}, webdelivery.OutcomeNotApplied},
		"they agree":                       {[]error{refused, foreign, &webdelivery.IncompleteError{}}, webdelivery.OutcomeNotApplied},
		"they disagree":                    {[]error{purged, refused}, webdelivery.OutcomeUnknown},
		"one is unknown":                   {[]error{failed, refused}, webdelivery.OutcomeUnknown},
		"joined and wrapped":               {[]error{fmt.Errorf("a: %w", errors.Join(foreign, purged)), foreign}, webdelivery.OutcomeApplied},
		"disagreement within, and another": {[]error{errors.Join(purged, refused), refused}, webdelivery.OutcomeUnknown},
		"an outcome of its own decides":    {[]error{purged, &webdelivery.QueueError{Outcome: webdelivery.OutcomeApplied, Failures: []webdelivery.URIFailure{{Err: refused}}}}, webdelivery.OutcomeApplied},
	} {
		assert.Equal(t, tt.want, webdelivery.OutcomeOf(errors.Join(tt.members...)), name)
		slices.Reverse(tt.members)
		assert.Equal(t, tt.want, webdelivery.OutcomeOf(errors.Join(tt.members...)), name)
	}
}

// Several invalid values are one error on one line, so that a log line stays a line.
func TestJoinedErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		_, err := f.Client.Tasks.List(f.Context(), webdelivery.TaskListOptions{Page: -1, Count: -2})
		require.EqualError(t, err, "webdelivery: invalid page: -1 is below 0; use 0 for the default; invalid count: -2 is below 0; use 0 for the default")
		require.ErrorIs(f, err, webdelivery.ErrInvalid)
		all, joined := err.(interface{ Unwrap() []error })
		require.True(f, joined)
		assert.Len(f, all.Unwrap(), 2)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(fmt.Errorf("deploy: %w", err)))
	})
}

// Each sentinel matches its own status and no other.
func TestSentinels(t *testing.T) {
	t.Parallel()
	sentinels := map[error][]int{
		webdelivery.ErrBadRequest:   {400},
		webdelivery.ErrUnauthorized: {401},
		webdelivery.ErrForbidden:    {403},
		webdelivery.ErrNotFound:     {404},
		webdelivery.ErrRateLimited:  {429},
		webdelivery.ErrServer:       {500, 501, 502, 503, 504, 599},
		webdelivery.ErrBadResponse:  {300, 301, 304, 308},
	}
	for sentinel, statuses := range sentinels {
		for _, status := range []int{200, 300, 301, 304, 308, 400, 401, 403, 404, 405, 409, 429, 500, 501, 502, 503, 504, 599} {
			assert.Equal(t, slices.Contains(statuses, status), errors.Is(&webdelivery.Error{StatusCode: status}, sentinel), "%d %v", status, sentinel)
		}
	}
}

// Errors of several parts say how many there are.
func TestErrorsOfManyParts(t *testing.T) {
	t.Parallel()
	cause := errors.New("no route")
	failures := func(n int) *webdelivery.QueueError {
		e := new(webdelivery.QueueError)
		for i := range n {
			e.Failures = append(e.Failures, webdelivery.URIFailure{URI: webdelivery.Exact(fmt.Sprint("/", i)), Err: cause})
		}
		return e
	}
	two := failures(1)
	two.Failures = append(two.Failures, webdelivery.URIFailure{URI: webdelivery.Exact("/b"), Err: webdelivery.ErrRefusedTogether})
	for text, err := range map[string]error{
		"purge of /0: no route":                            failures(1),
		"purge of /0, /1, /2, /3, /4: no route":            failures(5),
		"purge of /0, /1, /2, /3, /4 and 2 more: no route": failures(7),
		"purge of /0: no route; /b: refused together with others and not sent alone; purge it again": two,
		"purge failed": failures(0),
		"1 entry accepted, 3 not, 2 unknown: no route": &webdelivery.PartialError{
			Accepted: []string{"DE"}, NotAccepted: []string{"AT", "CH", "FR"}, Unknown: []string{"IT", "ES"}, Err: cause,
		},
	} {
		assert.EqualError(t, err, "webdelivery: "+text)
	}
}

// Index returns the number in the first brackets of a field.
func TestIndexOfAProblem(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]int{
		"uris[0].uri_pattern": 0, "uris[37].cache_key_modifier_regex": 37, "entries[4999]": 4999, "a[1].b[2]": 1,
		"uris": -1, "": -1, "uris[": -1, "uris[]": -1, "uris[x]": -1, "uris[99999999999999999999]": -1,
	} {
		index, ok := (&webdelivery.ValidationError{Field: field}).Index()
		assert.Equal(t, want >= 0, ok, field)
		if ok {
			assert.Equal(t, want, index, field)
		}
	}
}

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
		&webdelivery.IncompleteError{Reason: "/tasks: a circle"}, &webdelivery.IncompleteError{Got: 1, Total: 2},
		&webdelivery.ScanError{Column: "c", Err: errors.New("no")},
		&webdelivery.PartialError{Err: webdelivery.ErrBadResponse}, queueError(webdelivery.ErrBadResponse),
		&webdelivery.PartialError{}, &webdelivery.QueueError{}, &webdelivery.ScanError{}, &webdelivery.Error{},
	}
	for _, err := range inner {
		once(t, err.Error())
		wrapped := fmt.Errorf("login: %w", err)
		for _, cause := range []error{err, fmt.Errorf("a (%w)", err), fmt.Errorf("a, %w", err), wrapped, errors.Join(err, wrapped)} {
			for _, outer := range []error{
				queueError(cause),
				&webdelivery.PartialError{Err: cause},
				&webdelivery.ScanError{Column: "c", Err: cause},
				&webdelivery.ValidationError{Field: "request", Reason: cause.Error()},
				&webdelivery.PlanError{Field: "plan", Reason: cause.Error()},
				&webdelivery.IncompleteError{Reason: cause.Error()},
				&webdelivery.Error{Method: "GET", Path: "/acme/v1/tasks", StatusCode: 403, Description: cause.Error()},
			} {
				text := outer.Error()
				assert.Equal(t, 1, strings.Count(text, "webdelivery: "), text)
				once(t, text)
			}
		}
	}
}

// An error names host, path and attempts also if there was no response. It does not contain the user's name or password.
func TestAnErrorNamesTheHost(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	client, err := webdelivery.NewClient("https://api.example.com:8443/root", fixture.Customer, webdelivery.BasicAuth(fixture.Username, fixture.Password),
		webdelivery.WithHTTPClient(&http.Client{Transport: fixture.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, lost })}),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 2, MinWait: 1}))
	require.NoError(t, err)
	_, err = client.Purge.Status(t.Context(), 7)
	require.EqualError(t, err, "webdelivery: GET api.example.com:8443/root/acme/v1/transactions/7: connection lost (2 attempts)")
	var e *webdelivery.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "api.example.com:8443", e.Host)
}

// queueError is the error of a call with one URI.
func queueError(cause error) *webdelivery.QueueError {
	return &webdelivery.QueueError{Failures: []webdelivery.URIFailure{{URI: webdelivery.Exact("a"), Err: cause}}}
}
