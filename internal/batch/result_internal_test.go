package batch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

func TestResultOf(t *testing.T) {
	t.Parallel()
	forbidden, lost, unread := errors.New("forbidden"), errors.New("lost"), errors.New("unread")
	accepted := uriResult{receipt: 1, ended: true}
	pending := uriResult{receipt: 2}
	aborted := uriResult{receipt: 3, err: unread, ended: true}
	refused := uriResult{err: forbidden, outcome: outcomes.NotApplied, ended: true}
	failed := uriResult{err: lost, ended: true}
	unreadable := uriResult{err: unread, outcome: outcomes.Applied, ended: true}
	doubtful := refused
	doubtful.doubtful = true
	type failures = []Failure
	uris := letters("abc")
	a, b, c := uris[0], uris[1], uris[2]
	for _, tt := range []struct {
		name     string
		known    []uriResult // of URIs a, b ...
		open     error
		waits    bool
		receipts []any
		failures failures
		outcome  outcomes.Outcome
	}{
		{"accepted", []uriResult{accepted, accepted}, nil, false, []any{1}, nil, outcomes.Applied},
		{"refused", []uriResult{refused}, nil, false, nil, failures{{a, nil, forbidden, outcomes.NotApplied}}, outcomes.NotApplied},
		{
			"some refused",
			[]uriResult{accepted, refused},
			nil, false,
			[]any{1},
			failures{{b, nil, forbidden, outcomes.NotApplied}},
			outcomes.Unknown,
		},
		{
			"refused and lost",
			[]uriResult{refused, failed},
			nil, false,
			nil,
			failures{{a, nil, forbidden, outcomes.NotApplied}, {b, nil, lost, outcomes.Unknown}},
			outcomes.Unknown,
		},
		{
			"refused after a request that may have worked",
			[]uriResult{doubtful},
			nil, false,
			nil,
			failures{{a, nil, forbidden, outcomes.Unknown}},
			outcomes.Unknown,
		},
		{"accepted without a receipt", []uriResult{unreadable}, nil, false, nil, failures{{a, nil, unread, outcomes.Applied}}, outcomes.Applied},
		{
			"accepted, some without a receipt",
			[]uriResult{accepted, unreadable},
			nil, false,
			[]any{1},
			failures{{b, nil, unread, outcomes.Applied}},
			outcomes.Applied,
		},
		{
			"accepted without a transaction to wait for",
			[]uriResult{unreadable},
			nil, true,
			nil,
			failures{{a, nil, unread, outcomes.Unknown}},
			outcomes.Unknown,
		},
		{
			"a transaction that ended badly",
			[]uriResult{aborted},
			nil, true,
			[]any{3},
			failures{{a, 3, unread, outcomes.Unknown}},
			outcomes.Unknown,
		},
		{
			"the receipts of all parts",
			[]uriResult{accepted, aborted, refused},
			nil, true,
			[]any{1, 3},
			failures{{b, 3, unread, outcomes.Unknown}, {c, nil, forbidden, outcomes.NotApplied}},
			outcomes.Unknown,
		},
		{"left while it is sent", []uriResult{{}}, lost, false, nil, failures{{a, nil, lost, outcomes.Unknown}}, outcomes.Unknown},
		{
			"left while a transaction runs",
			[]uriResult{pending, accepted},
			lost, true,
			[]any{2, 1},
			failures{{a, 2, lost, outcomes.Unknown}},
			outcomes.Unknown,
		},
		{"left when all has ended", []uriResult{refused}, lost, false, nil, failures{{a, nil, forbidden, outcomes.NotApplied}}, outcomes.NotApplied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			known := map[URI]*uriResult{{Pattern: "z"}: &refused} // of another caller
			for i := range tt.known {
				known[uris[i]] = &tt.known[i]
			}
			result := resultOf(uris[:len(tt.known)], known, tt.open, tt.waits)
			assert.Equal(t, Result{tt.receipts, tt.failures, tt.outcome}, result)
		})
	}
}
