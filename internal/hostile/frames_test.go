package hostile

import (
	"crypto/tls"
	"encoding/binary"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// More of HTTP/2 (RFC 9113, sections 6 and 6.5.2).
const (
	frameContinuation = 0x9

	settingMaxStreams    = 0x3
	settingWindow        = 0x4
	settingMaxHeaderList = 0x6

	codeNoError = 0x0
	codeCancel  = 0x8
)

// respond writes a complete response that is valid for each kind of call.
func (f *frames) respond(stream uint32) {
	f.send(frameHeaders, flagEndHeaders, stream, block("200"))
	f.send(frameData, flagEndStream, stream, []byte(rightForAll))
}

// rightForAll is both a task and the receipt of a purge (service document, sections 2.1 and 2.3).
const rightForAll = `{"id":"t-1","complete":true,"code":201,"transaction_id":1,"purge_response":{"transaction_status_uri":"/transactions/1"}}`

// overFrames calls answer for each complete request, in a new goroutine. Without a certificate, it uses no TLS.
func overFrames(certificate *tls.Certificate, settings []byte, answer func(f *frames, stream uint32)) func(net.Conn, int) {
	return func(conn net.Conn, _ int) {
		if certificate != nil {
			conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*certificate}, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
		}
		var all sync.WaitGroup
		defer all.Wait()
		serveFrames(conn, settings, func(*frames, uint32) {}, func(f *frames, stream uint32) {
			all.Go(func() { answer(f, stream) })
		})
	}
}

func setting(id uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, id), value)
}

// again writes a frame over and over, until the client disconnects.
func again(f *frames, kind byte, stream uint32, payload []byte) {
	for f.send(kind, 0, stream, payload) {
	}
}

// HTTP/2 that breaks off, never ends or is malformed: a read is retried, a write is not, and its outcome is unknown.
// The timeout of the attempt bounds what has no end.
func TestFramesThatAreNoResponse(t *testing.T) {
	t.Parallel()
	trusted := newAuthority()
	certificate := trusted.issue(nil)
	right := []byte(rightForAll)
	for name, answer := range map[string]func(f *frames, stream uint32){
		"CONTINUATION without end": func(f *frames, stream uint32) {
			f.send(frameHeaders, 0, stream, block("200"))
			again(f, frameContinuation, stream, []byte("\x00\x01a\x01b"))
		},
		"MiBs of header": func(f *frames, stream uint32) {
			f.send(frameHeaders, 0, stream, block("200"))
			large := []byte("\x00\x7f" + strings.Repeat("a", 127) + "\x7e" + strings.Repeat("b", 126))
			for n := 0; n < 20_000 && f.send(frameContinuation, 0, stream, large); n++ {
			}
			f.send(frameContinuation, flagEndHeaders, stream, nil)
			f.send(frameData, flagEndStream, stream, right)
		},
		"interim responses without end": func(f *frames, stream uint32) {
			for f.send(frameHeaders, flagEndHeaders, stream, []byte("\x08\x03103\x00\x01a\x01b")) {
			}
		},
		"empty DATA without end": func(f *frames, stream uint32) {
			f.send(frameHeaders, flagEndHeaders, stream, block("200"))
			again(f, frameData, stream, nil)
		},
		"RST_STREAM after the header": func(f *frames, stream uint32) {
			f.send(frameHeaders, flagEndHeaders, stream, block("200"))
			f.send(frameReset, 0, stream, numbers(codeNoError))
		},
		"RST_STREAM in the middle of the body": func(f *frames, stream uint32) {
			f.send(frameHeaders, flagEndHeaders, stream, block("200"))
			f.send(frameData, 0, stream, right[:10])
			f.send(frameReset, 0, stream, numbers(codeCancel))
		},
		"GOAWAY in the middle of the body, and the end": func(f *frames, stream uint32) {
			f.send(frameHeaders, flagEndHeaders, stream, block("200"))
			f.send(frameData, 0, stream, right[:10])
			f.send(frameGoAway, 0, 0, numbers(stream, codeNoError))
			_ = f.Close()
		},
		"more than content-length": func(f *frames, stream uint32) {
			f.send(frameHeaders, flagEndHeaders, stream, block("200", "content-length", "5"))
			f.send(frameData, flagEndStream, stream, right)
		},
		"less than content-length": func(f *frames, stream uint32) {
			f.send(frameHeaders, flagEndHeaders, stream, block("200", "content-length", "99999"))
			f.send(frameData, flagEndStream, stream, right)
		},
		"no status": func(f *frames, stream uint32) {
			f.send(frameHeaders, flagEndHeaders|flagEndStream, stream, []byte("\x00\x01a\x01b"))
		},
		"a frame that is too large": func(f *frames, stream uint32) { f.send(frameData, flagEndStream, stream, make([]byte, 1<<20)) },
		"101 without end":           func(f *frames, stream uint32) { f.send(frameHeaders, flagEndHeaders, stream, block("101")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := startRaw(t, overFrames(certificate, nil, answer))
			transport := trusted.transport(t)
			transport.MaxResponseHeaderBytes = 1 << 20
			c := client(t, "https://"+service.addr, few(name, transport)...)
			for _, k := range kinds {
				checkFailed(t, name, k.name, k.call(bounded(t), c))
			}
		})
	}
}

