package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// The recipes of docs/recipes.md, and each of them at work. What they print here goes to the output of an Example.

// purgeAfterDeploy purges the changed URIs and returns when the caches have carried it out.
func purgeAfterDeploy(ctx context.Context, client *webdelivery.Client, changed []string) error {
	if len(changed) == 0 {
		return nil // the SDK refuses an empty purge
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var request webdelivery.PurgeRequest
	for _, uri := range changed {
		request.URIs = append(request.URIs, webdelivery.Exact(uri))
	}
	receipt, err := client.Purge.Submit(ctx, request)
	switch {
	case errors.Is(err, webdelivery.ErrInvalid), errors.Is(err, webdelivery.ErrBadRequest):
		return fmt.Errorf("at least one of %d URIs was refused, so nothing was purged: %w", len(changed), err)
	case err != nil:
		return fmt.Errorf("purge, %v: %w", webdelivery.OutcomeOf(err), err) // a second run does no harm
	}
	_, err = client.Purge.Wait(ctx, receipt.TransactionID)
	var failed *webdelivery.TransactionError
	switch {
	case errors.As(err, &failed):
		return fmt.Errorf("not purged everywhere: %w", err) // the transaction has failed; a longer wait does not help
	case err != nil:
		return fmt.Errorf("accepted, but the wait ended early: %w", err)
	}
	return nil
}

func Example_deployPurge() {
	srv, client := recipeService(webdeliverytest.WithPurgeDuration(0))
	defer srv.Close()
	ctx := context.Background()

	fmt.Println(purgeAfterDeploy(ctx, client, []string{"https://www.example.com/app.css", "https://www.example.com/app.js"}))
	fmt.Println(len(srv.Purged()), "purge of", len(srv.Purged()[0].URIs), "URIs")
	err := purgeAfterDeploy(ctx, client, []string{"https://www.example.org/not-ours.css"})
	fmt.Println(errors.Is(err, webdelivery.ErrBadRequest), webdelivery.OutcomeOf(err))
	// Output:
	// <nil>
	// 1 purge of 2 URIs
	// true not applied
}

// purgeLines purges the URIs of a file. It returns what is wrong with which line, and the lines to purge again.
func purgeLines(ctx context.Context, client *webdelivery.Client, lines []string) (wrong map[int]error, again []int, err error) {
	queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = queue.Close(ctx) }()
	wrong = map[int]error{}
	numbersOf := map[webdelivery.PurgeURI][]int{} // a line may come twice
	var uris []webdelivery.PurgeURI               // up to 10,000; with more, call Purge several times
	for i, line := range lines {
		uri := webdelivery.Exact(line)
		if invalid := (webdelivery.PurgeRequest{URIs: []webdelivery.PurgeURI{uri}}).Validate(); invalid != nil {
			wrong[i+1] = invalid
			continue
		}
		uris, numbersOf[uri] = append(uris, uri), append(numbersOf[uri], i+1)
	}
	if len(uris) == 0 {
		return wrong, nil, nil
	}
	_, err = queue.Purge(ctx, uris...)
	var failed *webdelivery.QueueError
	if !errors.As(err, &failed) {
		return wrong, nil, err
	}
	for _, f := range failed.Failures {
		switch {
		case errors.Is(f.Err, webdelivery.ErrBadRequest), errors.Is(f.Err, webdelivery.ErrHostRefused):
			for _, number := range numbersOf[f.URI] {
				wrong[number] = f.Err // your rights, or the configuration
			}
		case errors.Is(f.Err, webdelivery.ErrUnauthorized):
			return wrong, nil, f.Err // a wrong password: do not repeat it
		default:
			again = append(again, numbersOf[f.URI]...) // whatever the outcome is: purging twice does no harm
		}
	}
	return wrong, again, nil
}

func Example_purgeLines() {
	srv, client := recipeService()
	defer srv.Close()
	lines := []string{
		"https://www.example.com/a", "/no/host", "https://www.example.org/not-ours", "https://www.example.com/b", "https://www.example.org/not-ours",
	}
	wrong, again, err := purgeLines(context.Background(), client, lines)
	fmt.Println(wrong[2])
	fmt.Println(len(wrong), errors.Is(wrong[3], webdelivery.ErrBadRequest), errors.Is(wrong[5], webdelivery.ErrBadRequest), again, err)
	// Output:
	// webdelivery: invalid uris[0].uri_pattern: has no host; write one, as in https://www.example.com/
	// 3 true true [] <nil>
}

