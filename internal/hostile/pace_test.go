package hostile

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// record holds the arrivals at one server.
type record struct {
	began time.Time

	mu       sync.Mutex
	arrivals []time.Duration
}

// arrive records an arrival, and returns its number from 0.
func (r *record) arrive() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arrivals = append(r.arrivals, time.Since(r.began))
	return len(r.arrivals) - 1
}

// oneByOne returns a server of HTTP/1.1. A purge arrives when its head has been read. If idle is true, the server closes
// a connection instead of answering its second request, as if its idle timeout ended at that moment. Some answers are
// slow.
func (r *record) oneByOne(idle bool, slow ...time.Duration) serving {
	return func(conn net.Conn, _ int) {
		from := bufio.NewReader(conn)
		for nth := 0; ; nth++ {
			req, err := http.ReadRequest(from)
			if err != nil {
				return
			}
			arrival := r.arrive()
			if idle && nth > 0 {
				return
			} else if len(slow) > 0 {
				time.Sleep(slow[arrival%len(slow)]) // simulates a slow service
			}
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(conn, response("201 Created", good))
		}
	}
}

// inFrames returns a server of HTTP/2. A purge arrives with its HEADERS frame. Every third one is reset in one of the
// ways of TestOneAttemptIsOneRequest.
func (r *record) inFrames(disturbed bool) serving {
	return func(conn net.Conn, _ int) {
		var mu sync.Mutex
		ended := map[uint32]bool{}
		serveFrames(conn, func(f *frames, stream uint32) {
			if n := r.arrive(); disturbed && n%3 == 1 {
				mu.Lock()
				ended[stream] = true
				mu.Unlock()
				resets[n/3%len(resets)].reset(f, stream)
			}
		}, func(f *frames, stream uint32) {
			mu.Lock()
			defer mu.Unlock()
			if !ended[stream] {
				f.respond(stream, "201", good)
			}
		})
	}
}

// dialing makes connections that are slow to set up, or to write to. If an attempt ends while its data are written, they
// are still written as long as the connection stays open.
func dialing(tr *http.Transport, setUp, write time.Duration) {
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		time.Sleep(rand.N(setUp + 1)) // simulates a slow network
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return slow{conn, write}, err
	}
}

// slow is a connection to which every fourth write takes long.
type slow struct {
	net.Conn
	write time.Duration
}

func (s slow) Write(b []byte) (int, error) {
	if rand.N(4) == 0 {
		time.Sleep(s.write) // simulates a slow network
	}
	return s.Conn.Write(b)
}

// The service accepts two purges per second (service document, section 8), and counts them when they arrive. So of any
// three arrivals, the first and the third must be at least a second apart, whatever is between the SDK and the service.
// And an attempt of the SDK leaves at most once: net/http adds nothing.
//
// How fast the machine is does not matter. If a purge gets a response, the next one leaves after that, which is after its
// arrival. Otherwise the SDK allows it 5 s to arrive, and nothing here takes half as long.
func TestPace(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, tt := range []struct {
		name    string
		serve   func(*record) serving
		http2   bool
		network *network // nil: no proxy
		change  func(*http.Transport)
		leave   bool // some callers leave at random moments
		purges  int  // 0: 6
	}{
		{
			name: "connections that are set up slowly", serve: func(r *record) serving { return r.oneByOne(false) },
			change: func(tr *http.Transport) { tr.DisableKeepAlives = true; dialing(tr, s, 0) },
		},
		{ // the purges behind a slow one wait inside net/http
			name: "one connection", serve: func(r *record) serving { return r.oneByOne(false, 2*s, s/3, s/3, s/3) },
			change: func(tr *http.Transport) { tr.MaxConnsPerHost = 1 },
		},
		{name: "resets of HTTP/2", serve: func(r *record) serving { return r.inFrames(true) }, http2: true},
		{name: "idle connections that the service closes", serve: func(r *record) serving { return r.oneByOne(true) }, purges: 4},
		{
			name: "callers who leave, and stalls", serve: func(r *record) serving { return r.oneByOne(false) }, leave: true,
			network: &network{flow: s / 3, stall: 2 * s},
		},
		{
			name: "callers who leave while HEADERS are written", serve: func(r *record) serving { return r.inFrames(false) }, http2: true, leave: true,
			change: func(tr *http.Transport) { dialing(tr, 0, s) },
		},
		{
			name: "requests that arrive after their connection has ended", serve: func(r *record) serving { return r.oneByOne(false) },
			network: &network{cutEarly: 3, late: 2 * s},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &record{began: time.Now()}
			addr := startRaw(t, tt.serve(r)).addr
			end := func() {}
			if tt.network != nil {
				p := startProxy(addr, *tt.network)
				addr, end = p.addr(), p.close
				if tt.network.stall > 0 {
					go p.stalls(t.Context())
				}
			}
			tr := transport(t)
			if tt.http2 {
				tr = clearHTTP2(t)
			}
			if tt.change != nil {
				tt.change(tr)
			}
			attempts := purgeAll(t, addr, tr, cmp.Or(tt.purges, 6), tt.leave)
			tr.CloseIdleConnections()
			end()
			r.mu.Lock()
			defer r.mu.Unlock()
			assert.Empty(t, tooFast(r.arrivals), "at these indexes begin three arrivals within less than a second: %v", r.arrivals)
			assert.LessOrEqual(t, len(r.arrivals), attempts, "an attempt of the SDK leaves at most once")
		})
	}
}

// purgeAll sends some purges at once, and returns the number of their attempts.
func purgeAll(t *testing.T, addr string, tr *http.Transport, purges int, leave bool) int {
	t.Helper()
	var attempts atomic.Int64
	c := limited(t, "http://"+addr, fixture.RoundTripper(func(r *http.Request) (*http.Response, error) { // net/http retries below it
		attempts.Add(1)
		return tr.RoundTrip(r)
	}), webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 20, MinWait: time.Millisecond}))
	var all sync.WaitGroup
	for n := range purges {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			leaves := leave && n%2 == 0
			if leaves {
				defer time.AfterFunc(rand.N(5*time.Second), cancel).Stop() // also before there is a permit
			}
			if err := purge.call(ctx, c); !leaves || !errors.Is(err, context.Canceled) {
				assert.NoError(t, err, "purge %d", n)
			}
		})
	}
	all.Wait()
	return int(attempts.Load())
}

// tooFast returns the first of each three arrivals within less than a second.
func tooFast(arrivals []time.Duration) []int {
	var found []int
	for i := range len(arrivals) - 2 {
		if arrivals[i+2]-arrivals[i] < time.Second {
			found = append(found, i)
		}
	}
	return found
}
