package redisqueue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

func (q *Queue) send() {
	for {
		select {
		case <-q.work:
		case <-q.ctx.Done():
			return
		}
		for sleep(q.ctx, linger); q.turn(); {
			q.request()
		}
	}
}

// turn waits until this process may request a permit. Only one process at a time may, once per spacing, so that each
// request takes what has come meanwhile, and a process that searches for refused URIs gets every other permit. It
// returns false if there is nothing to send, because an unused permit would keep others waiting.
func (q *Queue) turn() bool {
	for q.ctx.Err() == nil {
		if sleep(q.ctx, time.Until(time.UnixMilli(q.rest.Load()))); !q.ready() {
			return false
		}
		pipe := q.rdb.Pipeline()
		mine, life := pipe.SetNX(q.ctx, q.keys+"turn", q.process, turnFor), pipe.PTTL(q.ctx, q.keys+"turn")
		if err := exec(q.ctx, pipe); err != nil || mine.Val() { // a full Redis refuses the key: permits alone must do
			return !q.note(err) && q.ctx.Err() == nil
		}
		sleep(q.ctx, min(max(0, life.Val()), spacing/3)+mathrand.N(again/5))
	}
	return false
}

// ready reports whether there is an entry that no process has read, or whose process has been silent for a lease. It
// also renews the lifetime of the stream and reads the clock of Redis. If Redis does not respond, or would refuse a
// command that ends a taken call, which keeps others waiting, ready returns false, and tend tries again.
func (q *Queue) ready() bool {
	pipe := q.rdb.Pipeline()
	all, taken := pipe.XLen(q.ctx, q.calls), pipe.XPending(q.ctx, q.calls, group)
	stale := redis.XPendingExtArgs{Stream: q.calls, Group: group, Idle: q.options.Lease, Start: "-", End: "+", Count: 1}
	silent := pipe.XPendingExt(q.ctx, &stale)
	pipe.PExpire(q.ctx, q.calls, q.options.Keep)
	clock := pipe.XAdd(q.ctx, &redis.XAddArgs{Stream: q.keys + "clock", MaxLen: 1, Values: []string{"", ""}})
	pipe.PExpire(q.ctx, q.keys+"clock", time.Millisecond)
	none := "0-1" // no entry has this ID
	pipe.XClaimJustID(q.ctx, &redis.XClaimArgs{Stream: q.calls, Group: group, Consumer: group, Messages: []string{none}})
	pipe.XAck(q.ctx, q.calls, group, none)
	pipe.XDel(q.ctx, q.calls, none)
	pipe.PTTL(q.ctx, q.calls) // turn needs it
	err := exec(q.ctx, pipe)
	if redis.HasErrorPrefix(err, noGroup) && all.Val() > 0 { // the queue is new, or Redis has lost its data
		if err = redisError(q.rdb.XGroupCreate(q.ctx, q.calls, group, "0").Err()); !refused(err) {
			err = nil // another process may have created it
		}
	}
	if err != nil && !redis.HasErrorPrefix(err, noGroup) && !redis.IsOOMError(err) {
		q.note(err)
		return false
	}
	if clock.Err() == nil {
		q.ahead.Add(-q.age(clock.Val()).Milliseconds())
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if errors.Is(q.trouble, ErrRedis) {
		q.trouble = nil
	}
	unread := all.Val()
	if p := taken.Val(); p != nil {
		unread -= p.Count
	}
	return unread > 0 || len(silent.Val()) > 0 || len(q.backlog) > 0
}

// request waits for a permit, and sends what is queued by then. It returns once the entries are taken from Redis.
func (q *Queue) request() {
	began := time.Now()
	taken, begun := context.WithCancel(q.ctx)
	q.all.Go(func() {
		defer begun()
		var entries []entry
		ended := make(chan entry, atOnce)
		q.all.Go(func() { q.settle(ended) })
		defer close(ended)
		take := func(context.Context) (calls [][]webdelivery.PurgeURI, _ error) {
			defer begun()
			entries = q.take() // what is taken is settled, even if the request has ended
			for _, e := range entries {
				calls = append(calls, e.uris)
			}
			return calls, nil
		}
		err := q.local.PurgeFrom(q.ctx, take, func(i int, r webdelivery.PurgeResult) {
			ended <- q.judge(entries[i], result{r.Receipts, r.Err})
		})
		if err == nil || q.ctx.Err() != nil {
			return
		}
		if errors.As(err, new(*webdelivery.Error)) { // the service refuses this process, which counts as a try
			_, _ = take(q.ctx)
			for _, e := range entries {
				ended <- q.judge(e, result{err: failed(e.uris, err, webdelivery.OutcomeUnknown)})
			}
		}
		q.note(err)
		sleep(q.ctx, spacing)
	})
	<-taken.Done()
	if took := time.Since(began); took < turnFor { // otherwise the key may belong to another process
		q.rdb.PExpire(q.ctx, q.keys+"turn", max(time.Millisecond, spacing-took))
	}
}

// entry is a call in the stream.
type entry struct {
	id, reply, payload string                 // in the stream; process/number or, for Enqueue, /id; the URIs in JSON
	first              string                 // the ID when it was first added, which tells its age; "" if it is new
	tries              int                    // how many processes could not purge it
	uris               []webdelivery.PurgeURI // nil if it is unreadable
	result             *result                // nil as long as a process is to try it
}

func (e *entry) in(stream string) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: stream, Values: []string{"r", e.reply, "u", e.payload, "t", strconv.Itoa(e.tries), "a", e.first}}
}

