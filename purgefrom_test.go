package webdelivery_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

func exacts(uris ...string) (all []webdelivery.PurgeURI) {
	for _, uri := range uris {
		all = append(all, webdelivery.Exact(uri))
	}
	return all
}

// purgedFrom calls PurgeFrom, and returns the results in the order of the calls.
func purgedFrom(
	ctx context.Context, q *webdelivery.PurgeQueue, take func(context.Context) ([][]webdelivery.PurgeURI, error),
) (results []webdelivery.PurgeResult, err error) {
	found := map[int]webdelivery.PurgeResult{}
	err = q.PurgeFrom(ctx, take, func(call int, r webdelivery.PurgeResult) { found[call] = r })
	for i := range len(found) {
		results = append(results, found[i])
	}
	return results, err
}

// PurgeFrom asks for the calls when its permit has come, sends them in one request, and returns what Purge returns for
// each.
func TestPurgeFrom(t *testing.T) {
	t.Parallel()
	inQueue(t, fixture.Setup{}, webdelivery.QueueOptions{}, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
		began := time.Now()
		f.TakeSlots()
		results, err := purgedFrom(f.Context(), q, func(ctx context.Context) ([][]webdelivery.PurgeURI, error) {
			assert.Equal(f, hold, time.Since(began), "after the first two have arrived")
			return fixture.CallsFor(exacts(object(1), object(2)), exacts(object(2)))(ctx)
		})
		require.NoError(f, err)
		require.Len(f, results, 2)
		for _, r := range results {
			require.NoError(f, r.Err)
			assert.Equal(f, f.Srv.Purged()[2].TransactionID, r.Receipts[0].TransactionID)
		}
		assert.Equal(f, 1, purgedURIs(f)[object(2)], "identical URIs are sent once")
		assert.Len(f, arrivals(f), 3)
	})
}

// Only the call with the refused URI fails, with the error and the outcome of Purge.
func TestPurgeFromIsolatesRefusedURIs(t *testing.T) {
	t.Parallel()
	inQueue(t, fixture.Setup{}, webdelivery.QueueOptions{}, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
		const refused = "https://www.example.org/"
		results, err := purgedFrom(f.Context(), q, fixture.CallsFor(exacts(object(1)), exacts(refused), exacts(refused, object(2))))
		require.NoError(f, err)
		require.NoError(f, results[0].Err)
		failed, ok := errors.AsType[*webdelivery.QueueError](results[1].Err)
		require.True(f, ok)
		assert.Equal(f, exacts(refused), failedURIs(failed))
		assert.Equal(f, webdelivery.OutcomeNotApplied, failed.Outcome)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(results[1].Err))
		require.ErrorIs(f, results[1].Err, webdelivery.ErrBadRequest)
		assert.Empty(f, results[1].Receipts)
		assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(results[2].Err), "a part was purged")
		assert.Len(f, results[2].Receipts, 1)
	})
}

// If the permit comes too late, take is not called.
func TestPurgeFromWithoutPermit(t *testing.T) {
	t.Parallel()
	inQueue(t, fixture.Setup{}, webdelivery.QueueOptions{}, func(f *fixture.Fixture, q *webdelivery.PurgeQueue) {
		ctx, cancel := context.WithTimeout(f.Context(), hold/2)
		defer cancel()
		f.TakeSlots()
		_, err := purgedFrom(ctx, q, func(context.Context) ([][]webdelivery.PurgeURI, error) { panic("take was called") })
		require.ErrorIs(f, err, context.DeadlineExceeded)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	})
}

// URL has the escaped customer and no credentials. PurgeLimiter is what the client was given.
func TestWhatAClientTells(t *testing.T) {
	t.Parallel()
	limiter := rate.NewLimiter(1, 1)
	client, err := webdelivery.NewClient("https://API.example.com:443/root/", "ac me", webdelivery.BasicAuth("alice", "secret"),
		webdelivery.WithHTTPClient(&http.Client{}), webdelivery.WithPurgeLimiter(limiter))
	require.NoError(t, err)
	assert.Equal(t, "https://api.example.com/root/ac%20me/v1", client.URL())
	assert.Same(t, limiter, client.PurgeLimiter())
	client, err = webdelivery.NewClient("https://api.example.com", "acme", webdelivery.BasicAuth("alice", "secret"))
	require.NoError(t, err)
	assert.Nil(t, client.PurgeLimiter())
}
