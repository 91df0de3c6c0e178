package hostile

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
)

// brief is a limiter whose first three permits expire soon. It counts the permits with which something may have been sent.
type brief struct {
	mu         sync.Mutex
	lent, used int
	expired    time.Time // all of the first that were lent
}

func (*brief) Waiting(string) error { return nil }

func (*brief) Pause(context.Context, string, time.Duration) error { return nil }

func (b *brief) Acquire(ctx context.Context, _ string) (webdelivery.Permit, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	expires := time.Now().Add(time.Hour)
	if b.lent++; b.lent <= 3 {
		expires = time.Now().Add(50 * time.Millisecond)
		b.expired = expires
	}
	return webdelivery.Permit{Expires: expires, Done: func(_ context.Context, arrived time.Time, _ int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if !arrived.IsZero() {
			b.used++
		}
	}}, ctx.Err()
}

// outlast waits until the permits that were lent have expired.
func (b *brief) outlast() {
	b.mu.Lock()
	defer b.mu.Unlock()
	time.Sleep(time.Until(b.expired) + time.Millisecond) // simulates a slow network
}

// slowToClose is a connection that net/http may still write to while it closes it.
type slowToClose struct{ net.Conn }

func (c slowToClose) Close() error {
	time.Sleep(50 * time.Millisecond) // simulates a busy machine
	return c.Conn.Close()
}

// A connection takes longer than the lifetime of a permit, so the permit has expired when the request could begin. No
// part of the request arrives, and the limiter learns that nothing was sent.
func TestExpiredPermitsSendNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		tls, http2 bool
	}{{"HTTP/1.1", false, false}, {"HTTP/1.1 over TLS", true, false}, {"HTTP/2", false, true}, {"HTTP/2 over TLS", true, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, limiter := new(record), new(brief)
			scheme, serve, tr := "http://", r.oneByOne(false), transport(t)
			if tt.http2 {
				serve, tr = r.inFrames(false), clearHTTP2(t)
			}
			if tt.tls {
				protocol := map[bool]string{false: "http/1.1", true: "h2"}[tt.http2]
				config, secure := secured(t, protocol)
				scheme, serve, tr = "https://", overTLS(config, serve), secure
			}
			tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				limiter.outlast()
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return slowToClose{conn}, err
			}
			c := limited(t, scheme+startRaw(t, serve).addr, tr, webdelivery.WithSharedLimiter(limiter),
				webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 20, MinWait: time.Millisecond}))
			assert.NoError(t, purge.call(t.Context(), c))
			assert.Len(t, r.arrivals, 1)
			assert.Greater(t, limiter.lent, limiter.used, "some expired")
			assert.GreaterOrEqual(t, limiter.used, 1, "more if HTTP/2 finds a connection that takes no more streams")
		})
	}
}