// updateBlocklist makes the list equal to the feed. It also reverts changes that others made to the list.
func updateBlocklist(ctx context.Context, client *webdelivery.Client, listID string, feed []string) error {
	const tries = 3
	for try := 1; ; try++ {
		plan, err := client.NetworkLists.Plan(ctx, listID, feed, webdelivery.PlanOptions{})
		var refused *webdelivery.PlanError
		switch {
		case errors.As(err, &refused) && refused.Field == "MaxRemove":
			return fmt.Errorf("is the feed complete? %w\n%v", err, refused.Plan) // a person must check it
		case errors.Is(err, webdelivery.ErrInvalid), refused != nil:
			return fmt.Errorf("no plan for this feed with these options, the list is unchanged: %w", err)
		case err != nil:
			return fmt.Errorf("read the list: %w", err)
		}
		fmt.Print(plan) // also reports that there is nothing to change
		if plan.Empty() {
			return nil
		}
		result, err := client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: true})
		switch {
		case err == nil:
			fmt.Printf("added %d, removed %d; %d entries\n", result.Added, result.Removed, result.Size)
			return nil
		case !errors.Is(err, webdelivery.ErrPlanStale) || try == tries:
			if result != nil { // before the next run, wait for the tasks of what was accepted
				fmt.Println("tasks:", result.Tasks)
			}
			return fmt.Errorf("change the list, %v: %w", webdelivery.OutcomeOf(err), err)
		}
	}
}

func Example_nightlyBlocklist() {
	srv, client := recipeService(webdeliverytest.WithDeployDuration(0))
	defer srv.Close()
	ctx := context.Background()
	id := srv.AddNetworkList(webdeliverytest.NetworkListSpec{
		ID: "2f0c51b2-0000-4000-8000-000000000001", Name: "blocklist",
		Entries: []string{"192.0.2.1", "192.0.2.5", "192.0.2.9", "198.51.100.0/24", "203.0.113.7"},
	})

	err := updateBlocklist(ctx, client, id, []string{"192.0.2.1", "192.0.2.5", "192.0.2.9", "198.51.100.0/24", "2001:db8::/48"})
	fmt.Println(err, srv.Entries(id))
	err = updateBlocklist(ctx, client, id, nil)
	fmt.Println(err)
	// Output:
	// IP list blocklist (2f0c51b2-0000-4000-8000-000000000001): add 1, remove 1, keep 4; 5 entries become 5
	// + 2001:db8::/48
	// - 203.0.113.7
	// added 1, removed 1; 5 entries
	// <nil> [192.0.2.1 192.0.2.5 192.0.2.9 198.51.100.0/24 2001:db8::/48]
	// is the feed complete? webdelivery: plan refused: MaxRemove: 5 of 5 entries would be removed, for example 192.0.2.1, but at most 2 are allowed; set MaxRemove to 5 to allow it
	// IP list blocklist (2f0c51b2-0000-4000-8000-000000000001): add 0, remove 5, keep 0; 5 entries become 0
	// - 192.0.2.1
	// - 192.0.2.5
	// - 192.0.2.9
	// - 198.51.100.0/24
	// - 2001:db8::/48
}

// entryOf returns the number of the first entry that an error says is invalid.
func entryOf(err error) (number int, ok bool) {
	if wrong, invalid := errors.AsType[*webdelivery.ValidationError](err); invalid {
		return wrong.Index()
	}
	return 0, false
}

// undo takes back what a plan has changed. What others have added or removed since, and the plan did not, it leaves alone.
func undo(ctx context.Context, client *webdelivery.Client, plan *webdelivery.Plan) error {
	var removed []string
	for _, entry := range plan.Remove {
		removed = append(removed, entry.Entry)
	}
	tasks, err := client.NetworkLists.AddEntries(ctx, plan.ListID, removed)
	var odd error // names the entries that the SDK cannot add
	for i, wrong := entryOf(err); wrong; i, wrong = entryOf(err) {
		if odd == nil {
			odd = err
		}
		removed = slices.Delete(removed, i, i+1)
		tasks, err = client.NetworkLists.AddEntries(ctx, plan.ListID, removed)
	}
	if err == nil {
		_, err = client.Tasks.WaitAll(ctx, tasks) // so that no address is uncovered for a moment
	}
	if err != nil {
		return fmt.Errorf("add what the plan has removed: %w", err)
	}
	if _, err := client.NetworkLists.RemoveEntries(ctx, plan.ListID, plan.Add); err != nil {
		return fmt.Errorf("remove what the plan has added: %w", err)
	}
	return odd
}

func Example_undoAPlan() {
	srv, client := recipeService(webdeliverytest.WithDeployDuration(0))
	defer srv.Close()
	ctx := context.Background()
	id := srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "blocklist", Entries: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.5", "192.0.2.6-192.0.2.9"}})
	plan, err := client.NetworkLists.Plan(ctx, id, []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "203.0.113.7"}, webdelivery.PlanOptions{})
	if err == nil {
		_, err = client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{})
	}
	fmt.Println(err, srv.Entries(id))

	err = undo(ctx, client, plan)
	fmt.Println(err, srv.Entries(id))
	// Output:
	// <nil> [192.0.2.1 192.0.2.2 192.0.2.3 203.0.113.7]
	// webdelivery: invalid entries[1]: "192.0.2.6-192.0.2.9" is neither an IP address, a CIDR range nor an ISO 3166-1 country code [192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.5]
}

