// Purge is the last step of a deploy. It purges the URIs in its arguments and waits until every edge server has done
// it. Of the others it says whether they are certainly not purged, such as those that the service refuses, or whether
// nobody knows. Run it with: go run ./examples/purge https://www.example.com/ https://www.example.com/app.css
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
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
	if len(args) == 0 {
		return errors.New("usage: purge URI [more URIs]")
	}
	client, err := webdelivery.NewClientFromEnv()
	if err != nil {
		return err
	}
	// Submit would send all URIs in one request, which the service refuses as a whole. A queue finds out which it refuses.
	queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{Wait: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	defer queue.Close(ctx)
	var uris []webdelivery.PurgeURI
	for _, arg := range args {
		uris = append(uris, webdelivery.Exact(arg))
	}
	fmt.Printf("Purging %d URIs, and waiting until every edge server has done it.\n", len(uris))
	_, err = queue.Purge(ctx, uris...)
	failed, ok := errors.AsType[*webdelivery.QueueError](err)
	if !ok {
		return err // nil, or a URI is invalid, so nothing was sent
	}
	for _, f := range failed.Failures {
		if f.Outcome == webdelivery.OutcomeNotApplied {
			fmt.Printf("Not purged: %s: %v\n", f.URI.URIPattern, f.Err)
		} else {
			fmt.Printf("Perhaps purged, so purge it again: %s: %v\n", f.URI.URIPattern, f.Err)
		}
	}
	return fmt.Errorf("%d of %d URIs failed; every edge server has purged the others", len(failed.Failures), len(uris))
}
