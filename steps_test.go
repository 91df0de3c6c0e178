package webdelivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
)

// step is one use of one method of a client. The tests that promise something of all that a client can do walk through
// everyStep; a method without a step fails TestEveryMethodHasAStep, and so cannot be forgotten.
type step struct {
	method string // as methodsOfAClient spells it
	run    func(ctx context.Context, c *webdelivery.Client, show func(...any)) error
}

// everyStep lists the uses. What a method returns is given to show, except its error; what waits looks at this interval.
func everyStep(every time.Duration) []step {
	const address = "192.0.2.2"
	soon := webdelivery.PollEvery(every)
	steps := []step{
		{"Client.Do", func(ctx context.Context, c *webdelivery.Client, _ func(...any)) error {
			return c.Do(ctx, http.MethodGet, "/tasks?operation=o", nil, new(any))
		}},
		{"Client.Do", func(ctx context.Context, c *webdelivery.Client, _ func(...any)) error {
			return c.Do(ctx, http.MethodPost, "/config/things", map[string]int{"n": 1}, nil)
		}},
		{"Client.Do", func(ctx context.Context, c *webdelivery.Client, _ func(...any)) error {
			return c.Do(ctx, http.MethodDelete, "/config/things/1", nil, nil)
		}},
		{"Client.Do", func(ctx context.Context, c *webdelivery.Client, _ func(...any)) error {
			return c.Do(ctx, http.MethodPost, "/cache/purge", map[string]any{"purge_request": purgeOf(anObject)}, new(json.RawMessage))
		}},
		{"SessionsService.Create", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			session, err := c.Sessions.Create(ctx)
			show(session)
			return err
		}},
		{"TasksService.Get", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			task, err := c.Tasks.Get(ctx, taskID)
			show(task)
			return err
		}},
		{"TasksService.List", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			options := webdelivery.TaskListOptions{Count: 10}
			page, err := c.Tasks.List(ctx, options)
			show(options, page)
			return err
		}},
		{"TasksService.All", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			return drain(c.Tasks.All(ctx, webdelivery.TaskListOptions{}), show)
		}},
		{"TasksService.Wait", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			report := webdelivery.OnProgress(func(p webdelivery.Progress) { show(p) })
			task, err := c.Tasks.Wait(ctx, taskID, soon, report)
			show(task, soon, report)
			return err
		}},
		{"PurgeService.Submit", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			request := purgeOf(anObject)
			receipt, err := c.Purge.Submit(ctx, request)
			show(request, receipt)
			return err
		}},
		{"PurgeService.Status", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			transaction, err := c.Purge.Status(ctx, 1)
			show(transaction)
			return err
		}},
		{"PurgeService.Wait", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			transaction, err := c.Purge.Wait(ctx, 1, soon, webdelivery.OnProgress(func(p webdelivery.Progress) { show(p) }))
			show(transaction)
			return err
		}},
		{"PurgeService.NewQueue PurgeQueue.Purge PurgeQueue.Close", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			options := webdelivery.QueueOptions{Wait: true, OnStats: func(s webdelivery.QueueStats) { show(s) }}
			queue := c.Purge.NewQueue(options)
			receipt, err := queue.Purge(ctx, webdelivery.Prefix("www.example.com/").WithCacheKeyModifier("v1*"))
			err = errors.Join(err, queue.Close(ctx))
			show(options, queue, receipt) // not before, as fmt takes no locks
			return err
		}},
		{"NetworkListsService.List", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			options := webdelivery.NetworkListOptions{Type: webdelivery.ListTypeIP}
			page, err := c.NetworkLists.List(ctx, options)
			show(options, page)
			return err
		}},
		{"NetworkListsService.All", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			return drain(c.NetworkLists.All(ctx, webdelivery.NetworkListOptions{}), show)
		}},
		{"NetworkListsService.Get", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			list, err := c.NetworkLists.Get(ctx, listID)
			show(list)
			return err
		}},
		{"NetworkListsService.GetSummary", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			list, err := c.NetworkLists.GetSummary(ctx, listID)
			show(list)
			return err
		}},
		{"NetworkListsService.Entries", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			options := webdelivery.EntryOptions{Count: 10}
			page, err := c.NetworkLists.Entries(ctx, listID, options)
			show(options, page)
			return err
		}},
		{"NetworkListsService.AllEntries", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			return drain(c.NetworkLists.AllEntries(ctx, listID, webdelivery.EntryOptions{}), show)
		}},
		{"NetworkListsService.AllEntries", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			ahead := webdelivery.ReadAhead(2)
			show(ahead)
			return drain(c.NetworkLists.AllEntries(ctx, listID, webdelivery.EntryOptions{}, ahead), show)
		}},
		{"NetworkListsService.GetEntry", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			entry, err := c.NetworkLists.GetEntry(ctx, listID, "1")
			show(entry)
			return err
		}},
		{"NetworkListsService.AddEntries", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			result, err := c.NetworkLists.AddEntries(ctx, listID, []string{address})
			show(result)
			return err
		}},
		{"NetworkListsService.Plan NetworkListsService.Apply", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			// Where the list cannot be read there is no plan, and Apply has to find that out by itself.
			planning, applying := webdelivery.PlanOptions{MaxRemove: 1}, webdelivery.ApplyOptions{Wait: true}
			plan, planErr := c.NetworkLists.Plan(ctx, listID, []string{"192.0.2.3"}, planning)
			show(plan, planning, applying)
			if plan == nil {
				plan = &webdelivery.Plan{ListID: listID}
			}
			result, err := c.NetworkLists.Apply(ctx, plan, applying, soon, webdelivery.OnProgress(func(p webdelivery.Progress) { show(p) }))
			show(result)
			return errors.Join(planErr, err)
		}},
		{"NetworkListsService.DeleteEntry", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			task, err := c.NetworkLists.DeleteEntry(ctx, listID, "1")
			show(task)
			return err
		}},
		{"NetworkListsService.ClearEntries", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			task, err := c.NetworkLists.ClearEntries(ctx, listID)
			show(task)
			return err
		}},
		{"NetworkListsService.Delete", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			task, err := c.NetworkLists.Delete(ctx, listID)
			show(task)
			return err
		}},
	}
	trend := trends()
	steps = append(steps, family("", aDay, func(c *webdelivery.Client) *webdelivery.StatsFamily[webdelivery.EventsQuery] {
		return c.Stats.Events
	})...)
	for _, of := range []func(*webdelivery.Client) *webdelivery.AggregatedFamily[webdelivery.TrendsQuery]{
		func(c *webdelivery.Client) *webdelivery.AggregatedFamily[webdelivery.TrendsQuery] {
			return c.Stats.WAFTrends
		},
		func(c *webdelivery.Client) *webdelivery.AggregatedFamily[webdelivery.TrendsQuery] {
			return c.Stats.RequestTrends
		},
		func(c *webdelivery.Client) *webdelivery.AggregatedFamily[webdelivery.TrendsQuery] {
			return c.Stats.TrafficShapingTrends
		},
	} {
		steps = append(steps, aggregated("", trend, of)...)
	}
	steps = append(steps, aggregated("StatsService.WAFTopK",
		webdelivery.WAFTopKQuery{Dimensions: trend.Dimensions, Metrics: trend.Metrics, Start: trend.Start, End: trend.End},
		func(c *webdelivery.Client) *webdelivery.AggregatedFamily[webdelivery.WAFTopKQuery] {
			return c.Stats.WAFTopK(webdelivery.WAFByCountry)
		})...)
	return append(steps, aggregated("StatsService.TrafficShapingTopK",
		webdelivery.ShapingTopKQuery{Dimensions: trend.Dimensions, Metrics: trend.Metrics, Start: trend.Start, End: trend.End},
		func(c *webdelivery.Client) *webdelivery.AggregatedFamily[webdelivery.ShapingTopKQuery] {
			return c.Stats.TrafficShapingTopK(webdelivery.ShapingByCountry)
		})...)
}

