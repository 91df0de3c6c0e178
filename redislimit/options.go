package redislimit

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// Option changes how a [Limiter] works. One that makes no sense is an [*OptionError] of its every Wait and Pause.
type Option func(*settings) error

type settings struct {
	interval  time.Duration
	prefix    string
	processes int // 0: fail closed
}

// OptionError says that [New] was given something that makes no sense. No permit was given; nothing was sent.
type OptionError struct {
	Option string // name of the option or argument
	Reason string // what is wrong with it
}

// Error names the option and the reason on one line.
func (e *OptionError) Error() string { return "redislimit: " + e.Option + " " + e.Reason }

// WithInterval sets the time between two permits, at least a microsecond; what is finer than that is rounded up.
// Default 550 ms. Processes of one budget should use the same: each permit keeps the distance that its own process asks
// for.
func WithInterval(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 {
			return &OptionError{"WithInterval", fmt.Sprintf("%v is not above 0", d)}
		}
		s.interval = max(d, time.Microsecond)
		if rest := s.interval % time.Microsecond; rest != 0 {
			s.interval += time.Microsecond - rest
		}
		return nil
	}
}

// WithKeyPrefix sets what stands before the customer in the key. Default "webdelivery:purge". Use one for each service
// when several of them, such as staging and production, have customers of the same name and share a Redis.
func WithKeyPrefix(prefix string) Option {
	return func(s *settings) error {
		if prefix == "" {
			return &OptionError{"WithKeyPrefix", "is empty"}
		}
		s.prefix = prefix
		return nil
	}
}

// FallbackLocal lets each process go on by itself while Redis is out of reach, with a permit every interval times
// processes: its share, when processes (1 to 10,000) is how many there are. The first comes a share after the last
// permit that Redis gave to the process. Default: without Redis there is no permit.
//
// The first to ask, and one caller a second from then on, asks Redis, which takes over again as soon as it answers. A
// caller with little time left may meet his deadline while Redis is silent for its second.
//
// Together the shares keep the rate, but nothing keeps them apart: three purges of different processes may meet within
// a second, and be answered 429.
func FallbackLocal(processes int) Option {
	return func(s *settings) error {
		if processes < 1 || processes > 10_000 {
			return &OptionError{"FallbackLocal", fmt.Sprintf("%d is not between 1 and 10,000", processes)}
		}
		s.processes = processes
		return nil
	}
}

// apply takes the options in order, and tells what is wrong first.
func (s *settings) apply(rdb redis.UniversalClient, customer string, opts []Option) error {
	if rdb == nil {
		return &OptionError{"rdb", "is nil"}
	}
	if customer == "" {
		return &OptionError{"customer", "is empty"}
	}
	for _, opt := range opts {
		if opt == nil {
			return &OptionError{"opts", "holds a nil option"}
		}
		if err := opt(s); err != nil {
			return err
		}
	}
	return nil
}
