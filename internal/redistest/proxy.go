package redistest

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy forwards connections to a server, with delays and losses.
type Proxy struct {
	Addr string       // host:port of the proxy
	Lost atomic.Int64 // number of the next replies to lose

	delay time.Duration
	gone  chan struct{} // closed by Close
	once  sync.Once
}

// Close cuts all connections, for good.
func (p *Proxy) Close() { p.once.Do(func() { close(p.gone) }) }

// NewProxy starts a proxy to the server at addr. It delays each direction by delay.
func NewProxy(t *testing.T, addr string, delay time.Duration) *Proxy {
	t.Helper()
	p := &Proxy{delay: delay, gone: make(chan struct{})}
	p.Addr = listen(t, func(client net.Conn) {
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
		if err != nil {
			_ = client.Close()
			return
		}
		go func() {
			<-p.gone
			_, _ = client.Close(), server.Close()
		}()
		go p.pipe(server, client, func() bool { return false })
		p.pipe(client, server, func() bool { return p.Lost.Add(-1) >= 0 })
	})
	t.Cleanup(p.Close)
	return p
}

// listen listens on a new address, which it returns, and calls serve for each connection.
func listen(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return listener.Addr().String()
}

// pipe copies one direction; each piece arrives delay after it was sent.
func (p *Proxy) pipe(to, from net.Conn, lost func() bool) {
	type piece struct {
		data []byte
		due  time.Time
	}
	way := make(chan piece, 1000)
	go func() {
		defer to.Close()
		for piece := range way {
			time.Sleep(time.Until(piece.due))
			if _, err := to.Write(piece.data); err != nil {
				return
			}
		}
	}()
	defer close(way)
	for {
		buf := make([]byte, 1<<16)
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if !lost() {
			way <- piece{buf[:n], time.Now().Add(p.delay)}
		}
	}
}
