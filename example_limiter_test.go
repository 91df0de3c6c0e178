package webdelivery_test

import (
	"context"
	"fmt"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// onePlace lets one purge at a time be on its way. It holds the moment at which the next one may leave.
type onePlace chan time.Time

// Acquire takes the place, and waits until it is free.
func (p onePlace) Acquire(ctx context.Context, _ string) (webdelivery.Permit, error) {
	var free time.Time
	select {
	case free = <-p:
	case <-ctx.Done():
		return webdelivery.Permit{}, ctx.Err()
	}
	select {
	case <-time.After(time.Until(free)):
		return webdelivery.Permit{Done: func(_ context.Context, arrived time.Time, _ int) {
			p <- arrived.Add(time.Second) // free at once if nothing was sent: arrived is the zero time then
		}}, nil
	case <-ctx.Done():
		p <- free
		return webdelivery.Permit{}, ctx.Err()
	}
}

// Pause and Waiting have nothing to add: this program is the only one.
func (p onePlace) Pause(context.Context, string, time.Duration) error { return nil }

func (p onePlace) Waiting(string) error { return nil }

// A limiter of your own that limits arrivals. Two purges reach the service at least a second apart, however long the
// connection of the first one took.
func ExampleSharedLimiter() {
	place := make(onePlace, 1)
	place <- time.Time{} // free

	client, err := webdelivery.NewClient("https://api.example.com", "acme",
		webdelivery.BasicAuth("alice", "correct-horse-battery"), webdelivery.WithSharedLimiter(place))

	fmt.Println(client != nil, err)
	// Output: true <nil>
}

// The pace may be slower for a while: a customer whose purges come from many machines without a shared limiter waits
// longer for refused ones.
func ExampleRetryPolicy() {
	client, err := webdelivery.NewClient("https://api.example.com", "acme",
		webdelivery.BasicAuth("alice", "correct-horse-battery"),
		webdelivery.WithRetry(webdelivery.RetryPolicy{ThrottleTimeout: 15 * time.Minute}))

	fmt.Println(client != nil, err)
	// Output: true <nil>
}
