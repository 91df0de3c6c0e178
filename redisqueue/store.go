package redisqueue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// answerWithin is how long Redis may take for one script. It is longer than a failover or a stopped machine usually is,
// because a late answer is better than an unknown outcome.
const answerWithin = 5 * time.Second

// store is the queue in Redis, as one process sees it.
type store struct {
	rdb     redis.UniversalClient
	base    string   // start of all keys
	keys    []string // of all scripts
	process string   // random
	options Options
}

// errNoAnswer means that Redis has not answered in time.
var errNoAnswer = fmt.Errorf("no answer within %v", answerWithin)

func newStore(rdb redis.UniversalClient, client *webdelivery.Client, o Options, process string) *store {
	// Processes with other purges have other keys, whatever their names are.
	sum := sha256.Sum256([]byte(client.URL()))
	wait := ""
	if o.Wait {
		wait = ":wait"
	}
	tag := fmt.Sprintf("%s:%s:%s%s", url.QueryEscape(o.Name), hex.EncodeToString(sum[:4]), strings.ToLower(string(o.Action)), wait)
	base := o.Prefix + ":{" + tag + "}:"
	return &store{
		rdb: rdb, base: base, keys: []string{base + "state", base + "calls", base + "leases"},
		process: process, options: o,
	}
}

// run runs a script. It returns when ctx ends, and within answerWithin, whatever the options of go-redis are. If the
// script ends after that, run calls late with its answer, if late is not nil.
//
// The error is an *UnavailableError or that of ctx. unsent means that the script had no effect.
func (s *store) run(ctx context.Context, late func(any), script script, args ...any) (value any, unsent bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, true, err
	}
	type answer struct {
		value any
		err   error
	}
	background, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*answerWithin)
	answers := make(chan answer, 1)
	var left atomic.Bool // set by the one that comes first: the answer, or the end of the wait for it
	go func() {
		defer cancel()
		var a answer
		a.value, a.err = s.once(background, script, args)
		if alone := left.Swap(true); alone && a.err == nil && late != nil {
			late(a.value)
		}
		answers <- a
	}()
	timer := time.NewTimer(answerWithin)
	defer timer.Stop()
	a, answered := answer{err: errNoAnswer}, false
	select {
	case a = <-answers:
		answered = true
	case <-ctx.Done():
		a.err = ctx.Err()
	case <-timer.C:
	}
	if !answered && left.Swap(true) {
		a = <-answers // it came at the same time
	}
	switch {
	case a.err == nil:
		return a.value, false, nil
	case ctx.Err() != nil:
		return nil, false, ctx.Err()
	default:
		return nil, neverSent(a.err), unavailable(a.err)
	}
}

// once runs a script, and never again after it may have had an effect, whatever the options of go-redis are.
func (s *store) once(ctx context.Context, script script, args []any) (any, error) {
	run := func(command, text string) (any, error) {
		all := []any{command, text, len(s.keys)}
		for _, key := range s.keys {
			all = append(all, key)
		}
		all = append(all, s.options.Keep.Milliseconds(), s.process)
		cmd := unrepeated{redis.NewCmd(ctx, append(all, args...)...)}
		_ = s.rdb.Process(ctx, cmd) // the command has its error
		return cmd.Result()
	}
	value, err := run("evalsha", script.hash)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return run("eval", script.text)
	}
	return value, err
}

// unrepeated is a command that go-redis does not retry.
type unrepeated struct{ *redis.Cmd }

// NoRetry is true.
func (unrepeated) NoRetry() bool { return true }

// entry is a call as it is stored in Redis.
type entry struct {
	id      string // of the entry; "" before it is stored
	process string // that wrote it
	number  string // of the call in its process
	payload string // its URIs as JSON
	count   int    // its URIs
	kind    string
	doubt   bool // an earlier batch with the call may have been carried out
}

// Kinds of entries.
const (
	waits = "wait" // a caller waits for the result
	keeps = "keep" // Redis keeps the result
)

