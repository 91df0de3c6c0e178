package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
)

// All processes that do this share one budget.
func Example() {
	rdb := redis.NewClient(&redis.Options{
		Addr:                  "redis.example.com:6379",
		ContextTimeoutEnabled: true,
		DialTimeout:           500 * time.Millisecond,
		ReadTimeout:           500 * time.Millisecond,
		WriteTimeout:          500 * time.Millisecond,
		MaxRetries:            -1,
	})
	defer rdb.Close()

	client, err := webdelivery.NewClient("https://api.example.com", "acme",
		webdelivery.BasicAuth("alice", "correct-horse-battery"),
		webdelivery.WithPurgeLimiter(redislimit.New(rdb, "acme")))
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

// Two services share a Redis. While it is unreachable, each of the 4 processes uses a quarter of the rate.
func ExampleNew() {
	var rdb redis.UniversalClient // created by the program
	limiter := redislimit.New(rdb, "acme", redislimit.WithKeyPrefix("staging:purge"), redislimit.FallbackLocal(4))

	var _ webdelivery.PermitLimiter = limiter
}
