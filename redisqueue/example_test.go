package redisqueue_test

import (
	"context"
	"errors"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/redisqueue"
)

// A job hands its URIs over and may end. Any process of the fleet asks for the result later.
func ExampleQueue_Enqueue() {
	var queue *redisqueue.Queue // of New
	_ = func(ctx context.Context) error {
		id, err := queue.Enqueue(ctx, webdelivery.Exact("https://www.example.com/app.css"))
		if err != nil {
			return err
		}
		_, err = queue.Result(ctx, id)
		for errors.Is(err, redisqueue.ErrPending) && ctx.Err() == nil {
			time.Sleep(time.Second)
			_, err = queue.Result(ctx, id)
		}
		return err // ErrUnknownID: purge again, because Redis has lost the URIs or the result
	}
}
