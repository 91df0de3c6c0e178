package main

import (
	"context"
	"fmt"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

func networkLists(ctx context.Context, client *webdelivery.Client) error {
	var lists *webdelivery.NetworkListsService = client.NetworkLists
	var page *webdelivery.Page[webdelivery.NetworkList]
	page, err := lists.List(ctx, webdelivery.NetworkListOptions{Type: webdelivery.ListTypeIP, Deprecated: true, Page: 1, Count: 100})
	if err != nil {
		return err
	}
	var id string
	for list, err := range lists.All(ctx, webdelivery.NetworkListOptions{Type: webdelivery.ListTypeIP, MaxPages: 10}) {
		if err != nil {
			return err
		}
		id = list.ID
	}
	var list *webdelivery.NetworkList
	list, err = lists.Get(ctx, id)
	if err != nil {
		return err
	}
	if list, err = lists.GetByName(ctx, list.Name); err != nil {
		return err
	}
	list, err = lists.GetSummary(ctx, list.ID)
	var kind webdelivery.NetworkListType = list.Type
	fmt.Println(kind == webdelivery.ListTypeGEO, page.Total, list.URI, list.List, list.Name, list.Description, list.Deprecated, list.EntriesURI,
		list.EntriesBatchDeletionURI, list.CreationTimestamp, list.ModifiedTimestamp, err)
	if err := list.UnmarshalJSON([]byte(`{"id":"l"}`)); err != nil {
		return err
	}
	entries, err := lists.Entries(ctx, id, webdelivery.EntryOptions{Page: 1, Count: 1000})
	if err != nil {
		return err
	}
	var first webdelivery.NetworkListEntry = entries.Items[0]
	fmt.Println(first.URI, first.ID, first.Entry, first.AddedBy, first.CreationTimestamp)
	for entry, err := range lists.AllEntries(ctx, id, webdelivery.EntryOptions{}) {
		fmt.Println(entry.Entry, err)
	}
	reading := []webdelivery.ReadOption{webdelivery.ReadAhead(8)}
	for entry, err := range lists.AllEntries(ctx, id, webdelivery.EntryOptions{MaxPages: 10}, reading...) {
		fmt.Println(entry.Entry, err)
	}
	var info *webdelivery.NetworkListEntryInfo
	info, err = lists.GetEntry(ctx, id, first.ID)
	if err != nil {
		return err
	}
	fmt.Println(info.URI, info.ID, info.Type, info.NetworkListURI)
	if err := first.UnmarshalJSON([]byte(`{"id":"e","entry":"192.0.2.1"}`)); err != nil {
		return err
	}
	if err := changes(ctx, lists, id); err != nil {
		return err
	}
	return plans(ctx, lists, id)
}

// changes makes them one by one.
func changes(ctx context.Context, lists *webdelivery.NetworkListsService, id string) error {
	var added *webdelivery.AddEntriesResult
	added, err := lists.AddEntries(ctx, id, []string{"203.0.113.0/24"})
	if err != nil {
		return err
	}
	var replies []webdelivery.AddEntriesReply = added.Replies
	for _, reply := range replies {
		fmt.Println(added.Added, reply.Entries, reply.Task, reply.Raw)
	}
	entries, err := lists.Entries(ctx, id, webdelivery.EntryOptions{})
	if err != nil {
		return err
	}
	var task *webdelivery.Task
	task, err = lists.DeleteEntry(ctx, id, entries.Items[0].ID)
	fmt.Println(task == nil, err)
	task, err = lists.ClearEntries(ctx, id)
	fmt.Println(task == nil, err)
	return err
}

// plans looks first, and then changes.
func plans(ctx context.Context, lists *webdelivery.NetworkListsService, id string) error {
	var plan *webdelivery.Plan
	plan, err := lists.Plan(ctx, id, []string{"203.0.113.0/24"}, webdelivery.PlanOptions{
		MaxRemove: webdelivery.RemoveShare(0.2), MaxAdd: 1_000, WidestIPv4: 8, WidestIPv6: -1, Aggregate: true,
	})
	if err != nil {
		return err
	}
	var add []string = plan.Add
	var remove []webdelivery.NetworkListEntry = plan.Remove
	var keep int = plan.Keep
	fmt.Println(add, remove, keep, plan.String(), plan.Empty(), plan.Size(), plan.ListID, plan.Name, plan.Type, plan.Fingerprint,
		plan.Requests, plan.PeakSize, plan.MaxRemove, plan.MaxAdd, plan.WidestIPv4, plan.WidestIPv6, plan.UncoveredDuringApply, plan.Version)
	var limits []webdelivery.RemovalLimit = []webdelivery.RemovalLimit{webdelivery.RemoveNone, webdelivery.RemoveAll, webdelivery.RemoveDefault, webdelivery.RemoveAtMost(100)}
	fmt.Println(limits)
	if err = new(webdelivery.Plan).UnmarshalJSON([]byte(`{"version":1}`)); err != nil {
		return err
	}
	var result *webdelivery.ApplyResult
	result, err = lists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: true, Concurrency: 2}, webdelivery.PollEvery(time.Second))
	if err != nil {
		return err
	}
	fmt.Println(result.Added, result.Removed, result.Size, result.Tasks)
	task, err := lists.Delete(ctx, id)
	fmt.Println(task == nil)
	return err
}
