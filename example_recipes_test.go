package webdelivery_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// undo takes back what a plan has changed, and leaves alone what others have added or removed since.
func undo(ctx context.Context, client *webdelivery.Client, plan *webdelivery.Plan) error {
	var removed []string
	for _, entry := range plan.Remove {
		removed = append(removed, entry.Entry)
	}
	tasks, err := client.NetworkLists.AddEntries(ctx, plan.ListID, removed)
	if err == nil {
		_, err = client.Tasks.WaitAll(ctx, tasks) // so that no address is uncovered for a moment
	}
	if err == nil {
		_, err = client.NetworkLists.RemoveEntries(ctx, plan.ListID, plan.Add)
	}
	return err
}

func Example_undoAPlan() {
	srv, client := recipeService(webdeliverytest.WithDeployDuration(0))
	defer srv.Close()
	ctx := context.Background()
	id := srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "blocklist", Entries: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.5"}})
	plan, err := client.NetworkLists.Plan(ctx, id, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "203.0.113.7"}, webdelivery.PlanOptions{})
	if err == nil {
		_, err = client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{})
	}
	fmt.Println(err, srv.Entries(id))

	err = undo(ctx, client, plan)
	fmt.Println(err, srv.Entries(id))
	// Output:
	// <nil> [192.0.2.1 192.0.2.2 192.0.2.3 203.0.113.7]
	// <nil> [192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.5]
}

// wafSpike returns the hits of the last complete five minutes, and the mean of the hour before.
func wafSpike(ctx context.Context, client *webdelivery.Client, now time.Time) (latest, usual float64, err error) {
	const width, buckets = 5 * time.Minute, 12
	end := now.UTC().Add(-time.Minute).Truncate(width) // the newest events may not be recorded yet
	query := webdelivery.TrendsQuery{
		Dimensions: []string{webdelivery.DimEventTimestamp},
		Start:      end.Add(-(buckets + 1) * width), End: end, Granularity: webdelivery.Granularity5Minute,
	}
	type bucket struct {
		Time time.Time `stats:"event_timestamp_ms"`
		Hits float64   `stats:"hits"`
	}
	for b, err := range webdelivery.Scan[bucket](client.Stats.WAFTrends.All(ctx, query)) {
		switch {
		case err != nil:
			return 0, 0, fmt.Errorf("read the WAF's trend: %w", err) // missing data does not mean that all is well: report it
		case b.Time.Before(end.Add(-width)):
			usual += b.Hits / buckets // a bucket without hits has no row, but is part of the mean
		default:
			latest += b.Hits
		}
	}
	return latest, usual, nil
}

func Example_wafSpike() {
	now := time.Date(2026, time.November, 20, 12, 1, 0, 0, time.UTC)
	srv, client := recipeService(webdeliverytest.WithNow(func() time.Time { return now }))
	defer srv.Close()
	for _, ago := range []time.Duration{62 * time.Minute, 34 * time.Minute, 8 * time.Minute} {
		srv.AddEvents(webdeliverytest.Event{Time: now.Add(-ago), Type: webdeliverytest.EventTypeWAF, RuleID: "942100"})
	}
	for range 40 {
		srv.AddEvents(webdeliverytest.Event{Time: now.Add(-3 * time.Minute), Type: webdeliverytest.EventTypeWAF, RuleID: "942100"})
	}

	latest, usual, err := wafSpike(context.Background(), client, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	if latest > 10 && latest > 5*usual { // a minimum, because the usual number may be near 0
		fmt.Printf("%.0f hits in five minutes; usual: %.2f\n", latest, usual)
	}
	// Output: 40 hits in five minutes; usual: 0.25
}

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// auditWrites logs the id that the service gave to each request that changes something, such as those of an Apply.
func auditWrites(log *slog.Logger) webdelivery.Option {
	return webdelivery.WithMiddleware(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if operation, attempt := webdelivery.OperationFromContext(req.Context()); err == nil && req.Method != http.MethodGet {
				log.InfoContext(req.Context(), "write", "operation", operation, "attempt", attempt, "status", resp.StatusCode,
					"request_id", resp.Header.Get("X-Request-Id"))
			}
			return resp, err
		})
	})
}

// taskFor reads a task on behalf of a ticket, and logs under which id the service's operators find the request.
func taskFor(ctx context.Context, client *webdelivery.Client, log *slog.Logger, ticket, traceparent, id string) (*webdelivery.Task, error) {
	var last webdelivery.Response
	ctx = webdelivery.ContextWithHeader(ctx, http.Header{"X-Ticket": {ticket}, "Traceparent": {traceparent}})
	task, err := client.Tasks.Get(webdelivery.ContextWithResponse(ctx, &last), id)
	log.InfoContext(ctx, "call", "operation", last.Operation, "attempts", last.Attempts, "status", last.StatusCode,
		"duration", last.Duration, "ticket", ticket, "request_id", last.RequestID)
	return task, err
}

func Example_watchedCalls() {
	srv, _ := recipeService()
	defer srv.Close()
	id := srv.AddTask(webdeliverytest.TaskSpec{})
	srv.Fail(webdeliverytest.FaultRule{Header: http.Header{"X-Request-Id": {"abc-1"}}})
	withoutTimes := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "duration" {
			return slog.Attr{}
		}
		return a
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTimes}))
	client, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password), auditWrites(log))
	if err != nil {
		panic(err)
	}
	const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	task, err := taskFor(context.Background(), client, log, "T-1", traceparent, id)
	if err != nil {
		panic(err)
	}
	_, err = client.Purge.Submit(context.Background(), webdelivery.PurgeRequest{URIs: []webdelivery.PurgeURI{webdelivery.Prefix("www.example.com/")}})
	sent := srv.Requests()[0].Header
	fmt.Println(task.ID == id, sent.Get("X-Ticket"), sent.Get("Traceparent") == traceparent, err)
	// Output:
	// level=INFO msg=call operation=Tasks.Get attempts=1 status=200 ticket=T-1 request_id=abc-1
	// level=INFO msg=write operation=Purge.Submit attempt=1 status=201 request_id=abc-1
	// true T-1 true <nil>
}

// recipeService starts a fake service for an Example.
func recipeService(options ...webdeliverytest.Option) (*webdeliverytest.Server, *webdelivery.Client) {
	srv, err := webdeliverytest.Start(options...)
	if err != nil {
		panic(err)
	}
	client, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password))
	if err != nil {
		panic(err)
	}
	return srv, client
}
