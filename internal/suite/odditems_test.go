package suite_test

import (
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// One odd item among good ones: it is delivered with what can be read, told apart from the others, or an error, because
// to skip it would lose something or allow something.
func TestOneOddItem(t *testing.T) {
	t.Parallel()
	const entry, list, task = `{"id":"N","entry":"192.0.2.N","creation_timestamp":T}`, `{"id":"N","name":"n","type":"IP","creation_timestamp":T}`, `{"id":"N","end_time":T}`
	page := func(item string, odd string) string {
		var items []string
		for i, at := range []string{`"1999-12-31T12:00:00Z"`, odd, `"1999-12-31T12:00:00Z"`} {
			items = append(items, strings.NewReplacer(`N"`, fmt.Sprintf(`%d"`, i+1), ":T", ":"+at).Replace(item))
		}
		return `{"items":[` + strings.Join(items, ",") + `],"total":3,"has_more":false}`
	}
	pageOf := func(total, progress string) string {
		return fmt.Sprintf(`{"items":[{"id":"1","progress":1},{"id":"2","progress":%s},{"id":"3","progress":3}],"total":%s,"page_index":%s,"page_count":1}`, progress, total, "1.0")
	}
	result := func(rows string, total string) string {
		return `{"columns":[{"name":"event_timestamp_ms"},{"name":"client_ip"}],"rows":[` + rows + `],"total_results":` + total + `}`
	}
	const good = `["1999-12-31T12:00:00Z","192.0.2.1"]`
	for _, c := range []struct {
		path, body string
		read       func(f *fixture.Fixture) (items []string, err error)
		want       string // the items
		is         error
	}{
		{"/tasks", page(task, `"1999-12-31T24:00:00Z"`), tasksOf, "1 at 12h, 2 undated, 3 at 12h", nil},
		{"/tasks", page(task, `"1999-12-31T12:00:60Z"`), tasksOf, "1 at 12h, 2 undated, 3 at 12h", nil},
		{"/tasks", page(task, `1777636800`), tasksOf, "1 at 12h, 2 undated, 3 at 12h", nil},
		{"/tasks", pageOf(`3.0`, `50.0`), progressOf, "1 %, 50 %, 3 %", nil},
		{"/tasks", pageOf(`"3"`, `"50"`), progressOf, "1 %, 50 %, 3 %", nil},
		{"/tasks", pageOf(`3`, `33.3`), progressOf, "1 %, 33 %, 3 %", nil},
		{"/tasks", pageOf(`3`, `"half"`), progressOf, "1 %, 0 %, 3 %", nil},
		{"/tasks", pageOf(`3.5`, `50`), progressOf, "", webdelivery.ErrBadResponse},
		{"/tasks", `{"items":[{"id":"1"},null],"total":2}`, tasksOf, "", webdelivery.ErrBadResponse},
		{"/config/networklists", page(list, `"yesterday"`), listsOf, "1 at 12h, 2 undated, 3 at 12h", nil},
		{"/config/networklists/*/entries", page(entry, `"1999-12-31T24:00:00Z"`), entriesOf, "192.0.2.1 at 12h, 192.0.2.2 undated, 192.0.2.3 at 12h", nil},
		{"/config/networklists/*/entries", page(entry, `"1999-12-31T24:00:00Z"`), planOf, "- 192.0.2.1, - 192.0.2.3, 1 undated", nil},
		{"/config/networklists/*/entries", page(`{"id":"N","creation_timestamp":T}`, `"","entry":"192.0.2.1"`), entriesOf, "", webdelivery.ErrBadResponse},
		{"/config/networklists/*/entries", page(`{"id":"N","entry":"XK","creation_timestamp":T}`, `"1999-12-31T12:00:00Z"`), planOf, strings.TrimSuffix(strings.Repeat("- XK (AddEntries cannot add it back), ", 3), ", "), nil},
		{"/config/networklists/*/entries", `{"items":[{"id":"1","entry":"192.0.2.1"},{"id":"2","entry":""}],"total":2}`, planOf, "", webdelivery.ErrBadResponse},
		{"/transactions/5", `{"transaction_id":5.0,"transaction_response":{"transaction_status":"COMPLETE","begin_ts":"noon","percent_received_responses":99.5}}`, transactionOf, "COMPLETE 99 %", nil},
		{"/stats/security/events/data", result(good+`,["1999-12-31T12:00:00Z",""],`+good, `"3"`), eventsOf, "192.0.2.1, not an address, 192.0.2.1", nil},
		{"/stats/security/events/data", result(good+","+good, `2`), exportOf, "192.0.2.1, 192.0.2.1", nil},
		{"/stats/security/events/data", strings.NewReplacer(`"client_ip"}`, `"client_ip"},{"name":"new"}`, `.1"]`, `.1",""]`).Replace(result(good, "1")), exportOf, "192.0.2.1", nil},
		{"/stats/security/events/data", result(good+`,["1999-12-31T24:00:00Z","192.0.2.2"],`+good, "3"), exportOf, "192.0.2.1", webdelivery.ErrBadResponse},
	} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: c.path, Status: 200, Body: c.body})
			items, err := c.read(f)
			if c.is != nil {
				assert.ErrorIs(f, err, c.is, c.body)
			} else {
				assert.NoError(f, err, c.body)
			}
			assert.Equal(f, c.want, strings.Join(items, ", "), c.body)
		})
	}
}

