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
func http2Server(arrivals *record, certificate *tls.Certificate) func(net.Listener) {
	config := &tls.Config{Certificates: []tls.Certificate{*certificate}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
	return func(l net.Listener) {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answers := map[uint32]func(){}
			go serveFrames(tls.Server(conn, config), nil, func(f *frames, stream uint32) {
				if answer := arrivals.arriveIn(f, stream); answer != nil {
					answers[stream] = answer
				}
			}, func(_ *frames, stream uint32) {
				if answer := answers[stream]; answer != nil {
					go answer()
				}
			})
		}
	}
}

// arriveIn records the arrival of a request. An action that needs no complete request happens here; otherwise arriveIn
// returns the response, which waits for the end of the request.
func (r *record) arriveIn(f *frames, stream uint32) (answer func()) {
	arrived := time.Now()
	id, step := r.arrive()
	switch step.Action {
	case Refuse:
		f.send(frameReset, 0, stream, numbers(codeRefusedStream))
	case Reset:
		f.send(frameReset, 0, stream, numbers(codeProtocolError))
	case GoAway:
		f.send(frameGoAway, 0, 0, numbers(max(stream, 2)-2, 0))
	default:
		return func() {
			time.Sleep(time.Until(arrived.Add(step.After)))
			status, body := step.Action.response(id)
			f.send(frameHeaders, flagEndHeaders, stream, block(strconv.Itoa(status)))
			f.send(frameData, flagEndStream, stream, []byte(body))
		}
	}
	return nil
}

// frames is the server's side of an HTTP/2 connection, whose frames are written by hand.
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

// serveFrames reads frames until the client disconnects. It calls begins when the header of a request arrives, and
// complete at its end.
func serveFrames(conn net.Conn, settings []byte, begins, complete func(f *frames, stream uint32)) {
	defer conn.Close()
	f, r := &frames{Conn: conn}, bufio.NewReader(conn)
	if _, err := io.CopyN(io.Discard, r, int64(len(preface))); err != nil {
		return
	}
	f.send(frameSettings, 0, 0, settings)
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
			complete(f, stream)
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
