package batch

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/transport"
)

func TestResultOf(t *testing.T) {
	t.Parallel()
	forbidden, lost, unread := errors.New("forbidden"), errors.New("lost"), errors.New("unread")
	accepted := uriResult{receipt: 1, ended: true}
	pending := uriResult{receipt: 2}
	aborted := uriResult{receipt: 3, err: unread, ended: true}
	refused := uriResult{err: forbidden, outcome: transport.NotApplied, ended: true}
	failed := uriResult{err: lost, ended: true}
	unreadable := uriResult{err: unread, outcome: transport.Applied, ended: true}
	doubtful := refused
	doubtful.doubtful = true
	for _, c := range []struct {
		name    string
		known   []uriResult // of URIs a, b ...
		open    error
		waits   bool
		receipt any
		failed  string // URIs
		text    string // "": no error
		outcome transport.Outcome
	}{
		{"accepted", []uriResult{accepted, accepted}, nil, false, 1, "", "", transport.Applied},
		{"refused", []uriResult{refused}, nil, false, nil, "a", "forbidden", transport.NotApplied},
		{"refused for one reason", []uriResult{refused, refused}, nil, false, nil, "ab", "forbidden", transport.NotApplied},
		{"some refused", []uriResult{accepted, refused}, nil, false, 1, "b", "forbidden", transport.Unknown},
		{"refused and lost", []uriResult{refused, failed}, nil, false, nil, "ab", "forbidden\nlost", transport.Unknown},
		{"refused after a request that may have worked", []uriResult{doubtful}, nil, false, nil, "a", "forbidden", transport.Unknown},
		{"accepted without a receipt", []uriResult{unreadable}, nil, false, nil, "a", "unread", transport.Applied},
		{"accepted, some without a receipt", []uriResult{accepted, unreadable}, nil, false, 1, "b", "unread", transport.Applied},
		{"accepted without a transaction to wait for", []uriResult{unreadable}, nil, true, nil, "a", "unread", transport.Unknown},
		{"a transaction that ended badly", []uriResult{aborted}, nil, true, 3, "a", "unread", transport.Unknown},
		{"the receipt of the last accepted item", []uriResult{accepted, aborted, refused}, nil, true, 3, "bc", "unread\nforbidden", transport.Unknown},
		{"left while it is sent", []uriResult{{}}, lost, false, nil, "a", "lost", transport.Unknown},
		{"left while a transaction runs", []uriResult{pending, accepted}, lost, true, 1, "a", "lost", transport.Unknown},
		{"left when all has ended", []uriResult{refused}, lost, false, nil, "a", "forbidden", transport.NotApplied},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			uris := letters("abc"[:len(c.known)])
			known := map[URI]*uriResult{{Pattern: "z"}: &refused} // of another caller
			for i, uri := range uris {
				known[uri] = &c.known[i]
			}
			result := resultOf(uris, known, c.open, c.waits)
			assert.Equal(t, c.receipt, result.Receipt)
			assert.Equal(t, letters(c.failed), result.Failed)
			assert.Equal(t, c.outcome, result.Outcome)
			if c.text == "" {
				require.NoError(t, result.Err)
			} else {
				require.EqualError(t, result.Err, c.text)
			}
		})
	}
}
