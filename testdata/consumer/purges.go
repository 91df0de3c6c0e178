package main

import (
	"context"
	"fmt"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

func purges(ctx context.Context, client *webdelivery.Client) error {
	var service *webdelivery.PurgeService = client.Purge
	var receipt *webdelivery.PurgeReceipt
	receipt, err := service.Submit(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge,
		URIs: []webdelivery.PurgeURI{
			webdelivery.Exact("https://www.example.com/app.css"),
			webdelivery.Prefix("www.example.com/img/").WithCacheKeyModifier("v1*"),
			{URIPattern: "www.example.com/a", MatchMode: webdelivery.MatchPrefix, CacheKeyModifierRegex: "v1*"},
		},
	})
	if err != nil {
		return err
	}
	var id int64 = receipt.TransactionID
	var mode webdelivery.MatchMode = webdelivery.MatchExact
	fmt.Println(mode, receipt.Code, receipt.Description, receipt.StatusURI)
	var tx *webdelivery.Transaction
	tx, err = service.Status(ctx, id)
	if err != nil {
		return err
	}
	tx, err = service.Wait(ctx, tx.TransactionID, webdelivery.PollEvery(time.Second))
	if err != nil {
		return err
	}
	request := webdelivery.PurgeRequest{Action: webdelivery.ActionPurge, URIs: []webdelivery.PurgeURI{webdelivery.Prefix("www.example.com/img/")}}
	if tx, err = service.SubmitAndWait(ctx, request, webdelivery.PollEvery(time.Second)); err != nil {
		return err
	}
	var queue *webdelivery.PurgeQueue
	queue, err = service.NewQueue(webdelivery.QueueOptions{
		Action: webdelivery.ActionExpire, Wait: true, MaxURIs: 10_000, MaxBodyBytes: 4 << 20, MaxPending: 1_000_000,
		OnStats: func(s webdelivery.QueueStats) {
			fmt.Println(s.Pending, s.Accepted, s.Requests, s.OldestAge, s.Failures, s.Err)
		},
	})
	if err != nil {
		return err
	}
	if receipt, err = queue.Purge(ctx, webdelivery.Exact("https://www.example.com/")); err != nil {
		return err
	}
	if err := request.Validate(); err != nil {
		return err
	}
	err = queue.PurgeFrom(ctx, func(context.Context) ([][]webdelivery.PurgeURI, error) {
		return [][]webdelivery.PurgeURI{request.URIs}, nil
	}, func(call int, result webdelivery.PurgeResult) { fmt.Println(call, result.Receipt, result.Err) })
	if err != nil {
		return err
	}
	if err := queue.Close(ctx); err != nil {
		return err
	}
	fmt.Println(tx.Pending(), tx.Code, tx.Description, tx.BeginTS, tx.EndTS, tx.PercentReceivedResponses, tx.TransactionStatus,
		tx.TransactionStatusDescription)
	return nil
}
