package hostile

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// The frames of HTTP/2 (RFC 9113, section 6) that these servers read or write.
const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameReset        = 0x3
	frameSettings     = 0x4
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindowUpdate = 0x8
	frameContinuation = 0x9

	flagAck        = 0x1 // of SETTINGS and PING
	flagEndStream  = 0x1 // of DATA and HEADERS
	flagEndHeaders = 0x4

	codeNoError       = 0x0
	codeProtocolError = 0x1
	codeInternalError = 0x2
	codeRefusedStream = 0x7
	codeCancel        = 0x8

	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// frames is the server's side of an HTTP/2 connection, whose frames are written by hand. The server of net/http cannot
// do that: it never refuses or disowns a stream that it has read.
type frames struct {
	net.Conn
	write sync.Mutex
}

// send returns false if the client has disconnected.
func (f *frames) send(kind, flags byte, stream uint32, payload []byte) bool {
	head := numbers(uint32(len(payload))<<8|uint32(kind), 0, 0)[:9] //nolint:gosec // what these servers write is short
	head[4] = flags
	binary.BigEndian.PutUint32(head[5:], stream)
	f.write.Lock()
	defer f.write.Unlock()
	_, err := f.Write(append(head, payload...))
	return err == nil
}

// reset ends a stream.
func (f *frames) reset(stream, code uint32) { f.send(frameReset, 0, stream, numbers(code)) }

// goAway announces that streams after the last one are not processed.
func (f *frames) goAway(last uint32) { f.send(frameGoAway, 0, 0, numbers(last, codeNoError)) }

// respond writes a complete response.
func (f *frames) respond(stream uint32, status, body string) {
	f.send(frameHeaders, flagEndHeaders, stream, block(status))
	f.send(frameData, flagEndStream, stream, []byte(body))
}

// serveFrames reads frames until the client disconnects. It calls begins when the header of a request arrives, and
// complete in a new goroutine at its end.
func serveFrames(conn net.Conn, begins, complete func(f *frames, stream uint32)) {
	f, r := &frames{Conn: conn}, bufio.NewReader(conn)
	if _, err := io.CopyN(io.Discard, r, int64(len(preface))); err != nil {
		return
	}
	f.send(frameSettings, 0, 0, nil)
	var all sync.WaitGroup
	defer all.Wait()
	for {
		var head [9]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		payload := make([]byte, uint32(head[0])<<16|uint32(head[1])<<8|uint32(head[2]))
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])&^(1<<31)
		if kind == frameHeaders { // the head has arrived; the rest does not matter
			begins(f, stream)
		}
		if _, err := io.ReadFull(r, payload); err != nil {
			return
		}
		switch {
		case kind == frameSettings && flags&flagAck == 0:
			f.send(frameSettings, flagAck, 0, nil)
		case kind == framePing && flags&flagAck == 0:
			f.send(framePing, flagAck, 0, payload)
		case kind == frameData && len(payload) > 0:
			f.send(frameWindowUpdate, 0, 0, numbers(uint32(len(payload)))) //nolint:gosec // a frame is below 16 MiB
		}
		if (kind == frameData || kind == frameHeaders) && flags&flagEndStream != 0 {
			all.Go(func() { complete(f, stream) })
		}
	}
}

// block encodes a status and other header fields by HPACK (RFC 7541, section 6.2.2): literals without indexing, whose
// names are entries 8 (:status) and 31 (content-type) of the static table, then one with a name and a value.
func block(status string, field ...string) []byte {
	b := "\x08\x03" + status + "\x0f\x10\x10application/json"
	for i, text := range field {
		b += []string{"\x00", ""}[i] + string([]byte{byte(len(text))}) + text //nolint:gosec // what these servers write is short
	}
	return []byte(b)
}

// numbers encodes numbers of 32 bits.
func numbers(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}
