package redisqueue

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// Another process gets the receipts, the cause and the outcome of each URI.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	public := webdelivery.Error{Method: http.MethodPost, StatusCode: http.StatusBadRequest, Description: "not yours"}
	alone := public
	alone.Body, alone.Header = []byte("secret"), http.Header{"A": {"b"}}
	host := fmt.Errorf("%w: www.example.com", webdelivery.ErrHostRefused)
	sent := []webdelivery.URIFailure{
		{URI: webdelivery.Exact("alone"), Err: &alone, Outcome: webdelivery.OutcomeNotApplied},
		{URI: webdelivery.Exact("host"), Err: host, Outcome: webdelivery.OutcomeUnknown},
		{URI: webdelivery.Exact("another"), Err: host, Outcome: webdelivery.OutcomeUnknown},
		{URI: webdelivery.Exact("together"), Err: webdelivery.ErrRefusedTogether, Outcome: webdelivery.OutcomeApplied},
		{URI: webdelivery.Exact("login"), Err: fmt.Errorf("%w: 403", webdelivery.ErrUnauthorized)},
		{URI: webdelivery.Exact("line"), Err: fmt.Errorf("%w: in line", webdelivery.ErrRateLimited)},
	}
	receipts := []*webdelivery.PurgeReceipt{{TransactionID: 1}, {TransactionID: 2}}
	assert.Equal(t, result{receipts: receipts}, decode(result{receipts: receipts}.encode()))
	got := decode(result{receipts, &webdelivery.QueueError{Outcome: webdelivery.OutcomeUnknown, Failures: sent}}.encode())
	assert.Equal(t, receipts, got.receipts)
	var failure *webdelivery.QueueError
	require.ErrorAs(t, got.err, &failure)
	assert.Equal(t, webdelivery.OutcomeUnknown, failure.Outcome)
	require.Len(t, failure.Failures, len(sent))
	causes := []error{
		webdelivery.ErrBadRequest, webdelivery.ErrHostRefused, webdelivery.ErrRefusedTogether,
		webdelivery.ErrUnauthorized, webdelivery.ErrRateLimited,
	}
	for i, f := range failure.Failures {
		assert.ErrorAs(t, f.Err, new(*RemoteError))
		assert.EqualError(t, f.Err, sent[i].Err.Error())
		for _, target := range causes {
			assert.Equal(t, errors.Is(sent[i].Err, target), errors.Is(f.Err, target), "%v matches %v", f.Err, target)
		}
		f.Err = sent[i].Err
		assert.Equal(t, sent[i], f)
	}
	refused, _ := errors.AsType[*webdelivery.Error](failure.Failures[0].Err)
	assert.Equal(t, &public, refused)
}

// Nothing that stands in Redis makes a process panic, and a damaged result says nothing about the purge.
func TestADamagedResult(t *testing.T) {
	t.Parallel()
	const failed = `{"f":[{"URI":{"match_mode":"EXACT_LITERAL","uri_pattern":"https://www.example.com/a"}}]`
	for _, text := range []string{
		"", "{}", "null", "[]", "?", `{"r":null}`, `{"r":[null]}`, `{"r":[{"transaction_id":5}]`, `{"r":[{"transaction_id":"x"}]}`,
		failed + `}`, failed + `,"e":[]}`, failed + `,"e":[null]}`, `{"e":[{}]}`, failed + `,"e":[{},{}]}`,
	} {
		got := decode(text)
		assert.Nil(t, got.receipts, text)
		assert.ErrorContains(t, got.err, "unreadable", text)
		assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(got.err), text)
	}
}

// Only what the service has refused alone is certainly not applied: an earlier sender may have sent the rest.
func TestOutcomesAfterAnEarlierSender(t *testing.T) {
	t.Parallel()
	all := &webdelivery.QueueError{Outcome: webdelivery.OutcomeNotApplied}
	for _, err := range []error{&webdelivery.Error{StatusCode: http.StatusBadRequest}, webdelivery.ErrHostRefused, errors.New("no permit")} {
		all.Failures = append(all.Failures, webdelivery.URIFailure{Err: err, Outcome: webdelivery.OutcomeNotApplied})
	}
	assert.EqualError(t, faultOf(result{err: all}), "no permit")
	assert.Equal(t, webdelivery.OutcomeUnknown, all.Outcome)
	for i, f := range all.Failures {
		assert.Equal(t, i == 0, f.Outcome == webdelivery.OutcomeNotApplied)
	}
}
