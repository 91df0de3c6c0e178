package webdelivery_test

import (
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

// The error of SubmitAndWait distinguishes a purge that was not submitted from one whose end is unknown.
func TestSubmitAndWait(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault     testserver.Fault
		request   webdelivery.PurgeRequest
		option    webdelivery.WaitOption
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
		"the wait ends":   {option: webdelivery.WaitTimeout(10500 * time.Millisecond), request: fixture.PurgeOf(fixture.AnObject), is: context.DeadlineExceeded, submitted: true, polls: 11},
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
				tx, err := f.Client.Purge.SubmitAndWait(f.Context(), tt.request, options...)
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
