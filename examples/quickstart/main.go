// Quickstart shows the main uses of the SDK: it logs in, purges an object, waits until the caches have removed it,
// lists the tasks of the last day and waits for one that is running. If no WEBDELIVERY_ variable is set, it starts a
// fake service; with a service of your own, change the object. Run it with: go run ./examples/quickstart
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const object = "https://www.example.com/app.css"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client, err := webdelivery.NewClientFromEnv()
	if !slices.ContainsFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "WEBDELIVERY_") }) {
		fake, failed := webdeliverytest.Start()
		if failed != nil {
			return failed
		}
		defer fake.Close()
		fmt.Println("Using a fake service, because no WEBDELIVERY_ variable is set. Nothing real happens.")
		fake.AddTask(webdeliverytest.TaskSpec{ID: "task-1", Operation: "deploy-property"})
		fake.AddTask(webdeliverytest.TaskSpec{ID: "task-2", Operation: "update-networklist", Duration: 4 * time.Second})
		client, err = fake.NewClient(webdelivery.SessionAuth(fake.Username, fake.Password))
	}
	if err != nil {
		return err
	}
	if _, err := client.Sessions.Create(ctx); err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	fmt.Println("Logged in. Purging", object)
	transaction, err := client.Purge.SubmitAndWait(ctx, webdelivery.PurgeRequest{
		URIs: []webdelivery.PurgeURI{webdelivery.Exact(object)},
	})
	if err != nil {
		return err
	}
	fmt.Printf("The purge is %s (transaction %d).\n", transaction.Status, transaction.TransactionID)
	var running string
	for task, err := range client.Tasks.All(ctx, webdelivery.TaskListOptions{Since: time.Now().AddDate(0, 0, -1)}) {
		if err != nil {
			return err
		}
		fmt.Printf("Task %s (%s) is %s.\n", task.ID, task.Operation, task.Status)
		if !task.Complete {
			running = task.ID
		}
	}
	if running == "" {
		return nil
	}
	fmt.Printf("Waiting for task %s.\n", running)
	task, err := client.Tasks.Wait(ctx, running)
	if err != nil {
		return err
	}
	fmt.Printf("Task %s is %s.\n", task.ID, task.Status)
	return nil
}
