package hostile

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
)

// deaf is a connection whose reader stops after so many bytes.
type deaf struct {
	net.Conn
	left  int64
	begun func()
	until <-chan struct{}
}

func (d *deaf) Read(p []byte) (int, error) {
	if d.left <= 0 {
		d.begun()
		<-d.until
		return 0, io.EOF
	}
	n, err := d.Conn.Read(p)
	d.left -= int64(n)
	return n, err
}

// A service stops reading an HTTP/2 connection that carries a large request. net/http then cannot end other streams of
// that connection until it closes the connection, even if their contexts end. WriteByteTimeout bounds this time; the
// SDK's own transport sets it.
func TestAConnectionThatIsNotRead(t *testing.T) {
	t.Parallel()
	trusted := newAuthority()
	ctx, cancel := context.WithCancel(bounded(t))
	full := func() { time.AfterFunc(500*time.Millisecond, cancel) } // by then the buffers of the connection are full
	certificate := trusted.issue(nil)
	serve := overFrames(certificate, setting(settingWindow, 1<<31-1), func(f *frames, stream uint32) {
		f.send(frameWindowUpdate, 0, 0, numbers(1<<30))
		f.send(frameHeaders, flagEndHeaders, stream, block("200"))
		f.send(frameData, 0, stream, []byte(`{"columns":[{"name":"a"}],"rows":[["x"],`))
	})
	service := startRaw(t, func(conn net.Conn, n int) { serve(&deaf{conn, 1 << 20, full, t.Context().Done()}, n) })
	transport := trusted.transport(t)
	transport.HTTP2 = &http.HTTP2Config{WriteByteTimeout: time.Second}
	c := client(t, "https://"+service.addr, quick(transport)...)
	ends(bounded(t), t, func() {
		written := make(chan error, 1)
		rows := 0
		for _, err := range c.Stats.Events.All(ctx, operations.Events(time.Now(), 1000)) {
			if rows++; rows > 1 {
				assert.ErrorIs(t, err, context.Canceled)
				break
			}
			go func() { // its body never arrives completely
				written <- c.Do(ctx, http.MethodPost, "/large", strings.Repeat("x", 64<<20), nil)
			}()
		}
		assert.Error(t, <-written)
	})
}
