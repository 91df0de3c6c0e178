package redisqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

func refusedURI() []webdelivery.PurgeURI {
	return []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.org/")}
}

// A result arrives in another process with its receipt, its failed URIs, its outcome, and what its cause matches.
func TestResultsTravel(t *testing.T) {
	t.Parallel()
	receipt := &webdelivery.PurgeReceipt{Code: 201, Description: "request submitted", TransactionID: 7, StatusURI: "/transactions/7"}
	badRequest := &webdelivery.Error{
		StatusCode: 400, Code: 400, Method: "POST", Host: "api.example.com", Path: "/acme/v1/cache/purge", Description: "not your domain", Attempts: 2,
	}
	transaction := &webdelivery.TransactionError{Transaction: &webdelivery.Transaction{
		TransactionID: 7, TransactionStatus: "FAILED", Code: 504, EndTS: time.Unix(1_700_000_000, 0).UTC(),
	}}
	tests := map[string]struct {
		sent    result
		matches []error
		text    string
	}{
		"success": {sent: result{receipt: receipt}},
		"refused": {
			sent:    result{err: failed(refusedURI(), badRequest, webdelivery.OutcomeNotApplied)},
			matches: []error{webdelivery.ErrBadRequest}, text: "POST api.example.com/acme/v1/cache/purge: 400 Bad Request: not your domain (2 attempts)",
		},
		"together": {
			sent:    result{receipt, failed(refusedURI(), webdelivery.ErrRefusedTogether, webdelivery.OutcomeUnknown)},
			matches: []error{webdelivery.ErrRefusedTogether}, text: "refused together with others and not sent alone; purge it again",
		},
		"transaction": {
			sent: result{receipt, failed(refusedURI(), transaction, webdelivery.OutcomeUnknown)},
			text: "transaction 7 ended as FAILED (code 504)",
		},
		"joined": {
			sent:    result{err: failed(refusedURI(), errors.Join(webdelivery.ErrServer, webdelivery.ErrRateLimited), webdelivery.OutcomeUnknown)},
			matches: []error{webdelivery.ErrServer, webdelivery.ErrRateLimited}, text: "server fault",
		},
		"context of the sender": {
			sent: result{err: failed(refusedURI(), fmt.Errorf("attempt: %w", context.DeadlineExceeded), webdelivery.OutcomeUnknown)},
			text: "attempt: context deadline exceeded",
		},
		"no QueueError": {sent: result{err: errors.New("a panic of user code")}, text: "a panic of user code"},
	}
	known := []error{
		webdelivery.ErrBadRequest, webdelivery.ErrUnauthorized, webdelivery.ErrForbidden, webdelivery.ErrNotFound, webdelivery.ErrRateLimited,
		webdelivery.ErrServer, webdelivery.ErrRedirect, webdelivery.ErrBadReply, webdelivery.ErrResponseTooLarge,
		webdelivery.ErrRefusedTogether, webdelivery.ErrInvalid, webdelivery.ErrQueueClosed, context.DeadlineExceeded, context.Canceled,
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			number, got := decode(tt.sent.encode("1a"))
			assert.Equal(t, "1a", number)
			assert.Equal(t, tt.sent.receipt, got.receipt)
			assert.Equal(t, webdelivery.OutcomeOf(tt.sent.err), webdelivery.OutcomeOf(got.err))
			if tt.sent.err == nil {
				require.NoError(t, got.err)
				return
			}
			require.ErrorContains(t, got.err, tt.text)
			for _, sentinel := range known {
				matches := false
				for _, m := range tt.matches {
					matches = matches || errors.Is(m, sentinel)
				}
				assert.Equal(t, matches, errors.Is(got.err, sentinel), sentinel)
			}
			sent, isQueueError := errors.AsType[*webdelivery.QueueError](tt.sent.err)
			arrived, ok := errors.AsType[*webdelivery.QueueError](got.err)
			require.True(t, ok)
			if isQueueError {
				assert.Equal(t, sent.URIs, arrived.URIs)
				assert.Equal(t, sent.Error(), arrived.Error(), "the same text in every process")
			}
		})
	}
	_, got := decode(result{err: failed(refusedURI(), badRequest, webdelivery.OutcomeNotApplied)}.encode("1"))
	response, ok := errors.AsType[*webdelivery.Error](got.err)
	require.True(t, ok)
	assert.Equal(t, badRequest.Description, response.Description)
	assert.Equal(t, badRequest.Path, response.Path)
	_, got = decode(result{err: failed(refusedURI(), transaction, webdelivery.OutcomeUnknown)}.encode("1"))
	ended, ok := errors.AsType[*webdelivery.TransactionError](got.err)
	require.True(t, ok)
	assert.Equal(t, transaction.Transaction, ended.Transaction)
}

// loginError has a response with another meaning: 400 was the answer to a login, not to the purge.
type loginError struct{ response *webdelivery.Error }

func (e loginError) Error() string        { return "login: " + e.response.Error() }
func (e loginError) Is(target error) bool { return target == webdelivery.ErrUnauthorized }
func (e loginError) As(target any) bool {
	to, ok := target.(**webdelivery.Error)
	if ok {
		*to = e.response
	}
	return ok
}

// A response that would match more than the original error does not travel.
func TestNoErrorMatchesMoreThanItsOriginal(t *testing.T) {
	t.Parallel()
	login := loginError{&webdelivery.Error{StatusCode: 400, Method: "POST", Path: "/acme/v1/sessions"}}
	_, got := decode(result{err: failed(refusedURI(), login, webdelivery.OutcomeNotApplied)}.encode("1"))
	require.ErrorIs(t, got.err, webdelivery.ErrUnauthorized)
	require.NotErrorIs(t, got.err, webdelivery.ErrBadRequest)
}

// A message of a newer release, and one that is damaged, leave the outcome unknown.
func TestUnreadableResults(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"v":2,"c":"1","r":{"code":201}}`, `{"v":`, `[]`, ``, `{"v":1,"c":7}`, `{}`, `null`, `{"v":1,"c":"1"}`} {
		_, got := decode(text)
		require.Error(t, got.err, text)
		assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(got.err))
	}
}

// Long texts are cut at a whole character.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	_, got := decode(result{err: failed(refusedURI(), errors.New(strings.Repeat("ü", 10_000)), webdelivery.OutcomeUnknown)}.encode("1"))
	remote, ok := errors.AsType[*RemoteError](got.err)
	require.True(t, ok)
	assert.Equal(t, strings.Repeat("ü", longestText/2)+" ...", remote.Message)
}

// No text from Redis panics, and what is read is a result that can be sent on unchanged.
func FuzzDecode(f *testing.F) {
	f.Add(result{receipt: &webdelivery.PurgeReceipt{TransactionID: 1}}.encode("a"))
	f.Add(result{err: failed(refusedURI(), webdelivery.ErrBadRequest, webdelivery.OutcomeNotApplied)}.encode("b"))
	f.Add(`{"v":1,"e":{"t":"x","m":["bad-request","none"],"r":{"s":400},"x":{"code":400}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		number, r := decode(text)
		if r.err != nil {
			_ = r.err.Error()
		}
		if !json.Valid([]byte(text)) {
			return
		}
		sameNumber, same := decode(r.encode(number))
		assert.Equal(t, number, sameNumber)
		assert.Equal(t, r.receipt, same.receipt)
		assert.Equal(t, webdelivery.OutcomeOf(r.err), webdelivery.OutcomeOf(same.err))
		for _, s := range sentinels {
			assert.Equal(t, errors.Is(r.err, s.err), errors.Is(same.err, s.err))
		}
	})
}