// siemEvent is what the SIEM gets. A pointer is nil if the event has no value.
type siemEvent struct {
	Key    string      `stats:"-"                  json:"key"`
	Time   time.Time   `stats:"event_timestamp_ms" json:"time"`
	IP     *netip.Addr `stats:"client_ip"          json:"client_ip"`
	Action *string     `stats:"event_action"       json:"action"`
	Rule   *string     `stats:"rule_id"            json:"rule_id"`
}

// forward sends the events as they come, until ctx ends. An event with a value that does not fit is put aside.
func forward(ctx context.Context, client *webdelivery.Client, file *webdelivery.CursorFile,
	send func([]siemEvent) error, putAside func(key string, odd *webdelivery.ScanError) error,
) error {
	query := webdelivery.EventsQuery{Dimensions: webdelivery.DimensionsOf[siemEvent](), Start: time.Now().Add(-time.Hour)} // of the first run
	export := client.Stats.NewExport(query, file.Cursor, webdelivery.ExportOptions{Lookback: 20 * time.Minute})
	if err := file.Store(export.Cursor()); err != nil { // a restart before the first event begins at the same Start
		return err
	}
	for events := range export.Follow(ctx, time.Minute) {
		var batch []siemEvent
		for event, err := range webdelivery.Scan[siemEvent](events) {
			if odd, ok := errors.AsType[*webdelivery.ScanError](err); ok {
				err = putAside(export.Key(), odd)
				if err == nil {
					continue
				}
			}
			if err != nil {
				return err
			}
			event.Key = export.Key()
			if batch = append(batch, event); len(batch) == 500 {
				if err := send(batch); err != nil {
					return err
				}
				batch = nil
			}
		}
		if err := send(batch); err != nil {
			return err
		}
		if err := file.Store(export.Cursor()); err != nil {
			return err
		}
	}
	return nil
}

func Example_siemForward() {
	srv, client := recipeService()
	defer srv.Close()
	now := time.Now()
	srv.AddEvents(
		webdeliverytest.Event{Time: now.Add(-30 * time.Minute), ClientIP: netip.MustParseAddr("192.0.2.1"), Action: "Block", RuleID: "942100"},
		webdeliverytest.Event{Time: now.Add(-20 * time.Minute), ClientIP: netip.MustParseAddr("2001:db8::1"), Action: "WARN"},
		webdeliverytest.Event{Time: now.Add(-time.Minute), ClientIP: netip.MustParseAddr("192.0.2.3")}, // of a later round
	)
	folder, err := os.MkdirTemp("", "siem")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	run := func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		file, err := webdelivery.OpenCursorFile(filepath.Join(folder, "events.cursor"))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer file.Close()
		fmt.Println("after", file.Cursor.Count(), "events")
		send := func(batch []siemEvent) error {
			for _, event := range batch {
				fmt.Println(event.IP, len(event.Key))
			}
			cancel() // after the first round
			return nil
		}
		err = forward(ctx, client, file, send, func(key string, odd *webdelivery.ScanError) error {
			fmt.Println(len(key), odd.Whole())
			return nil
		})
		fmt.Println(err)
	}
	run()
	run()
	// Output:
	// after 0 events
	// 192.0.2.1 32
	// 2001:db8::1 32
	// <nil>
	// after 2 events
	// <nil>
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

// deploy is a part of a program, which creates its own client.
func deploy(ctx context.Context, changed []string) error {
	client, err := webdelivery.NewClientFromEnv()
	if err != nil {
		return err
	}
	return purgeAfterDeploy(ctx, client, changed)
}

func TestDeploy(t *testing.T) {
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
	t.Setenv("WEBDELIVERY_BASE_URL", srv.URL)
	t.Setenv("WEBDELIVERY_CUSTOMER", srv.Customer)
	t.Setenv("WEBDELIVERY_USERNAME", srv.Username)
	t.Setenv("WEBDELIVERY_PASSWORD", srv.Password)
	t.Setenv("WEBDELIVERY_PASSWORD_FILE", "") // the machine that runs the test may have this and the next two
	t.Setenv("WEBDELIVERY_AUTH", "")
	t.Setenv("WEBDELIVERY_DIALECT", "")
	err := deploy(t.Context(), []string{"https://www.example.com/app.css"})
	if err != nil || len(srv.Purged()) != 1 {
		t.Error(err, srv.Purged())
	}
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
