package redisqueue

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// Options are the options of a queue. A zero field means its default. Processes whose Name, Prefix, Action or Wait
// differ have different queues, which share only the permits. The other fields may differ within a queue.
type Options struct {
	Name   string                  // name of the queue in Redis, for example the customer; required
	Prefix string                  // prefix of its keys; default "webdelivery:queue"
	Action webdelivery.PurgeAction // action of all purges; default ActionPurge
	Wait   bool                    // if true, a purge ends when its transaction has ended, not when the service has accepted it

	MaxURIs      int // most URIs per request, and per call; default 10,000
	MaxBodyBytes int // most bytes per request, and per call; default 4 MiB. A single URI may be longer
	// MaxPending limits the URIs of the whole fleet that have not ended; default 1,000,000. If they are that many,
	// Purge and Enqueue wait for room. It also limits the URIs of one call.
	MaxPending int
	// RefuseWhenFull makes Purge and Enqueue return [ErrFull] instead of waiting for room.
	RefuseWhenFull bool

	// Lease is how long a process may be silent before others send the URIs that it has taken; default 10 s, at least
	// 1 s. It is also how long Redis may be down before waiting callers fail.
	Lease time.Duration
	// Keep is how long Redis keeps the results of Enqueue, and a queue that no process uses; default 1 h, at least 1
	// min.
	Keep time.Duration
	// FallbackLocal makes a process purge alone while Redis is down, through its own PurgeQueue. The limiter of the
	// client decides about the permits: give it redislimit.FallbackLocal, too. By default Purge and Enqueue return an
	// [*UnavailableError].
	FallbackLocal bool

	// OnStats is called after each request of this process, as described at webdelivery.QueueOptions. It gets the
	// statistics of the whole fleet, see [Queue.Stats]. While Redis is down, it gets the last known ones, and Err is
	// the error of the request or an [*UnavailableError].
	OnStats func(webdelivery.QueueStats)
}

// withDefaults returns options with their defaults, or a *webdelivery.ValidationError.
func withDefaults(o Options, rdb redis.UniversalClient, client *webdelivery.Client) (Options, error) {
	var bad []error
	refuse := func(field, format string, args ...any) {
		bad = append(bad, invalid(field, format, args...))
	}
	if rdb == nil {
		refuse("rdb", "is nil")
	}
	switch {
	case client == nil || client.Purge == nil:
		refuse("client", "is nil or a zero value; create a client with webdelivery.NewClient")
	case client.PurgeLimiter() == nil:
		refuse("client", "has no limiter that the processes share; create it with webdelivery.WithPurgeLimiter and the limiter of redislimit.New")
	}
	if o.Name == "" {
		refuse("Options.Name", "is empty; use the name of the customer, for example")
	}
	for field, number := range map[string]int{"MaxURIs": o.MaxURIs, "MaxBodyBytes": o.MaxBodyBytes, "MaxPending": o.MaxPending} {
		if number < 0 {
			refuse("Options."+field, "%d is below 0; use 0 for the default", number)
		}
	}
	if o.Action != "" && o.Action != webdelivery.ActionPurge && o.Action != webdelivery.ActionExpire {
		refuse("Options.Action", "%q is neither PURGE nor EXPIRE", string(o.Action))
	}
	if o.Lease != 0 && (o.Lease < time.Second || o.Lease > time.Hour) {
		refuse("Options.Lease", "%v is not between 1s and 1h", o.Lease)
	}
	if o.Keep != 0 && (o.Keep < time.Minute || o.Keep > 30*24*time.Hour) {
		refuse("Options.Keep", "%v is not between 1m and 30 days", o.Keep)
	}
	o.Prefix = cmp.Or(o.Prefix, "webdelivery:queue")
	o.Action = cmp.Or(o.Action, webdelivery.ActionPurge)
	o.MaxURIs = cmp.Or(o.MaxURIs, 10_000)
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 4<<20)
	o.MaxPending = cmp.Or(o.MaxPending, 1_000_000)
	o.Lease = cmp.Or(o.Lease, 10*time.Second)
	o.Keep = max(cmp.Or(o.Keep, time.Hour), 6*o.Lease)
	return o, errors.Join(bad...)
}

// turn is how long a process may be silent before another one acquires the permits.
func (o Options) turn() time.Duration { return o.Lease / 2 }

func invalid(field, format string, args ...any) error {
	return &webdelivery.ValidationError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
