package redisqueue

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// Options configures a [Queue]. A zero field selects its default. Processes with a different Prefix, Action or Wait
// have separate queues, which share only the permits.
type Options struct {
	Prefix string                  // prefix of all keys in Redis; default "webdelivery:queue"
	Action webdelivery.PurgeAction // action of all purges; default ActionPurge
	Wait   bool                    // whether purges wait for their transactions to end, not only to be accepted

	MaxURIs      int // maximum number of URIs per request and per call; default 10,000
	MaxBodyBytes int // maximum bytes of URIs per request and per call; default 4 MiB. A single URI may be longer
	MaxPending   int // approximate maximum number of calls in Redis; above it, calls get [ErrFull]; default 1,000,000

	// Lease is how long a process may be silent before others send its calls, and Redis before callers fail. From 1 s to
	// 1 h; default 10 s.
	Lease time.Duration
	// Keep is how long a call may wait to be sent, and Redis keeps results of Enqueue and an unused queue; at least 6
	// leases. From 1 min to 30 days; default 1 h.
	Keep time.Duration
}

// withDefaults returns the options with their defaults, or a *webdelivery.ValidationError.
func (o Options) withDefaults(rdb redis.UniversalClient, client *webdelivery.Client) (Options, error) {
	var bad []error
	refuse := func(wrong bool, field, format string, args ...any) {
		if wrong {
			bad = append(bad, &webdelivery.ValidationError{Field: field, Reason: fmt.Sprintf(format, args...)})
		}
	}
	refuse(rdb == nil, "rdb", "is nil")
	refuse(client == nil, "client", "is nil")
	refuse(client != nil && client.PurgeLimiter() == nil, "client",
		"has no limiter that the processes share; create it with webdelivery.WithPurgeLimiter and a limiter of package redislimit")
	refuse(o.MaxURIs < 0, "Options.MaxURIs", "%d is below 0", o.MaxURIs)
	refuse(o.MaxBodyBytes < 0, "Options.MaxBodyBytes", "%d is below 0", o.MaxBodyBytes)
	refuse(o.MaxPending < 0, "Options.MaxPending", "%d is below 0", o.MaxPending)
	refuse(o.Lease != 0 && (o.Lease < time.Second || o.Lease > time.Hour), "Options.Lease", "%v is not between 1s and 1h", o.Lease)
	refuse(o.Keep != 0 && (o.Keep < time.Minute || o.Keep > longest), "Options.Keep", "%v is not between 1m and 30 days", o.Keep)
	o.Prefix, o.Action = cmp.Or(o.Prefix, "webdelivery:queue"), cmp.Or(o.Action, webdelivery.ActionPurge) // NewQueue checks it
	o.MaxURIs, o.MaxBodyBytes, o.MaxPending = cmp.Or(o.MaxURIs, 10_000), cmp.Or(o.MaxBodyBytes, 4<<20), cmp.Or(o.MaxPending, 1_000_000)
	o.Lease = cmp.Or(o.Lease, 10*time.Second)
	o.Keep = max(cmp.Or(o.Keep, time.Hour), 6*o.Lease)
	return o, errors.Join(bad...)
}
