package webdelivery_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// exampleLists starts a fake service with two network lists.
func exampleLists() (client *webdelivery.Client, stop func()) {
	service := testserver.New(testserver.Config{DeployDuration: -1})
	url, err := service.ListenTCP()
	if err != nil {
		panic(err)
	}
	service.AddNetworkList(testserver.NetworkListSpec{
		ID: "2f0c51b2-0000-4000-8000-000000000001", Name: "blocklist",
		Entries: []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "198.51.100.0/24", "2001:db8:1::/48"},
	})
	service.AddNetworkList(testserver.NetworkListSpec{
		ID: "2f0c51b2-0000-4000-8000-000000000002", Type: "GEO", Name: "countries", Entries: []string{"AQ"},
	})
	client, err = webdelivery.NewClient(url, "acme", webdelivery.BasicAuth("alice", "correct-horse-battery"))
	if err != nil {
		panic(err)
	}
	return client, func() { _ = service.Close() }
}

func ExampleNetworkListsService_All() {
	client, stop := exampleLists()
	defer stop()
	ctx := context.Background()

	for list, err := range client.NetworkLists.All(ctx, webdelivery.NetworkListOptions{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(list.Type, list.Name)
	}
	// Output:
	// IP blocklist
	// GEO countries
}

func ExampleNetworkListsService_AllEntries() {
	client, stop := exampleLists()
	defer stop()
	ctx, id := context.Background(), "2f0c51b2-0000-4000-8000-000000000001"

	options := webdelivery.EntryOptions{Count: 1000, ReadAhead: 8}
	for entry, err := range client.NetworkLists.AllEntries(ctx, id, options) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(entry.Entry, "by", entry.AddedBy)
	}
	// Output:
	// 192.0.2.1 by operator
	// 192.0.2.2 by operator
	// 192.0.2.3 by operator
	// 198.51.100.0/24 by operator
	// 2001:db8:1::/48 by operator
}

func ExampleNetworkListsService_AddEntries() {
	client, stop := exampleLists()
	defer stop()
	ctx, id := context.Background(), "2f0c51b2-0000-4000-8000-000000000001"

	tasks, err := client.NetworkLists.AddEntries(ctx, id, []string{"203.0.113.0/24", "203.0.113.7", "203.0.113.7/32"})
	var partial *webdelivery.PartialError
	if errors.As(err, &partial) {
		fmt.Println("go on with", partial.NotAccepted, "and", partial.Unknown)
	}
	if err != nil {
		return
	}
	fmt.Println(len(tasks), "task")
	// Output: 1 task
}

func ExampleNetworkListsService_RemoveEntries() {
	client, stop := exampleLists()
	defer stop()
	ctx, id := context.Background(), "2f0c51b2-0000-4000-8000-000000000001"

	result, err := client.NetworkLists.RemoveEntries(ctx, id, []string{"192.0.2.1/32", "2001:DB8:1::/48", "198.51.100.7"})
	var partial *webdelivery.PartialError
	if errors.As(err, &partial) {
		fmt.Println("go on with", partial.NotAccepted, "and", partial.Unknown)
	}
	if err != nil {
		return
	}
	fmt.Println("removed", result.Removed, "not in the list", result.NotInList)
	if _, err := client.Tasks.WaitAll(ctx, result.Tasks); err != nil {
		fmt.Println(err)
	}
	// Output: removed [192.0.2.1/32 2001:DB8:1::/48] not in the list [198.51.100.7]
}

