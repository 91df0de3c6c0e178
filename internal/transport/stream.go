package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/usercode"
)

// watchdog cancels an attempt that takes too long. Unlike a deadline it can be stopped: a stream may take any time as
// long as it goes on arriving.
type watchdog struct {
	cancel  context.CancelFunc
	timer   *time.Timer
	expired atomic.Bool
}

// guard starts the time limit of an attempt.
func (w *watchdog) guard(ctx context.Context, d time.Duration) context.Context {
	ctx, w.cancel = context.WithCancel(ctx)
	w.timer = time.AfterFunc(d, func() {
		w.expired.Store(true)
		w.end()
	})
	return ctx
}

// end cancels the attempt in the goroutine of a timer. Package context then calls the caller's context, which may be
// the user's and panic. The attempt has been canceled before that.
func (w *watchdog) end() {
	usercode.Run(func() error {
		w.cancel()
		return nil
	}, func(error) {})
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel()
}

// Stream is the body of a success that is read as it arrives. The idle time counts only while a read waits for the
// service, not while the reader processes data.
//
// A timer that is set and stopped for every read costs more than the read. So one timer runs all the time. It checks
// how long the read under way has been waiting, and sets itself to the remaining time.
type Stream struct {
	body   io.ReadCloser
	dog    *watchdog
	idle   time.Duration
	bytes  int64
	err    error             // why the body could not be read further
	resp   *http.Response    // whose body it is, see endless
	closed func(bytes int64) // called once, at the end; may be nil
	once   sync.Once

	began time.Time
	since atomic.Int64 // when the read under way began, in nanoseconds from began; notReading: none is
	mu    sync.Mutex   // guards timer, which is nil once the stream is closed
	timer *time.Timer
}

const notReading = -1

func newStream(resp *http.Response, dog *watchdog, idle time.Duration) *Stream {
	s := &Stream{resp: resp, body: resp.Body, dog: dog, idle: idle, began: time.Now()}
	s.since.Store(notReading)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(idle, s.check)
	return s
}

// check ends the attempt if the service has sent nothing for the idle time.
func (s *Stream) check() {
	left := s.idle
	if since := s.since.Load(); since != notReading {
		left -= time.Since(s.began) - time.Duration(since)
	}
	if left <= 0 {
		s.dog.expired.Store(true)
		s.dog.end()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Reset(left)
	}
}

// Read reads the next bytes.
func (s *Stream) Read(p []byte) (int, error) {
	s.since.Store(int64(time.Since(s.began)))
	n, err := s.body.Read(p)
	s.since.Store(notReading)
	s.bytes += int64(n)
	if err != nil && err != io.EOF && s.dog.expired.Load() {
		err = &streamStalled{s.idle}
	}
	if err != io.EOF {
		s.err = err
	}
	return n, err
}

// failed returns why the stream could not be read to its end. It returns nil if the connection is not the reason.
// unusable is the error of the reader.
func (s *Stream) failed(unusable error) error {
	if s.err == nil && errors.Is(unusable, io.ErrUnexpectedEOF) && endless(s.resp, s.bytes > 0) {
		return errCut
	}
	return s.err
}

// Close ends the stream. If the response was not read to its end, the connection cannot be used again and is closed.
func (s *Stream) Close() {
	s.once.Do(func() {
		s.closeBody()
		if s.closed != nil {
			s.closed(s.bytes)
		}
	})
}

// closeBody closes the body. It also ends the attempt, even if a body of the user's panics.
func (s *Stream) closeBody() {
	defer s.dog.stop()
	s.mu.Lock()
	s.timer.Stop()
	s.timer = nil
	s.mu.Unlock()
	_ = s.body.Close()
}

// streamStalled is a response that stopped arriving.
type streamStalled struct{ after time.Duration }

func (e *streamStalled) Error() string { return fmt.Sprintf("nothing arrived for %v", e.after) }
func (e *streamStalled) Timeout() bool { return true }
