package hostile

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
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
	hosts     []string              // of the base URLs, with PORT for the port; empty: 127.0.0.1. Each has its own client
	clients   int                   // 0: 1; without hosts only
	purges    int                   // 0: 10; HOSTILE_PURGES, if that is more
	giveUp    bool                  // the contexts of some purges end at random moments
	busy      bool                  // the machine is busy with other work
}

// wanted returns the number of purges of a scenario.
func (s *scenario) wanted() int {
	own := s.purges
	if own == 0 {
		own = 10
	}
	n, _ := strconv.Atoi(os.Getenv("HOSTILE_PURGES"))
	return max(n, own)
}

// goroutines send the purges of a scenario.
const goroutines = 20

// outcome is the result of a scenario.
type outcome struct {
	attempts int // of the SDK
	arrivals []time.Duration
	lost     int // requests that the proxy did not pass on
	gaveUp   int // purges whose context ended
}

// run sends the purges of a scenario, and waits until every sent request has arrived.
func run(t testing.TB, s scenario) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Duration(s.wanted())*10*time.Second)
	defer cancel()
	server, err := Start(ctx, s.plan)
	require.NoError(t, err)
	bases := make([]string, 0, goroutines)
	for _, host := range s.hosts {
		if strings.HasPrefix(host, "[") && !server.HasIPv6 {
			t.Skip("this machine has no IPv6")
		}
		bases = append(bases, strings.ReplaceAll(host, "PORT", strconv.Itoa(server.Port)))
	}
	var proxy *Proxy
	if s.network != nil {
		proxy, err = NewProxy(server.Addr(), *s.network)
		require.NoError(t, err)
	}
	for len(bases) < max(1, s.clients) {
		if proxy != nil {
			bases = append(bases, proxy.Addr())
		} else {
			bases = append(bases, server.Addr())
		}
	}
	c := &crowd{TB: t, scenario: s, random: rand.New(rand.NewPCG(1, 0))}
	for _, base := range bases {
		c.addClient(base, server)
	}

	if s.busy {
		defer beBusy(ctx)()
	}
	var all sync.WaitGroup
	for i := range goroutines {
		client := c.clients[i%len(c.clients)]
		all.Go(func() {
			for n := c.next(); n <= s.wanted(); n = c.next() {
				c.purge(ctx, client, n)
			}
		})
	}
	all.Wait()
	for _, transport := range c.transports {
		transport.CloseIdleConnections()
	}
	o := outcome{attempts: int(c.attempts.Load()), gaveUp: int(c.gaveUp.Load())}
	if proxy != nil {
		proxy.Close(30 * time.Second)
		o.lost = proxy.Lost()
	}
	o.arrivals, err = server.Stop()
	require.NoError(t, err)
	t.Logf("%d attempts, %d arrivals, %d lost, %d given up; three arrivals take at least %v; %.2f purges/s", o.attempts,
		len(o.arrivals), o.lost, o.gaveUp, closest(o.arrivals), rate(o.arrivals))
	return o
}

// crowd is the clients of a scenario.
type crowd struct {
	testing.TB
	scenario

	clients    []*webdelivery.Client
	transports []*http.Transport

	begun, attempts, gaveUp atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
}

func (c *crowd) addClient(host string, server *Server) {
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
		webdelivery.WithPlainHTTP(), // "localhost." may not count as loopback
	)
	require.NoError(c, err)
	c.clients, c.transports = append(c.clients, client), append(c.transports, transport)
}

// next returns the number of the next purge, from 1.
func (c *crowd) next() int { return int(c.begun.Add(1)) }

// purge sends the n-th purge.
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
		c.gaveUp.Add(1)
		return
	}
	assert.NoError(c, err, "purge %d", n)
}

// within draws a random duration.
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