// A response that ends with its header has no body, whatever its Content-Type says. The SDK does not take it for a
// result. A write that needs no result has succeeded.
func TestHeadersThatEndTheStream(t *testing.T) {
	t.Parallel()
	trusted := newAuthority()
	certificate := trusted.issue(nil)
	service := startRaw(t, overFrames(certificate, nil, func(f *frames, stream uint32) {
		f.send(frameHeaders, flagEndHeaders|flagEndStream, stream, block("200"))
	}))
	transport := trusted.transport(t)
	c := client(t, "https://"+service.addr, quick(transport)...)
	require.ErrorIs(t, getTask(bounded(t), c), webdelivery.ErrBadResponse)
	err := submit(bounded(t), c)
	require.ErrorIs(t, err, webdelivery.ErrBadResponse)
	assert.Equal(t, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
	assert.NoError(t, addEntries(bounded(t), c))
}

// A window that never opens, and a service that accepts no stream: the timeout of the attempt bounds both. If the body
// could not be sent, the service may still have seen the header.
func TestWindowsThatStayShut(t *testing.T) {
	t.Parallel()
	trusted := newAuthority()
	certificate := trusted.issue(nil)
	for name, settings := range map[string][]byte{
		"window 0 without end": setting(settingWindow, 0), "window 1 without end": setting(settingWindow, 1), "header list 1, without end": setting(settingMaxHeaderList, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := startRaw(t, overFrames(certificate, settings, (*frames).respond))
			transport := trusted.transport(t)
			c := client(t, "https://"+service.addr, few(name, transport)...)
			if strings.HasPrefix(name, "window") {
				patient := client(t, "https://"+service.addr, quick(transport)...)
				require.NoError(t, getTask(bounded(t), patient), "what has no body needs no window")
			} else {
				_ = getTask(bounded(t), c) // may be sent before the settings arrive
			}
			for _, k := range kinds[1:] {
				err := k.call(bounded(t), c)
				require.Error(t, err, k.name)
				assert.NotEqual(t, webdelivery.OutcomeApplied, webdelivery.OutcomeOf(err), k.name)
			}
		})
	}
	t.Run("no streams", func(t *testing.T) {
		t.Parallel()
		service := startRaw(t, overFrames(certificate, setting(settingMaxStreams, 0), (*frames).respond))
		transport := trusted.transport(t)
		c := client(t, "https://"+service.addr, few("without end", transport)...)
		for _, k := range kinds {
			err := k.call(bounded(t), c)
			if err != nil {
				assert.NotEqual(t, webdelivery.OutcomeApplied, webdelivery.OutcomeOf(err), k.name)
			}
		}
		assert.LessOrEqual(t, service.accepted.Load(), int64(20), "five attempts, some with a second connection of net/http")
	})
}
