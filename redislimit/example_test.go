package redislimit_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
)

// All processes that do this share one budget.
func Example() {
	options := redislimit.ClientOptions("redis.example.com:6379")
	options.Username, options.Password = "purger", "correct-horse-battery"
	rdb := redis.NewUniversalClient(options)
	defer rdb.Close()
	limiter, err := redislimit.New(rdb)
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := webdelivery.NewClient("https://api.example.com", "acme",
		webdelivery.BasicAuth("alice", "correct-horse-battery"), webdelivery.WithSharedLimiter(limiter))
	if err != nil {
		fmt.Println(err)
		return
	}
	receipt, err := client.Purge.Submit(context.Background(), webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge,
		URIs:   []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/app.css")},
	})
	var down *redislimit.UnavailableError
	switch {
	case errors.As(err, &down):
		fmt.Println("nothing was sent:", down)
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Println("transaction", receipt.TransactionID)
	}
}

// While Redis is unreachable, each of the 4 clients of the fleet uses a quarter of the rate.
func ExampleFallbackLocal() {
	rdb := redis.NewUniversalClient(redislimit.ClientOptions("redis.example.com:6379"))
	defer rdb.Close()
	limiter, err := redislimit.New(rdb, redislimit.FallbackLocal(4))

	fmt.Println(limiter != nil, err)
	// Output: true <nil>
}
