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
	id, reply, payload string                 // the stream's ID; process/number for Purge or /id for Enqueue; the URIs in JSON
	first              string                 // the ID when it was first added, which tells its age; "" if it is new
	tries              int                    // how many processes could not purge it
	uris               []webdelivery.PurgeURI // nil if it is unreadable
}

func (e *entry) in(stream string) *redis.XAddArgs {
	return &redis.XAddArgs{Stream: stream, Values: []string{"r", e.reply, "u", e.payload, "t", strconv.Itoa(e.tries), "a", e.first}}
}

// read reads an entry from the stream.
func (q *Queue) read(m redis.XMessage) (e entry) {
	tries, _ := m.Values["t"].(string)
	first, _ := m.Values["a"].(string) // older releases do not write it
	e.tries, _ = strconv.Atoi(tries)
	e.id, e.reply, e.payload, e.first = m.ID, fmt.Sprint(m.Values["r"]), fmt.Sprint(m.Values["u"]), cmp.Or(first, m.ID)
	if json.Unmarshal([]byte(e.payload), &e.uris) != nil || (webdelivery.PurgeRequest{Action: q.options.Action, URIs: e.uris}).Validate() != nil {
		e.uris = nil
	}
	return e
}

// sift returns the entries that may be sent, and ends the others. Their outcome is unknown even if no process has read
// them: Redis may have been restored to a time before they were sent.
func (q *Queue) sift(found []entry) []entry {
	var bad []decided
	good := slices.DeleteFunc(found, func(e entry) bool {
		why := errors.New("redisqueue: unreadable call in Redis")
		if e.uris != nil {
			if q.age(e.first) <= q.options.Keep {
				return false
			}
			why = fmt.Errorf("redisqueue: not sent any more after waiting for longer than Options.Keep, %v; purge again", q.options.Keep)
		}
		bad = append(bad, decided{e, result{err: failed(e.uris, why, webdelivery.OutcomeUnknown)}})
		return true
	})
	if len(bad) > 0 {
		q.all.Go(func() { q.store(bad) })
	}
	return good
}

// take returns the entries for a request that has its permit.
func (q *Queue) take() (taken []entry, err error) {
	q.mu.Lock()
	q.trouble = nil
	found := q.backlog
	q.mu.Unlock()
	found = q.sift(found)
	within, cancel := context.WithTimeout(q.ctx, 2*forAWord)
	defer cancel()
	fit := q.fit(found)
	for count := atFirst; fit == len(found); count = min(2*count, atOnce) {
		var more []entry
		if more, err = q.fetch(within, count); len(more) == 0 {
			break
		}
		found = append(found, q.sift(more)...)
		fit = q.fit(found)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.backlog = found[fit:]; fit > 0 {
		return found[:fit], nil
	}
	return nil, err
}

// fit returns how many of the first entries fit into a request, at least one.
func (q *Queue) fit(found []entry) (fit int) {
	uris, bytes := 0, 0
	for i, e := range found {
		uris, bytes = uris+len(e.uris), bytes+len(e.payload)
		if i == 0 || uris <= q.options.MaxURIs && bytes <= q.options.MaxBodyBytes {
			fit = i + 1
		}
	}
	return fit
}

// fetch takes up to count entries of silent processes, and up to count that no process has read. They are held by this
// process until their results are stored.
func (q *Queue) fetch(ctx context.Context, count int) (found []entry, err error) {
	pipe := q.rdb.Pipeline()
	stale := redis.XAutoClaimArgs{Stream: q.calls, Group: group, Consumer: group, MinIdle: q.options.Lease, Start: "0", Count: int64(count)}
	next := redis.XReadGroupArgs{Group: group, Consumer: group, Streams: []string{q.calls, ">"}, Count: int64(count), Block: -1} // 0 would block forever
	silent, unread := pipe.XAutoClaim(ctx, &stale), pipe.XReadGroup(ctx, &next)
	if err = exec(ctx, pipe); isNoGroup(err) { // the queue is new, or Redis has lost its data
		if err = redisError(q.rdb.XGroupCreate(ctx, q.calls, group, "0").Err()); err == nil || redis.HasErrorPrefix(err, "BUSYGROUP") {
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
