package hostile

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// briefLimiter gives permits that expire soon. It counts the permits with which something may have been sent.
type briefLimiter struct {
	lifetime time.Duration

	mu         sync.Mutex
	lent, used int
}

func (*briefLimiter) Waiting(string) error { return nil }

func (*briefLimiter) Pause(context.Context, string, time.Duration) error { return nil }

func (l *briefLimiter) Acquire(ctx context.Context, _ string) (webdelivery.Permit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lent++
	return webdelivery.Permit{
		Expires: time.Now().Add(l.lifetime),
		Done: func(_ context.Context, arrived time.Time, _ int) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if !arrived.IsZero() {
				l.used++
			}
		},
	}, ctx.Err()
}

// A connection takes longer than the lifetime of a permit, so the permit has expired when the request could begin. No
// part of the request arrives, and the limiter learns that nothing was sent. HTTP/2 keeps its connection, so a later
// permit is in time.
func TestExpiredPermitsSendNothing(t *testing.T) {
	t.Parallel()
	for _, protocol := range []Protocol{HTTP1, HTTP1TLS, HTTP2} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			ctx := bounded(t)
			server, err := Start(ctx, Plan{Protocol: protocol})
			require.NoError(t, err)
			scheme := "https"
			if protocol == HTTP1 {
				scheme = "http"
			}
			transport := &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: server.Roots}, ForceAttemptHTTP2: protocol == HTTP2, DisableKeepAlives: true,
				DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
					time.Sleep(30 * time.Millisecond) // longer than a permit lives
					return new(net.Dialer).DialContext(ctx, network, addr)
				},
			}
			defer transport.CloseIdleConnections()
			limiter := &briefLimiter{lifetime: 20 * time.Millisecond}
			c := client(t, scheme+"://"+server.Addr, quick(transport, webdelivery.WithSharedLimiter(limiter),
				webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 20, MinWait: time.Millisecond, MaxWait: time.Millisecond}))...)
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					err := submit(ctx, c)
					if protocol == HTTP2 {
						assert.NoError(t, err)
						return
					}
					assert.ErrorContains(t, err, "permit expired")
					assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				})
			}
			all.Wait()
			transport.CloseIdleConnections()
			arrivals, err := server.Stop()
			require.NoError(t, err)
			assert.LessOrEqual(t, len(arrivals), limiter.used, "what arrives had a permit that was used")
			if protocol != HTTP2 {
				assert.Empty(t, arrivals)
			}
			assert.Greater(t, limiter.lent, limiter.used, "some expired")
		})
	}
}
