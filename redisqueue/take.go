package redisqueue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// entry is a call in the stream.
type entry struct {
	id, reply, payload string                 // in the stream; process/number or, for Enqueue, /id; the URIs in JSON
	first              string                 // the ID when it was first added, which tells its age; "" if it is new
	tries              int                    // how many processes could not purge it
	uris               []webdelivery.PurgeURI // nil if it is unreadable
	result             *result                // nil as long as a process is to try it
}

func (e *entry) in(stream string) *redis.XAddArgs {
	values := []string{"r", e.reply, "u", e.payload, "t", strconv.Itoa(e.tries), "a", e.first}
	return &redis.XAddArgs{Stream: stream, Values: values}
}

// read reads an entry from the stream.
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

// take returns the entries for a request that has its permit. It stops fetching more once enough do not fit.
func (q *Queue) take() (taken []entry, err error) {
	within, cancel := context.WithTimeout(q.ctx, 2*forAWord)
	defer cancel()
	q.mu.Lock()
	q.trouble = nil
	found := q.backlog
	q.mu.Unlock()
	found = q.sift(found)
	taken, left := q.choose(found)
	for count := atFirst; len(left) < atFirst; {
		var more []entry
		if more, err = q.fetch(within, count); len(more) == 0 {
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
	if len(taken) > 0 {
		err = nil
	}
	return taken, err
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

// fetch takes up to count entries of silent processes, and up to count that no process has read. They are held by this
// process until their results are stored.
func (q *Queue) fetch(ctx context.Context, count int) (found []entry, err error) {
	pipe := q.rdb.Pipeline()
	silent := pipe.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: q.calls, Group: group, Consumer: group, MinIdle: q.options.Lease, Start: "0", Count: int64(count),
	})
	unread := pipe.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: group, Consumer: group, Streams: []string{q.calls, ">"}, Count: int64(count), Block: -1, // 0 would block forever
	})
	if err = exec(ctx, pipe); isNoGroup(err) { // the queue is new, or Redis has lost its data
		err = redisError(q.rdb.XGroupCreate(ctx, q.calls, group, "0").Err())
		if err == nil || redis.HasErrorPrefix(err, "BUSYGROUP") {
			return q.fetch(ctx, count)
		}
	}
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
	return found, err
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
