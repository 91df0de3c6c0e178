package redisqueue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
)

// Purge adds URIs, at least one, to the queue of the fleet. It returns when the service has accepted the request that
// carries them, or with Wait when its transaction has ended. Any process of the fleet may send it.
//
// The error is a [*webdelivery.ValidationError] if the URIs are invalid or too many for one request, and otherwise a
// [*webdelivery.QueueError]. If another process has sent the request, its cause is a [*RemoteError]. It matches
// [ErrRedis] if Redis does not work, and [ErrFull] with RefuseWhenFull. The outcome is not applied only if nothing was
// added to the queue, or if the service has refused each of the URIs by itself.
//
// If the context ends first, URIs that no process has read leave the queue. The outcome is unknown all the same, and
// the text of the error says what the call was waiting for.
func (q *Queue) Purge(ctx context.Context, uris ...webdelivery.PurgeURI) (*webdelivery.PurgeReceipt, error) {
	payload, err := q.payload(uris)
	if err != nil {
		return nil, err
	}
	c, err := q.enter(ctx, uris, payload)
	if err != nil {
		return nil, failed(uris, err, webdelivery.OutcomeNotApplied)
	}
	select {
	case <-c.ended:
	case <-ctx.Done():
		q.leave(c, ctx.Err())
	}
	return c.result.receipt, c.result.err
}

// Enqueue adds URIs like Purge, and returns when Redis has them. The id is for [Queue.Result]. If this process ends,
// the others purge the URIs, as long as there is one with a queue.
func (q *Queue) Enqueue(ctx context.Context, uris ...webdelivery.PurgeURI) (id string, err error) {
	payload, err := q.payload(uris)
	if err != nil {
		return "", err
	}
	q.mu.Lock()
	closed := q.closed
	q.mu.Unlock()
	if closed {
		return "", failed(uris, webdelivery.ErrQueueClosed, webdelivery.OutcomeNotApplied)
	}
	id = rand.Text() // that of the stream would change if the call is added twice
	if _, err = q.put(ctx, "/"+id, payload); err != nil {
		return "", unadded(uris, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.needed = true
	signal(q.work)
	return id, nil
}

// Result returns the result of a call of Enqueue, as Purge would have returned it, from any process of the fleet. It
// does not wait: it returns [ErrPending] or [ErrUnknownID] if there is no result, and an error that matches [ErrRedis]
// if Redis does not work.
func (q *Queue) Result(ctx context.Context, id string) (*webdelivery.PurgeReceipt, error) {
	switch text, err := q.rdb.Get(ctx, q.resultOf(id)).Result(); {
	case errors.Is(err, redis.Nil):
		return nil, ErrUnknownID
	case err != nil:
		return nil, errors.Join(ctx.Err(), redisError(err))
	case text == "":
		return nil, ErrPending
	default:
		_, r := decode(text)
		return r.receipt, r.err
	}
}

// payload returns the URIs as they are stored in Redis.
func (q *Queue) payload(uris []webdelivery.PurgeURI) (string, error) {
	if err := (webdelivery.PurgeRequest{Action: q.options.Action, URIs: uris}).Validate(); err != nil {
		return "", err
	}
	payload, err := json.Marshal(uris)
	if err == nil && (len(uris) > q.options.MaxURIs || len(uris) > 1 && len(payload) > q.options.MaxBodyBytes) {
		err = &webdelivery.ValidationError{
			Field: "uris", Reason: fmt.Sprintf("%d URIs of %d bytes are too many for one request; call Purge with fewer", len(uris), len(payload)),
		}
	}
	return string(payload), err
}
