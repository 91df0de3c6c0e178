package batch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResultOf(t *testing.T) {
	t.Parallel()
	failure := func(text string, outcome Outcome) *Failure { return &Failure{errors.New(text), text, outcome} }
	forbidden, lost := failure("forbidden", NotApplied), failure("lost", Unknown)
	unread := failure("unread", Applied)
	took := fate[int]{accepted: true, receipt: 1, ended: true}
	pending := fate[int]{accepted: true, receipt: 2}
	aborted := fate[int]{accepted: true, receipt: 3, failed: unread, ended: true}
	no := fate[int]{failed: forbidden, ended: true}
	doubtful := fate[int]{failed: forbidden, ended: true, unsure: true}
	for _, c := range []struct {
		name    string
		fates   []fate[int] // of items a, b ...
		open    *Failure
		waits   bool
		receipt int
		items   string
		text    string // "": no error
		outcome Outcome
	}{
		{"accepted", []fate[int]{took, took}, nil, false, 1, "", "", 0},
		{"refused", []fate[int]{no}, nil, false, 0, "a", "forbidden", NotApplied},
		{"refused for one reason", []fate[int]{no, no}, nil, false, 0, "ab", "forbidden", NotApplied},
		{"some refused", []fate[int]{took, no}, nil, false, 1, "b", "forbidden", Unknown},
		{"refused and lost", []fate[int]{no, {failed: lost, ended: true}}, nil, false, 0, "ab", "forbidden\nlost", Unknown},
		{"refused after a request that may have worked", []fate[int]{doubtful}, nil, false, 0, "a", "forbidden", Unknown},
		{"accepted without a receipt", []fate[int]{{failed: unread, ended: true}}, nil, false, 0, "a", "unread", Applied},
		{"accepted, some without a receipt", []fate[int]{took, {failed: unread, ended: true}}, nil, false, 1, "b", "unread", Applied},
		{"accepted without a transaction to wait for", []fate[int]{{failed: unread, ended: true}}, nil, true, 0, "a", "unread", Unknown},
		{"a transaction that ended badly", []fate[int]{aborted}, nil, true, 3, "a", "unread", Unknown},
		{"the receipt of the last accepted item", []fate[int]{took, aborted, no}, nil, true, 3, "bc", "unread\nforbidden", Unknown},
		{"left while it is sent", []fate[int]{{}}, lost, false, 0, "a", "lost", Unknown},
		{"left while a transaction runs", []fate[int]{pending, took}, lost, true, 1, "a", "lost", Unknown},
		{"left when all has ended", []fate[int]{no}, lost, false, 0, "a", "forbidden", NotApplied},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var items []string
			fates := map[string]*fate[int]{"z": &no} // of another caller
			for i, f := range c.fates {
				item := string(rune('a' + i))
				items = append(items, item)
				fates[item] = &f
			}
			receipt, err := resultOf(items, fates, c.open, c.waits)
			assert.Equal(t, c.receipt, receipt)
			if c.text == "" {
				require.NoError(t, err)
				return
			}
			var failed *Error[string]
			require.ErrorAs(t, err, &failed)
			require.EqualError(t, err, c.text)
			failedItems := ""
			for _, item := range failed.Items {
				failedItems += item
			}
			assert.Equal(t, c.items, failedItems)
			assert.Equal(t, c.outcome, failed.Outcome)
		})
	}
}
