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
	alone := &webdelivery.Error{Method: http.MethodPost, StatusCode: http.StatusBadRequest, Description: "not yours", Body: []byte("secret"), Header: http.Header{"A": {"b"}}}
	host := fmt.Errorf("%w: www.example.com", webdelivery.ErrHostRefused)
	original := &webdelivery.QueueError{Outcome: webdelivery.OutcomeUnknown, Failures: []webdelivery.URIFailure{
		{URI: webdelivery.Exact("https://www.example.com/alone"), Err: alone, Outcome: webdelivery.OutcomeNotApplied},
		{URI: webdelivery.Exact("https://www.example.com/host"), Err: host, Outcome: webdelivery.OutcomeUnknown},
		{URI: webdelivery.Exact("https://www.example.com/another"), Err: host, Outcome: webdelivery.OutcomeUnknown},
		{URI: webdelivery.Exact("https://www.example.com/together"), Err: webdelivery.ErrRefusedTogether, Outcome: webdelivery.OutcomeApplied},
		{URI: webdelivery.Exact("https://www.example.com/login"), Err: fmt.Errorf("%w: 403", webdelivery.ErrUnauthorized)},
		{URI: webdelivery.Exact("https://www.example.com/line"), Err: fmt.Errorf("%w: in line", webdelivery.ErrRateLimited)},
	}}
	sent := result{receipts: []*webdelivery.PurgeReceipt{{TransactionID: 1}, {TransactionID: 2}}, err: original}
	got := decode(sent.encode())
	assert.Equal(t, sent.receipts, got.receipts)
	failure, ok := errors.AsType[*webdelivery.QueueError](got.err)
	require.True(t, ok)
	assert.Equal(t, webdelivery.OutcomeUnknown, failure.Outcome)
	require.Len(t, failure.Failures, len(original.Failures))
	causes := []error{webdelivery.ErrBadRequest, webdelivery.ErrHostRefused, webdelivery.ErrHostRefused, webdelivery.ErrRefusedTogether, webdelivery.ErrUnauthorized, webdelivery.ErrRateLimited}
	for i, f := range failure.Failures {
		want := original.Failures[i]
		assert.Equal(t, want.URI, f.URI)
		assert.Equal(t, want.Outcome, f.Outcome)
		assert.EqualError(t, f.Err, want.Err.Error())
		_, isRemote := errors.AsType[*RemoteError](f.Err)
		assert.True(t, isRemote)
		for _, target := range causes {
			assert.Equal(t, errors.Is(target, causes[i]), errors.Is(f.Err, target), "%v matches %v", f.Err, target)
		}
	}
	refused, _ := errors.AsType[*webdelivery.Error](failure.Failures[0].Err)
	assert.Equal(t, &webdelivery.Error{Method: http.MethodPost, StatusCode: http.StatusBadRequest, Description: "not yours"}, refused)

	got = decode(result{receipts: sent.receipts[:1]}.encode())
	assert.Equal(t, result{receipts: sent.receipts[:1]}, got)
}

// Nothing that stands in Redis makes a process panic, and a damaged result says nothing about the purge.
func TestADamagedResult(t *testing.T) {
	t.Parallel()
	const uri = `{"URI":{"match_mode":"EXACT_LITERAL","uri_pattern":"https://www.example.com/a"}}`
	for _, text := range []string{
		"", "{}", "null", "[]", "?", `{"r":null}`, `{"r":[null]}`, `{"r":[{"transaction_id":5}]`, `{"r":[{"transaction_id":"x"}]}`,
		`{"f":[` + uri + `]}`, `{"f":[` + uri + `],"e":[]}`, `{"f":[` + uri + `],"e":[null]}`, `{"e":[{}]}`, `{"f":[` + uri + `],"e":[{},{}]}`,
	} {
		got := decode(text)
		assert.Nil(t, got.receipts, text)
		assert.ErrorContains(t, got.err, "unreadable", text)
		assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(got.err), text)
	}
}
