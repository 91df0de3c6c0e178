package redislimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/webdelivery/webdelivery-go"
)

const (
	sendWithin   = 10 * time.Second       // from asking Redis to the start of the request
	arriveWithin = 5 * time.Second        // from the start to the arrival; see webdelivery.Permit
	replyWithin  = 3 * time.Second        // without a reply for this long, Redis counts as unreachable
	askAgain     = 100 * time.Millisecond // after a failure, or for a reply
	maxPause     = time.Minute
	shyness      = 40 * time.Millisecond // how long a new caller lets others go first
	ageless      = 2 * time.Minute       // a caller that has waited this long lets nobody go first
	punctual     = 2 * time.Millisecond  // Redis counts whole milliseconds
)

// Limiter gives purge permits within a limit that all processes of a customer share. It implements
// [webdelivery.SharedLimiter]. Create it with [New]. It is safe for concurrent use and need not be closed.
type Limiter struct {
	settings

	rdb     redis.UniversalClient
	budgets sync.Map // customer to *budget
}

// budget is what a process knows of a customer's limit.
type budget struct {
	*Limiter

	keys    []string                // two slots, the turn, the last acceptance
	head    chan struct{}           // held by the caller that asks Redis; the process's other callers queue for it
	failed  *UnavailableError       // error of the last caller that gave up; guarded by head
	waiting atomic.Pointer[waiting] // nil if no caller holds head
	paused  atomic.Int64            // when this process last called Pause, in Unix milliseconds
	resume  atomic.Int64            // when its last pause ends
}

// waiting describes what the caller that holds head is waiting for.
type waiting struct {
	next time.Time         // when it asks Redis next; in the past while it waits for the reply
	down *UnavailableError // why the last attempt got no reply; nil if it got one
}

// UnavailableError means that Redis cannot be reached or refuses a command. No permit was given.
type UnavailableError struct {
	text    string
	cause   error
	at      time.Time
	refused bool // a retry cannot help
}

// Error returns the address of Redis and the cause.
func (e *UnavailableError) Error() string { return e.text }

// Unwrap returns the error of go-redis.
func (e *UnavailableError) Unwrap() error { return e.cause }

// ClientOptions returns the recommended go-redis options, for use with redis.NewUniversalClient. One address means a
// single server, several mean a cluster. Set the user name, password, TLS and Sentinel in the returned value.
func ClientOptions(addrs ...string) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs: addrs, ContextTimeoutEnabled: true,
		MaxRetries: -1, DialerRetries: 1, // the limiter itself retries
		DialTimeout: replyWithin, ReadTimeout: replyWithin, WriteTimeout: replyWithin,
		// Redis 7.0 does not have the commands that these send, so no ACL can allow them.
		DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// Option configures a [Limiter].
type Option func(*settings) error

type settings struct {
	interval time.Duration
	prefix   string
	clients  int // from FallbackLocal; 0 means no permits without Redis
}

// WithInterval sets the average time between two permits, from 10 ms to an hour. All processes of a fleet must use the
// same interval. Default: 525 ms, the service's limit with a margin of 5 %.
func WithInterval(d time.Duration) Option {
	return func(s *settings) error {
		s.interval = d
		return check(d >= 10*time.Millisecond && d <= time.Hour, "WithInterval", "%v is not between 10ms and 1h", d)
	}
}

// WithKeyPrefix sets the prefix of all keys in Redis. Default: "webdelivery:purge".
func WithKeyPrefix(prefix string) Option {
	return func(s *settings) error {
		s.prefix = prefix
		return check(prefix != "", "WithKeyPrefix", "is empty")
	}
}

// FallbackLocal lets clients purge while Redis is unreachable or refuses commands. Each client then sends at most one
// purge in the given number of intervals. If that is the number of clients in the fleet, they keep the average rate
// together, but three purges may arrive within one second. Default: no permits without Redis.
func FallbackLocal(clients int) Option {
	return func(s *settings) error {
		s.clients = clients
		return check(clients > 0 && clients <= 10_000, "FallbackLocal", "%d is not between 1 and 10,000", clients)
	}
}

