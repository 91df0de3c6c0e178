// Whyblocked says why an address is blocked: which entries of which network lists cover it, who added these and when.
// Run it with: go run ./examples/whyblocked 192.0.2.7
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: whyblocked ADDRESS")
	}
	addr, err := netip.ParseAddr(args[0])
	if err != nil {
		return err
	}
	client, err := webdelivery.NewClientFromEnv()
	if err != nil {
		return err
	}
	matches, unreadable, err := client.NetworkLists.Find(ctx, []netip.Addr{addr}) // takes many, and reads each list once
	if err != nil {
		return err
	}
	for _, m := range matches {
		fmt.Printf("The list %q has %s, added by %s on %s.\n",
			m.List.Name, m.Entry.Entry, m.Entry.AddedBy, m.Entry.CreationTimestamp.Format(time.DateOnly))
	}
	if len(matches) == 0 {
		fmt.Println("No list has it.")
	}
	for _, m := range unreadable {
		fmt.Printf("The list %q has %q, which is no address or range and may cover it.\n", m.List.Name, m.Entry.Entry)
	}
	return nil
}
