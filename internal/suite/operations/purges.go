package operations

import (
	"context"
	"net/http"

	"github.com/webdelivery/webdelivery-go"
)

func purges() []Operation {
	const submit, status = "/cache/purge", "/transactions/{transaction}"
	return []Operation{
		{
			Name: "Purge.Submit", Kind: Purges, Method: http.MethodPost, Path: submit, Requests: 1, applied: isPurged,
			call: func(ctx context.Context, c *webdelivery.Client, use *Use) error {
				request := purgeOf(NewObject)
				receipt, err := c.Purge.Submit(ctx, request)
				use.Show(request, receipt)
				return err
			},
		},
		{
			Name: "PurgeQueue.Purge", Also: []string{"PurgeQueue.Close", "PurgeQueue.Stats"}, Kind: Purges, Method: http.MethodPost, Path: submit, Requests: 1,
			Shared: true, call: queued(webdelivery.QueueOptions{}, webdelivery.Exact(NewObject)), applied: isPurged,
		},
		{
			Name: "PurgeQueue.Purge", Variant: "until it is done", Kind: Purges, Method: http.MethodPost, Path: submit, Requests: 1,
			Shared: true, Polls: true, applied: isPurged,
			call: queued(webdelivery.QueueOptions{Wait: true}, webdelivery.PurgeURI{MatchMode: "PREFIX_LITERAL", URIPattern: NewObject, CacheKeyModifierRegex: "v1*"}),
		},
		{
			Name: "Purge.SubmitAndWait", Kind: Purges, Method: http.MethodPost, Path: submit, Requests: 1, Polls: true, applied: isPurged,
			call: func(ctx context.Context, c *webdelivery.Client, use *Use) error {
				request := purgeOf(NewObject)
				every, report := waiting(use)
				transaction, err := c.Purge.SubmitAndWait(ctx, request, every, report)
				use.Show(request, transaction)
				return err
			},
		},
		{
			Name: "Purge.Status", Kind: Reads, Method: http.MethodGet, Path: status, Requests: 1, prepare: transaction,
			call: shown(func(ctx context.Context, c *webdelivery.Client, use *Use) (*webdelivery.Transaction, error) {
				return c.Purge.Status(ctx, use.Transaction)
			}),
		},
		{
			Name: "Purge.Wait", Kind: Reads, Method: http.MethodGet, Path: status, InOrder: true, Waits: true, Polls: true, prepare: transaction,
			call: shown(func(ctx context.Context, c *webdelivery.Client, use *Use) (*webdelivery.Transaction, error) {
				every, report := waiting(use)
				return c.Purge.Wait(ctx, use.Transaction, every, report)
			}),
		},
	}
}

// queued purges through a new queue, which Use.End closes. Use.End also shows the result.
func queued(options webdelivery.QueueOptions, uri webdelivery.PurgeURI) func(context.Context, *webdelivery.Client, *Use) error {
	return func(ctx context.Context, c *webdelivery.Client, use *Use) error {
		options := options
		options.Action = webdelivery.ActionPurge
		queue, err := c.Purge.NewQueue(options)
		if err != nil {
			return err
		}
		receipts, err := queue.Purge(ctx, uri)
		use.end = func(ctx context.Context) error {
			err := queue.Close(ctx)
			use.Show(options, queue, queue.Stats(), receipts) // not earlier, because fmt reads without locks
			return err
		}
		return err
	}
}
