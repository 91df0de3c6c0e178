package redislimit

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxInterval keeps all products of an interval, also that of FallbackLocal, far from an overflow.
const maxInterval = time.Hour

// Option changes how a [Limiter] works. If an option is invalid, every method of the Limiter returns an [*OptionError].
type Option func(*settings) error

type settings struct {
	interval  time.Duration
	prefix    string
	processes int // 0: fail closed
}

// OptionError says that an argument of [New] is invalid. No permit was given, and nothing was sent.
type OptionError struct {
	Option string // name of the option or argument
	Reason string // what is wrong with it
}

// Error names the option and the reason on one line.
func (e *OptionError) Error() string { return "redislimit: " + e.Option + " " + e.Reason }

// WithInterval sets the average time between two permits: each of the two slots is free again 2 x d after its purge has
// arrived. A d below a microsecond, or with a fraction of one, is rounded up. Default: 525 ms, so that a slot is free
// after the second in which the service counts, plus a margin of 50 ms. With less than 500 ms, purges exceed the limit
// of the service. A d above an hour is invalid.
//
// All processes of one budget should use the same interval: each permit uses that of its own process.
func WithInterval(d time.Duration) Option {
	return func(s *settings) error {
		if d <= 0 || d > maxInterval {
			return &OptionError{"WithInterval", fmt.Sprintf("%v is not between a microsecond and %v", d, maxInterval)}
		}
		s.interval = max(d, time.Microsecond)
		if rest := s.interval % time.Microsecond; rest != 0 {
			s.interval += time.Microsecond - rest
		}
		return nil
	}
}

// WithKeyPrefix sets the first part of the key, before the customer. Default "webdelivery:purge". If several services,
// such as staging and production, share a Redis and have customers of the same name, use one prefix for each service.
func WithKeyPrefix(prefix string) Option {
	return func(s *settings) error {
		if prefix == "" {
			return &OptionError{"WithKeyPrefix", "is empty"}
		}
		s.prefix = prefix
		return nil
	}
}

// FallbackLocal lets each process continue alone while Redis is down, with a permit every interval times processes. This
// is its share of the budget if processes (1 to 10,000) is the number of processes. The first permit comes one such time
// after the last permit that the process got from Redis. Default: no permit without Redis.
//
// The first caller, and from then on one caller per second, asks Redis. If Redis answers, it takes over at once, and gives
// no permit until the fallback purges of this process are over. While Redis does not answer within its second, a caller
// with a near deadline may get the error of its context.
//
// All shares together keep the average rate. But each process counts only its own departures, so three purges may
// arrive within a second, and the service may reject one.
func FallbackLocal(processes int) Option {
	return func(s *settings) error {
		if processes < 1 || processes > 10_000 {
			return &OptionError{"FallbackLocal", fmt.Sprintf("%d is not between 1 and 10,000", processes)}
		}
		s.processes = processes
		return nil
	}
}

// apply applies the options in order, and returns the first error.
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