func check(ok bool, field, format string, args ...any) error {
	if ok {
		return nil
	}
	return &webdelivery.ValidationError{Field: "redislimit." + field, Reason: fmt.Sprintf(format, args...)}
}

// New returns a limiter for webdelivery.WithSharedLimiter. Each client draws on its own customer's limit. The
// caller keeps ownership of rdb and closes it. New sends nothing to Redis.
func New(rdb redis.UniversalClient, opts ...Option) (*Limiter, error) {
	if err := check(rdb != nil, "New", "rdb is nil"); err != nil {
		return nil, err
	}
	l := &Limiter{rdb: rdb, settings: settings{interval: 525 * time.Millisecond, prefix: "webdelivery:purge"}}
	for _, opt := range opts {
		if err := opt(&l.settings); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *Limiter) budget(customer string) *budget {
	tag := l.prefix + ":{" + customer + "}:" // the braces keep the keys on one node of a cluster
	value, _ := l.budgets.LoadOrStore(customer, &budget{
		Limiter: l, keys: []string{tag + "1", tag + "2", tag + "turn", tag + "accepted"}, head: make(chan struct{}, 1),
	})
	return value.(*budget)
}

// Acquire blocks until a purge may be sent, and returns a permit for it, which expires after 10 s. If none can be had
// before the deadline of ctx, Acquire immediately returns an error that matches context.DeadlineExceeded. If Redis does
// not respond for 3 s, or refuses a command for a reason that will not pass, it returns an [*UnavailableError]. A program
// that purges by other means calls Done of the permit itself, and names its customers as it likes.
func (l *Limiter) Acquire(ctx context.Context, customer string) (webdelivery.Permit, error) {
	return l.budget(customer).acquire(ctx)
}

// Pause withholds permits from all processes for d, up to a minute, unless the service has accepted a purge of any
// process since this one last called Pause: then the refusals are about one purge. It never shortens an earlier pause.
// If Redis does not respond or refuses the command, Pause returns an [*UnavailableError].
func (l *Limiter) Pause(ctx context.Context, customer string, d time.Duration) error {
	return l.budget(customer).pause(ctx, d)
}

// Waiting returns why callers of Acquire have no permit yet, or nil if none is waiting.
func (l *Limiter) Waiting(customer string) error { return l.budget(customer).why() }

func (l *budget) acquire(ctx context.Context) (none webdelivery.Permit, err error) {
	began := time.Now()
	select {
	case l.head <- struct{}{}:
		defer func() { l.waiting.Store(nil); <-l.head }()
	case <-ctx.Done():
		return none, l.gaveUp(ctx.Err())
	}
	if l.failed != nil && l.failed.at.After(began) { // failed while this caller was queued
		return none, l.failed
	}
	// After a pause, those who waited before come before the purge that caused it.
	if err := l.sleep(ctx, reply{wait: time.Until(time.UnixMilli(l.resume.Load())) + 2*shyness}); err != nil {
		return none, err
	}
	for heard := time.Now(); ; {
		token, sent := rand.Text(), time.Now()
		a := l.ask(ctx, token)
		switch {
		case a.taken:
			return l.permit(sent.Add(sendWithin), token), nil
		case a == (reply{}):
			return none, l.gaveUp(ctx.Err())
		case a.down == nil: // the next attempt should reach Redis just when a slot becomes free
			heard = time.Now()
			a.wait += punctual + delay(time.Since(began)) - time.Since(sent)
		case l.clients > 0:
			return none, l.sleep(ctx, reply{wait: time.Duration(l.clients) * l.interval})
		case a.down.refused || time.Since(heard) >= replyWithin:
			l.failed = a.down
			return none, a.down
		}
		if err := l.sleep(ctx, a); err != nil {
			return none, err
		}
	}
}

// delay returns how long a caller lets others go first. The delay shrinks as the caller waits, so callers of all
// processes get permits roughly in order of arrival, without a queue in Redis.
func delay(waited time.Duration) time.Duration {
	left := 1 - math.Log1p(waited.Seconds())/math.Log1p(ageless.Seconds())
	return time.Duration(max(0, left) * float64(shyness))
}

// sleep waits for a.wait. It returns an error when ctx ends, or at once if the deadline of ctx comes first.
func (l *budget) sleep(ctx context.Context, a reply) error {
	a.wait = max(a.wait, 0)
	l.waiting.Store(&waiting{time.Now().Add(a.wait), a.down})
	if until, ends := ctx.Deadline(); ends && time.Until(until) < a.wait {
		return l.gaveUp(context.DeadlineExceeded)
	}
	select {
	case <-time.After(a.wait):
		return nil
	case <-ctx.Done():
		return l.gaveUp(ctx.Err())
	}
}

func (l *budget) why() error {
	w := l.waiting.Load()
	switch {
	case w == nil:
		return nil
	case w.down != nil:
		return w.down
	case time.Now().Before(w.next):
		return fmt.Errorf("redislimit: the next permit comes in %v or later", time.Until(w.next).Round(time.Millisecond))
	default:
		return l.unavailable(fmt.Errorf("no reply for %v", time.Since(w.next).Round(time.Millisecond)))
	}
}

func (l *budget) gaveUp(ended error) error {
	if why := l.why(); why != nil {
		return fmt.Errorf("%w: %w", why, ended)
	}
	return ended
}

func (l *Limiter) unavailable(cause error) *UnavailableError {
	var addr any
	switch c := l.rdb.(type) {
	case *redis.Client:
		addr = c.Options().Addr
	case *redis.ClusterClient:
		addr = c.Options().Addrs
	}
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		cause = errors.New(cause.Error()) // it is about the attempt's context, not the caller's
	}
	reply, replied := errors.AsType[redis.Error](cause)
	what := map[bool]string{true: "refuses a command", false: "is unreachable"}[replied]
	text := fmt.Sprintf("redislimit: Redis at %v %s: %v", addr, what, cause)
	return &UnavailableError{text, cause, time.Now(), replied && refusal.MatchString(reply.Error())}
}

