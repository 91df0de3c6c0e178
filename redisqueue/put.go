package redisqueue

import (
	"context"
	"encoding/json"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// newCall refuses what PurgeQueue refuses.
func (q *Queue) newCall(ctx context.Context, kind string, uris []webdelivery.PurgeURI) (*call, error) {
	if err := q.usable(ctx); err != nil {
		return nil, err
	}
	if err := (webdelivery.PurgeRequest{Action: q.options.Action, URIs: uris}).Validate(); err != nil {
		return nil, err
	}
	known := make(map[webdelivery.PurgeURI]bool, len(uris))
	var distinct []webdelivery.PurgeURI
	for _, uri := range uris {
		if !known[uri] {
			known[uri] = true
			distinct = append(distinct, uri)
		}
	}
	payload, err := json.Marshal(distinct)
	if err != nil { // no PurgeURI does this
		return nil, invalid("uris", "%v", err)
	}
	switch most := min(q.options.MaxURIs, q.options.MaxPending); {
	case len(distinct) > most:
		return nil, invalid("uris", "%d are more than the %d of one request; call Purge with fewer", len(distinct), most)
	case len(distinct) > 1 && len(payload) > q.options.MaxBodyBytes:
		return nil, invalid("uris", "they take %d bytes, more than the %d of one request; call Purge with fewer", len(payload), q.options.MaxBodyBytes)
	}
	return &call{
		entry: entry{process: q.store.process, payload: string(payload), count: len(distinct), kind: kind},
		uris:  distinct, done: make(chan result, 1),
	}, nil
}

// put stores a call in Redis. If the queue is full, it waits for room. unsent means that Redis did not get the call.
func (q *Queue) put(ctx context.Context, c *call) (unsent bool, err error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ctx, cancel)() //nolint:contextcheck // the queue's context is not the caller's
	full := true
	if q.options.RefuseWhenFull || q.crowd.Load() == 0 {
		full, unsent, err = q.tryPut(within, c)
	}
	switch {
	case full && q.options.RefuseWhenFull:
		return true, ErrFull
	case full:
		unsent, err = q.putLater(within, c)
	}
	if err != nil && q.ctx.Err() != nil && ctx.Err() == nil {
		err = webdelivery.ErrQueueClosed
	}
	return unsent, err
}

// putLater queues for room. One caller of a process asks Redis for all of them.
func (q *Queue) putLater(ctx context.Context, c *call) (unsent bool, err error) {
	q.crowd.Add(1)
	defer q.crowd.Add(-1)
	select {
	case q.door <- struct{}{}:
		defer func() { <-q.door }()
	case <-ctx.Done():
		return true, ctx.Err()
	case <-q.closing:
		return true, webdelivery.ErrQueueClosed
	}
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		full, unsent, err := q.tryPut(ctx, c)
		if !full {
			return unsent, err
		}
		timer := time.NewTimer(jittered(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-q.closing:
		}
		timer.Stop()
		if err := ctx.Err(); err != nil {
			return true, err
		}
		if q.isClosed() {
			return true, webdelivery.ErrQueueClosed
		}
	}
}

func (q *Queue) tryPut(ctx context.Context, c *call) (full, unsent bool, err error) {
	q.mu.Lock()
	e, accept := c.entry, q.acceptsLocked()
	q.mu.Unlock()
	full, turn, unsent, err := q.store.enqueue(ctx, &e, accept)
	if err != nil || full {
		return full, unsent, err
	}
	q.mu.Lock()
	c.entry.id, c.checked = e.id, time.Now()
	q.lookByLocked(c.checked.Add(jittered(q.options.turn())))
	q.mu.Unlock()
	if turn {
		q.send()
	}
	return false, false, nil
}
