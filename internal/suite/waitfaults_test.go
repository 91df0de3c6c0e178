package suite_test

import (
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// The matrix of faults for waits: which faults end a wait. It polls through all others.
var (
	endsWait = []string{
		"400", "401 with Basic authentication", "401 with a session: one new login, one more attempt", "403", "404",
		"405, 406, 409, 410, 413, 422",
	}
	// These end a wait that has not read anything yet.
	endsFirstPoll = []string{
		"A redirect, to any address", "304 to a request without a condition", "No connection: unknown host",
		"No connection: untrusted certificate, on either side",
	}
)

// outage is how long a permanent fault lasts here. The task or transaction takes at most as long.
const outage = 9 * time.Minute

// disturbWait waits while a fault lasts: for one request, or for nine minutes.
func disturbWait(f *fixture.Fixture, row faultRow, v variant, op operationOf, is promise, when moment) {
	use := prepare(f, op)
	before, began := f.Srv.Count(op.Method, op.Pattern()), time.Now()
	dials, remove := addFault(f, v, op, when)
	time.AfterFunc(outage, remove)
	use.Poll = 20 * time.Second
	var failed []webdelivery.Progress
	use.Show = func(shown ...any) {
		for _, value := range shown {
			if p, is := value.(webdelivery.Progress); is && p.Err != nil {
				failed = append(failed, p)
			}
		}
	}

	_, err := op.Call(f.Context(), f.Client, use)
	sent := f.Srv.Count(op.Method, op.Pattern()) - before

	ends := slices.Contains(endsWait, row.fault) || when.skip == 0 && slices.Contains(endsFirstPoll, row.fault)
	if row.session { // a new login helps against a transient fault
		ends = when.stays
	}
	if ends {
		require.Error(f, err)
		assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		assert.Less(f, time.Since(began), outage)
		if row.is != nil {
			assert.ErrorIs(f, err, row.is)
		}
		if v.dial == nil {
			assert.Equal(f, when.skip+is.attempts, sent)
		} else {
			assert.Equal(f, int64(when.skip+1), dials.Load())
		}
		return
	}
	require.NoError(f, err)
	for _, p := range failed {
		if row.is != nil {
			assert.ErrorIs(f, p.Err, row.is)
		}
		assert.NotErrorIs(f, p.Err, context.DeadlineExceeded)
		assert.False(f, p.Complete)
		assert.Equal(f, when.skip > 0, p.Status != "", "the status is that of the last poll that did not fail")
	}
	switch {
	case when.stays:
		assert.GreaterOrEqual(f, time.Since(began), outage)
		polls := 3
		if row.fault == "503 with a Retry-After above ThrottleTimeout" {
			polls = 1 // a wait honours it
		}
		assert.GreaterOrEqual(f, len(failed), polls)
	case is.attempts > 1:
		assert.Empty(f, failed, "the retry of the call is enough")
	default:
		assert.Len(f, failed, 1)
	}
}

// onePoll is a context that ends with the first poll.
func onePoll(ctx context.Context) (context.Context, webdelivery.WaitOption) {
	ctx, cancel := context.WithCancel(ctx)
	return ctx, webdelivery.WaitProgress(func(webdelivery.Progress) { cancel() })
}
