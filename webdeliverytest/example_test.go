package webdeliverytest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// A purge takes two seconds on a clock that only the program advances.
func Example() {
	srv, err := webdeliverytest.Start(webdeliverytest.WithNow(func() time.Time { return noon }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	client, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()

	receipt, err := client.Purge.Submit(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge,
		URIs:   []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/app.css")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Purge.Wait(ctx, receipt.TransactionID, webdelivery.WaitInterval(time.Millisecond),
		webdelivery.WaitProgress(func(p webdelivery.Progress) {
			fmt.Printf("%s, %d %% of the caches\n", p.Status, p.Percent)
			srv.Clock.Advance(time.Second)
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, purge := range srv.Purged() {
		fmt.Println(purge.User, purge.Action, purge.URIs[0].URIPattern)
	}
	// Output:
	// PENDING, 0 % of the caches
	// PENDING, 50 % of the caches
	// COMPLETE, 100 % of the caches
	// alice PURGE https://www.example.com/app.css
}

// The connection breaks after the service has executed a login. The client logs in again, and the call succeeds.
func ExampleServer_Fail() {
	srv, err := webdeliverytest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.AddTask(webdeliverytest.TaskSpec{ID: "task-1", Operation: "deploy-property"})
	srv.Fail(webdeliverytest.FaultRule{
		Method: http.MethodPost, Path: "/sessions", Count: 1, Cut: webdeliverytest.CutAfterExecute,
	})

	client, err := srv.NewClient(webdelivery.SessionAuth(srv.Username, srv.Password),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MinWait: time.Millisecond}))
	if err != nil {
		fmt.Println(err)
		return
	}
	task, err := client.Tasks.Get(context.Background(), "task-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(task.Operation, "is", task.Status, "after", srv.Logins(), "logins")
	// Output: deploy-property is COMPLETE after 2 logins
}

// Another user changes a list between Plan and Apply.
func ExampleServer_ChangeEntries() {
	srv, err := webdeliverytest.Start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	id := srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "office", Entries: []string{"192.0.2.1", "192.0.2.2"}})
	client, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()

	desired := []string{"192.0.2.1", "192.0.2.2", "198.51.100.0/24"}
	plan, err := client.NetworkLists.Plan(ctx, id, desired, webdelivery.PlanOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	srv.ChangeEntries(id, []string{"203.0.113.9"}, []string{"192.0.2.2"})
	_, err = client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{})
	fmt.Println("stale:", errors.Is(err, webdelivery.ErrPlanStale))
	fmt.Println(srv.Entries(id))
	// Output:
	// stale: true
	// [192.0.2.1 203.0.113.9]
}

// A time range that has just ended still gains rows while the service records its last events.
func ExampleWithRecordingDelay() {
	srv, err := webdeliverytest.Start(
		webdeliverytest.WithNow(func() time.Time { return noon }),
		webdeliverytest.WithEvents(50, 7, noon.Add(-time.Hour)),
		webdeliverytest.WithRecordingDelay(30*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	early := srv.EventCount(noon.Add(-time.Minute), noon)
	srv.Clock.Advance(30 * time.Second)
	fmt.Println("more events:", srv.EventCount(noon.Add(-time.Minute), noon) > early)
	// Output: more events: true
}

// A million events per second for a load test; the server stores none of them.
func ExampleWithEvents() {
	srv, err := webdeliverytest.Start(
		webdeliverytest.WithNow(func() time.Time { return noon }),
		webdeliverytest.WithEvents(1_000_000, 7, noon.Add(-2*time.Second)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	client, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password))
	if err != nil {
		fmt.Println(err)
		return
	}

	start := noon.Add(-time.Second)
	result, err := client.Stats.Events.Query(context.Background(), webdelivery.EventsQuery{
		Dimensions: []string{webdelivery.DimClientIP}, Start: start, End: noon, Limit: 1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("all of them match:", int(result.TotalResults) == srv.EventCount(start, noon))
	// Output: all of them match: true
}
