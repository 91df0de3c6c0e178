package redislimit

import (
	"context"
	"sync"
	"time"
)

// askEvery is how often Redis is asked while it is out of reach: by one caller, when there is one.
const askEvery = time.Second

// share is what a process may use while Redis is out of reach. A nil share never rules.
type share struct {
	interval time.Duration
	turn     chan struct{} // holds who waits for the next permit; the others queue for it, first come first served

	mu    sync.Mutex
	out   bool      // Redis is out of reach
	askAt time.Time // when to ask it again
	free  time.Time // the next permit
}

func newShare(interval time.Duration) *share {
	return &share{interval: interval, turn: make(chan struct{}, 1)}
}

// rules tells whether permits come from here now.
func (s *share) rules() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out
}

// wait blocks until there is a permit, or until the caller should ask Redis again: because it is there, or because it
// is his turn to try.
func (s *share) wait(ctx context.Context) (again bool, err error) {
	if err := ended(ctx); err != nil {
		return false, err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	for {
		permit, ask := s.look()
		if permit <= 0 || ask <= 0 {
			return permit > 0, nil
		}
		if deadline, ok := ctx.Deadline(); ok && permit > time.Until(deadline) {
			return false, tooLate(permit)
		}
		if err := sleep(ctx, min(permit, ask)); err != nil {
			return false, err
		}
	}
}

// look tells how long until the next permit and the next question to Redis. What is due is taken: the question first,
// as Redis knows better.
func (s *share) look() (permit, ask time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.out {
		return 1, 0
	}
	if ask = s.askAt.Sub(now); ask <= 0 {
		s.askAt = now.Add(askEvery)
		return 1, 0
	}
	if permit = s.free.Sub(now); permit <= 0 {
		s.free = now.Add(s.interval)
	}
	return permit, ask
}

// takeOver begins when Redis has not answered.
func (s *share) takeOver() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out, s.askAt = true, time.Now().Add(askEvery)
}

// retire ends it: Redis has answered.
func (s *share) retire() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = false
}

// granted counts a permit, of Redis too: the share begins where Redis left off, so that processes that took turns there
// go on taking turns.
func (s *share) granted() {
	if s != nil {
		s.hold(s.interval)
	}
}

// hold gives no permit for d from now on.
func (s *share) hold(d time.Duration) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := time.Now().Add(d); until.After(s.free) {
		s.free = until
	}
}
