package main

import (
	"context"
	"fmt"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

func tasks(ctx context.Context, client *webdelivery.Client) error {
	var service *webdelivery.TasksService = client.Tasks
	var page *webdelivery.Page[webdelivery.Task]
	page, err := service.List(ctx, webdelivery.TaskListOptions{
		Since: time.Now(), Status: "s", Operation: "o", Page: 1, Count: 50,
	})
	if err != nil {
		return err
	}
	var items []webdelivery.Task = page.Items
	fmt.Println(page.URI, len(items), page.Total, page.HasMore, page.PageCount, page.PageIndex, page.PrevURI, page.NextURI)
	var id string
	for task, err := range service.All(ctx, webdelivery.TaskListOptions{MaxPages: 10}) {
		if err != nil {
			return err
		}
		id = task.ID
	}
	task, err := service.Get(ctx, id)
	if err != nil {
		return err
	}
	patience := []webdelivery.WaitOption{webdelivery.PollEvery(time.Second), webdelivery.WaitTimeout(time.Hour), webdelivery.WaitMaxOutage(time.Minute)}
	patience = append(patience, webdelivery.OnProgress(func(p webdelivery.Progress) {
		if p.Kind == webdelivery.ProgressTransaction || p.Kind == webdelivery.ProgressNetworkList {
			fmt.Println("no task")
		}
		var kind webdelivery.ProgressKind = webdelivery.ProgressTask
		fmt.Println(p.Kind == kind, p.ID, p.Status, p.Percent, p.Complete, p.Polls, p.Elapsed, p.Err)
	}))
	task, err = service.Wait(ctx, task.ID, patience...)
	if err != nil {
		return err
	}
	var tasks []*webdelivery.Task
	if tasks, err = service.WaitAll(ctx, []string{task.ID}, patience...); err != nil {
		return err
	}
	task = tasks[0]
	fmt.Println(task.URI, task.Operation, task.Status, task.Complete, task.Progress, task.User.ID, task.User.URI)
	var target webdelivery.Reference = task.Target
	fmt.Println(target.ID)
	for _, at := range []time.Time{task.BeginTime, task.EndTime, task.LastUpdated} {
		fmt.Println(at)
	}
	var info *webdelivery.ErrorInfo = task.ErrorInfo
	if info != nil {
		var details []webdelivery.ErrorDetail = info.Details
		for _, detail := range details {
			fmt.Println(info.Message, info.Type, detail.Message)
		}
	}
	return task.UnmarshalJSON([]byte(`{"id":"t"}`))
}