func (q *Queue) read(m redis.XMessage) (e entry) {
	tries, _ := m.Values["t"].(string)
	first, _ := m.Values["a"].(string) // older releases do not write it
	e.tries, _ = strconv.Atoi(tries)
	e.id, e.reply, e.payload, e.first = m.ID, fmt.Sprint(m.Values["r"]), fmt.Sprint(m.Values["u"]), cmp.Or(first, m.ID)
	err := json.Unmarshal([]byte(e.payload), &e.uris)
	if cmp.Or(err, webdelivery.PurgeRequest{Action: q.options.Action, URIs: e.uris}.Validate()) != nil {
		e.uris = nil
	}
	return e
}

// sift returns the entries that may be sent, and ends the others. Their outcome is unknown even if no process has read
// them: Redis may have been restored to a time before they were sent.
func (q *Queue) sift(found []entry) []entry {
	var bad []entry
	good := slices.DeleteFunc(found, func(e entry) bool {
		why := errors.New("redisqueue: unreadable call in Redis")
		if e.uris != nil {
			if q.age(e.first) <= q.options.Keep {
				return false
			}
			why = fmt.Errorf("redisqueue: not sent any more after waiting for longer than Options.Keep, %v; "+
				"purge again", q.options.Keep)
		}
		e.result = &result{err: failed(e.uris, why, webdelivery.OutcomeUnknown)}
		bad = append(bad, e)
		return true
	})
	if len(bad) > 0 {
		q.all.Go(func() { q.store(bad) })
	}
	return good
}

// take returns the entries for a request that has its permit. It fetches more until enough do not fit.
func (q *Queue) take() []entry {
	within, cancel := context.WithTimeout(q.ctx, 2*forAWord)
	defer cancel()
	q.note(nil)
	found := q.sift(q.backlog)
	taken, left := q.choose(found)
	for count := atFirst; len(left) < atFirst; {
		more := q.fetch(within, count)
		if len(more) == 0 {
			break
		}
		found = append(found, q.sift(more)...)
		if taken, left = q.choose(found); len(left) == 0 {
			count = min(2*count, atOnce)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.backlog = left; len(left) > 0 {
		q.passed = (q.passed + 1) % shortTurn
	}
	return taken
}

// choose divides entries into those for the next request and the others: the oldest goes in any case, and then the next
// oldest that still fit. Now and then the shortest come first, so that they need not wait for all long ones.
func (q *Queue) choose(found []entry) (taken, left []entry) {
	order, uris, bytes := found, 0, 0
	if q.passed == shortTurn-1 {
		order = slices.SortedStableFunc(slices.Values(found), func(a, b entry) int { return len(a.uris) - len(b.uris) })
	}
	in := map[string]bool{} // IDs of taken entries
	for _, e := range order {
		u, b := uris+len(e.uris), bytes+len(e.payload)
		if len(taken) == 0 || u <= q.options.MaxURIs && b <= q.options.MaxBodyBytes {
			taken, in[e.id], uris, bytes = append(taken, e), true, u, b
		}
	}
	return taken, slices.DeleteFunc(slices.Clone(found), func(e entry) bool { return in[e.id] })
}

// fetch takes up to count entries of silent processes, and as many that no process has read. This process then holds
// them until their results are stored.
func (q *Queue) fetch(ctx context.Context, count int) (found []entry) {
	pipe := q.rdb.Pipeline()
	silent := pipe.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: q.calls, Group: group, Consumer: group, MinIdle: q.options.Lease, Start: "0", Count: int64(count),
	})
	unread := pipe.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: group, Consumer: group, Streams: []string{q.calls, ">"}, Count: int64(count),
		Block: -1, // 0 would block forever
	})
	q.note(exec(ctx, pipe))
	messages, _ := silent.Val() // also if the other command failed
	for _, s := range unread.Val() {
		messages = append(messages, s.Messages...)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range messages {
		if _, mine := q.held[m.ID]; mine {
			continue // this process was silent for a lease, and has claimed its own entry
		}
		q.held[m.ID] = struct{}{}
		found = append(found, q.read(m))
	}
	return found
}

