package transport

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Stream is the body of a success that is read as it arrives. The idle time counts only while a read waits for the
// service, not while the reader processes data.
type Stream struct {
	body     io.ReadCloser
	watchdog *watchdog
	idle     time.Duration
	bytes    int64
	err      error             // why the body could not be read further
	closed   func(bytes int64) // called once, at the end; may be nil
	once     sync.Once

	began time.Time
	since atomic.Int64 // when the read under way began, in nanoseconds from began; notReading: none is
}

const notReading = -1

// begin sets the watchdog on the idle time in place of the whole attempt.
func (s *Stream) begin(body io.ReadCloser, w *watchdog, idle time.Duration) {
	s.body, s.watchdog, s.idle, s.began = body, w, idle, time.Now()
	s.since.Store(notReading)
	w.stream.Store(s)
	w.timer.Reset(idle)
}

// stalls reports whether a read waits, and the service has sent nothing for the idle time.
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

// Close ends the stream. If the response was not read to its end, the connection cannot be used again and is closed.
func (s *Stream) Close() {
	s.once.Do(func() {
		_ = s.body.Close()
		s.watchdog.stop()
		if s.closed != nil {
			s.closed(s.bytes)
		}
	})
}
