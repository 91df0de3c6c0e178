package testserver

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// memoryServers numbers the in-memory listeners of the process, so that each has its own address: clients may keep
// state per origin.
var memoryServers atomic.Uint32

// memoryListener hands out ends of net.Pipe. Unlike sockets, they are durably blocked in the sense of testing/synctest.
type memoryListener struct {
	addr     *net.TCPAddr
	accepted chan net.Conn
	done     chan struct{}
	close    func()
	clients  atomic.Int64
}

func newMemoryListener() *memoryListener {
	number := memoryServers.Add(1)
	done := make(chan struct{})
	return &memoryListener{
		addr:     &net.TCPAddr{IP: net.IPv4(127, byte(1+number>>16), byte(number>>8), byte(number)), Port: 8080},
		accepted: make(chan net.Conn),
		done:     done,
		close:    sync.OnceFunc(func() { close(done) }), // net/http closes a listener twice
	}
}

// Accept implements [net.Listener].
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *memoryListener) Close() error {
	l.close()
	return nil
}

// Addr implements [net.Listener].
func (l *memoryListener) Addr() net.Addr { return l.addr }

func (l *memoryListener) dial(ctx context.Context, network string) (net.Conn, error) {
	clientAddr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1024 + int(l.clients.Add(1)%60000)}
	near, far := net.Pipe()
	select {
	case l.accepted <- &pipeConn{Conn: far, local: l.addr, remote: clientAddr}:
		return &pipeConn{Conn: near, local: clientAddr, remote: l.addr}, nil
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: network, Addr: l.addr, Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: network, Addr: l.addr, Err: ctx.Err()}
	}
}

// pipeConn is an end of a net.Pipe with addresses and with the errors of a TCP connection.
type pipeConn struct {
	net.Conn

	local, remote net.Addr
	closed        atomic.Bool
}

// LocalAddr implements [net.Conn].
func (c *pipeConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn].
func (c *pipeConn) RemoteAddr() net.Addr { return c.remote }

// Read implements [net.Conn].
func (c *pipeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.translate("read", err)
}

// Write implements [net.Conn].
func (c *pipeConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.translate("write", err)
}

// Close implements [net.Conn].
func (c *pipeConn) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

func (c *pipeConn) translate(op string, err error) error {
	if !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	cause := error(syscall.EPIPE)
	if c.closed.Load() {
		cause = net.ErrClosed
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: cause}
}
