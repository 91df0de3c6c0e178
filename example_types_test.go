package webdelivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// A queue whose Purge returns when the caches have carried it out.
func ExamplePurgeQueue() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{Wait: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = queue.Purge(ctx, webdelivery.Exact("https://www.example.com/a"), webdelivery.Prefix("www.example.com/img/"))
	if err := queue.Close(ctx); err != nil {
		fmt.Println(err)
	}
	stats := queue.Stats() // at any time, for a progress line
	fmt.Println("purged:", err == nil, stats.Accepted, "of", stats.Accepted+stats.Pending+stats.InFlight)
	// Output:
	// purged: true 2 of 2
}

func ExampleExact() {
	request := webdelivery.PurgeRequest{URIs: []webdelivery.PurgeURI{webdelivery.Exact("www.example.com/app.css")}}
	fmt.Println(request.Validate())
	// Output:
	// webdelivery: invalid uris[0].uri_pattern: has no protocol, so it would purge http alone; begin with https://, or use Prefix for everything that begins with it
}

// An outbox: rows of a table that are to be purged, and are deleted once they are. One Purge for each row, from some
// goroutines, costs as many requests as one Purge for all, and each row learns its own outcome. A row that is read again
// after a crash is purged twice, which does no harm.
func ExamplePurgeQueue_outbox() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()
	rows := map[int]string{1: "https://www.example.com/a", 2: "https://www.example.com/b", 3: "https://www.example.org/not-ours"}

	queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var mu sync.Mutex
	var purges sync.WaitGroup
	room := make(chan struct{}, 100) // so many rows wait at once
	for id, uri := range maps.Clone(rows) {
		room <- struct{}{}
		purges.Go(func() {
			defer func() { <-room }()
			_, err := queue.Purge(ctx, webdelivery.Exact(uri))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				delete(rows, id) // DELETE FROM outbox WHERE id = ...
			case errors.Is(err, webdelivery.ErrBadRequest):
				fmt.Println("row", id, "is refused; repeating it does not help")
			}
		})
	}
	purges.Wait()
	fmt.Println("left:", rows)
	if err := queue.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// row 3 is refused; repeating it does not help
	// left: map[3:https://www.example.org/not-ours]
}

// Caches that did not carry out a purge: every call succeeded, what was asked for did not come about.
func ExampleTransactionError() {
	srv, err := webdeliverytest.Start(webdeliverytest.WithPurgeDuration(0))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.FailTransactions(1, "FAILED", "2 caches are silent", 504)
	client, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()

	receipt, err := client.Purge.Submit(ctx, fixture.PurgeOf("https://www.example.com/app.css"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Purge.Wait(ctx, receipt.TransactionID)
	var failed *webdelivery.TransactionError
	if errors.As(err, &failed) {
		fmt.Println(failed.Transaction.Status, "with", failed.Transaction.StatusDescription)
		fmt.Println("perhaps purged:", webdelivery.OutcomeOf(err) == webdelivery.OutcomeUnknown)
	}
	// Output:
	// FAILED with 2 caches are silent
	// perhaps purged: true
}

// A plan that one process makes, somebody approves, and another process carries out.
func ExamplePlan() {
	client, stop := exampleLists()
	defer stop()
	ctx, id := context.Background(), "2f0c51b2-0000-4000-8000-000000000002"

	plan, err := client.NetworkLists.Plan(ctx, id, []string{"AQ", "BV"}, webdelivery.PlanOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}

	stored, err := json.Marshal(plan) // for a person to approve
	var approved webdelivery.Plan
	if err = errors.Join(err, json.Unmarshal(stored, &approved)); err != nil { // perhaps in another process
		fmt.Println(err)
		return
	}
	result, err := client.NetworkLists.Apply(ctx, &approved, webdelivery.ApplyOptions{}) // ErrPlanStale if others changed the list
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(approved.Add, "added, the list has", result.Size)
	// Output: [BV] added, the list has 2
}

// Apply tells how far it is after each call that changes the list.
func ExampleNetworkListsService_Apply() {
	client, stop := exampleLists()
	defer stop()
	ctx, id := context.Background(), "2f0c51b2-0000-4000-8000-000000000001"

	feed := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "203.0.113.9"}
	plan, err := client.NetworkLists.Plan(ctx, id, feed, webdelivery.PlanOptions{MaxRemove: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{Progress: func(added, removed, total int) {
		fmt.Println(added+removed, "of", total)
	}})
	fmt.Println("applied:", err == nil)
	// Output:
	// 1 of 3
	// 2 of 3
	// 3 of 3
	// 3 of 3
	// applied: true
}

// All streams a response: each row is read when it arrives, and only the values that the loop asks for.
func ExampleStatsFamily_All_limit() {
	client, stop := exampleStatistics()
	defer stop()
	ctx := context.Background()
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	query := webdelivery.EventsQuery{
		Dimensions: []string{webdelivery.DimClientASN, webdelivery.DimDomain}, Start: end.Add(-time.Hour), End: end, Limit: 2,
	}
	for row, err := range client.Stats.Events.All(ctx, query) {
		if err != nil {
			fmt.Println(err)
			return
		}
		at, err := row.At(0).Time()
		if err != nil {
			fmt.Println(err)
			return
		}
		domain, _ := row.Get(webdelivery.DimDomain)
		fmt.Println(at.Format(time.RFC3339), row, domain.IsNull())
	}
	// Output:
	// 2026-11-20T11:55:00Z ["2026-11-20T11:55:00.000",64500,null] true
	// 2026-11-20T11:56:00Z ["2026-11-20T11:56:00.000",64500,null] true
}

func ExampleGranularityFor() {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, days := range []int{2, 20, 200} {
		fmt.Println(days, "days:", webdelivery.GranularityFor(now.AddDate(0, 0, -days), now, now))
	}
	// Output:
	// 2 days: 5minute
	// 20 days: hour
	// 200 days: day
}

// A service whose tasks are elsewhere than the document's examples suggest.
func ExampleWithDialect() {
	srv, err := webdeliverytest.Start(webdeliverytest.WithDialect(webdeliverytest.Dialect{TasksPrefix: "/operations"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.AddTask(webdeliverytest.TaskSpec{ID: "task-1"})
	client, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password),
		webdelivery.WithDialect(webdelivery.Dialect{TasksPrefix: "/operations"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	task, err := client.Tasks.Get(context.Background(), "task-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(task.Status, srv.Count("GET", "/operations/tasks/task-1"))
	// Output: COMPLETE 1
}
