package redisqueue

import (
	"encoding/json"
	"errors"
	"fmt"
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
	number, got := decode(sent.encode("17"))
	assert.Equal(t, "17", number)
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

	_, got = decode(result{receipts: sent.receipts[:1]}.encode(""))
	assert.Equal(t, result{receipts: sent.receipts[:1]}, got)
}

// URIs with the same cause share it, so that a call of many URIs has a short result.
func TestCausesAreStoredOnce(t *testing.T) {
	t.Parallel()
	var m message
	text := result{err: failed(uris("a", "b", "c"), errors.New("broken"), webdelivery.OutcomeUnknown)}.encode("")
	require.NoError(t, json.Unmarshal([]byte(text), &m)) //nolint:musttag // as in decode
	assert.Len(t, m.Causes, 1)
	assert.Len(t, m.Each, 3)
}

// A process of release 0.1.0 has stored the result: all URIs have the cause and the outcome of the call.
func TestAResultOfAnOlderRelease(t *testing.T) {
	t.Parallel()
	number, got := decode(`{"c":"17","r":{"transaction_id":5},"o":1,"e":{"Message":"refused","Response":{"StatusCode":400},"RefusedTogether":true},
		"f":[{"match_mode":"EXACT_LITERAL","uri_pattern":"https://www.example.com/a"},{"match_mode":"EXACT_LITERAL","uri_pattern":"https://www.example.com/b"}]}`)
	assert.Equal(t, "17", number)
	assert.Equal(t, []*webdelivery.PurgeReceipt{{TransactionID: 5}}, got.receipts)
	failure, ok := errors.AsType[*webdelivery.QueueError](got.err)
	require.True(t, ok)
	assert.Equal(t, webdelivery.OutcomeNotApplied, failure.Outcome)
	require.Len(t, failure.Failures, 2)
	for i, f := range failure.Failures {
		assert.Equal(t, uris("a", "b")[i], f.URI)
		assert.Equal(t, webdelivery.OutcomeNotApplied, f.Outcome)
		assert.EqualError(t, f.Err, "refused")
		assert.ErrorIs(t, f.Err, webdelivery.ErrBadRequest)
		assert.ErrorIs(t, f.Err, webdelivery.ErrRefusedTogether)
	}

	_, got = decode(`{"r":{"transaction_id":5}}`)
	assert.Equal(t, result{receipts: []*webdelivery.PurgeReceipt{{TransactionID: 5}}}, got)
	_, got = decode(`{"o":0,"e":{"Message":"too old"}}`) // the URIs were unreadable
	assert.EqualError(t, got.err, "too old")
}

// A process of release 0.1.0 reads what it knows: the last receipt, the failed URIs, the outcome of the call.
func TestAResultForAnOlderRelease(t *testing.T) {
	t.Parallel()
	type problem struct {
		Message         string
		Response        *webdelivery.Error
		RefusedTogether bool
	}
	var old struct { // of 0.1.0
		Call    string                    `json:"c"`
		Receipt *webdelivery.PurgeReceipt `json:"r"`
		Failed  []webdelivery.PurgeURI    `json:"f"`
		Outcome webdelivery.Outcome       `json:"o"`
		Error   problem                   `json:"e"`
	}
	sent := mixed()
	require.NoError(t, json.Unmarshal([]byte(sent.encode("17")), &old)) //nolint:musttag // as in decode
	assert.Equal(t, "17", old.Call)
	assert.Equal(t, sent.receipts[2], old.Receipt)
	assert.Equal(t, uris("alone", "host", "together"), old.Failed)
	assert.Equal(t, webdelivery.OutcomeUnknown, old.Outcome)
	response := &webdelivery.Error{StatusCode: http.StatusBadRequest, Description: "not yours"}
	assert.Equal(t, problem{sent.err.Error(), response, true}, old.Error)
}

// Nothing that stands in Redis makes a process panic, and a damaged result says nothing about the purge.
func TestADamagedResult(t *testing.T) {
	t.Parallel()
	const failed = `"f":[{"match_mode":"EXACT_LITERAL","uri_pattern":"https://www.example.com/a"},{"match_mode":"EXACT_LITERAL","uri_pattern":"https://www.example.com/b"}]`
	for _, text := range []string{
		"", "{}", "null", "[]", "?", `{"r":null}`, `{"c":"17"`, `{"r":{"transaction_id":"x"}}`, `{"o":1,` + failed + `}`,
		`{"r":{"transaction_id":5},` + failed + `}`, // there is no cause
		`{"e":{},"o":1,` + failed + `,"es":[{}],"fs":[[0,1]]}`,
		`{"e":{},"o":1,` + failed + `,"es":[{}],"fs":[[0,1],[0,1],[0,1]]}`,
		`{"e":{},"o":1,` + failed + `,"es":[{}],"fs":[[0,1],[1,1]]}`,
		`{"e":{},"o":1,` + failed + `,"es":[{}],"fs":[[0,1],[-1,1]]}`,
		`{"e":{},"o":1,` + failed + `,"es":[null],"fs":[[0,1],[0,1]]}`,
		`{"e":{},"o":1,` + failed + `,"es":[],"fs":[[0,1],[0,1]]}`,
		`{"e":{},"o":1,"es":[{}],"fs":[[0,1]]}`,
		`{"r":{"transaction_id":5},"rs":[null]}`,
	} {
		_, got := decode(text)
		assert.Nil(t, got.receipts, text)
		assert.ErrorContains(t, got.err, "unreadable", text)
		assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(got.err), text)
		assert.NotPanics(t, func() { _ = fmt.Sprint(got.err) })
	}
	number, got := decode(`{"c":"17","e":{},"o":7,` + failed + `,"es":[{}],"fs":[[0,7],[]]}`)
	assert.Equal(t, "17", number)
	assert.Equal(t, "unknown", webdelivery.OutcomeOf(got.err).String(), "of a later release")
}
