package webdelivery_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/operations"
)

// typedContext is a pointer type that is a context, as in some web frameworks.
type typedContext struct{ context.Context }

// noContexts returns what callers pass by mistake.
func noContexts() map[string]context.Context {
	return map[string]context.Context{"nil": nil, "a nil pointer": (*typedContext)(nil)}
}

// refusedAs checks that the client refused a call because of this field.
func refusedAs(t *testing.T, field string, err error, call string) {
	t.Helper()
	var refused *webdelivery.ValidationError
	require.ErrorAs(t, err, &refused, call)
	assert.Equal(t, field, refused.Field, call)
	assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err), call)
}

// Every operation of a client refuses a nil context, sends nothing, and does not panic. A sequence yields the error
// and nothing else.
func TestNoContext(t *testing.T) {
	t.Parallel()
	for name, none := range noContexts() {
		inReliableService(t, setup{}, func(f *fixture) {
			for _, op := range operations.All() {
				p := f.prepare(operationOf{Operation: op})
				before := len(f.srv.Requests())
				if op.IsSequence() {
					var errs []error
					for _, err := range op.Sequence(none, f.client, p.use) {
						errs = append(errs, err)
					}
					require.Len(f, errs, 1, op.String())
					refusedAs(f.T, "context", errs[0], name+" "+op.String())
				} else {
					_, err := p.call(none, f.client)
					refusedAs(f.T, "context", err, name+" "+op.String())
				}
				assert.Len(f, f.srv.Requests(), before, op.String())
				require.NoError(f, p.end(f.Context()), op.String())
			}
			// These calls have a context of their own in the registry, or need something to do.
			plan, err := f.client.NetworkLists.Plan(f.Context(), reliableList, []string{newEntry}, webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveAll})
			require.NoError(f, err)
			_, err = f.client.NetworkLists.Apply(none, plan, webdelivery.ApplyOptions{})
			refusedAs(f.T, "context", err, "Apply")
			_, err = f.client.NetworkLists.Plan(none, reliableList, make([]string, 5000), webdelivery.PlanOptions{})
			refusedAs(f.T, "context", err, "Plan")
			_, err = f.client.Tasks.WaitAll(none, nil)
			refusedAs(f.T, "context", err, "WaitAll")
			_, err = f.client.NetworkLists.AddEntries(none, reliableList, nil)
			refusedAs(f.T, "context", err, "AddEntries")
			refusedAs(f.T, "context", f.client.Purge.NewQueue(webdelivery.QueueOptions{}).Close(none), "Close")
			_, err = f.client.Purge.NewQueue(webdelivery.QueueOptions{}).PurgeFrom(none, nil)
			refusedAs(f.T, "context", err, "PurgeFrom")
		})
	}
}

// A service of a zero Client is a nil pointer. Each operation on it, and on the zero value of its service, returns an
// error. Only calls through a nil Client.Stats panic, like every nil pointer, because the families are its fields.
func TestZeroServices(t *testing.T) {
	t.Parallel()
	zero := &webdelivery.Client{
		Tasks: &webdelivery.TasksService{}, Purge: &webdelivery.PurgeService{}, NetworkLists: &webdelivery.NetworkListsService{},
		Sessions: &webdelivery.SessionsService{}, Stats: &webdelivery.StatsService{
			Events: &webdelivery.StatsFamily[webdelivery.EventsQuery]{}, WAFTrends: &webdelivery.AggregatedFamily[webdelivery.TrendsQuery]{},
			RequestTrends:        &webdelivery.AggregatedFamily[webdelivery.TrendsQuery]{},
			TrafficShapingTrends: &webdelivery.AggregatedFamily[webdelivery.TrendsQuery]{},
		},
	}
	unset := &webdelivery.Client{Stats: zero.Stats}
	for _, op := range operations.All() {
		for name, client := range map[string]*webdelivery.Client{"zero services": zero, "nil services": unset} {
			use := &operations.Use{Task: taskID, List: listID, Entry: "1", Transaction: 1, Poll: 1, Show: func(...any) {}}
			_, err := op.Call(t.Context(), client, use)
			refusedAs(t, "client", err, name+": "+op.String())
			assert.ErrorContains(t, err, "create a client with NewClient")
		}
	}
	var client *webdelivery.Client
	refusedAs(t, "client", client.Do(t.Context(), "GET", "/tasks", nil, nil), "Do")
	var stats *webdelivery.StatsService
	_, err := stats.WAFTopK(webdelivery.WAFByCountry).Head(t.Context())
	refusedAs(t, "client", err, "WAFTopK")
	_, err = stats.TrafficShapingTopK(webdelivery.ShapingByCountry).Head(t.Context())
	refusedAs(t, "client", err, "TrafficShapingTopK")
	_, err = collect(stats.NewExport(aDay, webdelivery.Cursor{}).Rows(t.Context()))
	refusedAs(t, "client", err, "NewExport")
	var family *webdelivery.StatsFamily[webdelivery.EventsQuery]
	_, err = family.Query(t.Context(), aDay)
	refusedAs(t, "client", err, "Query")
	_, err = collect(family.All(t.Context(), aDay))
	refusedAs(t, "client", err, "All")
	_, err = family.Dimensions(t.Context())
	refusedAs(t, "client", err, "Dimensions")
	var aggregated *webdelivery.AggregatedFamily[webdelivery.TrendsQuery]
	assert.Panics(t, func() { _, _ = aggregated.Head(t.Context()) }, "as its comment says")
	assert.Panics(t, func() { _, _ = aggregated.Groupings(t.Context()) }, "as its comment says")
}

// For a queue or an export that was not created, the error of each method says how to create one.
func TestZeroHandles(t *testing.T) {
	t.Parallel()
	for _, queue := range []*webdelivery.PurgeQueue{nil, {}} {
		_, err := queue.Purge(t.Context(), webdelivery.Exact(anObject))
		refusedAs(t, "PurgeQueue", err, "Purge")
		require.ErrorContains(t, err, "create a queue with PurgeService.NewQueue")
		refusedAs(t, "PurgeQueue", queue.Close(t.Context()), "Close")
		_, err = queue.PurgeFrom(t.Context(), nil)
		refusedAs(t, "PurgeQueue", err, "PurgeFrom")
	}
	for _, export := range []*webdelivery.Export{nil, {}} {
		_, err := collect(export.Rows(t.Context()))
		refusedAs(t, "Export", err, "Rows")
		require.ErrorContains(t, err, "create an export with StatsService.NewExport")
		assert.Zero(t, export.Cursor())
		assert.Empty(t, export.Warnings())
	}
	queue := new(webdelivery.PurgeService).NewQueue(webdelivery.QueueOptions{})
	_, err := queue.Purge(t.Context(), webdelivery.Exact(anObject))
	refusedAs(t, "client", err, "Purge")
}
