package transport

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Stream is the body of a success that is read as it arrives. The idle timeout runs only while a read waits for the
// service, not while the caller processes data.
type Stream struct {
	body     io.ReadCloser
	watchdog *watchdog
	idle     time.Duration
	bytes    int64
	err      error             // why reading stopped, except io.EOF
	closed   func(bytes int64) // called once, at the end; may be nil
	once     sync.Once

	began time.Time
	since atomic.Int64 // start of the current read, in nanoseconds after began, or notReading
}

const notReading = -1

// begin makes the watchdog enforce the idle timeout instead of the attempt's.
func (s *Stream) begin(body io.ReadCloser, w *watchdog, idle time.Duration) {
	s.body, s.watchdog, s.idle, s.began = body, w, idle, time.Now()
	s.since.Store(notReading)
	w.stream.Store(s)
	w.timer.Reset(idle)
}

// stalls reports whether a read has waited for the idle timeout.
func (s *Stream) stalls() bool {
	since := s.since.Load()
	return since != notReading && time.Since(s.began)-time.Duration(since) >= s.idle
}

// Read reads the next bytes.
func (s *Stream) Read(p []byte) (int, error) {
	s.since.Store(int64(time.Since(s.began)))
	s.watchdog.timer.Reset(s.idle)
	n, err := s.body.Read(p)
	s.since.Store(notReading)
	s.bytes += int64(n)
	if err == nil || err == io.EOF {
		return n, err
	}
	if s.err = err; s.watchdog.expired.Load() {
		s.err = timeoutError(fmt.Sprintf("nothing arrived for %v", s.idle))
	}
	return n, s.err
}

// Close ends the stream. If the response was not read to its end, the connection is closed and not reused.
func (s *Stream) Close() {
	s.once.Do(func() {
		_ = s.body.Close()
		s.watchdog.stop()
		if s.closed != nil {
			s.closed(s.bytes)
		}
	})
}
