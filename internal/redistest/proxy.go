package redistest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy returns the address of a proxy to a server that is far away: each byte takes delay in each direction.
func Proxy(t *testing.T, addr string, delay time.Duration) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(open.Wait)
	done := make(chan struct{})
	t.Cleanup(func() {
		close(done)
		_ = listener.Close()
	})
	open.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			open.Go(func() { link(near, addr, delay, done) })
		}
	})
	return listener.Addr().String()
}

// link connects two ends until one of them closes, or the test is done.
func link(near net.Conn, addr string, delay time.Duration, done <-chan struct{}) {
	defer near.Close()
	time.Sleep(delay)
	far, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return
	}
	defer far.Close()
	ended := make(chan struct{}, 2)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			delayed(way[1], way[0], delay)
			ended <- struct{}{}
		})
	}
	select {
	case <-ended:
	case <-done:
	}
	_ = near.Close()
	_ = far.Close()
	both.Wait()
}

// delayed copies from one end to the other. Each piece is written delay after it was read.
func delayed(to io.Writer, from io.Reader, delay time.Duration) {
	type piece struct {
		at   time.Time
		data []byte
	}
	pieces := make(chan piece, 10_000)
	var writer sync.WaitGroup
	writer.Go(func() {
		failed := false
		for p := range pieces {
			time.Sleep(time.Until(p.at.Add(delay)))
			if !failed {
				_, err := to.Write(p.data)
				failed = err != nil
			}
		}
	})
	for buffer := make([]byte, 64<<10); ; {
		n, err := from.Read(buffer)
		if n > 0 {
			pieces <- piece{time.Now(), append([]byte(nil), buffer[:n]...)}
		}
		if err != nil {
			break
		}
	}
	close(pieces)
	writer.Wait()
}