// refusal matches replies that a retry does not change. Others, such as LOADING or READONLY, pass.
var refusal = regexp.MustCompile(`^(ERR )?(NOPERM|NOAUTH|WRONGPASS|WRONGTYPE|unknown|Invalid command) `)

// reply is the result of asking Redis for a slot. The zero value means that the context has ended.
type reply struct {
	taken bool              // a slot was taken
	wait  time.Duration     // otherwise, how long to wait before asking again
	down  *UnavailableError // why there was no reply
}

// ask asks Redis for a slot. If ctx ends first, or if the reply that gave a slot may have been lost, ask frees it.
func (l *budget) ask(ctx context.Context, token string) reply {
	replies := make(chan reply)
	go func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyWithin)
		defer cancel()
		hold, turn := 2*l.interval, l.interval-l.interval/20 // a slot stays taken for hold after its purge has arrived
		ms, err := takeScript.Run(within, l.rdb, l.keys, token, (sendWithin + arriveWithin + hold).Milliseconds(), turn.Milliseconds(), maxPause.Milliseconds(),
			hold.Milliseconds()).Int64Slice()
		a := reply{wait: askAgain}
		if err != nil {
			a.down = l.unavailable(err)
		} else { // even if a purge arrives just now, its slot is free after hold
			a = reply{taken: ms[0] == 1, wait: max(min(time.Duration(ms[1])*time.Millisecond, hold), time.Duration(ms[2])*time.Millisecond)}
		}
		select {
		case replies <- a:
			if err == nil {
				return
			}
		case <-ctx.Done():
		}
		l.end(ctx, token, time.Time{}, 0)
	}()
	select {
	case a := <-replies:
		return a
	case <-ctx.Done():
		return reply{}
	}
}

// permit returns the permit for a token. Its Done waits for Redis, so that a program may exit after its last purge.
func (l *budget) permit(expires time.Time, token string) webdelivery.Permit {
	return webdelivery.Permit{Expires: expires, Done: func(ctx context.Context, arrived time.Time, status int) {
		ended := make(chan struct{})
		go func() { l.end(ctx, token, arrived, status); close(ended) }()
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}}
}

