// Package tasks has the commands for tasks.
package tasks

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
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
		var found []webdelivery.Task
		var failed []error
		for _, id := range ids {
			if task, err := client.Tasks.Get(c.Context(), id); err != nil {
				failed = append(failed, err)
			} else {
				found = append(found, *task)
			}
		}
		return cli.Ended(len(found), append(failed, show(app, *format, cli.All(found)))...)
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
		all, err := client.Tasks.WaitAll(ctx, ids, app.Poll())
		app.Show("")
		if ctx.Err() != nil && err != nil {
			err = fmt.Errorf("%w; %w", err, context.Cause(ctx))
			err = cli.Advise(err, "to wait again: webdelivery tasks wait "+strings.Join(ids, " "))
		}
		var read []webdelivery.Task
		good := 0
		for _, task := range all {
			if task == nil {
				continue
			}
			read = append(read, *task)
			if task.Complete && task.ErrorInfo == nil {
				good++
			}
		}
		return cli.Ended(good, err, show(app, *format, cli.All(read)))
	}
	return c
}

func show(app *cli.App, format string, tasks iter.Seq2[webdelivery.Task, error]) error {
	header := []string{"id", "operation", "status", "progress", "last_updated", "error"}
	return cli.Print(app, format, header, tasks, func(t webdelivery.Task) []string {
		failure := ""
		if t.ErrorInfo != nil {
			failure = t.ErrorInfo.Message
		}
		return []string{t.ID, t.Operation, t.Status, strconv.Itoa(t.Progress), cli.Time(t.LastUpdated), failure}
	})
}
