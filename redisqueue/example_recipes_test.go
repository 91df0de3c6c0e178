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
	customer := os.Getenv("WEBDELIVERY_CUSTOMER")
	limiter, err := redislimit.New(rdb)
	if err != nil {
		return nil, err
	}
	client, err := webdelivery.NewClientFromEnv(webdelivery.WithPurgeLimiter(limiter))
	if err != nil {
		return nil, err
	}
	return redisqueue.New(rdb, client, redisqueue.Options{Name: customer}), nil
}

// purgeChanged may be called from any number of goroutines, on any number of machines.
func purgeChanged(ctx context.Context, queue *redisqueue.Queue, uri string) error {
	_, err := queue.Purge(ctx, webdelivery.Exact(uri))
	var down *redisqueue.UnavailableError
	if errors.As(err, &down) {
		return fmt.Errorf("without Redis there is no queue, %v; purge again later: %w", webdelivery.OutcomeOf(err), err)
	}
	return err
}

// Without Redis nothing is sent, and each caller gets an error.
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
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	err = purgeChanged(ctx, queue, "https://www.example.com/app.css")
	var down *redisqueue.UnavailableError
	fmt.Println(errors.As(err, &down), webdelivery.OutcomeOf(err))
	fmt.Println(queue.Close(ctx))
	// Output:
	// true not applied
	// <nil>
}