// end makes the slot of a token free hold after its purge arrived, or at once if arrived is zero. If Redis cannot be
// told, the slot expires by itself once the permit can no longer be in use.
func (l *budget) end(ctx context.Context, token string, arrived time.Time, status int) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyWithin)
	defer cancel()
	for within.Err() == nil {
		life := time.Duration(0)
		if !arrived.IsZero() {
			life = max(0, 2*l.interval+time.Until(arrived))
		}
		accepted := status > 0 && status < http.StatusInternalServerError && status != http.StatusTooManyRequests
		err := endScript.Run(within, l.rdb, l.keys, token, life.Milliseconds(), maxPause.Milliseconds(), accepted).Err()
		if err == nil || l.unavailable(err).refused {
			return
		}
		time.Sleep(askAgain)
	}
}

func (l *budget) pause(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, replyWithin)
	defer cancel()
	d, now := min(d, maxPause), time.Now()
	remembered := (maxPause - askAgain).Milliseconds() - (now.UnixMilli() - l.paused.Swap(now.UnixMilli()))
	paused, err := pauseScript.Run(within, l.rdb, l.keys, d.Milliseconds(), remembered).Bool()
	if err != nil {
		return l.unavailable(err)
	}
	if paused {
		l.resume.Store(time.Now().Add(d).UnixMilli())
	}
	return nil
}

// permitted begins each script. It refuses a user that lacks any permission: one that could take slots and not free them
// would slow down all processes. The errors of redis.call do not name the command in Redis 7.0.
const permitted = `#!lua flags=allow-oom
for _, command in ipairs({'get', 'set', 'pttl', 'pexpire'}) do
  if not redis.acl_check_cmd(command, KEYS[1], '1') then
    return redis.error_reply("NOPERM this user has no permissions to run the '" .. command .. "' command")
  end
end`

// takeScript takes a free slot for a token. KEYS are the two slots and the turn. ARGV are the token and, in ms, the
// lifetimes of a taken slot, of the turn, of the longest pause and of a slot whose purge has arrived. It returns whether
// it took a slot, and in how many ms a slot becomes free and the turn ends. One permit per turn spaces the slots evenly:
// otherwise two purges would leave together, and none in the following second.
var takeScript = redis.NewScript(permitted + `
local function left(key, usual, marked)
  local ms, longest = redis.call('PTTL', key), redis.call('GET', key) == '' and marked or usual
  if ms ~= -1 and ms <= longest + 1000 then return math.max(ms, 0) end
  redis.call('PEXPIRE', key, longest) -- the clock of Redis was set back
  return tonumber(longest)
end
local first, second = left(KEYS[1], ARGV[2], ARGV[5]), left(KEYS[2], ARGV[2], ARGV[5])
local turn = left(KEYS[3], ARGV[3], ARGV[4])
if turn > 0 or first > 0 and second > 0 then return {0, math.min(first, second), turn} end
redis.call('SET', KEYS[first == 0 and 1 or 2], ARGV[1], 'PX', ARGV[2])
redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[3])
return {1, 0, 0}`)

// endScript empties the slots of a token, and makes them expire in ARGV[2] ms; 0 frees them at once. If the service has
// accepted the purge, ARGV[4] is 1, which is remembered for ARGV[3] ms.
var endScript = redis.NewScript(permitted + `
for i = 1, 2 do
  if redis.call('GET', KEYS[i]) == ARGV[1] then
    redis.call('SET', KEYS[i], '', 'KEEPTTL')
    redis.call('PEXPIRE', KEYS[i], ARGV[2])
  end
end
if ARGV[4] == '1' then redis.call('SET', KEYS[4], '', 'PX', ARGV[3]) end
return 0`)

// pauseScript makes the turn last for ARGV[1] ms, and empties it, unless it already lasts longer, or an acceptance is
// remembered for more than ARGV[2] ms from now. That is below 0 if the process has not called Pause for a minute.
var pauseScript = redis.NewScript(permitted + `
if tonumber(ARGV[2]) > 0 and redis.call('PTTL', KEYS[4]) > tonumber(ARGV[2]) then return 0 end
if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[1]) then redis.call('SET', KEYS[3], '', 'PX', ARGV[1]) end
return 1`)
