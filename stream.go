package webdelivery

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// watchdog cancels an attempt that takes too long. Unlike a deadline it can be fed: a reply that is read as it arrives
// may take as long as it likes, as long as it goes on arriving.
type watchdog struct {
	cancel  context.CancelFunc
	timer   *time.Timer
	expired atomic.Bool
}

// guard begins the time of an attempt.
func guard(ctx context.Context, d time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watchdog{cancel: cancel}
	w.timer = time.AfterFunc(d, func() {
		w.expired.Store(true)
		cancel()
	})
	return ctx, w
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel()
}

// stream is the body of a reply that is read as it arrives. The watchdog runs while a read waits for the service, not
// while the reader is busy with what it has.
type stream struct {
	body   io.ReadCloser
	dog    *watchdog
	idle   time.Duration
	bytes  int64
	err    error             // why the body could not be read on
	closed func(bytes int64) // told once, at the end
	once   sync.Once
}

// Read reads on, or gives up on a service that sends nothing for the idle time.
func (s *stream) Read(p []byte) (int, error) {
	s.dog.timer.Reset(s.idle)
	n, err := s.body.Read(p)
	s.dog.timer.Stop()
	s.bytes += int64(n)
	if err != nil && err != io.EOF && s.dog.expired.Load() {
		err = &streamStalled{s.idle}
	}
	if err != io.EOF {
		s.err = err
	}
	return n, err
}

// close ends the stream. A connection whose reply was not read to its end cannot be used again and is closed.
func (s *stream) close() {
	s.once.Do(func() {
		_ = s.body.Close()
		s.dog.stop()
		s.closed(s.bytes)
	})
}

// streamStalled is a reply that stopped arriving.
type streamStalled struct{ after time.Duration }

func (e *streamStalled) Error() string { return fmt.Sprintf("nothing arrived for %v", e.after) }
func (e *streamStalled) Timeout() bool { return true }
