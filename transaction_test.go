package webdelivery_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// The error of SubmitAndWait distinguishes a purge that was not submitted from one whose end is unknown, and only the latter
// comes with a transaction.
func TestSubmitAndWait(t *testing.T) {
	t.Parallel()
	const purge, transaction = "/cache/purge", "/transactions/*"
	one := fixture.PurgeOf(fixture.AnObject)
	for name, tt := range map[string]struct {
		fault   testserver.Fault
		request webdelivery.PurgeRequest
		every   time.Duration
		limit   time.Duration
		is      error
		outcome webdelivery.Outcome
		polls   int // 0: not submitted
	}{
		"well":            {request: one, every: time.Second, outcome: webdelivery.OutcomeApplied, polls: 61},
		"no URIs":         {every: time.Second, is: webdelivery.ErrInvalid, outcome: webdelivery.OutcomeNotApplied},
		"a wrong option":  {request: one, is: webdelivery.ErrInvalid, outcome: webdelivery.OutcomeNotApplied},
		"rejected":        {testserver.Fault{Path: purge, Status: 400}, one, time.Second, 0, webdelivery.ErrBadRequest, webdelivery.OutcomeNotApplied, 0},
		"lost":            {testserver.Fault{Path: purge, Cut: testserver.CutAfterRead}, one, time.Second, 0, nil, webdelivery.OutcomeUnknown, 0},
		"the wait ends":   {request: one, every: time.Second, limit: 10500 * time.Millisecond, is: context.DeadlineExceeded, polls: 11},
		"no transaction":  {testserver.Fault{Path: transaction, Status: 404}, one, time.Second, 0, webdelivery.ErrNotFound, webdelivery.OutcomeUnknown, 1},
		"a redirect once": {testserver.Fault{Path: transaction, Status: 302, Count: 1}, one, time.Second, 0, nil, webdelivery.OutcomeApplied, 61},
	} {
		fixture.InFakeTime(t, fixture.Setup{Server: testserver.Config{PurgeDuration: time.Minute}}, func(f *fixture.Fixture) {
			if tt.fault.Path != "" {
				f.AddFault(tt.fault)
			}
			ctx, cancel := context.WithTimeout(f.Context(), cmp.Or(tt.limit, time.Hour))
			defer cancel()
			tx, err := f.Client.Purge.SubmitAndWait(ctx, tt.request, webdelivery.WaitInterval(tt.every))
			if tt.is != nil {
				require.ErrorIs(f, err, tt.is, name)
			}
			assert.Equal(f, tt.outcome, webdelivery.OutcomeOf(err), name)
			assert.Equal(f, tt.polls, f.Srv.Count(http.MethodGet, transaction), name)
			require.Equal(f, tt.polls > 0, tx != nil, name)
			if tx != nil {
				assert.Equal(f, int64(firstTransaction), tx.TransactionID, name)
			}
			if tx != nil && err != nil {
				assert.ErrorContains(f, err, "transaction 9007199254740993", name)
			}
		})
	}
}

// A word that says so ends a transaction badly, in any letter case, and so does a code of 400 or more (open point 9). The
// error has the service's texts without the client's secrets. Status returns no error for such a transaction.
func TestTransactionEndsByItsWord(t *testing.T) {
	t.Parallel()
	type end struct {
		status string
		code   int
	}
	for tt, well := range map[end]bool{
		{"COMPLETE", 0}: true, {"Success", 0}: true, {"NEVER_HEARD_OF", 0}: true, {"PENDING_NO_MORE", 0}: true, {"COMPLETE", 399}: true,
		{"COMPLETE", 400}: false, {"FAILED", 0}: false, {"Partial_Failure", 0}: false, {"completed with errors", 0}: false, {"Abort", 0}: false,
		{"canceled", 0}: false, {"CANCELLED", 0}: false, {"Rejected", 0}: false, {"PENDING", 500}: false, {"pending", 400}: false,
	} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.Srv.FailTransactions(1, tt.status, "how it ended: "+fixture.Password, tt.code)
			receipt, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf(fixture.AnObject))
			require.NoError(f, err)
			tx, err := f.Client.Purge.Wait(f.Context(), receipt.TransactionID)
			if well {
				require.NoError(f, err)
			} else {
				var failed *webdelivery.TransactionError
				require.ErrorAs(f, err, &failed)
				assert.Nil(f, tx)
				tx = failed.Transaction
				assert.ErrorContains(f, err, fmt.Sprintf("webdelivery: transaction %d ended as %s (code ", receipt.TransactionID, tt.status))
				assert.ErrorContains(f, err, "): how it ended: [redacted]")
				assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
			}
			assert.Equal(f, tt.status, tx.Status)
			assert.Equal(f, receipt.TransactionID, tx.TransactionID)

			tx, err = f.Client.Purge.Status(f.Context(), receipt.TransactionID)
			require.NoError(f, err)
			assert.Equal(f, tt.status, tx.Status)
		})
	}
}

// A response without the state of the purge, or with that of another one, is an error, not a success.
func TestTransactionWithoutStatusIsAnError(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"code":200,"transaction_id":7,"transaction_response":null}`, `{"code":200,"transaction_id":7,"transaction_response":{}}`,
		`{"transaction_response":{"transaction_status":""}}`, `{"transaction_status":"COMPLETE"}`, `null`, `[]`, ``, `"COMPLETE"`,
		`{"code":200,"transaction_id":8,"transaction_response":{"transaction_status":"COMPLETE"}}`,
	} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			fixture.AnswerWith(f, "/transactions/7", body, body)
			tx, err := f.Client.Purge.Status(f.Context(), 7)
			require.ErrorIs(f, err, webdelivery.ErrBadResponse, body)
			assert.Nil(f, tx)
			ctx, cancel := context.WithTimeout(f.Context(), 300*time.Millisecond)
			defer cancel()
			tx, err = f.Client.Purge.Wait(ctx, 7)
			require.ErrorIs(f, err, webdelivery.ErrBadResponse)
			require.ErrorIs(f, err, context.DeadlineExceeded, "the next response may be valid")
			assert.Nil(f, tx)
			assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
			assert.Len(f, f.Srv.Requests(), 2)
		})
	}
}
