package webdelivery_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// purgeObject is the first program of the package page.
func purgeObject(ctx context.Context, uri string) error {
	client, err := webdelivery.NewClientFromEnv() // or NewClient(baseURL, customer, BasicAuth(user, password))
	if err != nil {
		return err
	}
	receipt, err := client.Purge.Submit(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge,
		URIs:   []webdelivery.PurgeURI{webdelivery.Exact(uri)},
	})
	if err != nil {
		return err
	}
	_, err = client.Purge.Wait(ctx, receipt.TransactionID)
	return err
}

func TestTheFirstProgram(t *testing.T) {
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithPurgeDuration(0))
	t.Setenv("WEBDELIVERY_BASE_URL", srv.URL)
	t.Setenv("WEBDELIVERY_CUSTOMER", srv.Customer)
	t.Setenv("WEBDELIVERY_USERNAME", srv.Username)
	t.Setenv("WEBDELIVERY_PASSWORD", srv.Password)
	t.Setenv("WEBDELIVERY_AUTH", "")

	require.NoError(t, purgeObject(t.Context(), "https://www.example.com/app.css"))
	require.Len(t, srv.Purged(), 1)
	assert.Equal(t, []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/app.css")}, srv.Purged()[0].URIs)
}

// The package page's code for tasks and statistics.
func readTasksAndEvents(ctx context.Context, client *webdelivery.Client, yesterday, start, end time.Time) error {
	for task, err := range client.Tasks.All(ctx, webdelivery.TaskListOptions{Since: yesterday}) {
		if err != nil {
			return err
		}
		fmt.Println(task.ID, task.Status)
	}

	type Event struct {
		Time time.Time   `stats:"event_timestamp_ms"`
		IP   *netip.Addr `stats:"client_ip"` // nil if the row has null
	}
	query := webdelivery.EventsQuery{
		Dimensions: webdelivery.DimensionsOf[Event](), Start: start, End: end,
		Filter: filters.Eq("client_country_code", "CN"),
	}
	for event, err := range webdelivery.Scan[Event](client.Stats.Events.All(ctx, query)) {
		if err != nil {
			return err
		}
		fmt.Println(event.Time.Format(time.TimeOnly), event.IP)
	}
	return nil
}

// The package page's code for queues and network lists.
func purgeAndSync(ctx context.Context, client *webdelivery.Client, uri, id string, feed []string) error {
	queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{})
	if err != nil {
		return err
	}
	receipt, err := queue.Purge(ctx, webdelivery.Exact(uri)) // from any number of goroutines
	if err != nil {
		return err
	}
	fmt.Println(receipt.Code)
	if err := queue.Close(ctx); err != nil {
		return err
	}

	plan, err := client.NetworkLists.Plan(ctx, id, feed, webdelivery.PlanOptions{})
	if err != nil {
		return err
	}
	fmt.Print(plan)
	result, err := client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{})
	if err != nil {
		return err
	}
	fmt.Println("added", result.Added)
	return nil
}

// A few calls of each service.
func ExampleClient() {
	noon := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	srv, err := webdeliverytest.Start(webdeliverytest.WithNow(func() time.Time { return noon }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	srv.AddTask(webdeliverytest.TaskSpec{ID: "task-1"})
	srv.AddEvents(webdeliverytest.Event{
		Time: noon.Add(-time.Minute), ClientIP: netip.MustParseAddr("192.0.2.1"), CountryCode: "CN",
	})
	id := srv.AddNetworkList(webdeliverytest.NetworkListSpec{ID: "6f1d3a52-0000-4000-8000-000000000001", Name: "office"})
	client, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()

	if err := readTasksAndEvents(ctx, client, noon.AddDate(0, 0, -1), noon.Add(-time.Hour), noon); err != nil {
		fmt.Println(err)
	}
	if err := purgeAndSync(ctx, client, "https://www.example.com/app.css", id, []string{"203.0.113.9"}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// task-1 COMPLETE
	// 11:59:00 192.0.2.1
	// 201
	// IP list office (6f1d3a52-0000-4000-8000-000000000001): add 1, remove 0, keep 0; 0 entries become 1, 1 at most on the way; 1 requests
	// + 203.0.113.9
	// added 1
}

// Each program of the package page is in this file.
func TestPackagePageIsTrue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	own, err := os.ReadFile("doc_test.go")
	require.NoError(t, err)
	programs := string(own) + strings.ReplaceAll(string(own), "\n\t", "\n")

	shown := regexp.MustCompile(`(?m)(^//\t.*\n)+`).FindAllString(string(page), -1)
	require.Len(t, shown, 6)
	for _, block := range shown {
		if !strings.HasPrefix(block, "//\tGET, HEAD") { // the table of what the client retries
			assert.Contains(t, programs, strings.ReplaceAll("\n"+block, "\n//\t", "\n"))
		}
	}
}
