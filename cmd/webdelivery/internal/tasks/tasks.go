// Package tasks has the commands for tasks.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

// Command returns the command.
func Command(app *cli.App) *cobra.Command {
	return cli.Group("tasks", "List tasks, and wait for them",
		"Tasks are long-running operations of the service: deploys, changes of lists.", list(app), get(app), wait(app))
}

func list(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "list", Short: "List tasks that changed lately", Args: cobra.NoArgs,
		Example: "  webdelivery tasks list --since 7d -o json | jq -r '.[] | select(.complete|not).id'",
	}
	var options webdelivery.TaskListOptions
	var since string
	cli.SinceFlag(c.Flags(), &since, "24h")
	c.Flags().StringVar(&options.Status, "status", "", "only tasks with this `status`, in the service's words")
	c.Flags().StringVar(&options.Operation, "operation", "", "only tasks that run this `operation`")
	format := cli.Format(c, cli.Formats...)
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if options.Since, err = cli.ParseTime("--since", since, time.Now()); err != nil {
			return err
		}
		client, err := app.Connect()
		if err != nil {
			return err
		}
		return show(app, *format, client.Tasks.All(c.Context(), options))
	}
	return c
}

func get(app *cli.App) *cobra.Command {
	c := &cobra.Command{Use: "get ID...", Short: "Show tasks", Args: cobra.MinimumNArgs(1)}
	format := cli.Format(c, cli.Formats...)
	c.RunE = func(c *cobra.Command, ids []string) error {
		client, err := app.Connect()
		if err != nil {
			return err
		}
		return each(app, *format, ids, func(id string) (*webdelivery.Task, error) { return client.Tasks.Get(c.Context(), id) })
	}
	return c
}

func wait(app *cli.App) *cobra.Command {
	var waiting cli.Waiting
	c := &cobra.Command{
		Use: "wait ID...", Short: "Wait until tasks have ended", Args: cobra.MinimumNArgs(1),
		Long: "Wait until tasks have ended. The exit code is 1 if none of them ended well, and 3\nif some did.",
	}
	waiting.Flags(c.Flags(), "")
	format := cli.Format(c, cli.Formats...)
	c.RunE = func(c *cobra.Command, ids []string) error {
		client, err := app.Connect()
		if err != nil {
			return err
		}
		ctx, stop := waiting.Context(c.Context())
		defer stop()
		return each(app, *format, ids, func(id string) (*webdelivery.Task, error) {
			task, err := client.Tasks.Wait(ctx, id, app.Poll("of task "+id))
			if ended, ok := errors.AsType[*webdelivery.TaskError](err); ok {
				task = ended.Task
			} else if ctx.Err() != nil && err != nil {
				err = fmt.Errorf("task %s: %w; to wait again: webdelivery tasks wait %s", id, context.Cause(ctx), id)
			}
			return task, err
		})
	}
	return c
}

// each prints the task of each id, if there is one. An error does not end it.
func each(app *cli.App, format string, ids []string, read func(id string) (*webdelivery.Task, error)) error {
	var good int
	var failed []error
	err := show(app, format, func(yield func(webdelivery.Task, error) bool) {
		for _, id := range ids {
			task, err := read(id)
			if failed = append(failed, err); err == nil {
				good++
			}
			if task != nil && !yield(*task, nil) {
				return
			}
		}
	})
	app.Show("")
	return cli.Ended(good, append(failed, err)...)
}

func show(app *cli.App, format string, tasks iter.Seq2[webdelivery.Task, error]) error {
	header := []string{"id", "operation", "status", "progress", "last_updated", "error"}
	return app.Print(format, header, func(yield func(cli.Record, error) bool) {
		for t, err := range tasks {
			cells := []string{t.ID, t.Operation, t.Status, strconv.Itoa(t.Progress), cli.Time(t.LastUpdated), ""}
			if t.ErrorInfo != nil {
				cells[5] = t.ErrorInfo.Message
			}
			if !yield(cli.Record{Value: t, Cells: cells}, err) {
				return
			}
		}
	})
}
