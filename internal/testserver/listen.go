package testserver

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// network is the network side of a server: at most one listener, its connections, and the running handlers.
type network struct {
	ctx    context.Context // ends with Close; the parent of the contexts of requests
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	url     string
	memory  *memoryListener // nil when listening on TCP
	http    *http.Server
	serving chan struct{} // closed when http.Serve returned

	running     sync.WaitGroup // connections, and handlers of hijacked connections
	connections atomic.Int64
	foreign     atomic.Int64
}

// ListenTCP calls [Server.ListenOn] with a free loopback port.
func (s *Server) ListenTCP() (url string, err error) { return s.ListenOn("127.0.0.1:0") }

// ListenOn starts to listen on a TCP address and returns the base URL. The URL does not include the customer. If
// the address covers all addresses of the machine (":8080"), the URL has the loopback address. A server listens
// once: a second call returns the URL of the first.
func (s *Server) ListenOn(address string) (url string, err error) {
	n := &s.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return "", net.ErrClosed
	}
	if n.http != nil {
		return n.url, nil
	}
	listener, err := new(net.ListenConfig).Listen(n.ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("testserver: %w", err)
	}
	return s.serve(listener), nil
}

// ListenMemory starts to listen in memory and returns the base URL. The URL does not include the customer.
// Its host is a loopback address that no other server of the process has, and only [Server.DialContext] reaches it. A
// server listens once: a second call returns the URL of the first.
func (s *Server) ListenMemory() (url string) {
	n := &s.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.http != nil || n.closed {
		return n.url
	}
	n.memory = newMemoryListener()
	return s.serve(n.memory)
}

// serve accepts connections on the listener. The caller holds s.network.mu.
func (s *Server) serve(listener net.Listener) string {
	n := &s.network
	n.url = "http://" + reachable(listener.Addr())
	n.serving = make(chan struct{})
	n.http = &http.Server{
		Handler:     s,
		ErrorLog:    log.New(io.Discard, "", 0), // clients of tests misbehave on purpose
		BaseContext: func(net.Listener) context.Context { return n.ctx },
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, int(n.connections.Add(1)))
		},
		ConnState:   n.track,
		IdleTimeout: s.cfg.IdleTimeout,
		Protocols:   new(http.Protocols),
	}
	n.http.Protocols.SetHTTP1(true)
	n.http.Protocols.SetUnencryptedHTTP2(true) // for clients that use HTTP/2 without TLS
	go func() {
		defer close(n.serving)
		_ = n.http.Serve(listener) // the error always says that the server was closed
	}()
	return n.url
}

// reachable returns the address at which this machine reaches a listener.
func reachable(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return addr.String()
}

func (n *network) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		n.running.Add(1)
	case http.StateClosed, http.StateHijacked:
		n.running.Done()
	case http.StateActive, http.StateIdle:
	}
}

// enter counts a handler, so that Close also waits for a handler that has hijacked its connection.
func (n *network) enter(r *http.Request) (leave func()) {
	if connectionNumber(r.Context()) == 0 {
		return func() {}
	}
	n.running.Add(1)
	return n.running.Done
}

type connectionKey struct{}

// connectionNumber returns 0 for a request that did not come through a listener of the server.
func connectionNumber(ctx context.Context) int {
	number, _ := ctx.Value(connectionKey{}).(int)
	return number
}

// Close stops listening, closes all connections and waits until every handler has returned. Further calls do nothing.
func (s *Server) Close() error {
	n := &s.network
	n.mu.Lock()
	n.closed = true
	server := n.http
	n.mu.Unlock() // a handler that still runs may ask for the URL
	n.cancel()
	if server == nil {
		return nil
	}
	_ = server.Close() // its errors concern only listeners and connections that are closed now
	<-n.serving
	_ = server.Close() // a connection may have been accepted while the first Close ran
	n.running.Wait()
	return nil
}

// URL returns the base URL without the customer. Before the server listens, URL returns "".
func (s *Server) URL() string {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	return s.network.url
}

// Connections returns the number of connections accepted so far.
func (s *Server) Connections() int { return int(s.network.connections.Load()) }

// ForeignDials returns the number of calls of DialContext for an address that is not the server's.
func (s *Server) ForeignDials() int { return int(s.network.foreign.Load()) }

// DialContext connects to a server that listens in memory. A dial to any other address fails and is counted:
// ForeignDials then shows that a client was lured elsewhere.
func (s *Server) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	s.network.mu.Lock()
	memory := s.network.memory
	s.network.mu.Unlock()
	if memory == nil || addr != memory.Addr().String() {
		s.network.foreign.Add(1)
		return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("testserver: %s: %w", addr, syscall.EHOSTUNREACH)}
	}
	return memory.dial(ctx, network)
}

// Transport returns a new transport for the server, without a proxy. If the server listens in memory, the transport
// uses DialContext.
func (s *Server) Transport() *http.Transport {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	if s.network.memory == nil {
		return &http.Transport{}
	}
	return &http.Transport{DialContext: s.DialContext}
}
