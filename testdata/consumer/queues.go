package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// fleet makes a queue that many processes share.
func fleet(rdb redis.UniversalClient, client *webdelivery.Client) (*redisqueue.Queue, error) {
	options := redisqueue.Options{
		Prefix: "staging:queue", Action: webdelivery.ActionExpire, Wait: true,
		MaxURIs: 10_000, MaxBodyBytes: 4 << 20, MaxPending: 1_000_000, RefuseWhenFull: true,
		Lease: time.Second, Keep: time.Hour,
	}
	return redisqueue.New(rdb, client, options)
}

// purgeTogether purges one URI and waits, hands over another one, and reads what became of it.
func purgeTogether(ctx context.Context, queue *redisqueue.Queue) (err error) {
	defer func() { err = errors.Join(err, queue.Close(ctx)) }()
	uri := webdelivery.Exact("https://www.example.com/")
	var receipt *webdelivery.PurgeReceipt
	if receipt, err = queue.Purge(ctx, uri); err != nil {
		return err
	}
	var id string
	if id, err = queue.Enqueue(ctx, uri); err != nil {
		return err
	}
	if receipt, err = queue.Result(ctx, id); err != nil {
		return err
	}
	var stats webdelivery.QueueStats
	stats, err = queue.Stats(ctx)
	fmt.Println(receipt.TransactionID, stats.Pending)
	return err
}

// ofFleet explains what happened to a purge of a fleet's queue.
func ofFleet(err error) string {
	for _, sentinel := range []error{redisqueue.ErrFull, redisqueue.ErrPending, redisqueue.ErrUnknownID, redisqueue.ErrRedis} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	var remote *redisqueue.RemoteError
	if errors.As(err, &remote) {
		var call *webdelivery.Error = remote.Response
		var transaction *webdelivery.TransactionError = remote.Transaction
		return fmt.Sprint(remote.Error(), remote.Message, remote.RefusedTogether, call, transaction, remote.Unwrap())
	}
	return ""
}
