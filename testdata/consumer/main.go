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
	"net/netip"
	"os"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
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
	if err := statistics(ctx, client); err != nil {
		return err
	}
	if err := networkLists(ctx, client); err != nil {
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
		webdelivery.WithAttemptTimeout(time.Minute),
		webdelivery.WithIdleTimeout(time.Minute),
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
	queue := client.Purge.NewQueue(webdelivery.QueueOptions{
		Action: webdelivery.ActionPurge, Wait: true, MaxURIs: 10_000, MaxBodyBytes: 4 << 20, MaxPending: 1_000_000,
		OnStats: func(s webdelivery.QueueStats) { fmt.Println(s.Pending, s.Sent, s.Requests, s.Oldest) },
	})
	if receipt, err = queue.Purge(ctx, webdelivery.Exact("https://www.example.com/")); err != nil {
		return err
	}
	if err := queue.Close(ctx); err != nil {
		return err
	}
	fmt.Println(tx.Code, tx.Description, tx.BeginTS, tx.EndTS, tx.PercentReceivedResponses, tx.TransactionStatus,
		tx.TransactionStatusDescription)
	return nil
}

// event is a struct of the user's.
type event struct {
	Time time.Time  `stats:"event_timestamp_ms"`
	IP   netip.Addr `stats:"client_ip"`
}

func statistics(ctx context.Context, client *webdelivery.Client) error {
	start, end := webdelivery.EventsRetention(time.Now()), time.Now()
	q := webdelivery.EventsQuery{
		Dimensions: []string{
			webdelivery.DimEventTimestamp, webdelivery.DimEventSeverity, webdelivery.DimEventType, webdelivery.DimEventAction,
			webdelivery.DimClientConnectionRemoteIP, webdelivery.DimClientIP, webdelivery.DimClientBrowser,
			webdelivery.DimClientCountryCode, webdelivery.DimClientASN, webdelivery.DimRuleID, webdelivery.DimDomain,
			webdelivery.DimProperty, webdelivery.DimWAFAction,
		},
		Start: start, End: end,
		Filter: filters.And(filters.Eq("client_country_code", "CN"), filters.Ne("event_action", "WARN")),
		SortBy: []webdelivery.Sort{webdelivery.Desc("event_timestamp_ms"), webdelivery.Asc("client_ip")}, Limit: 500,
	}
	result, err := client.Stats.Events.Query(ctx, q)
	if err != nil {
		return err
	}
	fmt.Println(result.Query, result.Columns, result.Rows, result.TotalResults)
	for row, err := range client.Stats.Events.Rows(ctx, q) {
		if err != nil {
			return err
		}
		var kept webdelivery.Row = row.Clone()
		v, ok := kept.Get("client_ip")
		fmt.Println(kept.Len(), kept.Columns(), kept.At(0).String(), ok, v.IsNull(), v.Raw())
		n, err := v.Int64()
		f, err2 := v.Float64()
		at, err3 := v.Time()
		addr, err4 := v.Addr()
		fmt.Println(n, f, at, addr, err, err2, err3, err4)
	}
	q.Dimensions = webdelivery.DimensionsOf[event]()
	for ev, err := range webdelivery.Scan[event](client.Stats.Events.All(ctx, q)) {
		if err != nil {
			return err
		}
		fmt.Println(ev.Time, ev.IP)
	}
	dims, err := client.Stats.Events.Dimensions(ctx)
	if err != nil {
		return err
	}
	var names []string = dims.Names
	var raw json.RawMessage = dims.Raw
	var hdr http.Header
	hdr, err = client.Stats.Events.Head(ctx)
	fmt.Println(names, raw, hdr, err)
	return aggregated(ctx, client, start, end)
}