// enqueue stores a call. accept means that the process may get the turn. full means that the queue has no room for the
// call. turn means that this process has to acquire a permit.
func (s *store) enqueue(ctx context.Context, e *entry, accept bool) (full, turn, unsent bool, err error) {
	lasts := int64(0)
	if accept {
		lasts = micros(s.options.turn())
	}
	late := func(value any) { //nolint:contextcheck // the caller has left, so the call should leave, too
		if values, ok := value.([]any); ok && len(values) == 2 {
			if id, _ := values[0].(string); id != "" {
				_, _ = s.leave(context.Background(), []string{id})
			}
		}
	}
	if e.kind == keeps {
		late = nil
	}
	value, unsent, err := s.run(ctx, late, enqueueScript, lasts, s.options.MaxPending,
		version, e.number, e.count, len(e.payload), e.payload, e.kind)
	if err != nil {
		return false, false, unsent, err
	}
	values, ok := value.([]any)
	if !ok || len(values) != 2 {
		return false, false, false, malformed(value)
	}
	e.id, _ = values[0].(string)
	return e.id == "", values[1] == int64(1), false, nil
}

// take makes a batch of the calls that wait. more means that this process must take another batch. If take fails, the
// batch may have calls.
func (s *store) take(ctx context.Context, batch string) (entries []entry, more bool, err error) {
	late := func(any) { _ = s.free(context.Background(), batch, true) } //nolint:contextcheck // the request has ended
	uris, bytes := any(0), any(0)
	for {
		value, _, err := s.run(ctx, late, takeScript, micros(s.options.turn()), batch, micros(s.options.Lease), version,
			s.options.MaxURIs, s.options.MaxBodyBytes, uris, bytes, perScript)
		if err != nil {
			return nil, false, err
		}
		values, ok := value.([]any)
		if !ok || len(values) != 4 {
			return nil, false, malformed(value)
		}
		calls, ok := values[3].([]any)
		if !ok {
			return nil, false, malformed(value)
		}
		for _, call := range calls {
			fields := texts(call)
			if len(fields) != 6 {
				return nil, false, malformed(call)
			}
			entries = append(entries, entry{
				id: fields[0], process: fields[1], number: fields[2], payload: fields[3], kind: fields[4], doubt: fields[5] == "1",
			})
		}
		if uris, bytes = values[1], values[2]; values[0] != int64(takenPart) {
			return entries, values[0] == int64(takenFull), nil
		}
	}
}

// finish ends calls of a batch. results has an id and a message for each. It returns how many of them the batch held.
func (s *store) finish(ctx context.Context, batch string, results []string) (held int, err error) {
	value, _, err := s.run(ctx, nil, finishScript, append([]any{batch}, anys(results)...)...)
	ended, _ := value.(int64)
	return int(ended), err
}

// blame records that this process could not send calls: their ids, each with 1 if the service has certainly not carried
// it out. It returns for each how many processes could not, and how often.
func (s *store) blame(ctx context.Context, batch string, calls []any) ([]int64, error) {
	value, _, err := s.run(ctx, nil, blameScript, append([]any{batch}, calls...)...)
	return numbers(value), err
}

// free returns a batch ("" for none) and the turn to the other processes. unsent means that nothing was sent for it.
func (s *store) free(ctx context.Context, batch string, unsent bool) error {
	_, _, err := s.run(ctx, nil, freeScript, batch, flag(unsent))
	return err
}

// renew says that this process lives. keepTurn renews its turn as well.
func (s *store) renew(ctx context.Context, keepTurn bool, batches []string) error {
	turn := int64(0)
	if keepTurn {
		turn = micros(s.options.turn())
	}
	_, _, err := s.run(ctx, nil, renewScript, append([]any{turn, micros(s.options.Lease)}, anys(batches)...)...)
	return err
}

// leave removes calls that no process has taken. The result says for each whether it was removed.
func (s *store) leave(ctx context.Context, ids []string) ([]int64, error) {
	value, _, err := s.run(ctx, nil, leaveScript, anys(ids)...)
	return numbers(value), err
}

