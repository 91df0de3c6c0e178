// Blocklist makes a network list equal to a feed of addresses, which is a file or a URL. It prints the plan, and
// carries it out unless it looks wrong: such as one that removes a fifth of the list, or blocks your office.
// Run it with: go run ./examples/blocklist blocked https://feeds.example.com/drop.txt
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"
	"os/signal"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/feed"
)

var guards = webdelivery.PlanOptions{ // and the defaults of MaxRemove, WidestIPv4 and WidestIPv6
	MaxAdd: 1000,
	Never:  []netip.Prefix{netip.MustParsePrefix("203.0.113.0/28")}, // your offices and your monitoring
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: blocklist LIST FEED")
	}
	client, err := webdelivery.NewClientFromEnv()
	if err != nil {
		return err
	}
	var reader feed.Reader
	if err := reader.Read(ctx, args[1]); err != nil { // an empty or damaged feed is an error
		return err
	}
	list, err := client.NetworkLists.GetByName(ctx, args[0])
	if err != nil {
		return err
	}
	plan, err := client.NetworkLists.Plan(ctx, list.ID, reader.Entries, guards)
	if refused, ok := errors.AsType[*webdelivery.PlanError](err); ok && refused.Plan != nil { // by a guard
		fmt.Print(refused.Plan)
	}
	if err != nil {
		return err
	}
	fmt.Print(plan)
	result, err := client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: true})
	if err != nil {
		if result != nil && len(result.Tasks) > 0 {
			fmt.Println("Before the next run, wait for the tasks", result.Tasks)
		}
		return fmt.Errorf("change the list, %v: %w", webdelivery.OutcomeOf(err), err)
	}
	fmt.Printf("Added %d and removed %d; the list has %d entries.\n", result.Added, result.Removed, result.Size)
	return nil
}
