package redistest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Proxy forwards connections to a server, with delays and losses.
type Proxy struct {
	Addr  string       // host:port of the proxy
	Lost  atomic.Int64 // number of the next replies to lose
	Close func()       // cuts all connections, for good

	delay time.Duration
}

// NewProxy starts a proxy to the server at addr. It delays each direction by delay.
func NewProxy(t *testing.T, addr string, delay time.Duration) *Proxy {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone := make(chan struct{})
	p := &Proxy{Addr: listener.Addr().String(), delay: delay, Close: sync.OnceFunc(func() { close(gone) })}
	t.Cleanup(func() {
		_ = listener.Close()
		p.Close()
	})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() {
				<-gone
				_, _ = client.Close(), server.Close()
			}()
			go p.pipe(server, client, func() bool { return false })
			go p.pipe(client, server, func() bool { return p.Lost.Add(-1) >= 0 })
		}
	}()
	return p
}

// pipe copies one direction, piece by piece.
func (p *Proxy) pipe(to, from net.Conn, lost func() bool) {
	defer to.Close()
	for buf := make([]byte, 1<<16); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if time.Sleep(p.delay); !lost() {
			_, _ = to.Write(buf[:n]) // a Read fails, too, if the connection has ended
		}
	}
}
