// Waittask waits until a task has ended, and shows its progress. It fails if the task does. ^C ends the wait but not
// the task. Run it with: go run ./examples/waittask TASK
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"

	"github.com/webdelivery/webdelivery-go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: waittask TASK")
	}
	client, err := webdelivery.NewClientFromEnv()
	if err != nil {
		return err
	}
	task, err := client.Tasks.Wait(ctx, args[0], webdelivery.WaitProgress(func(p webdelivery.Progress) {
		if p.Err != nil {
			fmt.Println("Not readable, asking again:", p.Err)
			return
		}
		fmt.Printf("%s, %d %%\n", p.Status, p.Percent)
	}))
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the task goes on: %w", err)
	}
	if err != nil {
		return err // a *webdelivery.TaskError if the task, and not the wait, has failed
	}
	fmt.Printf("Task %s (%s) has ended: %s.\n", task.ID, task.Operation, task.Status)
	return nil
}
