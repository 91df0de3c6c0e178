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
	type known = []uriResult // of URIs a, b ...
	type failures = []Failure
	const unknown, applied, notApplied = outcomes.Unknown, outcomes.Applied, outcomes.NotApplied
	uris := letters("abc")
	a, b, c := uris[0], uris[1], uris[2]
	for name, tt := range map[string]struct {
		known    known
		open     error
		waits    bool
		receipts []any
		failures failures
		outcome  outcomes.Outcome
	}{
		"accepted":         {known{accepted, accepted}, nil, false, []any{1}, nil, applied},
		"refused":          {known{refused}, nil, false, nil, failures{{a, nil, forbidden, notApplied}}, notApplied},
		"some refused":     {known{accepted, refused}, nil, false, []any{1}, failures{{b, nil, forbidden, notApplied}}, unknown},
		"refused and lost": {known{refused, failed}, nil, false, nil, failures{{a, nil, forbidden, notApplied}, {b, nil, lost, unknown}}, unknown},
		"refused after a request that may have worked": {known{doubtful}, nil, false, nil, failures{{a, nil, forbidden, unknown}}, unknown},
		"accepted without a receipt":                   {known{unreadable}, nil, false, nil, failures{{a, nil, unread, applied}}, applied},
		"accepted, some without a receipt":             {known{accepted, unreadable}, nil, false, []any{1}, failures{{b, nil, unread, applied}}, applied},
		"accepted without a transaction to wait for":   {known{unreadable}, nil, true, nil, failures{{a, nil, unread, unknown}}, unknown},
		"a transaction that ended badly":               {known{aborted}, nil, true, []any{3}, failures{{a, 3, unread, unknown}}, unknown},
		"the receipts of all parts": {
			known{accepted, aborted, refused}, nil, true, []any{1, 3}, failures{{b, 3, unread, unknown}, {c, nil, forbidden, notApplied}}, unknown,
		},
		"left while it is sent":         {known{{sending: &part{}}}, lost, false, nil, failures{{a, nil, lost, unknown}}, unknown},
		"left after a refusal":          {known{{}}, lost, false, nil, failures{{a, nil, lost, notApplied}}, notApplied},
		"left while a transaction runs": {known{pending, accepted}, lost, true, []any{2, 1}, failures{{a, 2, lost, unknown}}, unknown},
		"left when all has ended":       {known{refused}, lost, false, nil, failures{{a, nil, forbidden, notApplied}}, notApplied},
	} {
		results := map[URI]*uriResult{{Pattern: "z"}: &refused} // of another caller
		for i := range tt.known {
			results[uris[i]] = &tt.known[i]
		}
		assert.Equal(t, Result{tt.receipts, tt.failures, tt.outcome}, resultOf(uris[:len(tt.known)], results, tt.open, tt.waits), name)
	}
}
