package webdelivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// exampleService starts a fake service with a few tasks. Its purges are done at once.
func exampleService() (client *webdelivery.Client, stop func()) {
	service := testserver.New(testserver.Config{PurgeDuration: -1})
	url, err := service.ListenTCP()
	if err != nil {
		panic(err)
	}
	service.AddTask(testserver.TaskSpec{ID: "task-1", Operation: "deploy"})
	service.AddTask(testserver.TaskSpec{ID: "task-2", Operation: "deploy", Error: &testserver.TaskError{
		Type: "ConfigError", Message: "origin unknown",
	}})
	client, err = webdelivery.NewClient(url, "acme", webdelivery.SessionAuth("alice", "correct-horse-battery"))
	if err != nil {
		panic(err)
	}
	return client, func() { _ = service.Close() }
}

func ExampleNewClient() {
	client, err := webdelivery.NewClient("https://api.example.com", "acme",
		webdelivery.BasicAuth("alice", "correct-horse-battery"), // or SessionAuth, or SessionToken
		webdelivery.WithLogger(slog.Default()),
		webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 6, MaxWait: time.Minute}))

	fmt.Println(client != nil, err)
	// Output: true <nil>
}

// A secret manager rotates the password. A real function caches it for a while: the client asks before every attempt.
func ExampleBasicAuthFunc() {
	passwords := []string{"yesterdays-password", "correct-horse-battery"}
	service := testserver.New(testserver.Config{})
	defer func() { _ = service.Close() }()
	url, err := service.ListenTCP()
	if err != nil {
		panic(err)
	}
	service.AddTask(testserver.TaskSpec{ID: "task-1"})

	client, err := webdelivery.NewClient(url, "acme", webdelivery.BasicAuthFunc(func(context.Context) (string, string, error) {
		password := passwords[0] // from the secret manager
		passwords = passwords[len(passwords)-1:]
		return "alice", password, nil
	}))
	if err != nil {
		panic(err)
	}
	task, err := client.Tasks.Get(context.Background(), "task-1") // refused with the old password, sent again with the new one
	fmt.Println(task.ID, err)
	// Output: task-1 <nil>
}

func ExampleWithPurgeLimiter() {
	// Half of the customer's budget, because another machine uses the other half.
	limiter := rate.NewLimiter(rate.Every(1100*time.Millisecond), 1)
	client, err := webdelivery.NewClient("https://api.example.com", "acme",
		webdelivery.BasicAuth("alice", "correct-horse-battery"), webdelivery.WithPurgeLimiter(limiter))

	fmt.Println(client != nil, err)
	// Output: true <nil>
}

func ExamplePurgeService_NewQueue() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{Action: webdelivery.ActionPurge})
	if err != nil {
		fmt.Println(err)
		return
	}
	var deploys sync.WaitGroup
	for i := range 100 { // from any number of goroutines: they share requests
		deploys.Go(func() {
			_, err := queue.Purge(ctx, webdelivery.Exact(fmt.Sprintf("https://www.example.com/page/%d", i)))
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	deploys.Wait()
	if err := queue.Close(ctx); err != nil { // sends what is left
		fmt.Println(err)
	}
	fmt.Println("purged")
	// Output: purged
}

func ExampleQueueError() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	queue, err := client.Purge.NewQueue(webdelivery.QueueOptions{}) // one for all goroutines
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = queue.Close(ctx) }() // sends what is left

	_, err = queue.Purge(ctx, webdelivery.Exact("https://www.example.com/a"), webdelivery.Exact("https://www.example.org/not-ours"))
	var failed *webdelivery.QueueError
	if errors.As(err, &failed) {
		for _, f := range failed.Failures {
			fmt.Println(f.URI.URIPattern, f.Outcome, errors.Is(f.Err, webdelivery.ErrBadRequest))
		}
	}
	// Output: https://www.example.org/not-ours not applied true
}

func ExamplePurgeService_Submit() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	receipt, err := client.Purge.Submit(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge, // or ActionExpire: stale content may still be served when the origin is down
		URIs: []webdelivery.PurgeURI{
			webdelivery.Exact("https://www.example.com/app.css"),
			{MatchMode: "PREFIX_LITERAL", URIPattern: "www.example.com/img/", CacheKeyModifierRegex: "v1*"},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(receipt.StatusURI)
	// Output: /transactions/9007199254740993
}

func ExamplePurgeService_Wait() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()
	receipt, err := client.Purge.Submit(ctx, fixture.PurgeOf("https://www.example.com/app.css"))
	if err != nil {
		fmt.Println(err)
		return
	}

	transaction, err := client.Purge.Wait(ctx, receipt.TransactionID,
		webdelivery.WaitProgress(func(p webdelivery.Progress) {
			fmt.Printf("%s, %d %% of the caches\n", p.Status, p.Percent)
		}))
	var failed *webdelivery.TransactionError
	if errors.As(err, &failed) {
		fmt.Println("some caches did not purge:", failed.Transaction.StatusDescription)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(transaction.StatusDescription)
	// Output:
	// COMPLETE, 100 % of the caches
	// all caches have answered
}

func ExamplePurgeService_SubmitAndWait() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	transaction, err := client.Purge.SubmitAndWait(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge, // or ActionExpire: stale content may still be served when the origin is down
		URIs:   []webdelivery.PurgeURI{webdelivery.Exact("https://www.example.com/app.css"), webdelivery.Prefix("www.example.com/img/")},
	})
	switch {
	case err != nil && transaction != nil:
		fmt.Println("accepted, and not seen to its end:", transaction.TransactionID, err)
	case err != nil:
		fmt.Println("not submitted:", webdelivery.OutcomeOf(err), err)
	default:
		fmt.Println(transaction.StatusDescription)
	}
	// Output: all caches have answered
}