func aggregated(ctx context.Context, client *webdelivery.Client, start, end time.Time) error {
	trends := webdelivery.TrendsQuery{
		Dimensions: []string{webdelivery.DimClientCountryCode}, Metrics: []string{webdelivery.MetricHits}, Start: start, End: end,
		Granularity: webdelivery.GranularityFor(start, end, time.Now()),
	}
	fmt.Println(webdelivery.Granularity5Minute, webdelivery.GranularityHour, webdelivery.GranularityDay)
	stats := client.Stats
	_, err1 := stats.WAFTrends.Query(ctx, trends)
	_, err2 := stats.RequestTrends.Groupings(ctx)
	_, err3 := stats.TrafficShapingTrends.Metrics(ctx)
	for _, category := range []webdelivery.WAFCategory{
		webdelivery.WAFByBrowser, webdelivery.WAFByClientIP, webdelivery.WAFByCountry, webdelivery.WAFByRequestPath,
		webdelivery.WAFByRuleID, webdelivery.WAFBySeverity,
	} {
		top := webdelivery.WAFTopKQuery{Dimensions: trends.Dimensions, Metrics: trends.Metrics, Start: start, End: end}
		if _, err := stats.WAFTopK(category).Query(ctx, top); err != nil {
			return err
		}
	}
	for _, category := range []webdelivery.ShapingCategory{
		webdelivery.ShapingByBrowser, webdelivery.ShapingByClientIP, webdelivery.ShapingByCountry,
		webdelivery.ShapingByRateLimitClientIP, webdelivery.ShapingByRateLimitCountry, webdelivery.ShapingByRequestPath,
	} {
		top := webdelivery.ShapingTopKQuery{Dimensions: trends.Dimensions, Metrics: trends.Metrics, Start: start, End: end, Limit: 7}
		if _, err := stats.TrafficShapingTopK(category).Query(ctx, top); err != nil {
			return err
		}
	}
	var expr filters.Expr
	expr, err4 := filters.Parse("a==1,b!=2")
	fmt.Println(expr.String(), filters.Or(filters.Eq("a", "1")))
	return errors.Join(err1, err2, err3, err4)
}

func networkLists(ctx context.Context, client *webdelivery.Client) error {
	lists := client.NetworkLists
	page, err := lists.List(ctx, webdelivery.NetworkListOptions{Type: webdelivery.ListTypeIP, Deprecated: true, Page: 1, Count: 100})
	if err != nil {
		return err
	}
	var id string
	for list, err := range lists.All(ctx, webdelivery.NetworkListOptions{Type: webdelivery.ListTypeGEO}) {
		if err != nil {
			return err
		}
		id = list.ID
	}
	list, err := lists.Get(ctx, id)
	if err != nil {
		return err
	}
	list, err = lists.GetSummary(ctx, list.ID)
	fmt.Println(page.Total, list.URI, list.Type, list.List, list.Name, list.Description, list.Deprecated, list.EntriesURI,
		list.EntriesBatchDeletionURI, list.CreationTimestamp, list.ModifiedTimestamp, err)
	entries, err := lists.Entries(ctx, id, webdelivery.EntryOptions{Page: 1, Count: 1000})
	if err != nil {
		return err
	}
	var first webdelivery.NetworkListEntry = entries.Items[0]
	fmt.Println(first.URI, first.ID, first.Entry, first.AddedBy, first.CreationTimestamp)
	for entry, err := range lists.AllEntries(ctx, id, webdelivery.EntryOptions{}) {
		fmt.Println(entry.Entry, err)
	}
	for entry, err := range lists.AllEntries(ctx, id, webdelivery.EntryOptions{}, webdelivery.ReadAhead(8)) {
		fmt.Println(entry.Entry, err)
	}
	info, err := lists.GetEntry(ctx, id, first.ID)
	if err != nil {
		return err
	}
	fmt.Println(info.URI, info.ID, info.Type, info.NetworkListURI)
	if _, err := lists.AddEntries(ctx, id, []string{"203.0.113.0/24"}); err != nil {
		return err
	}
	var task *webdelivery.Task
	task, err = lists.DeleteEntry(ctx, id, first.ID)
	fmt.Println(task == nil, err)
	task, err = lists.ClearEntries(ctx, id)
	fmt.Println(task == nil, err)
	plan, err := lists.Plan(ctx, id, []string{"203.0.113.0/24"}, webdelivery.PlanOptions{MaxRemove: 0.2, Aggregate: true})
	if err != nil {
		return err
	}
	var add []string = plan.Add
	var remove []webdelivery.NetworkListEntry = plan.Remove
	var keep int = plan.Keep
	fmt.Println(add, remove, keep, plan.String())
	result, err := lists.Apply(ctx, plan, webdelivery.ApplyOptions{})
	fmt.Println(result, err)
	task, err = lists.Delete(ctx, id)
	fmt.Println(task == nil)
	return err
}

func explain(err error) string {
	var (
		call        *webdelivery.Error
		invalid     *webdelivery.ValidationError
		task        *webdelivery.TaskError
		transaction *webdelivery.TransactionError
		incomplete  *webdelivery.IncompleteError
		partial     *webdelivery.PartialError
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
	case errors.Is(err, webdelivery.ErrQueueClosed):
		return "closed"
	case errors.Is(err, webdelivery.ErrPlanStale):
		return "plan again"
	case errors.As(err, &partial):
		return fmt.Sprint(partial.Accepted, partial.NotAccepted, partial.Unknown)
	case errors.As(err, &incomplete):
		return fmt.Sprint(incomplete.Got, incomplete.Total)
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
