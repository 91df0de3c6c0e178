package redisqueue

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

func uris(names ...string) (all []webdelivery.PurgeURI) {
	for _, name := range names {
		all = append(all, webdelivery.Exact("https://www.example.com/"+name))
	}
	return all
}

// mixed is a call of three URIs, refused in each way, and of one that was accepted in two requests.
func mixed() result {
	all := uris("alone", "host", "together")
	alone := &webdelivery.Error{StatusCode: http.StatusBadRequest, Description: "not yours", Body: []byte("secret"), Header: http.Header{"A": {"b"}}}
	host := &webdelivery.UndecidedError{Host: "www.example.com", RefusedAlone: 6, StatusCode: 400, Code: 7}
	return result{
		receipts: []*webdelivery.PurgeReceipt{{TransactionID: 1}, {TransactionID: 2}, {TransactionID: 3}},
		err: &webdelivery.QueueError{Outcome: webdelivery.OutcomeUnknown, Failures: []webdelivery.URIFailure{
			{URI: all[0], Err: alone, Outcome: webdelivery.OutcomeNotApplied},
			{URI: all[1], Err: host, Outcome: webdelivery.OutcomeUnknown},
			{URI: all[2], Err: new(webdelivery.UndecidedError), Outcome: webdelivery.OutcomeApplied},
		}},
	}
}

// Another process gets the receipts, the cause and the outcome of each URI.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	sent := mixed()
	got := decode(sent.encode())
	assert.Equal(t, sent.receipts, got.receipts)
	failure, ok := errors.AsType[*webdelivery.QueueError](got.err)
	require.True(t, ok)
	assert.Equal(t, webdelivery.OutcomeUnknown, failure.Outcome)
	original, _ := errors.AsType[*webdelivery.QueueError](sent.err)
	require.Len(t, failure.Failures, len(original.Failures))
	all := []error{webdelivery.ErrBadRequest, webdelivery.ErrHostRefused, webdelivery.ErrRefusedTogether}
	for i, f := range failure.Failures {
		want := original.Failures[i]
		assert.Equal(t, want.URI, f.URI)
		assert.Equal(t, want.Outcome, f.Outcome)
		assert.EqualError(t, f.Err, want.Err.Error())
		_, isRemote := errors.AsType[*RemoteError](f.Err)
		assert.True(t, isRemote)
		for j, target := range all {
			assert.Equal(t, i == j, errors.Is(f.Err, target), "%v matches %v", f.Err, target)
		}
	}
	refused, _ := errors.AsType[*webdelivery.Error](failure.Failures[0].Err)
	assert.Equal(t, &webdelivery.Error{StatusCode: http.StatusBadRequest, Description: "not yours"}, refused)
	undecided, _ := errors.AsType[*webdelivery.UndecidedError](failure.Failures[1].Err)
	assert.Equal(t, original.Failures[1].Err, undecided)

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
