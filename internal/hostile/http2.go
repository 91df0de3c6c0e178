package hostile

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// The frames of HTTP/2 (RFC 9113, section 6) that this server reads or writes.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameSettings     = 0x4
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindowUpdate = 0x8

	flagAck        = 0x1 // of SETTINGS and PING
	flagEndStream  = 0x1 // of DATA and HEADERS
	flagEndHeaders = 0x4

	codeProtocolError = 0x1
	codeRefusedStream = 0x7

	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// http2Server returns a server of HTTP/2 that writes its frames by hand. The server of net/http cannot do that: it
// never refuses or disowns a stream that it has read. This server takes every HEADERS frame as the arrival of a purge,
// because it does not decode them.
func http2Server(arrivals *record, certificate tls.Certificate) func(net.Listener) {
	config := &tls.Config{
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
	}
	return func(l net.Listener) {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveHTTP2(tls.Server(conn, config), arrivals)
		}
	}
}

// http2Conn is one connection.
type http2Conn struct {
	io.ReadWriteCloser
	arrivals *record

	write sync.Mutex
	// open holds the steps of the streams whose request has not ended. Only the reading goroutine uses it.
	open map[uint32]http2Stream
}

type http2Stream struct {
	id      int
	step    Step
	arrived time.Time
}

func serveHTTP2(conn io.ReadWriteCloser, arrivals *record) {
	defer conn.Close()
	c := &http2Conn{ReadWriteCloser: conn, arrivals: arrivals, open: map[uint32]http2Stream{}}
	r := bufio.NewReader(conn)
	if _, err := io.CopyN(io.Discard, r, int64(len(preface))); err != nil {
		return
	}
	c.frame(frameSettings, 0, 0, nil)
	for c.next(r) == nil {
	}
}

// next reads one frame and reacts to it.
func (c *http2Conn) next(r io.Reader) error {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	payload := make([]byte, uint32(head[0])<<16|uint32(head[1])<<8|uint32(head[2]))
	kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])&^(1<<31)
	if kind == frameHeaders { // the head has arrived; the rest does not matter
		c.arrive(stream)
	}
	if _, err := io.ReadFull(r, payload); err != nil {
		return err
	}
	switch {
	case kind == frameSettings && flags&flagAck == 0:
		c.frame(frameSettings, flagAck, 0, nil)
	case kind == framePing && flags&flagAck == 0:
		c.frame(framePing, flagAck, 0, payload)
	case kind == frameData && len(payload) > 0:
		c.frame(frameWindowUpdate, 0, 0, numbers(uint32(len(payload)))) //nolint:gosec // a frame is below 16 MiB
	case kind == frameReset:
		delete(c.open, stream)
	}
	if (kind == frameData || kind == frameHeaders) && flags&flagEndStream != 0 {
		if s, ok := c.open[stream]; ok {
			delete(c.open, stream)
			go c.answer(stream, s)
		}
	}
	return nil
}

// arrive records a request. An action that needs no complete request happens here; a response waits for the end of the
// request.
func (c *http2Conn) arrive(stream uint32) {
	arrived := time.Now()
	id, step := c.arrivals.arrive()
	switch step.Action {
	case Refuse:
		c.frame(frameReset, 0, stream, numbers(codeRefusedStream))
	case Reset:
		c.frame(frameReset, 0, stream, numbers(codeProtocolError))
	case GoAway:
		last := uint32(0)
		if stream > 1 {
			last = stream - 2
		}
		c.frame(frameGoAway, 0, 0, numbers(last, 0))
	default:
		c.open[stream] = http2Stream{id, step, arrived}
	}
}

// answer writes a response. HPACK (RFC 7541, section 6.2.2): literals without indexing, whose names are entries 8
// (:status) and 31 (content-type) of the static table.
func (c *http2Conn) answer(stream uint32, s http2Stream) {
	time.Sleep(time.Until(s.arrived.Add(s.step.After)))
	status, body := s.step.Action.response(s.id)
	headers := "\x08\x03" + strconv.Itoa(status) + "\x0f\x10\x10application/json"
	c.frame(frameHeaders, flagEndHeaders, stream, []byte(headers))
	c.frame(frameData, flagEndStream, stream, []byte(body))
}

// frame writes one frame. If the connection is closed, next notices it.
func (c *http2Conn) frame(kind, flags byte, stream uint32, payload []byte) {
	head := numbers(uint32(len(payload))<<8|uint32(kind), 0, 0)[:9] //nolint:gosec // what this server writes is short
	head[4] = flags
	binary.BigEndian.PutUint32(head[5:], stream)
	c.write.Lock()
	defer c.write.Unlock()
	_, _ = c.Write(append(head, payload...))
}

// numbers encodes numbers of 32 bits.
func numbers(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}
