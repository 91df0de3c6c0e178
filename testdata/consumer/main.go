// Consumer is a program in another module that uses every public name that the SDK promises, as programs of users would.
// Each file is one area. It is compiled and run by make test: a name that changes breaks it here before
// it breaks a user. make api-check lists the names that it does not use.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/webdelivery/webdelivery-go"
)

func main() {
	client, err := webdelivery.NewClientFromEnv()
	if err == nil {
		err = run(context.Background(), client)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, explain(err))
		os.Exit(1)
	}
}

func run(ctx context.Context, client *webdelivery.Client) error {
	for _, area := range []func(context.Context, *webdelivery.Client) error{sessions, tasks, purges, statistics, networkLists} {
		if err := area(ctx, client); err != nil {
			return err
		}
	}
	return nil
}
