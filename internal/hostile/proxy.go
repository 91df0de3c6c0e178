package hostile

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// network is what a proxy does to connections. The zero value passes everything on at once. The proxy finds the
// boundaries of requests by the direction of the data, so all but stalls are for HTTP/1.1 without TLS.
type network struct {
	// Connections flow for a time, then stall for a time. In a stall nothing passes on any connection; after it,
	// everything passes at once.
	flow, stall time.Duration
	// cutEarly closes the client's side of a connection when every n-th request has left the client. The request
	// arrives later by late.
	cutEarly int64
	late     time.Duration
}

// proxy is a TCP proxy in front of one server.
type proxy struct {
	network
	server   string
	listener net.Listener
	all      sync.WaitGroup // the listener and its connections

	stalled  sync.RWMutex // locked in a stall
	requests atomic.Int64
}

// startProxy starts a proxy on 127.0.0.1 in front of the server at an address.
func startProxy(server string, n network) *proxy {
	p := &proxy{network: n, server: server}
	var err error
	if p.listener, err = new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0"); err != nil {
		panic(err) // without loopback there is no test
	}
	p.all.Go(func() {
		for {
			client, err := p.listener.Accept()
			if err != nil {
				return
			}
			p.all.Go(func() { p.connect(client) })
		}
	})
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// close accepts no more connections and waits until all have ended by themselves, so requests in flight arrive.
func (p *proxy) close() {
	_ = p.listener.Close()
	p.all.Wait()
}

// stalls lets connections flow and stall in turn, until the context ends.
func (p *proxy) stalls(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(p.flow)
		p.stalled.Lock()
		time.Sleep(p.stall)
		p.stalled.Unlock()
	}
}

// pass waits for the end of a stall. It does not keep the lock while data pass, because a client that does not read
// must not delay a stall.
func (p *proxy) pass() {
	p.stalled.RLock()
	defer p.stalled.RUnlock()
}

// connection is one connection through the proxy.
type connection struct {
	*proxy
	client, server net.Conn
	begun          atomic.Bool // the client has begun a request that has no response yet
}

func (p *proxy) connect(client net.Conn) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	c := &connection{proxy: p, client: client, server: server}
	var both sync.WaitGroup
	both.Go(func() { c.pump(client, server, c.request) })
	both.Go(func() { c.pump(server, client, func() { c.begun.Store(false) }) })
	both.Wait()
}

// pump passes on what arrives. It reads ahead, so what a client sent before it closed its connection is not lost.
func (c *connection) pump(from, to net.Conn, arrives func()) {
	chunks := make(chan []byte, 1<<10)
	go func() {
		defer close(chunks)
		for {
			chunk := make([]byte, 16<<10)
			n, err := from.Read(chunk)
			if n > 0 {
				chunks <- chunk[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	for chunk := range chunks {
		arrives()
		c.pass()
		_, _ = to.Write(chunk)
	}
	c.pass()
	_ = to.(*net.TCPConn).CloseWrite()
}

// request handles data of the client.
func (c *connection) request() {
	if !c.begun.Swap(true) && c.cutEarly > 0 && c.requests.Add(1)%c.cutEarly == 0 {
		_ = c.client.Close()
		time.Sleep(c.late)
	}
}