// event takes the columns of everyReply.
type event struct {
	IP   netip.Addr `stats:"client_ip"`
	Text string     `stats:"client_country_code"`
}

// number does not take them.
type number struct {
	N int64 `stats:"client_country_code"`
}

// family are the steps of a family of statistics.
func family[Q webdelivery.StatsQuery](before string, query Q, of func(*webdelivery.Client) *webdelivery.StatsFamily[Q]) []step {
	name := nameOf(reflect.TypeFor[*webdelivery.StatsFamily[Q]]())
	return familyAs(strings.TrimSpace(before+" "+name), query, of)
}

func familyAs[Q webdelivery.StatsQuery](name string, query Q, of func(*webdelivery.Client) *webdelivery.StatsFamily[Q]) []step {
	return []step{
		{name + ".Query", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			result, err := of(c).Query(ctx, query)
			show(query, result)
			if result != nil && len(result.Rows) > 0 {
				show(result.Rows[0], result.Rows[0].At(0))
			}
			return err
		}},
		{name + ".Rows", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			return drain(of(c).Rows(ctx, query), show)
		}},
		{name + ".Rows", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			return drain(webdelivery.Scan[event](of(c).Rows(ctx, query)), show)
		}},
		{name + ".Rows", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			return drain(webdelivery.Scan[number](of(c).Rows(ctx, query)), show)
		}},
		{name + ".All", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			return drain(of(c).All(ctx, query), show)
		}},
		{name + ".Dimensions", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			names, err := of(c).Dimensions(ctx)
			show(names)
			return err
		}},
		{name + ".Head", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			header, err := of(c).Head(ctx)
			show(of(c), header)
			return err
		}},
	}
}

