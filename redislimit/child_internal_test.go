package redislimit

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// These variables make a process of this program something other than the tests. They have its role, the addresses of
// its servers, and the maximum time for a connection to the service.
const (
	roleOf    = "REDISLIMIT_TEST_ROLE"
	redisOf   = "REDISLIMIT_TEST_REDIS"
	serviceOf = "REDISLIMIT_TEST_SERVICE"
	setUpOf   = "REDISLIMIT_TEST_SETUP"
)

// runRole runs a role until stdin ends.
func runRole(role string, stdin io.Reader, stdout io.Writer) error {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
	}()
	if role == "service" {
		return runService(ctx, stdout)
	}
	return runChild(ctx, role == "client", stdout)
}

// runService prints its URL. At the end it prints when each purge arrived: the time at which its header was read, in
// nanoseconds from the start.
func runService(ctx context.Context, stdout io.Writer) error {
	var mu sync.Mutex
	var arrivals []time.Duration
	began := time.Now()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Since(began)
		mu.Lock()
		arrivals = append(arrivals, at)
		mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"code":201,"description":"request submitted","transaction_id":1,`+
			`"purge_response":{"transaction_status_uri":"/transactions/1"}}`)
	}))
	defer service.Close()
	fmt.Fprintln(stdout, service.URL)
	<-ctx.Done()
	mu.Lock()
	defer mu.Unlock()
	for _, at := range arrivals {
		fmt.Fprintln(stdout, at.Nanoseconds())
	}
	return nil
}

// runChild purges as fast as permits allow, with a client of the SDK or by hand. It prints a line for each purge, and
// for each missing permit. Stopping it ends its wait for a permit, but never a purge in flight.
func runChild(ctx context.Context, byClient bool, stdout io.Writer) error {
	setUp, err := time.ParseDuration(os.Getenv(setUpOf))
	if err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{
		Addr: os.Getenv(redisOf), MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: 900 * time.Millisecond, ReadTimeout: 900 * time.Millisecond,
	})
	defer rdb.Close()
	service := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: setUp > 0,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if setUp > 0 {
				time.Sleep(rand.N(setUp))
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
	limiter := New(rdb, "acme")
	if byClient {
		return purgeByClient(ctx, limiter, service, stdout)
	}
	for ctx.Err() == nil {
		permit, err := limiter.Acquire(ctx)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				permit.Done(ctx, time.Time{})
			}
			time.Sleep(50 * time.Millisecond) // for the question that Done has begun
			return nil
		case isUnavailable(err):
			fmt.Fprintln(stdout, "unavailable")
			time.Sleep(20 * time.Millisecond)
			continue
		case err != nil:
			return err
		case !time.Now().Before(permit.Expires):
			permit.Done(ctx, time.Time{})
			continue
		}
		response, err := service.Post(os.Getenv(serviceOf), "application/json", http.NoBody)
		if err != nil {
			return err
		}
		permit.Done(ctx, time.Now())
		_ = response.Body.Close()
		fmt.Fprintln(stdout, "purged")
	}
	return nil
}

// purgeByClient works like runChild, with a client of the SDK.
func purgeByClient(ctx context.Context, limiter *Limiter, service *http.Client, stdout io.Writer) error {
	client, err := webdelivery.NewClient(os.Getenv(serviceOf), "acme", webdelivery.BasicAuth("alice", "correct-horse-battery"),
		webdelivery.WithHTTPClient(service), webdelivery.WithPurgeLimiter(limiter))
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		_, err := client.Purge.Submit(context.WithoutCancel(ctx), webdelivery.PurgeRequest{
			Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/")},
		})
		switch {
		case isUnavailable(err) && webdelivery.OutcomeOf(err) == webdelivery.OutcomeNotApplied:
			fmt.Fprintln(stdout, "unavailable")
			time.Sleep(20 * time.Millisecond)
		case err != nil:
			return err
		default:
			fmt.Fprintln(stdout, "purged")
		}
	}
	return nil
}
