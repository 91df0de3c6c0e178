package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redislimit"
)

// permit is a Limiter of the user's.
type permit struct{}

func (permit) Wait(ctx context.Context) error { return ctx.Err() }

func (permit) Acquire(ctx context.Context) (webdelivery.Permit, error) {
	return webdelivery.Permit{
		Expires: time.Now().Add(time.Minute), Done: func(context.Context, time.Time) {},
	}, ctx.Err()
}

// ended sends something with a permit, and ends it.
func ended(ctx context.Context, limiter webdelivery.PermitLimiter) error {
	permit, err := limiter.Acquire(ctx)
	if err != nil {
		return limiter.Wait(ctx)
	}
	permit.Done(ctx, time.Now())
	return nil
}

// polite is one that holds back when the service says so.
type polite struct{ webdelivery.Limiter }

func (p polite) Wait(ctx context.Context) error { return p.Limiter.Wait(ctx) }

func (p polite) Pause(context.Context, time.Duration) error { return nil }

// clients makes them in every way.
func clients() (*webdelivery.Client, error) {
	options := []webdelivery.Option{
		webdelivery.WithHTTPClient(&http.Client{Timeout: time.Minute}),
		webdelivery.WithLogger(slog.Default()),
		webdelivery.WithUserAgent("consumer/1"),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1, MinWait: time.Second, MaxWait: time.Minute, ThrottleTimeout: time.Hour}),
		webdelivery.WithPurgeLimiter(polite{permit{}}),
		webdelivery.WithDialect(webdelivery.Dialect{
			TasksPrefix: "/ops", StartTimeParam: "startime", EntryKey: "value",
			EntryDeletePath: "/config/networklists/{list}/entries/{entry}", BatchDeletionMethod: http.MethodDelete,
		}),
		webdelivery.WithMaxResponseBytes(1 << 20),
		webdelivery.WithAttemptTimeout(time.Minute),
		webdelivery.WithIdleTimeout(time.Minute),
		webdelivery.WithPlainHTTP(),
		webdelivery.WithStrictTexts(),
	}
	var auth webdelivery.Auth = webdelivery.SessionAuth("user", "password")
	if _, err := webdelivery.NewClient("http://api.example.com", "acme", auth, options...); err != nil {
		return nil, err
	}
	fmt.Println(auth.String(), auth.GoString(), auth.LogValue(), webdelivery.Version)
	if client, err := webdelivery.NewClientFromEnv(); err == nil {
		var limiter webdelivery.Limiter = client.PurgeLimiter()
		var url string = client.URL()
		fmt.Println(limiter, url)
	}
	return webdelivery.NewClient("https://api.example.com", "acme",
		webdelivery.BasicAuth("user", "password"), webdelivery.WithLogger(slog.Default()))
}

// sharing makes a client that takes its permits from a budget in Redis.
func sharing(rdb redis.UniversalClient) (*webdelivery.Client, error) {
	options := []redislimit.Option{
		redislimit.WithInterval(525 * time.Millisecond), redislimit.WithKeyPrefix("staging:purge"),
	}
	options = append(options, redislimit.FallbackLocal(4))
	var recommended *redis.UniversalOptions = redislimit.ClientOptions("redis.example.com:6379")
	fmt.Println(recommended.Addrs)
	var limiter *redislimit.Limiter
	limiter, err := redislimit.New(rdb, options...)
	if err != nil {
		return nil, err
	}
	return webdelivery.NewClient("https://api.example.com", "acme", webdelivery.BasicAuth("user", "password"),
		webdelivery.WithPurgeLimiter(limiter))
}

// permitted asks for a permit, as a program does that sends purges by other means than the SDK.
func permitted(ctx context.Context, rdb redis.UniversalClient) error {
	shared, err := redislimit.New(rdb)
	if err != nil {
		return err
	}
	limiter := shared.ForCustomer("acme").(*redislimit.Limiter)
	fmt.Println(limiter.Waiting())
	got, err := limiter.Acquire(ctx)
	if err != nil {
		return err
	}
	got.Done(ctx, time.Time{}) // nothing was sent
	if err := limiter.Wait(ctx); err != nil {
		return err
	}
	if err := ended(ctx, permit{}); err != nil {
		return err
	}
	return limiter.Pause(ctx, time.Second)
}

func sessions(ctx context.Context, client *webdelivery.Client) error {
	var service *webdelivery.SessionsService = client.Sessions
	var session *webdelivery.Session
	session, err := service.Create(ctx)
	if err != nil {
		return err
	}
	var id string = session.ID
	if _, err := webdelivery.NewClient("https://api.example.com", "acme", webdelivery.SessionToken(id)); err != nil {
		return err
	}
	text, err := session.MarshalText()
	if err != nil {
		return err
	}
	binary, err := session.MarshalBinary()
	var format func(fmt.State, rune) = session.Format // what fmt calls
	fmt.Println(session.String(), session.LogValue(), string(text), string(binary), format != nil, err)
	var out json.RawMessage
	return client.Do(ctx, http.MethodGet, "/tasks", nil, &out)
}