// aggregated are the steps of a family that has groupings and metrics.
func aggregated[Q webdelivery.StatsQuery](before string, query Q, of func(*webdelivery.Client) *webdelivery.AggregatedFamily[Q]) []step {
	name := nameOf(reflect.TypeFor[*webdelivery.AggregatedFamily[Q]]())
	steps := append(familyAs(name, query, func(c *webdelivery.Client) *webdelivery.StatsFamily[Q] { return &of(c).StatsFamily }),
		step{name + ".Groupings", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			groupings, err := of(c).Groupings(ctx)
			show(of(c), groupings)
			return err
		}},
		step{name + ".Metrics", func(ctx context.Context, c *webdelivery.Client, show func(...any)) error {
			names, err := of(c).Metrics(ctx)
			show(names)
			return err
		}})
	for i := range steps {
		steps[i].method = strings.TrimSpace(before + " " + steps[i].method)
	}
	return steps
}

// drain reads a sequence to its end.
func drain[T any](all iter.Seq2[T, error], show func(...any)) error {
	for item, err := range all {
		if err != nil {
			return err
		}
		show(item)
	}
	return nil
}

// methodsOfAClient are the exported methods of a client and of all types with a client inside that are reached from it
// by its fields and by what its methods return.
func methodsOfAClient() []string {
	var names []string
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		if seen[t] || !holdsClient(t) {
			return
		}
		seen[t] = true
		for i := range t.NumMethod() {
			method := t.Method(i)
			names = append(names, nameOf(t)+"."+method.Name)
			for j := range method.Type.NumOut() {
				visit(method.Type.Out(j))
			}
		}
		for i := range t.Elem().NumField() {
			visit(t.Elem().Field(i).Type)
		}
	}
	visit(reflect.TypeFor[*webdelivery.Client]())
	return names
}

// holdsClient reports whether a pointer leads to a client, or to a struct that can send what a client sends.
func holdsClient(t reflect.Type) bool {
	if t == reflect.TypeFor[*webdelivery.Client]() {
		return true
	}
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false
	}
	return slices.ContainsFunc(reflect.VisibleFields(t.Elem()), func(f reflect.StructField) bool {
		return f.Type.String() == "*webdelivery.funnel" || f.Type == reflect.TypeFor[*webdelivery.PurgeService]()
	})
}

// nameOf is the name of the type that a pointer leads to, without packages.
func nameOf(t reflect.Type) string {
	return strings.ReplaceAll(t.Elem().Name(), t.Elem().PkgPath()+".", "")
}

func TestEveryMethodHasAStep(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, s := range everyStep(time.Second) {
		for _, method := range strings.Fields(s.method) {
			if !slices.Contains(listed, method) {
				listed = append(listed, method)
			}
		}
	}
	assert.ElementsMatch(t, methodsOfAClient(), listed)
	assert.Greater(t, len(listed), 50, "the walk has lost its way")
}