// Why is this address blocked?
func ExampleNetworkListsService_Find() {
	client, stop := exampleLists()
	defer stop()
	ctx := context.Background()

	matches, _, err := client.NetworkLists.Find(ctx, []netip.Addr{netip.MustParseAddr("198.51.100.7")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, match := range matches {
		fmt.Println(match.List.Name, match.Entry.Entry, "by", match.Entry.AddedBy)
	}
	// Output: blocklist 198.51.100.0/24 by operator
}

// The plan leaves alone what others have added, and never adds the addresses of the office.
func ExamplePlanOptions() {
	client, stop := exampleLists()
	defer stop()
	ctx, id := context.Background(), "2f0c51b2-0000-4000-8000-000000000001"

	options := webdelivery.PlanOptions{
		Protect: func(e webdelivery.NetworkListEntry) bool {
			return e.AddedBy != "feed" || time.Since(e.CreationTimestamp) < 24*time.Hour
		},
		Never: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28")},
	}
	plan, err := client.NetworkLists.Plan(ctx, id, []string{"192.0.2.1", "203.0.113.200"}, options)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("add", plan.Add, "remove", len(plan.Remove), "keep", plan.Keep)
	_, err = client.NetworkLists.Plan(ctx, id, []string{"203.0.113.0/24"}, options)
	fmt.Println(err)
	// Output:
	// add [203.0.113.200] remove 0 keep 5
	// webdelivery: plan refused: Never: 203.0.113.0/24 (desired[0]) would be added, but it overlaps 203.0.113.0/28; remove that from Never to allow it
}

func ExampleNetworkListsService_Plan() {
	client, stop := exampleLists()
	defer stop()
	ctx, id := context.Background(), "2f0c51b2-0000-4000-8000-000000000001"

	feed := []string{"192.0.2.1/32", "192.0.2.2", "192.0.2.3", "198.51.100.0/24", "203.0.113.9"}
	plan, err := client.NetworkLists.Plan(ctx, id, feed, webdelivery.PlanOptions{}) // refuses to remove more than 2 of the list's 5
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)

	result, err := client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: true})
	if errors.Is(err, webdelivery.ErrPlanStale) {
		fmt.Println("the list is not as planned; plan again")
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added", result.Added, "removed", result.Removed)
	// Output:
	// IP list blocklist (2f0c51b2-0000-4000-8000-000000000001): add 1, remove 1, keep 4; 5 entries become 5
	// + 203.0.113.9
	// - 2001:db8:1::/48
	// added 1 removed 1
}

// Field says which guard or which entry it is.
func ExamplePlanError() {
	client, stop := exampleLists()
	defer stop()
	ctx, id := context.Background(), "2f0c51b2-0000-4000-8000-000000000001"

	for _, feed := range [][]string{{"DE"}, {"192.0.2.1", "192.0.2.2", "192.0.2.3", "198.51.100.0/24", "2001:db8:1::/48", "198.51.100.0/2"}} {
		_, err := client.NetworkLists.Plan(ctx, id, feed, webdelivery.PlanOptions{})
		var refused *webdelivery.PlanError
		if errors.As(err, &refused) {
			fmt.Println(refused.Field, refused.Plan != nil)
		}
	}
	// Output:
	// desired[0] false
	// WidestIPv4 true
}

// The name is compared byte for byte.
func ExampleNetworkListsService_GetByName() {
	client, stop := exampleLists()
	defer stop()
	ctx := context.Background()

	list, err := client.NetworkLists.GetByName(ctx, "blocklist")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(list.ID, list.Type)
	_, err = client.NetworkLists.GetByName(ctx, "Blocklist")
	fmt.Println(errors.Is(err, webdelivery.ErrNotFound))
	// Output:
	// 2f0c51b2-0000-4000-8000-000000000001 IP
	// true
}

func ExampleNetworkListsService_ClearEntries() {
	client, stop := exampleLists()
	defer stop()
	ctx, id := context.Background(), "2f0c51b2-0000-4000-8000-000000000001"

	task, err := client.NetworkLists.ClearEntries(ctx, id)
	if err != nil {
		fmt.Println(err)
		return
	}
	if !task.Complete { // the entries may go when it completes
		if _, err := client.Tasks.Wait(ctx, task.ID); err != nil {
			fmt.Println(err)
			return
		}
	}
	page, err := client.NetworkLists.Entries(ctx, id, webdelivery.EntryOptions{Count: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(page.Total, "entries")
	// Output: 0 entries
}
