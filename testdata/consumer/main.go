// Consumer is a program in another module that uses every public name that the SDK promises, in the forms in which
// programs are written. It is compiled by make test: a name that changes breaks it here before it breaks a user.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// permit is a Limiter of the user's.
type permit struct{}

func (permit) Wait(ctx context.Context) error { return ctx.Err() }

var _ webdelivery.Limiter = permit{}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, explain(err))
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	client, err := webdelivery.NewClientFromEnv()
	if err != nil {
		return err
	}
	if err := clients(ctx); err != nil {
		return err
	}
	if err := tasks(ctx, client); err != nil {
		return err
	}
	if err := purges(ctx, client); err != nil {
		return err
	}
	session, err := client.Sessions.Create(ctx)
	if err != nil {
		return err
	}
	var id string = session.ID
	_, err = webdelivery.NewClient("https://api.example.com", "acme", webdelivery.SessionToken(id))
	return err
}

func clients(ctx context.Context) error {
	options := []webdelivery.Option{
		webdelivery.WithHTTPClient(&http.Client{Timeout: time.Minute}),
		webdelivery.WithLogger(slog.Default()),
		webdelivery.WithUserAgent("consumer/1"),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1, MinWait: time.Second, MaxWait: time.Minute}),
		webdelivery.WithPurgeLimiter(permit{}),
		webdelivery.WithDialect(webdelivery.Dialect{
			TasksPrefix: "/ops", StartTimeParam: "startime", EntryKey: "value",
			EntryDeletePath: "/config/networklists/{list}/entries/{entry}", BatchDeletionMethod: http.MethodDelete,
		}),
		webdelivery.WithMaxResponseBytes(1 << 20),
		webdelivery.WithPlainHTTP(),
	}
	var auth webdelivery.Auth = webdelivery.SessionAuth("user", "password")
	if _, err := webdelivery.NewClient("http://api.example.com", "acme", auth, options...); err != nil {
		return err
	}
	var client *webdelivery.Client
	client, err := webdelivery.NewClient("https://api.example.com", "acme",
		webdelivery.BasicAuth("user", "password"), webdelivery.WithLogger(slog.Default()))
	if err != nil {
		return err
	}
	var out json.RawMessage
	return client.Do(ctx, http.MethodGet, "/any/path", map[string]string{"a": "b"}, &out)
}

func tasks(ctx context.Context, client *webdelivery.Client) error {
	page, err := client.Tasks.List(ctx, webdelivery.TaskListOptions{
		Since: time.Now(), Status: "s", Operation: "o", Page: 1, Count: 50,
	})
	if err != nil {
		return err
	}
	var items []webdelivery.Task = page.Items
	fmt.Println(page.URI, len(items), page.Total, page.HasMore, page.PageCount, page.PageIndex, page.PrevURI, page.NextURI)
	var id string
	for task, err := range client.Tasks.All(ctx, webdelivery.TaskListOptions{}) {
		if err != nil {
			return err
		}
		id = task.ID
	}
	task, err := client.Tasks.Get(ctx, id)
	if err != nil {
		return err
	}
	task, err = client.Tasks.Wait(ctx, task.ID, webdelivery.OnProgress(func(p webdelivery.Progress) {
		fmt.Println(p.ID, p.Status, p.Percent)
	}), webdelivery.PollEvery(time.Second), webdelivery.WaitTimeout(time.Hour))
	if err != nil {
		return err
	}
	fmt.Println(task.URI, task.Operation, task.Status, task.Complete, task.Progress, task.User.ID, task.User.URI, task.Target.ID)
	for _, at := range []time.Time{task.BeginTime, task.EndTime, task.LastUpdated} {
		fmt.Println(at)
	}
	if info := task.ErrorInfo; info != nil {
		fmt.Println(info.Message, info.Type, info.Details[0].Message)
	}
	return nil
}

func purges(ctx context.Context, client *webdelivery.Client) error {
	receipt, err := client.Purge.Submit(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge,
		URIs: []webdelivery.PurgeURI{
			webdelivery.Exact("https://www.example.com/app.css"),
			webdelivery.Prefix("www.example.com/img/").WithCacheKeyModifier("v1*"),
		},
	})
	if err != nil {
		return err
	}
	var id int64 = receipt.TransactionID
	fmt.Println(webdelivery.ActionExpire, receipt.Code, receipt.Description, receipt.StatusURI)
	tx, err := client.Purge.Status(ctx, id)
	if err != nil {
		return err
	}
	tx, err = client.Purge.Wait(ctx, tx.TransactionID, webdelivery.PollEvery(time.Second))
	if err != nil {
		return err
	}
	fmt.Println(tx.Code, tx.Description, tx.BeginTS, tx.EndTS, tx.PercentReceivedResponses, tx.TransactionStatus,
		tx.TransactionStatusDescription)
	return nil
}

func explain(err error) string {
	var (
		call        *webdelivery.Error
		invalid     *webdelivery.ValidationError
		task        *webdelivery.TaskError
		transaction *webdelivery.TransactionError
	)
	for _, sentinel := range []error{
		webdelivery.ErrBadRequest, webdelivery.ErrUnauthorized, webdelivery.ErrForbidden, webdelivery.ErrNotFound,
		webdelivery.ErrRateLimited, webdelivery.ErrServer, webdelivery.ErrInvalid,
	} {
		if errors.Is(err, sentinel) {
			fmt.Println(sentinel)
		}
	}
	switch {
	case errors.As(err, &invalid):
		return invalid.Field + invalid.Reason
	case errors.As(err, &task):
		return task.Task.ID
	case errors.As(err, &transaction):
		return transaction.Transaction.TransactionStatus
	case errors.As(err, &call):
		return fmt.Sprint(call.StatusCode, call.Method, call.Path, call.Description, call.Body, call.Header, call.Attempts)
	}
	switch webdelivery.OutcomeOf(err) {
	case webdelivery.NotApplied, webdelivery.Applied, webdelivery.Unknown:
	}
	return err.Error()
}
