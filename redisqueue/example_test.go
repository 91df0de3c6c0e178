package redisqueue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
	"github.com/webdelivery/webdelivery-go/redisqueue"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// All processes that do this share one queue.
func Example() {
	rdb := redis.NewUniversalClient(redislimit.ClientOptions("redis.example.com:6379"))
	defer rdb.Close()
	limiter, err := redislimit.New(rdb)
	if err != nil {
		fmt.Println(err)
		return
	}
	client, err := webdelivery.NewClient("https://api.example.com", "acme",
		webdelivery.BasicAuth("alice", "correct-horse-battery"),
		webdelivery.WithPurgeLimiter(limiter))
	if err != nil {
		fmt.Println(err)
		return
	}
	queue := redisqueue.New(rdb, client, redisqueue.Options{Name: "acme"})
	defer queue.Close(context.Background())

	receipt, err := queue.Purge(context.Background(), webdelivery.Exact("https://www.example.com/app.css"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("transaction", receipt.TransactionID)
}

// An error says what to do, and the outcome says whether the URIs may have been purged. Here Redis is down.
func ExampleQueue_Purge() {
	rdb, client, stop := withoutRedis()
	defer stop()
	queue := redisqueue.New(rdb, client, redisqueue.Options{Name: "acme", RefuseWhenFull: true})
	defer queue.Close(context.Background())

	_, err := queue.Purge(context.Background(), webdelivery.Exact("https://www.example.com/app.css"))
	var down *redisqueue.UnavailableError
	switch {
	case err == nil:
		fmt.Println("accepted")
	case errors.Is(err, redisqueue.ErrFull):
		fmt.Println("the fleet has too many URIs; try later")
	case errors.As(err, &down):
		fmt.Println("Redis is down:", webdelivery.OutcomeOf(err))
	default:
		fmt.Println(err)
	}
	// Output: Redis is down: not applied
}

// A job hands its URIs over, and any process of the fleet asks for the result later. Redis is down here, so this process
// purges alone.
func ExampleQueue_Enqueue() {
	rdb, client, stop := withoutRedis(redislimit.FallbackLocal(1))
	defer stop()
	queue := redisqueue.New(rdb, client, redisqueue.Options{Name: "acme", FallbackLocal: true})
	defer queue.Close(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, err := queue.Enqueue(ctx, webdelivery.Exact("https://www.example.com/app.css"))
	if err != nil {
		fmt.Println(err)
		return
	}
	receipt, err := queue.Result(ctx, id)
	for errors.Is(err, redisqueue.ErrPending) && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		receipt, err = queue.Result(ctx, id)
	}
	switch {
	case errors.Is(err, redisqueue.ErrUnknownID):
		fmt.Println("purge again: Redis has lost the URIs or the result")
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Println("accepted with code", receipt.Code)
	}
	// Output: accepted with code 201
}

// OnStats gets the numbers of the whole fleet after each request of this process. While Redis is down, they have an error.
func ExampleOptions() {
	rdb, client, stop := withoutRedis(redislimit.FallbackLocal(1))
	defer stop()
	reports := make(chan webdelivery.QueueStats, 10)
	queue := redisqueue.New(rdb, client, redisqueue.Options{
		Name:          "acme",
		FallbackLocal: true,
		OnStats:       func(s webdelivery.QueueStats) { reports <- s },
	})
	if _, err := queue.Purge(context.Background(), webdelivery.Exact("https://www.example.com/app.css")); err != nil {
		fmt.Println(err)
	}
	s := <-reports
	var down *redisqueue.UnavailableError
	fmt.Println("pending:", s.Pending, "failures in a row:", s.Failures, "Redis is down:", errors.As(s.Err, &down))
	fmt.Println(queue.Close(context.Background()))
	// Output:
	// pending: 0 failures in a row: 1 Redis is down: true
	// <nil>
}

// withoutRedis returns a client of a fake service, and one of a Redis that is down.
func withoutRedis(options ...redislimit.Option) (*redis.Client, *webdelivery.Client, func()) {
	service, err := webdeliverytest.Start()
	if err != nil {
		panic(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1}) // no server listens there
	client, err := service.NewClient(webdelivery.BasicAuth(service.Username, service.Password),
		webdelivery.WithPurgeLimiter(shared(rdb, options...)))
	if err != nil {
		panic(err)
	}
	return rdb, client, func() {
		_ = rdb.Close()
		service.Close()
	}
}
