package hostile

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// scenario is a number of purges of one customer, with the obstacles between them and the service.
type scenario struct {
	name    string
	plan    Plan
	network *Network // nil: no proxy

	transport func(*http.Transport) // changes net/http's transport; nil changes nothing
	purges    int                   // 0: 10
	giveUp    bool                  // the contexts of some purges end at random moments
}

// goroutines send the purges of a scenario.
const goroutines = 20

type outcome struct {
	attempts int // of the SDK
	arrivals []time.Duration
	lost     int // requests that the proxy did not pass on
}

// run sends the purges of a scenario, and waits until every sent request has arrived.
func run(t testing.TB, s scenario) outcome {
	t.Helper()
	s.purges = cmp.Or(s.purges, 10)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Duration(s.purges)*10*time.Second)
	defer cancel()
	server, err := Start(ctx, s.plan)
	require.NoError(t, err)
	addr := server.Addr
	var proxy *Proxy
	if s.network != nil {
		proxy, err = NewProxy(addr, *s.network)
		require.NoError(t, err)
		addr = proxy.Addr()
	}
	c := &crowd{TB: t, scenario: s, random: rand.New(rand.NewPCG(1, 0))}
	client, transport := c.client(addr, server)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for n := c.next(); n <= s.purges; n = c.next() {
				c.purge(ctx, client, n)
			}
		})
	}
	all.Wait()
	transport.CloseIdleConnections()
	o := outcome{attempts: int(c.attempts.Load())}
	if proxy != nil {
		proxy.Close(30 * time.Second)
		o.lost = proxy.Lost()
	}
	o.arrivals, err = server.Stop()
	require.NoError(t, err)
	return o
}

type crowd struct {
	testing.TB
	scenario

	begun, attempts atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
}

func (c *crowd) client(host string, server *Server) (*webdelivery.Client, *http.Transport) {
	c.Helper()
	scheme := "https"
	if c.plan.Protocol == HTTP1 {
		scheme = "http"
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: server.Roots}, ForceAttemptHTTP2: c.plan.Protocol == HTTP2,
		MaxIdleConnsPerHost: goroutines,
	}
	if c.transport != nil {
		c.transport(transport)
	}
	client, err := webdelivery.NewClient(scheme+"://"+host, strings.ReplaceAll(c.name, " ", "-"),
		webdelivery.BasicAuth("alice", "correct-horse-battery"),
		webdelivery.WithHTTPClient(&http.Client{Transport: &attempts{c, transport}}),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 20, MinWait: time.Millisecond}),
	)
	require.NoError(c, err)
	return client, transport
}

func (c *crowd) next() int { return int(c.begun.Add(1)) }

func (c *crowd) purge(ctx context.Context, client *webdelivery.Client, n int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	switch {
	case !c.giveUp:
	case n%3 == 0: // soon after an attempt begins
		ctx = context.WithValue(ctx, leaveKey{}, cancel)
	case n%4 == 1: // at any moment, also before there is a permit
		defer time.AfterFunc(c.within(5*time.Second), cancel).Stop()
	}
	_, err := client.Purge.Submit(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Exact(fmt.Sprintf("https://www.example.com/%d", n))},
	})
	if c.giveUp && errors.Is(err, context.Canceled) {
		return
	}
	assert.NoError(c, err, "purge %d", n)
}

func (c *crowd) within(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.random.Int64N(int64(d)))
}

// leaveKey is the context key of the function that ends the context of a purge.
type leaveKey struct{}

// attempts counts the attempts of a client. The SDK calls it once per attempt; net/http retries below it.
type attempts struct {
	*crowd
	next http.RoundTripper
}

func (a *attempts) RoundTrip(r *http.Request) (*http.Response, error) {
	a.attempts.Add(1)
	if leave, ok := r.Context().Value(leaveKey{}).(context.CancelFunc); ok {
		defer time.AfterFunc(a.within(400*time.Millisecond), leave).Stop()
	}
	return a.next.RoundTrip(r)
}