func ExampleTasksService_All() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	options := webdelivery.TaskListOptions{Since: time.Now().Add(-time.Hour), Operation: "deploy"}
	for task, err := range client.Tasks.All(ctx, options) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(task.ID, task.Complete)
	}
	// Unordered output:
	// task-1 true
	// task-2 true
}

func ExampleTasksService_Wait() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	_, err := client.Tasks.Wait(ctx, "task-2", webdelivery.WaitInterval(2*time.Second))
	var failed *webdelivery.TaskError
	if errors.As(err, &failed) {
		fmt.Println("the task failed:", failed.Task.ErrorInfo.Message)
	} else if err != nil {
		fmt.Println(err)
	}
	// Output: the task failed: origin unknown
}

// Many tasks take few requests. The tasks come in the order of the ids, also when some have failed.
func ExampleTasksService_WaitAll() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	tasks, err := client.Tasks.WaitAll(ctx, []string{"task-1", "task-2"})
	for _, task := range tasks {
		if task != nil { // it was read
			fmt.Println(task.ID, task.Complete, task.ErrorInfo != nil)
		}
	}
	fmt.Println(err)
	// Output:
	// task-1 true false
	// task-2 true true
	// webdelivery: task task-2 failed: ConfigError: origin unknown
}

func ExampleSessionsService_Create() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	session, err := client.Sessions.Create(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(session) // never shows the id; session.ID does
	auth := webdelivery.SessionToken(session.ID)
	fmt.Println(auth)
	// Output:
	// session [redacted]
	// token
}

func ExampleError() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	_, err := client.Tasks.Get(ctx, "no-such-task")
	if errors.Is(err, webdelivery.ErrNotFound) {
		fmt.Println("there is no such task")
	}
	var e *webdelivery.Error
	if errors.As(err, &e) {
		fmt.Println(e.Method, e.Path, e.StatusCode, e.Attempts)
	}
	// Output:
	// there is no such task
	// GET /acme/v1/tasks/no-such-task 404 1
}

func ExampleValidationError() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	_, err := client.Purge.Submit(ctx, webdelivery.PurgeRequest{
		Action: webdelivery.ActionPurge,
		URIs:   []webdelivery.PurgeURI{{MatchMode: "EXACT_LITERAL", URIPattern: "https://www.example.com/a", CacheKeyModifierRegex: "v1*"}},
	})
	var invalid *webdelivery.ValidationError
	if errors.As(err, &invalid) { // nothing was sent
		fmt.Println(invalid.Field, invalid.Reason)
	}
	// Output: uris[0].cache_key_modifier_regex is only valid with PREFIX_LITERAL; use Prefix, or remove the modifier
}

func ExampleOutcomeOf() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()
	request := fixture.PurgeOf("https://www.example.org/not-ours.css")

	_, err := client.Purge.Submit(ctx, request)
	switch webdelivery.OutcomeOf(err) {
	case webdelivery.OutcomeApplied:
		fmt.Println("purged")
	case webdelivery.OutcomeNotApplied:
		fmt.Println("nothing was purged")
	case webdelivery.OutcomeUnknown:
		fmt.Println("perhaps purged; purging again does no harm")
	}
	// Output: nothing was purged
}

func ExampleContextWithResponse() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	var last webdelivery.Response
	ctx = webdelivery.ContextWithResponse(ctx, &last)
	ctx = webdelivery.ContextWithHeader(ctx, http.Header{"X-Ticket": {"T-1"}}) // with each request of the call
	task, err := client.Tasks.Get(ctx, "task-1")
	if err != nil {
		fmt.Println(err) // ends with the request id, if there is one
		return
	}
	fmt.Println(task.ID, last.Operation, last.StatusCode, last.Attempts)
	// Output: task-1 Tasks.Get 200 1
}

func ExampleClient_Do() {
	client, stop := exampleService()
	defer stop()
	ctx := context.Background()

	var response json.RawMessage // also members that Task does not have
	err := client.Do(ctx, http.MethodGet, "/tasks/task-1", nil, &response)

	fmt.Println(json.Valid(response), err)
	// Output: true <nil>
}
