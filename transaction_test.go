package webdelivery_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// The error of SubmitAndWait distinguishes a purge that was not submitted from one whose end is unknown.
func TestSubmitAndWait(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault     testserver.Fault
		request   webdelivery.PurgeRequest
		option    webdelivery.WaitOption
		limit     time.Duration
		is        error
		outcome   webdelivery.Outcome
		submitted bool
		polls     int
	}{
		"well":            {outcome: webdelivery.OutcomeApplied, submitted: true, polls: 61, request: fixture.PurgeOf(fixture.AnObject)},
		"no URIs":         {is: webdelivery.ErrInvalid, outcome: webdelivery.OutcomeNotApplied},
		"a wrong option":  {option: webdelivery.WaitInterval(0), request: fixture.PurgeOf(fixture.AnObject), is: webdelivery.ErrInvalid, outcome: webdelivery.OutcomeNotApplied},
		"rejected":        {fault: testserver.Fault{Path: "/cache/purge", Status: 400}, request: fixture.PurgeOf(fixture.AnObject), is: webdelivery.ErrBadRequest, outcome: webdelivery.OutcomeNotApplied},
		"lost":            {fault: testserver.Fault{Path: "/cache/purge", Cut: testserver.CutAfterRead}, request: fixture.PurgeOf(fixture.AnObject), outcome: webdelivery.OutcomeUnknown},
		"the wait ends":   {limit: 10500 * time.Millisecond, request: fixture.PurgeOf(fixture.AnObject), is: context.DeadlineExceeded, submitted: true, polls: 11},
		"no transaction":  {fault: testserver.Fault{Path: "/transactions/*", Status: 404}, request: fixture.PurgeOf(fixture.AnObject), is: webdelivery.ErrNotFound, submitted: true, polls: 1},
		"a redirect once": {fault: testserver.Fault{Path: "/transactions/*", Status: 302, Count: 1}, request: fixture.PurgeOf(fixture.AnObject), outcome: webdelivery.OutcomeApplied, submitted: true, polls: 61},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{Server: testserver.Config{PurgeDuration: time.Minute}}, func(f *fixture.Fixture) {
				if tt.fault.Path != "" {
					f.AddFault(tt.fault)
				}
				options := []webdelivery.WaitOption{webdelivery.WaitInterval(time.Second)}
				if tt.option != nil {
					options = append(options, tt.option)
				}
				ctx, cancel := context.WithTimeout(f.Context(), cmp.Or(tt.limit, time.Hour))
				defer cancel()
				tx, err := f.Client.Purge.SubmitAndWait(ctx, tt.request, options...)
				if tt.is != nil {
					require.ErrorIs(f, err, tt.is)
				}
				assert.Equal(f, tt.outcome, webdelivery.OutcomeOf(err))
				assert.Equal(f, tt.polls, f.Srv.Count(http.MethodGet, "/transactions/*"))
				assert.Equal(f, tt.submitted, tx != nil)
				if tx != nil {
					assert.Positive(f, tx.TransactionID)
				}
				if tx != nil && err != nil {
					assert.ErrorContains(f, err, fmt.Sprintf("transaction %d", tx.TransactionID))
					_, err = f.Client.Purge.Status(f.Context(), tx.TransactionID)
					assert.Equal(f, tt.fault.Path != "", err != nil)
				}
			})
		})
	}
}

func TestTransactionEndsByItsWord(t *testing.T) {
	t.Parallel()
	type end struct {
		status string
		code   int
	}
	tests := map[end]bool{ // whether it ended well
		{"COMPLETE", 0}: true, {"complete", 0}: true, {"DONE", 0}: true, {"Success", 0}: true, {"NEVER_HEARD_OF", 0}: true,
		{"COMPLETE", 201}: true, {"COMPLETE", 399}: true, {"PENDING_NO_MORE", 0}: true,
		{"COMPLETE", 400}: false, {"DONE", 404}: false, {"Success", 500}: false,
		{"FAILED", 0}: false, {"failed", 0}: false, {"Partial_Failure", 0}: false, {"ERROR", 0}: false, {"completed with errors", 0}: false,
		{"ABORTED", 0}: false, {"Abort", 0}: false, {"CANCELLED", 0}: false, {"canceled", 0}: false,
		{"REJECTED", 0}: false, {"Rejected", 0}: false, {"FAILED", 503}: false, {"PENDING", 500}: false, {"pending", 400}: false,
	}
	for tt, well := range tests {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				f.Srv.FailTransactions(1, tt.status, "how it ended", tt.code)
				receipt, err := f.Client.Purge.Submit(f.Context(), fixture.PurgeOf(fixture.AnObject))
				require.NoError(f, err)
				tx, err := f.Client.Purge.Wait(f.Context(), receipt.TransactionID)
				var failed *webdelivery.TransactionError
				if well {
					require.NoError(f, err)
				} else {
					require.ErrorAs(f, err, &failed)
					assert.Nil(f, tx)
					tx = failed.Transaction
					assert.ErrorContains(f, err, tt.status)
					assert.ErrorContains(f, err, "how it ended")
					assert.ErrorContains(f, err, strconv.FormatInt(receipt.TransactionID, 10))
					assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
				}
				assert.Equal(f, tt.status, tx.Status)
				assert.Equal(f, "how it ended", tx.StatusDescription)
				assert.Equal(f, receipt.TransactionID, tx.TransactionID)

				tx, err = f.Client.Purge.Status(f.Context(), receipt.TransactionID)
				require.NoError(f, err, "Status returns no error for a transaction that failed")
				assert.Equal(f, tt.status, tx.Status)
			})
		})
	}
}

// A response without the state of the purge is an error, not a success.
func TestTransactionWithoutStatusIsAnError(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{}`, `{"code":200,"transaction_id":7}`, `{"code":200,"transaction_id":7,"transaction_response":null}`,
		`{"code":200,"transaction_id":7,"transaction_response":{}}`, `{"code":"200","transaction_response":{"end_ts":5}}`,
		`{"transaction_response":{"transaction_status":null}}`, `{"transaction_response":{"transaction_status":""}}`,
		`{"transaction_status":"COMPLETE"}`, `null`, `[]`, ``, `"COMPLETE"`,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				fixture.AnswerWith(f, "/transactions/7", body, body)
				tx, err := f.Client.Purge.Status(f.Context(), 7)
				assert.ErrorIs(f, err, webdelivery.ErrBadResponse)
				assert.Nil(f, tx)
				ctx, cancel := context.WithTimeout(f.Context(), 300*time.Millisecond)
				defer cancel()
				tx, err = f.Client.Purge.Wait(ctx, 7)
				assert.ErrorIs(f, err, webdelivery.ErrBadResponse)
				assert.ErrorIs(f, err, context.DeadlineExceeded, "the next response may be valid")
				assert.Nil(f, tx)
				assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
				assert.Len(f, f.Srv.Requests(), 2)
			})
		})
	}
}
