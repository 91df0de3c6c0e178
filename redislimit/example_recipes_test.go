package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
)

// sharedQueue returns a queue that uses the budget of all machines. Create one per process, and close it at the end.
func sharedQueue(rdb redis.UniversalClient) (*webdelivery.PurgeQueue, error) {
	limiter, err := redislimit.New(rdb)
	if err != nil {
		return nil, err
	}
	client, err := webdelivery.NewClientFromEnv(webdelivery.WithSharedLimiter(limiter))
	if err != nil {
		return nil, err
	}
	return client.Purge.NewQueue(webdelivery.QueueOptions{})
}

// purgeFrom may be called from any number of goroutines, on any number of machines.
func purgeFrom(ctx context.Context, queue *webdelivery.PurgeQueue, uris ...webdelivery.PurgeURI) error {
	_, err := queue.Purge(ctx, uris...)
	var down *redislimit.UnavailableError
	var failed *webdelivery.QueueError
	switch {
	case errors.As(err, &down):
		return fmt.Errorf("no permit while Redis is down, %v; try again later: %w", webdelivery.OutcomeOf(err), err)
	case errors.As(err, &failed):
		return fmt.Errorf("%d of %d URIs failed, %v: %w", len(failed.Failures), len(uris), webdelivery.OutcomeOf(err), err)
	}
	return err
}

// Without Redis the SDK sends nothing, and each caller gets an error.
func Example_manyMachines() {
	for name, value := range map[string]string{
		"BASE_URL": "https://api.example.com", "CUSTOMER": "acme", "USERNAME": "alice", "PASSWORD": "correct-horse-battery",
	} {
		_ = os.Setenv("WEBDELIVERY_"+name, value)
		defer func() { _ = os.Unsetenv("WEBDELIVERY_" + name) }()
	}
	rdb := redis.NewUniversalClient(redislimit.ClientOptions("127.0.0.1:1")) // no server listens there
	defer rdb.Close()
	queue, err := sharedQueue(rdb)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	err = purgeFrom(ctx, queue, webdelivery.Exact("https://www.example.com/app.css"))
	var down *redislimit.UnavailableError
	fmt.Println(errors.As(err, &down), webdelivery.OutcomeOf(err))
	fmt.Println(queue.Close(ctx))
	// Output:
	// true not applied
	// <nil>
}
