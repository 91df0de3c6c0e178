package operations

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

func tasks() []Operation {
	return []Operation{
		reads("Tasks.Get", "/tasks/{task}", shown(func(ctx context.Context, c *webdelivery.Client, use *Use) (*webdelivery.Task, error) {
			return c.Tasks.Get(ctx, use.Task)
		})),
		reads("Tasks.List", "/tasks", func(ctx context.Context, c *webdelivery.Client, use *Use) error {
			options := webdelivery.TaskListOptions{Count: 10}
			page, err := c.Tasks.List(ctx, options)
			use.Show(options, page)
			return err
		}),
		{
			Name: "Tasks.All", Kind: Pages, Method: http.MethodGet, Path: "/tasks", Requests: filled, Items: filled,
			InOrder: true,
			sequence: plain(func(ctx context.Context, c *webdelivery.Client, _ *Use) iter.Seq2[webdelivery.Task, error] {
				return c.Tasks.All(ctx, webdelivery.TaskListOptions{Count: 1})
			}),
		},
		{
			Name: "Tasks.Wait", Kind: Reads, Method: http.MethodGet, Path: "/tasks/{task}", InOrder: true, Waits: true, Polls: true,
			prepare: runningTask,
			call: func(ctx context.Context, c *webdelivery.Client, use *Use) error {
				every, report := waiting(use)
				task, err := c.Tasks.Wait(ctx, use.Task, every, report)
				use.Show(task, every, report)
				return err
			},
		},
		{
			Name: "Tasks.WaitAll", Kind: Reads, Method: http.MethodGet, Path: "/tasks/{task}", InOrder: true, Waits: true, Polls: true,
			prepare: runningTask,
			call: func(ctx context.Context, c *webdelivery.Client, use *Use) error {
				every, report := waiting(use)
				tasks, err := c.Tasks.WaitAll(ctx, []string{use.Task}, every, report)
				use.Show(tasks, every, report)
				return err
			},
		},
	}
}

// runningTask sets use.Task to the id of a task that does not end soon.
func runningTask(_ context.Context, s Service, use *Use) error {
	use.Task = s.Server.AddTask(testserver.TaskSpec{Duration: 10 * time.Minute})
	return nil
}

// waiting returns the options of operations that wait.
func waiting(use *Use) (every, report webdelivery.WaitOption) {
	return webdelivery.WaitInterval(use.Poll), webdelivery.WaitProgress(func(p webdelivery.Progress) { use.Show(p) })
}