func dated(name string, at time.Time) string {
	if at.IsZero() {
		return name + " undated"
	}
	return fmt.Sprintf("%s at %dh", name, at.Hour())
}

// shown reads a sequence to its end or its error, and returns what show makes of its items.
func shown[T any](seq iter.Seq2[T, error], show func(T) string) (items []string, err error) {
	for item, err := range seq {
		if err != nil {
			return items, err
		}
		items = append(items, show(item))
	}
	return items, nil
}

func tasksOf(f *fixture.Fixture) (items []string, err error) {
	return shown(f.Client.Tasks.All(f.Context(), webdelivery.TaskListOptions{}), func(task webdelivery.Task) string {
		return dated(task.ID, task.EndTime)
	})
}

func progressOf(f *fixture.Fixture) (items []string, err error) {
	return shown(f.Client.Tasks.All(f.Context(), webdelivery.TaskListOptions{}), func(task webdelivery.Task) string {
		return fmt.Sprint(task.Progress, " %")
	})
}

func listsOf(f *fixture.Fixture) (items []string, err error) {
	return shown(f.Client.NetworkLists.All(f.Context(), webdelivery.NetworkListOptions{}), func(list webdelivery.NetworkList) string {
		return dated(list.ID, list.CreationTimestamp)
	})
}

func entriesOf(f *fixture.Fixture) (items []string, err error) {
	return shown(f.Client.NetworkLists.AllEntries(f.Context(), "l", webdelivery.EntryOptions{}), func(entry webdelivery.NetworkListEntry) string {
		return dated(entry.Entry, entry.CreationTimestamp)
	})
}

func planOf(f *fixture.Fixture) (items []string, err error) {
	id := f.Srv.AddNetworkList(testserver.NetworkListSpec{Name: "l", Type: "IP"})
	young := func(e webdelivery.NetworkListEntry) bool { return time.Since(e.CreationTimestamp) < time.Hour }
	plan, err := f.Client.NetworkLists.Plan(f.Context(), id, nil, webdelivery.PlanOptions{MaxRemove: -1, Protect: young})
	if err != nil {
		return nil, err
	}
	items = strings.Split(strings.TrimSpace(plan.String()), "\n")[1:]
	if plan.Undated > 0 {
		items = append(items, fmt.Sprint(plan.Undated, " undated"))
	}
	return items, nil
}

func transactionOf(f *fixture.Fixture) (items []string, err error) {
	tx, err := f.Client.Purge.Status(f.Context(), 5)
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("%s %d %%", tx.Status, tx.PercentReceived)}, nil
}

type oddEvent struct {
	Time time.Time  `stats:"event_timestamp_ms"`
	IP   netip.Addr `stats:"client_ip"`
}

var oddQuery = webdelivery.EventsQuery{
	Dimensions: webdelivery.DimensionsOf[oddEvent](),
	Start:      time.Date(1999, 12, 31, 11, 0, 0, 0, time.UTC), End: time.Date(1999, 12, 31, 13, 0, 0, 0, time.UTC),
}

func eventsOf(f *fixture.Fixture) (items []string, err error) {
	for event, err := range webdelivery.Scan[oddEvent](f.Client.Stats.Events.All(f.Context(), oddQuery)) {
		switch {
		case errors.As(err, new(*webdelivery.ScanError)):
			items = append(items, "not an address")
		case err != nil:
			return items, err
		default:
			items = append(items, event.IP.String())
		}
	}
	return items, nil
}

func exportOf(f *fixture.Fixture) (items []string, err error) {
	export := f.Client.Stats.NewExport(oddQuery, webdelivery.Cursor{}, webdelivery.ExportOptions{AcceptGap: true})
	return shown(export.All(f.Context()), func(row webdelivery.Row) string {
		ip, _ := row.Get("client_ip")
		return ip.String()
	})
}