// look returns whether this process must acquire a permit, and when to ask again: 0 means that nothing is under way.
// accept means that the process may get the turn. Redis sends a message about those of ids that it does not know.
func (s *store) look(ctx context.Context, accept bool, ids []string) (turn bool, again time.Duration, err error) {
	args := append([]any{micros(s.options.turn()), version, flag(accept)}, anys(ids)...)
	value, _, err := s.run(ctx, nil, lookScript, args...)
	if err != nil {
		return false, 0, err
	}
	values, ok := value.([]any)
	if !ok || len(values) != 2 {
		return false, 0, malformed(value)
	}
	text, _ := values[1].(string)
	ends, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return false, 0, malformed(value)
	}
	return values[0] == int64(1), max(0, time.Duration(ends)*time.Microsecond), nil
}

// count adds to the statistics of the fleet and returns them. failures is "" if they stay as they are. unsent means that
// it has added nothing.
func (s *store) count(ctx context.Context, requests, accepted int, failures string, why string) (stats webdelivery.QueueStats, unsent bool, err error) {
	value, unsent, err := s.run(ctx, nil, countScript, requests, accepted, failures, why)
	if err != nil {
		return stats, unsent, err
	}
	values, ok := value.([]any)
	if !ok || len(values) != 6 {
		return stats, false, malformed(value)
	}
	all := numbers([]any{values[0], values[2], values[3], values[4]})
	age, _ := strconv.ParseInt(fmt.Sprint(values[1]), 10, 64)
	stats = webdelivery.QueueStats{
		Pending: int(max(0, all[0])), OldestAge: time.Duration(age) * time.Microsecond,
		Requests: int(all[1]), Accepted: int(all[2]), Failures: int(all[3]),
	}
	if text, _ := values[5].(string); text != "" && stats.Failures > 0 {
		stats.Err = &RemoteError{Message: text}
	}
	return stats, false, nil
}

// result returns the state of a call of Enqueue: ended, pending or unknown, and its message if it has ended.
func (s *store) result(ctx context.Context, id string) (state, text string, err error) {
	value, _, err := s.run(ctx, nil, resultScript, id)
	if err != nil {
		return "", "", err
	}
	fields := texts(value)
	if len(fields) != 2 {
		return "", "", malformed(value)
	}
	return fields[0], fields[1], nil
}

// inbox is the key of the messages to this process.
func (s *store) inbox() string { return s.base + "to:" + s.process }

// wake ends a receive of this process.
func (s *store) wake(ctx context.Context) error {
	_, _, err := s.run(ctx, nil, wakeScript)
	return err
}

// receive waits up to block for messages, and returns the oldest ones. They stay in Redis until forget.
func (s *store) receive(ctx context.Context, block time.Duration) ([]redis.XMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, block+time.Second)
	defer cancel()
	streams, err := s.rdb.XRead(ctx, &redis.XReadArgs{Streams: []string{s.inbox(), "0"}, Count: 500, Block: block}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var messages []redis.XMessage
	for _, stream := range streams {
		messages = append(messages, stream.Messages...)
	}
	return messages, nil
}

// forget removes the messages up to the one with id.
func (s *store) forget(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return s.rdb.XTrimMinID(ctx, s.inbox(), after(id)).Err()
}

// after returns the id that follows an id of a stream.
func after(id string) string {
	at, number, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return id
	}
	return at + "-" + strconv.FormatUint(n+1, 10)
}

func malformed(value any) error {
	return unavailable(fmt.Errorf("malformed answer %.200q", fmt.Sprint(value)))
}

func micros(d time.Duration) int64 { return d.Microseconds() }

func anys(all []string) []any {
	values := make([]any, len(all))
	for i, one := range all {
		values[i] = one
	}
	return values
}

func texts(value any) (all []string) {
	values, _ := value.([]any)
	for _, v := range values {
		text, ok := v.(string)
		if !ok {
			return nil
		}
		all = append(all, text)
	}
	return all
}

func numbers(value any) (all []int64) {
	values, _ := value.([]any)
	for _, v := range values {
		n, _ := v.(int64)
		all = append(all, n)
	}
	return all
}