// settle stores the results of a request as they arrive.
func (q *Queue) settle(ended <-chan entry) {
	for first := range ended {
		some := []entry{first}
		for len(some) < atOnce && len(ended) > 0 {
			some = append(some, <-ended)
		}
		q.store(some)
	}
}

// judge sets the result of an entry if the service has decided about each of its URIs. If not, this process rests, and
// others try the entry, up to mostTries. Of what the service has not refused alone, the outcome is unknown: a process
// that died may have purged it.
func (q *Queue) judge(e entry, r result) entry {
	var unable error
	if failure, ok := errors.AsType[*webdelivery.QueueError](r.err); ok {
		for i, f := range failure.Failures {
			if errors.Is(f.Err, webdelivery.ErrBadRequest) {
				continue
			}
			failure.Failures[i].Outcome, failure.Outcome = webdelivery.OutcomeUnknown, webdelivery.OutcomeUnknown
			undecided := errors.As(f.Err, new(*webdelivery.UndecidedError))
			if !undecided && !errors.As(f.Err, new(*webdelivery.TransactionError)) { // a 401 or a lost connection
				unable = f.Err
			}
		}
	}
	if unable != nil && !q.note(unable) {
		q.rest.Store(time.Now().Add(q.options.Lease / 2).UnixMilli())
	}
	if e.tries++; unable == nil || e.tries >= mostTries {
		e.result = &r
	}
	return e
}

// store writes results and deletes their entries. At the memory limit of Redis only the deletion succeeds, which makes
// room for the results of the next attempt. Writing a result twice does no harm.
func (q *Queue) store(some []entry) {
	ids := make([]string, len(some))
	for i, e := range some {
		ids[i] = e.id
		if number, own := strings.CutPrefix(e.reply, q.process+"/"); own && e.result != nil {
			q.end(number, *e.result)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), finishFor)
	defer cancel()
	for pause := again / 2; ctx.Err() == nil; pause = min(2*pause, time.Second) {
		pipe := q.rdb.Pipeline()
		q.write(ctx, pipe, some)
		pipe.XAck(ctx, q.calls, group, ids...)
		pipe.XDel(ctx, q.calls, ids...)
		err := exec(ctx, pipe)
		if err == nil || q.ctx.Err() != nil || q.note(err) {
			break
		}
		sleep(q.ctx, pause)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range ids {
		delete(q.held, id)
	}
}

// write adds results for other processes to a pipeline. It adds entries that another process is to try as new ones.
func (q *Queue) write(ctx context.Context, pipe redis.Pipeliner, some []entry) {
	lives := map[string]time.Duration{} // of streams
	for _, e := range some {
		switch process, number, _ := strings.Cut(e.reply, "/"); {
		case e.result == nil:
			pipe.XAdd(ctx, e.in(q.calls))
			lives[q.calls] = q.options.Keep
		case process == "":
			pipe.Set(ctx, q.resultOf(number), e.result.encode(""), q.options.Keep)
		case process != q.process:
			stream := q.resultsOf(process)
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []string{"r", e.result.encode(number)}})
			lives[stream] = time.Minute + 3*q.options.Lease
		}
	}
	for stream, life := range lives {
		pipe.PExpire(ctx, stream, life)
	}
}

// tend renews the claim on what this process has taken, and looks for calls that no process sends.
func (q *Queue) tend() {
	for sleep(q.ctx, q.options.Lease/3); q.ctx.Err() == nil; sleep(q.ctx, q.options.Lease/3) {
		q.mu.Lock()
		ids := slices.Collect(maps.Keys(q.held))
		q.mu.Unlock()
		for some := range slices.Chunk(ids, atOnce) {
			q.rdb.XClaimJustID(q.ctx, &redis.XClaimArgs{Stream: q.calls, Group: group, Consumer: group, Messages: some})
		}
		if q.ready() {
			q.wake()
		}
	}
}
