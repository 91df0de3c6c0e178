package redislimit

import (
	"context"
	"sync"
	"time"
)

// askEvery is how often one caller asks Redis while it is down.
const askEvery = time.Second

// share gives the permits of one process while Redis is down. A nil share never rules.
type share struct {
	interval time.Duration
	turn     chan struct{} // held by the caller that waits for the next permit; the others queue for it

	mu    sync.Mutex
	out   bool      // Redis is down
	askAt time.Time // when to ask it again
	free  time.Time // the next permit
}

func newShare(interval time.Duration) *share {
	return &share{interval: interval, turn: make(chan struct{}, 1)}
}

// rules returns whether permits come from the share now.
func (s *share) rules() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out
}

// wait blocks until there is a permit. It returns true if the caller should ask Redis instead: because Redis is back, or
// because it is time to try.
func (s *share) wait(ctx context.Context) (again bool, err error) {
	if err := ended(ctx); err != nil {
		return false, err
	}
	if permit, ask := s.ahead(); ask > 0 && beyond(ctx, permit) { // known already: do not queue behind others for it
		return false, tooLate(permit)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	for {
		permit, ask := s.due()
		if permit <= 0 || ask <= 0 {
			return permit > 0, nil
		}
		if beyond(ctx, permit) {
			return false, tooLate(permit)
		}
		if err := sleep(ctx, min(permit, ask)); err != nil {
			return false, err
		}
	}
}

// ahead returns how long it is until the next permit and until the next question to Redis. It takes neither.
func (s *share) ahead() (permit, ask time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.out {
		return 0, 0
	}
	return time.Until(s.free), time.Until(s.askAt)
}

// due returns how long it is until the next permit and until the next question to Redis, and takes the one that is due.
// If both are due, it takes the question.
func (s *share) due() (permit, ask time.Duration) {
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

// takeOver begins the share's turn: Redis has not answered.
func (s *share) takeOver() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out, s.askAt = true, time.Now().Add(askEvery)
}

// retire ends the share's turn: Redis has answered.
func (s *share) retire() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = false
}

// granted counts a permit, also one of Redis. Processes that took turns at Redis then continue to take turns.
func (s *share) granted() {
	if s != nil {
		s.hold(s.interval)
	}
}

// hold delays the next permit by at least d from now.
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
