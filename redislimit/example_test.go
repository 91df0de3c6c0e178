package redislimit_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
)

// All processes that do this share one budget. Without Redis they send nothing.
func Example() {
	options := redislimit.ClientOptions("127.0.0.1:1") // no server listens there
	options.Username, options.Password = "purger", "correct-horse-battery"
	rdb := redis.NewUniversalClient(options)
	defer rdb.Close()
	limiter, err := redislimit.New(rdb) // with FallbackLocal(4), each of 4 clients would use a quarter of the rate
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
	_, err = client.Purge.Submit(context.Background(), webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge,
		URIs:   []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/app.css")},
	})
	var down *redislimit.UnavailableError
	fmt.Println(errors.As(err, &down), webdelivery.OutcomeOf(err))
	// Output: true not applied
}
