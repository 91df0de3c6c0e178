// Fleet purges the URIs in its arguments through one queue in Redis that all its processes share, on any number of
// machines: their URIs travel together, within the customer's limit of 2 requests per second. REDIS_ADDR is the Redis.
// Run it with: go run ./examples/integrations/fleet https://www.example.com/app.css
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
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
		return errors.New("usage: fleet URI [more URIs]")
	}
	rdb := redis.NewUniversalClient(redislimit.ClientOptions(cmp.Or(os.Getenv("REDIS_ADDR"), "127.0.0.1:6379")))
	defer rdb.Close()
	limiter, err := redislimit.New(rdb)
	if err != nil {
		return err
	}
	client, err := webdelivery.NewClientFromEnv(webdelivery.WithSharedLimiter(limiter))
	if err != nil {
		return err
	}
	queue, err := redisqueue.New(rdb, client, redisqueue.Options{}) // one in each process, for all its goroutines
	if err != nil {
		return err
	}
	defer queue.Close(ctx)
	var uris []webdelivery.PurgeURI
	for _, arg := range args {
		uris = append(uris, webdelivery.Exact(arg))
	}
	receipts, err := queue.Purge(ctx, uris...)
	for _, receipt := range receipts {
		fmt.Println("The service has accepted transaction", receipt.TransactionID)
	}
	if errors.Is(err, redisqueue.ErrRedis) {
		return fmt.Errorf("no purge without Redis, %v: %w", webdelivery.OutcomeOf(err), err)
	}
	return err // a *webdelivery.QueueError says what became of each URI
}
