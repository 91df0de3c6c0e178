package transport

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

const (
	maxErrorBody = 64 << 10  // bytes of the body that an error keeps
	maxTrusted   = 4 << 20   // a larger Content-Length does not allocate memory in advance
	maxDrained   = 256 << 10 // further bytes read so that the connection can be reused
)

// readWhole reads the body of a success and closes it. A body longer than the limit is an error. The limit counts the
// bytes after decompression.
func readWhole(resp *http.Response, limit int64) ([]byte, error) {
	if resp.Body == http.NoBody { // a HEAD has a Content-Length but no body
		return nil, nil
	}
	defer func() { _ = resp.Body.Close() }()
	from := limitedBody{from: resp.Body, limit: limit}
	var body bytes.Buffer
	body.Grow(int(min(max(resp.ContentLength, 0), limit, maxTrusted)) + bytes.MinRead) // ReadFrom wants so many to find the end
	if _, err := body.ReadFrom(&from); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// readRefusal returns the beginning of the body of a refusal and closes it. It reads some more bytes, so that the
// connection can be reused. A body that is cut or slow is not an error, since the status has arrived, but nothing of it
// is kept: it may end within an echoed secret, and a part of a secret cannot be recognized.
func readRefusal(resp *http.Response) []byte {
	defer func() { _ = resp.Body.Close() }()
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(io.LimitReader(resp.Body, maxErrorBody+redact.Margin)); err != nil {
		return nil
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
	return buf.Bytes()
}

// limitedBody reads a body up to a limit, in bytes after decompression.
type limitedBody struct {
	from        io.Reader
	limit, size int64
	keep        int // how many bytes of the beginning to keep for errors
	beginning   []byte
	err         error // sticky error other than io.EOF
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if left := b.limit - b.size; left < int64(len(p)) {
		p = p[:left+1] // one byte more than allowed
	}
	n, err := b.from.Read(p)
	b.size += int64(n)
	if b.size > b.limit {
		err = fmt.Errorf("%w: more than %d bytes", ErrResponseTooLarge, b.limit)
	}
	if room := b.keep + redact.Margin - len(b.beginning); b.keep > 0 && room > 0 {
		b.beginning = append(b.beginning, p[:min(n, room)]...)
	}
	if err != io.EOF { //nolint:errorlint // a Reader's io.EOF is never wrapped
		b.err = err
	}
	return n, err
}

// Stream is the body of a success that is read as it arrives. The idle timeout runs only while a read waits for the
// service, not while the caller processes data.
type Stream struct {
	body    io.ReadCloser
	attempt *outgoing
	idle    time.Duration
	bytes   int64
	err     error             // why reading stopped, except io.EOF
	closed  func(bytes int64) // called once, at the end; may be nil
	once    sync.Once
}

// Read reads the next bytes.
func (s *Stream) Read(p []byte) (int, error) {
	s.attempt.timer.Reset(s.idle)
	n, err := s.body.Read(p)
	s.attempt.timer.Stop()
	s.bytes += int64(n)
	if err == nil || err == io.EOF {
		return n, err
	}
	if s.err = err; s.attempt.expired.Load() {
		s.err = timeout("nothing arrived for %v", s.idle)
	}
	return n, s.err
}

// Close ends the stream. If the response was not read to its end, the connection is closed and not reused.
func (s *Stream) Close() {
	s.once.Do(func() {
		_ = s.body.Close()
		s.attempt.stop()
		if s.closed != nil {
			s.closed(s.bytes)
		}
	})
}

// Broken returns why a stream could not be read to its end. If it returns nil, neither the connection nor the caller's
// context ended the stream, so its content is wrong.
func (s *Stream) Broken() error { return cmp.Or(s.attempt.ctx.Err(), s.err) }
