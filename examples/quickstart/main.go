// Quickstart shows the main uses of the SDK. It logs in, purges an object, waits for the transaction, lists the tasks
// of the service, and waits for one that is running.
//
//	quickstart [-uri URI] [-timeout 10s]
//
// Exit codes: 0 done, 1 failed or interrupted, 2 wrong usage.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

//go:embed main.go
var source string // begins with the help

func main() { program.Main("quickstart", nil, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	set := program.Flags("quickstart", source, s)
	uri := set.String("uri", "https://www.example.com/app.css", "object to purge")
	timeout := program.Duration(10 * time.Second)
	set.Var(&timeout, "timeout", "longest `duration` to wait for a running task, such as 30s or 10m")
	if err := program.ParseAlone(set, args); err != nil {
		return err
	}
	if object, err := url.Parse(*uri); err != nil || object.Host == "" || strings.ContainsAny(*uri, " #") {
		return program.Misused("-uri %q is not the address of an object; write it like https://www.example.com/app.css", *uri)
	}
	if timeout == 0 {
		return program.Misused("-timeout must be above 0s")
	}
	client, stop, err := connect(s.Out)
	if err != nil {
		return err
	}
	defer stop()
	if _, err := client.Sessions.Create(ctx); err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	fmt.Fprintln(s.Out, "Logged in.")
	if err := purge(ctx, s.Out, client, *uri); err != nil {
		return err
	}
	return watchTasks(ctx, s.Out, client, time.Duration(timeout))
}

// connect creates a client from the environment, or one for a fake service in this process.
func connect(out io.Writer) (client *webdelivery.Client, stop func(), err error) {
	if program.Configured() { // if only in part, the error names what is missing
		if client, err = webdelivery.NewClientFromEnv(); err != nil {
			return nil, nil, err
		}
		fmt.Fprintln(out, "Using the service of WEBDELIVERY_BASE_URL.")
		return client, func() {}, nil
	}
	service, err := webdeliverytest.Start()
	if err != nil {
		return nil, nil, err
	}
	service.AddTask(webdeliverytest.TaskSpec{ID: "task-1", Operation: "deploy-property"})
	service.AddTask(webdeliverytest.TaskSpec{ID: "task-2", Operation: "update-networklist", Duration: 3 * time.Second})
	fmt.Fprintln(out, "Started a fake service at", service.URL+".")
	client, err = service.NewClient(webdelivery.SessionAuth(service.Username, service.Password))
	return client, service.Close, err
}

func purge(ctx context.Context, out io.Writer, client *webdelivery.Client, uri string) error {
	receipt, err := client.Purge.Submit(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge,
		URIs:   []webdelivery.PurgeURI{webdelivery.Exact(uri)},
	})
	if err != nil {
		return fmt.Errorf("purge %s: %w", uri, err)
	}
	fmt.Fprintf(out, "Submitted a purge of %s; it is transaction %d.\n", uri, receipt.TransactionID)
	transaction, err := client.Purge.Wait(ctx, receipt.TransactionID, showProgress(out, "transaction"))
	if err != nil && ctx.Err() != nil {
		return program.Advise(err, fmt.Sprintf("the purge continues; to wait again: purge -resume %d", receipt.TransactionID))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The purge is done: %s.\n", transaction.Status)
	return nil
}

func watchTasks(ctx context.Context, out io.Writer, client *webdelivery.Client, timeout time.Duration) error {
	const shown = 10
	var running string
	count := 0
	for task, err := range client.Tasks.All(ctx, webdelivery.TaskListOptions{Since: time.Now().AddDate(0, 0, -1)}) {
		if err != nil {
			return fmt.Errorf("list tasks: %w", err)
		}
		if count++; count <= shown {
			fmt.Fprintf(out, "Task %s (%s) is %s.\n", task.ID, task.Operation, task.Status)
		}
		if !task.Complete {
			running = task.ID
		}
	}
	if count > shown {
		fmt.Fprintf(out, "And %d more tasks.\n", count-shown)
	}
	fmt.Fprintf(out, "%d tasks changed since yesterday.\n", count)
	if running == "" {
		fmt.Fprintln(out, "None of them is running.")
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	task, err := client.Tasks.Wait(waiting, running, showProgress(out, "task"))
	var failed *webdelivery.TaskError
	switch {
	case errors.As(err, &failed):
		fmt.Fprintf(out, "Task %s failed: %s\n", running, failed.Task.ErrorInfo.Message)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		fmt.Fprintf(out, "Task %s has not ended after %v, and continues. To wait up to an hour: quickstart -timeout 1h\n", running, timeout)
	case err != nil && ctx.Err() != nil:
		return program.Advise(err, fmt.Sprintf("task %s continues; to wait longer: quickstart -timeout 1h", running))
	case err != nil:
		return err
	default:
		fmt.Fprintf(out, "Task %s is done: %s.\n", task.ID, task.Status)
	}
	return nil
}

func showProgress(out io.Writer, kind string) webdelivery.WaitOption {
	return webdelivery.WaitProgress(func(p webdelivery.Progress) {
		if p.Err != nil {
			fmt.Fprintf(out, "  %s %s: %v; polling again\n", kind, p.ID, p.Err)
			return
		}
		fmt.Fprintf(out, "  %s %s: %s, %d %%\n", kind, p.ID, p.Status, p.Percent)
	})
}
