package operations_test

import (
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// sendNothing are the methods without an entry, because they send no request.
var sendNothing = map[string]string{
	"URL":                      "returns what the client was given",
	"Purge.NewQueue":           "makes a PurgeQueue, whose methods have entries",
	"Stats.Events.Groupings":   "raw events have none, so it is refused",
	"Stats.Events.Metrics":     "raw events have none, so it is refused",
	"Stats.WAFTopK":            "makes a family, whose methods have entries",
	"Stats.TrafficShapingTopK": "makes a family, whose methods have entries",
}

// This test fails if a method of a client, a service, a family of statistics or a queue has no entry.
func TestEveryMethodIsListed(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, op := range operations.All() {
		listed[op.Name] = true
		for _, name := range op.Also {
			listed[name] = true
		}
	}
	methods := map[string]bool{}
	for _, method := range operations.Methods() {
		methods[method] = true
		assert.NotEqual(t, listed[method], sendNothing[method] != "", "%s has no entry in internal/suite/operations: add one, which All returns, or it is in sendNothing, too", method)
	}
	for name := range listed {
		assert.True(t, methods[name], "internal/suite/operations lists %s, which is no method of a client", name)
	}
	for name := range sendNothing {
		assert.True(t, methods[name], "sendNothing names %s, which is no method of a client", name)
	}
	assert.Greater(t, len(methods), 60)
}

// The fake has a route for every operation. Each operation matches its entry: the requests and their number, the items,
// and that Applied sees the change.
func TestTheFakeKnowsEveryOperation(t *testing.T) {
	t.Parallel()
	for _, op := range operations.All() {
		t.Run(op.String(), func(t *testing.T) {
			t.Parallel()
			s := fixture.Setup{Server: testserver.Config{EventsPerSecond: operations.EventRate}}
			fixture.InFakeTime(t, s, func(f *fixture.Fixture) { try(f, op) })
		})
	}
}

func try(t *fixture.Fixture, op operations.Operation) {
	t.Helper()
	srv, c := t.Srv, t.Client
	use, err := op.Prepare(t.Context(), operations.Fill(srv, c))
	require.NoError(t, err)
	require.False(t, op.Applied(srv, use))
	var shown []any
	use.Show = func(values ...any) { shown = append(shown, values...) }
	before := len(srv.Requests())

	items, err := op.Call(t.Context(), c, use)
	require.NoError(t, err, "%s fails at the fake: does internal/testserver have a route %s %s?", op, op.Method, op.Path)
	require.NoError(t, use.End(t.Context()))

	assert.Equal(t, op.Items, items, "Items")
	assert.Equal(t, op.Changes(), op.Applied(srv, use), "Applied")
	assert.Equal(t, op.Kind >= operations.Deletes, op.Changes(), "whether it changes something follows from Kind")
	assert.NotEqual(t, op.Name == "Do", len(shown) > 0, "what it returns is shown")
	assert.Equal(t, op.IsSequence(), op.Kind == operations.Pages || op.Kind == operations.Streams)
	requests := srv.Requests()[before:]
	own := slices.DeleteFunc(slices.Clone(requests), func(r testserver.Request) bool {
		matches, err := path.Match("/acme/v1"+op.Pattern(), r.Path)
		return err != nil || !matches || r.Method != op.Method
	})
	require.NotEmpty(t, own, "it sends no %s %s", op.Method, op.Path)
	if op.Requests > 0 {
		assert.Len(t, own, op.Requests, "Requests")
	}
	first := slices.IndexFunc(requests, func(r testserver.Request) bool { return r.Method == own[0].Method && r.Path == own[0].Path })
	assert.Equal(t, op.Before, first, "Before")
}
