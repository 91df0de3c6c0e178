// Queue purges the URIs on its standard input, one per line, however many there are. Its callers share a PurgeQueue,
// which sends what they wait for with at most two requests per second. In your program, the callers are whatever learns
// that something has changed. Run it with: go run ./examples/queue < uris.txt
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"

	"github.com/webdelivery/webdelivery-go"
)

const callers = 1000 // each waits with one URI, so this is also the largest request

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client, err := webdelivery.NewClientFromEnv()
	if err != nil {
		return err
	}
	queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{})
	if err != nil {
		return err
	}
	defer queue.Close(ctx)
	lines, in := make(chan string), bufio.NewScanner(os.Stdin)
	go func() {
		for in.Scan() {
			lines <- in.Text()
		}
		close(lines)
	}()
	var failed atomic.Int64
	var working sync.WaitGroup
	for range callers {
		working.Go(func() {
			for line, ok := next(ctx, lines); ok; line, ok = next(ctx, lines) {
				if _, err := queue.Purge(ctx, webdelivery.Exact(line)); err != nil {
					failed.Add(1)
					log.Printf("%q, %v: %v", line, webdelivery.OutcomeOf(err), err)
				}
			}
		})
	}
	working.Wait()
	fmt.Printf("The service has accepted %d URIs in %d requests.\n", queue.Stats().Accepted, queue.Stats().Requests)
	switch {
	case failed.Load() > 0:
		return fmt.Errorf("%d lines failed", failed.Load())
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return in.Err()
}

// next returns false after the last line, or as soon as the context ends: a pipe may be silent for long.
func next(ctx context.Context, lines <-chan string) (line string, ok bool) {
	select {
	case line, ok = <-lines:
	case <-ctx.Done():
	}
	return line, ok
}