// everyReply is a reply that every operation can read: it has the members of all resources of section 2 of the service
// document.
type everyReply struct {
	text    func(member string) string // every text that the service is free in
	address func(member string) string // every address
	page    int                        // number of the page
	more    bool                       // another page follows
	pending bool                       // tasks and transactions go on
	failed  bool                       // tasks and transactions ended badly
	lacking bool                       // the purge names its transaction by the address alone, and rows are missing
}

// to is the reply to a request: of the one object that is asked for, if it is one. A session is no such object.
func (r everyReply) to(request *http.Request) []byte {
	text := r.text
	address := request.URL.EscapedPath()
	switch last := address[strings.LastIndexByte(address, '/')+1:]; {
	case last == "sessions":
		body, _ := json.Marshal(map[string]string{"session_id": text("id"), "description": text("description")})
		return body
	case !strings.Contains(address, "/v1"):
	case slices.Contains([]string{"task", "list", "entry info"}, asksFor(address)):
		r.text = func(member string) string {
			if id, err := url.PathUnescape(last); err == nil && member == "id" {
				return id
			}
			return text(member)
		}
	}
	return r.json()
}

func (r everyReply) json() []byte {
	const aTime = "2000-01-01T00:00:00Z"
	object := map[string]any{
		"uri": r.address("uri"), "id": r.text("id"), "operation": r.text("operation"), "status": r.text("status"),
		"complete": !r.pending, "progress": 50, "begin_time": aTime, "end_time": aTime, "last_updated": aTime,
		"user":   map[string]string{"id": r.text("user.id"), "uri": r.address("user.uri")},
		"target": map[string]string{"id": r.text("target.id"), "uri": r.address("target.uri")},
		"type":   r.text("type"), "list": []string{r.text("list")}, "name": r.text("name"), "description": r.text("description"),
		"entries_uri": r.address("entries_uri"), "entries_batch_deletion_uri": r.address("entries_batch_deletion_uri"),
		"creation_timestamp": aTime, "modified_timestamp": aTime, "entry": "192.0.2.1", "added_by": r.text("added_by"),
		"network_list_uri": r.address("network_list_uri"),
	}
	if r.failed {
		object["error_info"] = map[string]any{
			"message": r.text("error_info.message"), "type": r.text("error_info.type"),
			"details": []map[string]string{{"message": r.text("error_info.details.message")}},
		}
	}
	item := make(map[string]any, len(object))
	for name, value := range object {
		item[name] = value
	}
	object["items"], object["has_more"] = []any{item}, r.more
	object["page_index"], object["page_count"], object["total"] = r.page, r.page, r.page
	object["prev_uri"] = r.address("prev_uri")
	if r.more {
		object["next_uri"], object["page_count"], object["total"] = r.address("next_uri"), r.page+1, r.page+1
	}

	status := "DONE"
	if r.failed {
		status = "FAILED "
	}
	if status += r.text("transaction_status"); r.pending {
		status = "PENDING"
	}
	object["code"] = 200
	object["transaction_id"] = 1
	object["purge_response"] = map[string]string{"transaction_status_uri": r.address("transaction_status_uri")}
	object["transaction_response"] = map[string]any{
		"begin_ts": 946684800, "end_ts": -1, "percent_received_responses": 50, "transaction_status": status,
		"transaction_status_description": r.text("transaction_status_description"),
	}

	object["query"] = map[string]any{
		"starttime": r.text("starttime"), "endtime": r.text("endtime"), "start": 0, "limit": 10,
		"dimensions": []string{r.text("query.dimensions")}, "filters": r.text("filters"),
	}
	object["columns"] = []map[string]string{{"name": "client_ip"}, {"name": "client_country_code"}}
	object["rows"], object["total_results"] = [][]string{{"192.0.2.1", r.text("rows")}}, 1
	for _, name := range []string{"dimensions", "metrics", "groupings"} {
		object[name] = []string{r.text(name)}
	}
	if r.lacking {
		delete(object, "transaction_id")
		object["total_results"] = 5
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return text
}
