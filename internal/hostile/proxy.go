package hostile

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Network is what a Proxy does to connections. The zero value passes everything on at once. A Range of zeros turns its
// behavior off.
type Network struct {
	Seed uint64 // of all random choices
	// SetUp is the time from accepting a connection to connecting to the server. Until then nothing is passed on.
	SetUp Range
	// Connections flow for Flow, then stall for Stall. In a stall nothing passes on any connection; after it,
	// everything passes at once.
	Flow, Stall Range

	// The other fields affect every n-th request or response, counted over all connections; 0 turns them off. The proxy
	// finds the boundaries of requests by the direction of the data, so these fields are for HTTP/1.1 without TLS.

	// CutReused closes a connection when its second or a later request begins. The request is lost.
	CutReused int
	// CutResponse closes a connection instead of passing a response on. Its request has arrived.
	CutResponse int
	// CutEarly closes the client's side of a connection when a request has left the client. The request arrives later,
	// after a time in Late.
	CutEarly int
	Late     Range
}

// Range is a range of durations, from the first to the second.
type Range [2]time.Duration

// Proxy is a TCP proxy in front of one server.
type Proxy struct {
	network  Network
	server   string
	listener net.Listener
	ctx      context.Context // ends everything
	end      context.CancelFunc
	all      sync.WaitGroup

	stalled                   sync.RWMutex // locked in a stall
	reused, responses, leaves atomic.Int64
	lost                      atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
}

// NewProxy starts a proxy on 127.0.0.1 in front of the server at an address.
func NewProxy(server string, network Network) (*Proxy, error) {
	ctx, end := context.WithCancel(context.Background())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		end()
		return nil, err
	}
	p := &Proxy{
		network: network, server: server, listener: listener, ctx: ctx, end: end,
		random: rand.New(rand.NewPCG(network.Seed, 0)),
	}
	go p.stall()
	p.all.Go(p.accept)
	return p, nil
}

// Addr is the proxy's address.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Lost returns the number of requests that left the client and never arrive, because of CutReused.
func (p *Proxy) Lost() int { return int(p.lost.Load()) }

// Close accepts no more connections and waits until all have ended by themselves, so requests in flight arrive. After
// timeout, it closes the remaining connections.
func (p *Proxy) Close(timeout time.Duration) {
	_ = p.listener.Close()
	defer time.AfterFunc(timeout, p.end).Stop()
	p.all.Wait()
	p.end()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.connect(client) })
	}
}

// between draws a random duration from a range.
func (p *Proxy) between(r Range) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return r[0] + time.Duration(p.random.Int64N(int64(r[1]-r[0])+1))
}

// sleep returns false if the proxy ends.
func (p *Proxy) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-p.ctx.Done():
		return false
	}
}

func (p *Proxy) stall() {
	if p.network.Stall == (Range{}) {
		return
	}
	for p.sleep(p.between(p.network.Flow)) {
		p.stalled.Lock()
		p.sleep(p.between(p.network.Stall))
		p.stalled.Unlock()
	}
}

// flow waits for the end of a stall. It does not keep the lock while data pass, because a client that does not read
// must not delay a stall.
func (p *Proxy) flow() {
	p.stalled.RLock()
	defer p.stalled.RUnlock()
}

// connection is one connection through the proxy.
type connection struct {
	*Proxy
	client, server net.Conn
	requested      bool        // a request has passed; only the goroutine of the requests uses it
	answered       atomic.Bool // a response has passed since the last request
}

func (p *Proxy) connect(client net.Conn) {
	defer client.Close()
	if !p.sleep(p.between(p.network.SetUp)) {
		return
	}
	server, err := (&net.Dialer{}).DialContext(p.ctx, "tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	c := &connection{Proxy: p, client: client, server: server}
	var both sync.WaitGroup
	both.Go(func() { c.pump(client, server, c.request) })
	both.Go(func() { c.pump(server, client, c.response) })
	defer context.AfterFunc(p.ctx, c.cut)()
	both.Wait()
}

// cut closes both sides.
func (c *connection) cut() {
	_ = c.client.Close()
	_ = c.server.Close()
}

// pump passes on what arrives. It reads ahead, so what a client sent before it closed its connection is not lost.
func (c *connection) pump(from, to net.Conn, pass func() bool) {
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
		if !pass() {
			c.cut()
			for range chunks { // the reader ends
			}
			return
		}
		c.flow()
		_, _ = to.Write(chunk)
	}
	c.flow()
	_ = to.(interface{ CloseWrite() error }).CloseWrite()
}

// request handles data of the client. It returns false to cut the connection.
func (c *connection) request() bool {
	begins := !c.requested || c.answered.Swap(false)
	reused := c.requested && begins
	c.requested = true
	switch {
	case !begins:
	case reused && nth(&c.reused, c.network.CutReused):
		c.lost.Add(1)
		return false
	case nth(&c.leaves, c.network.CutEarly):
		_ = c.client.Close()
		c.sleep(c.between(c.network.Late))
	}
	return true
}

// response handles data of the server. It returns false to cut the connection.
func (c *connection) response() bool {
	begins := !c.answered.Swap(true)
	return !begins || !nth(&c.responses, c.network.CutResponse)
}

// nth counts, and reports whether this is an n-th one.
func nth(count *atomic.Int64, n int) bool { return n > 0 && count.Add(1)%int64(n) == 0 }
