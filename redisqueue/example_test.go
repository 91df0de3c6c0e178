package redisqueue_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// fleetQueue returns the queue of all machines. Create one per process, and close it at the end.
func fleetQueue(rdb redis.UniversalClient) (*redisqueue.Queue, error) {
	limiter, err := redislimit.New(rdb)
	if err != nil {
		return nil, err
	}
	client, err := webdelivery.NewClientFromEnv(webdelivery.WithSharedLimiter(limiter))
	if err != nil {
		return nil, err
	}
	return redisqueue.New(rdb, client, redisqueue.Options{})
}

// purgeChanged may be called from any number of goroutines, on any number of machines.
func purgeChanged(ctx context.Context, queue *redisqueue.Queue, uri string) error {
	_, err := queue.Purge(ctx, webdelivery.Exact(uri))
	if errors.Is(err, redisqueue.ErrRedis) {
		return fmt.Errorf("without Redis there is no queue, %v; purge again later: %w", webdelivery.OutcomeOf(err), err)
	}
	return err
}

// Without Redis nothing is sent, and each caller gets an error after a lease.
func Example_oneQueue() {
	for name, value := range map[string]string{
		"BASE_URL": "https://api.example.com", "CUSTOMER": "acme", "USERNAME": "alice", "PASSWORD": "correct-horse-battery",
	} {
		_ = os.Setenv("WEBDELIVERY_"+name, value)
		defer func() { _ = os.Unsetenv("WEBDELIVERY_" + name) }()
	}
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1}) // no server listens there
	defer rdb.Close()
	queue, err := fleetQueue(rdb)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	err = purgeChanged(ctx, queue, "https://www.example.com/app.css")
	fmt.Println(errors.Is(err, redisqueue.ErrRedis), webdelivery.OutcomeOf(err))
	fmt.Println(queue.Close(ctx))
	// Output:
	// true unknown
	// <nil>
}

// A job hands its URIs over and may end. Any process of the fleet asks for the result later.
func ExampleQueue_Enqueue() {
	var queue *redisqueue.Queue // of New
	_ = func(ctx context.Context) error {
		id, err := queue.Enqueue(ctx, webdelivery.Exact("https://www.example.com/app.css"))
		if err != nil {
			return err
		}
		_, err = queue.Result(ctx, id)
		for errors.Is(err, redisqueue.ErrPending) && ctx.Err() == nil {
			time.Sleep(time.Second)
			_, err = queue.Result(ctx, id)
		}
		return err // ErrUnknownID: purge again, because Redis has lost the URIs or the result
	}
}
