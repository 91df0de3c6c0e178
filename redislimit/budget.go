package redislimit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
)

// A budget is one hash in Redis. All instants are microseconds of Unix time on the clock of Redis: 16 digits, which a
// number of Lua (a double) holds exactly, and which must be written with %.0f, as Lua itself keeps 14.
//
//	free    the next free instant
//	resume  the end of the last pause
//	moved   by how much pauses have moved reservations, all of them together
//	born    when the hash was made: a reservation with another birth was made before Redis lost its data
//
// An instant is reserved as "at minus moved", so that one addition moves all who wait.
const readBudget = `
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local h = redis.call('HMGET', KEYS[1], 'free', 'resume', 'moved', 'born')
local free, resume = tonumber(h[1] or 0), tonumber(h[2] or 0)
local moved, born = tonumber(h[3] or 0), tonumber(h[4] or now)
local function keep()
  redis.call('HSET', KEYS[1], 'free', string.format('%.0f', free), 'resume', string.format('%.0f', resume),
    'moved', string.format('%.0f', moved), 'born', string.format('%.0f', born))
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.ceil((free - now) / 1000) + 1))
end
`

// reserveScript takes the interval, the longest wait (-1: any) and the reservation that the caller holds (0, 0: none),
// and answers {at minus moved, born, wait}; with born 0 nothing was reserved, as the wait would be too long.
//
// A reservation of which the caller remembers an interval too late is void: its place is taken by others.
var reserveScript = redis.NewScript(readBudget + `
local interval, longest = tonumber(ARGV[1]), tonumber(ARGV[2])
local at = math.max(ARGV[3] + moved, resume)
local held = tonumber(ARGV[4]) == born and now - at <= interval
if not held then at = math.max(now, free) end
local wait = math.max(0, at - now)
if longest >= 0 and wait > longest then return {0, 0, wait} end
if not held then
  free = at + interval
  keep()
  return {at - moved, born, wait}
end
return {tonumber(ARGV[3]), born, wait}
`)

// pauseScript takes how long. Time stands still for all who wait.
var pauseScript = redis.NewScript(readBudget + `
local to = now + ARGV[1]
if to > resume then
  local by = to - math.max(now, resume)
  moved, free, resume = moved + by, math.max(free + by, to), to
  keep()
end
return {1}
`)

// answerWithin is the time that one script has.
const answerWithin = time.Second

// UnavailableError says that there is no permit because Redis could not be asked: it is out of reach, silent for a
// second, refuses, or answers nonsense. Nothing may be sent.
type UnavailableError struct{ cause error }

// Error gives the cause on one line.
func (e *UnavailableError) Error() string {
	return fmt.Sprint("redislimit: no permit without Redis: ", e.cause)
}

// Unwrap gives the error of go-redis. One that would match the error of a context is there by its words only: it was
// not the caller's context that ended.
func (e *UnavailableError) Unwrap() error { return e.cause }

func unavailable(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, context.Canceled) {
		cause = errors.New(cause.Error())
	}
	return &UnavailableError{cause}
}

// budget runs the scripts.
type budget struct {
	rdb      redis.UniversalClient
	keys     []string // the one key
	interval time.Duration
}

// reservation is an instant of which the caller remembers; the zero value is none.
type reservation struct{ at, born int64 }

// reserve asks for a permit, or whether the one that is held still stands, and how long to wait for it. It returns no
// reservation when the wait would pass the caller's deadline.
func (b *budget) reserve(ctx context.Context, held reservation) (reservation, time.Duration, error) {
	longest := int64(-1)
	if deadline, ok := ctx.Deadline(); ok {
		longest = max(0, time.Until(deadline).Microseconds())
	}
	reply, err := b.run(ctx, reserveScript, b.interval.Microseconds(), longest, held.at, held.born)
	if err != nil {
		return reservation{}, 0, err
	}
	if len(reply) != 3 || reply[0] < 0 || reply[1] < 0 || reply[2] < 0 {
		return reservation{}, 0, unavailable(fmt.Errorf("it answers %d", reply))
	}
	wait := time.Duration(min(reply[2], math.MaxInt64/1000)) * time.Microsecond
	return reservation{at: reply[0], born: reply[1]}, wait, nil
}

func (b *budget) pause(ctx context.Context, d time.Duration) error {
	reply, err := b.run(ctx, pauseScript, (d-1).Microseconds()+1) // rounded up: d is above 0
	if err == nil && (len(reply) != 1 || reply[0] != 1) {
		err = unavailable(fmt.Errorf("it answers %d", reply))
	}
	return err
}

// run returns by the context and within a second, whatever go-redis is told to do: it looks at no context while it
// waits for a reply, or at its deadline only, so somebody else has to wait for it.
func (b *budget) run(ctx context.Context, script *redis.Script, args ...any) ([]int64, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	type answer struct {
		reply []int64
		err   error
	}
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		reply, err := script.Run(bounded, b.rdb, b.keys, args...).Int64Slice()
		answers <- answer{reply, err}
	}()
	var a answer
	select {
	case a = <-answers:
	case <-bounded.Done():
		a.err = fmt.Errorf("no answer within %v", answerWithin)
	}
	if a.err == nil {
		return a.reply, nil
	}
	if err := ended(ctx); err != nil {
		return nil, fmt.Errorf("redislimit: Redis has not answered: %w", err)
	}
	return nil, unavailable(a.err)
}

// ended is the error of a context that has ended; one whose deadline has passed has, even if its timer is late.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// tooLate refuses a wait that would pass the caller's deadline.
func tooLate(wait time.Duration) error {
	return fmt.Errorf("redislimit: the next permit comes in %v, after the deadline: %w", wait, context.DeadlineExceeded)
}
