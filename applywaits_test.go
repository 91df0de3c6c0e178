package webdelivery_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// With Wait, entries are removed only after the tasks of the additions have ended. Without Wait nothing waits.
func TestApplyAwaitsWhatCovers(t *testing.T) {
	t.Parallel()
	s := fixture.Setup{Server: testserver.Config{DeployDuration: time.Minute}}
	for wait, took := range map[bool]time.Duration{true: time.Minute, false: 0} {
		fixture.WithList(t, s, []string{"192.0.2.0/25", "203.0.113.9"}, func(f *fixture.Fixture) {
			plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.0/24"}, anything)
			require.NoError(f, err)
			began := time.Now()
			var removed []time.Duration
			options := webdelivery.ApplyOptions{Wait: wait, Progress: func(p webdelivery.ApplyProgress) {
				if p.Removed > len(removed) {
					removed = append(removed, time.Since(began))
				}
			}}
			var everySecond []webdelivery.WaitOption
			if wait {
				everySecond = []webdelivery.WaitOption{webdelivery.WaitInterval(time.Second)}
			}
			_, err = f.Client.NetworkLists.Apply(f.Context(), plan, options, everySecond...)
			require.NoError(f, err)
			assert.Equal(f, []time.Duration{took, took}, removed)
			assert.Equal(f, 2*took, time.Since(began))
		})
	}
}

// If the task of an addition fails, what it covers stays in the list.
func TestAFailedAdditionRemovesNothing(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.0/25", "192.0.2.128/25"}, func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.0/24"}, anything)
		require.NoError(f, err)
		// A service on which an addition takes effect with its task.
		f.AddFault(testserver.Fault{Method: http.MethodPost, Status: 200, Body: `{"task_id":"t1"}`})
		f.AddFault(testserver.Fault{Path: "/tasks/t1", Status: 200, Body: `{"id":"t1","complete":true,"error_info":{"message":"no route"}}`})
		result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
		var failed *webdelivery.TaskError
		require.ErrorAs(f, err, &failed)
		assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		assert.Zero(f, result.Removed)
		assert.Equal(f, []string{"192.0.2.0/25", "192.0.2.128/25"}, f.Srv.Entries(fixture.ListID))
	})
}

// In a full list with Wait, a removal makes room only when its task has ended.
func TestApplyAwaitsRoom(t *testing.T) {
	t.Parallel()
	all := fixture.Addresses(501)
	s := fixture.Setup{Server: testserver.Config{DeployDuration: time.Minute}}
	fixture.WithList(t, s, all[:500], func(f *fixture.Fixture) {
		plan, err := watch(f).NetworkLists.Plan(f.Context(), fixture.ListID, all[1:], webdelivery.PlanOptions{})
		require.NoError(f, err)
		assert.Zero(f, plan.UncoveredDuringApply)
		began := time.Now()
		var added time.Duration
		options := webdelivery.ApplyOptions{Wait: true, Progress: func(p webdelivery.ApplyProgress) {
			if p.Added == 1 && added == 0 {
				added = time.Since(began)
			}
		}}
		_, err = watch(f).NetworkLists.Apply(f.Context(), plan, options, webdelivery.WaitInterval(time.Second))
		require.NoError(f, err)
		assert.Equal(f, time.Minute, added)
		assert.Equal(f, 2*time.Minute, time.Since(began))
	})
}

// Responses that a service may send to a change (open points 21 and 23). Apply succeeds whenever the list is as
// desired, and waits for every task.
func TestApplyWithWhateverTheChangesReturn(t *testing.T) {
	t.Parallel()
	const newEntry = "11111111-0000-4000-8000-000000000001"
	shapes := map[string]string{
		"nothing":               ``,
		"the list":              `{"uri":"/config/networklists/{list}","id":"{list}","type":"IP","name":"blocklist","deprecated":false}`,
		"the list, in short":    `{"id":"{list}","uri":"/config/networklists/{list}"}`,
		"the list's id":         `{"id":"{list}"}`,
		"the entry":             `{"uri":"/config/networklists/{list}/entries/` + newEntry + `","id":"` + newEntry + `","entry":"192.0.2.0/24","added_by":"alice"}`,
		"the entry, in short":   `{"id":"` + newEntry + `","uri":"/config/networklists/{list}/entries/` + newEntry + `"}`,
		"the entry's info":      `{"id":"` + newEntry + `","type":"IP","network_list_uri":"/config/networklists/{list}"}`,
		"entries":               `[{"id":"` + newEntry + `","entry":"192.0.2.0/24"}]`,
		"a page":                `{"uri":"/x","items":[{"id":"` + newEntry + `","entry":"192.0.2.0/24"}],"total":1,"has_more":false,"page_count":1,"page_index":1}`,
		"texts":                 `["192.0.2.0/24"]`,
		"a word":                `"ok"`,
		"the deleted entry":     `{"id":"{entry}"}`,
		"the deleted, in short": `{"id":"{entry}","uri":"/config/networklists/{list}/entries/{entry}"}`,
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.0/25"}, func(f *fixture.Fixture) {
				client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{
					Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
						resp, err := f.HTTP.Transport.RoundTrip(r)
						adding := strings.Contains(shape, "{entry}")
						if err != nil || r.Method == http.MethodGet || r.Method == http.MethodPost && adding {
							return resp, err
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
						entry := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
						body := strings.NewReplacer("{list}", fixture.ListID, "{entry}", entry).Replace(shape)
						resp.Header = http.Header{"Content-Type": {"application/json"}}
						resp.ContentLength, resp.Body = int64(len(body)), io.NopCloser(strings.NewReader(body))
						return resp, nil
					}),
				})}})
				plan, err := client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.0/24"}, anything)
				require.NoError(f, err)
				result, err := client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
				require.NoError(f, err)
				assert.Equal(f, []string{"192.0.2.0/24"}, f.Srv.Entries(fixture.ListID))
				assert.LessOrEqual(f, len(result.Tasks), 1, "only the service's own response to the addition names a task")
			})
		})
	}
}

// ErrPlanStale blames only other clients if this Apply cannot be the cause.
func TestAStalePlanSaysWhoChangedTheList(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		add, remove []string // by another client, after the addition
		lost        bool     // the response to the addition is lost
		says        string
	}{
		"an entry that the plan keeps is gone":   {nil, []string{"192.0.2.2"}, false, "; another client changed the list meanwhile, or a late request of an earlier Apply did"},
		"an entry that the plan does not know":   {[]string{"203.0.113.9"}, nil, false, "; another client changed the list"},
		"the added entry is not there":           {nil, []string{"192.0.2.3"}, false, "; a change of this Apply is not in effect yet, or another client"},
		"the same, after a response was lost":    {nil, []string{"192.0.2.3"}, true, "; a change whose response was lost may have arrived late, or another client"},
		"another one, after a response was lost": {[]string{"203.0.113.9"}, nil, true, "; another client changed the list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1", "192.0.2.2"}, func(f *fixture.Fixture) {
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.2", "192.0.2.3"}, anything)
				require.NoError(f, err)
				if tt.lost {
					f.AddFault(testserver.Fault{Method: http.MethodPost, Count: 1, Cut: testserver.CutAfterExecute})
				}
				_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Progress: func(p webdelivery.ApplyProgress) {
					if p.Removed == 1 {
						f.Srv.ChangeEntries(fixture.ListID, tt.add, tt.remove)
					}
				}})
				require.ErrorIs(f, err, webdelivery.ErrPlanStale)
				require.ErrorContains(f, err, tt.says)
				require.ErrorContains(f, err, "or a late request of an earlier Apply did")
			})
		})
	}
}

// Bodies that do not show what was added.
var unclearBodies = []string{`{"status":"maintenance"}`, `{}`, `"ok"`, `null`, `[]`, `[null]`, `OK`, ``, `{"id":null}`, `[{"id":"e","entry":"198.51.100.9"}]`}

// A response that neither names a task nor shows the entries proves no addition; only the list does. Apply does not
// remove an entry that the addition covers before that.
func TestAnAdditionWithoutProofRemovesNothing(t *testing.T) {
	t.Parallel()
	covered := []string{"192.0.2.0/25", "192.0.2.128/25"}
	for _, wait := range []bool{false, true} {
		for _, body := range unclearBodies {
			fixture.WithList(t, fixture.Setup{}, covered, func(f *fixture.Fixture) {
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.0/24", "203.0.113.9"}, anything)
				require.NoError(f, err)
				f.AddFault(testserver.Fault{Method: http.MethodPost, Status: 200, Body: body})
				result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: wait})
				require.ErrorIs(f, err, webdelivery.ErrBadResponse, body)
				require.ErrorContains(f, err, "2 of 2 added entries are not in the list, for example 192.0.2.0/24", body)
				if body != "" {
					require.ErrorContains(f, err, strconv.Quote(body))
				}
				assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
				assert.Zero(f, result.Added)
				assert.Zero(f, result.Removed)
				assert.Equal(f, covered, f.Srv.Entries(fixture.ListID))
				assert.Zero(f, f.Srv.Count(http.MethodDelete, ""))
			})
			fixture.WithList(t, fixture.Setup{}, covered, func(f *fixture.Fixture) { // the same response of a service that added them
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.0/24", "203.0.113.9"}, anything)
				require.NoError(f, err)
				f.AddFault(testserver.Fault{Method: http.MethodPost, Handler: func(w http.ResponseWriter, _ *http.Request) {
					f.Srv.ChangeEntries(fixture.ListID, []string{"192.0.2.0/24", "203.0.113.9"}, nil)
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, body)
				}})
				result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: wait})
				require.NoError(f, err, body)
				assert.Equal(f, 2, result.Added)
				assert.Equal(f, 2, result.Removed)
			})
		}
	}
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) { // nothing relies on the addition, but still nothing was added
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.1"}, anything)
		require.NoError(f, err)
		f.AddFault(testserver.Fault{Method: http.MethodPost, Status: 200, Body: `{"status":"maintenance"}`})
		result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.ErrorIs(f, err, webdelivery.ErrBadResponse)
		assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		assert.Zero(f, result.Added)
	})
}

// With Wait, the response to an addition is lost, and no repeat names a task: each one is refused or lost. Then Apply
// ends before any removal, although the list shows the entry.
func TestAnAdditionWhoseTaskIsUnknown(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]testserver.Fault{
		"503": {Status: 503}, "500": {Status: 500}, "429": {Status: 429}, "400": {Status: 400}, "cut": {Cut: testserver.CutAfterExecute}, "no task": {Status: 204},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again.Method = http.MethodPost
			fixture.WithList(t, fixture.Setup{Server: testserver.Config{DeployDuration: time.Minute}}, []string{"192.0.2.0/25"}, func(f *fixture.Fixture) {
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.0/24"}, anything)
				require.NoError(f, err)
				f.AddFault(testserver.Fault{Method: http.MethodPost, Count: 1, Cut: testserver.CutAfterExecute})
				f.AddFault(again)
				result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
				require.ErrorContains(f, err, "wait until no task of the list runs, then plan and apply again")
				assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
				assert.NotNil(f, result)
				assert.GreaterOrEqual(f, f.Srv.Count(http.MethodPost, ""), 3)
				assert.Zero(f, f.Srv.Count(http.MethodDelete, ""))
				assert.ElementsMatch(f, []string{"192.0.2.0/25", "192.0.2.0/24"}, f.Srv.Entries(fixture.ListID))
			})
		})
	}
}

// The error of an Apply that ended early contains its tasks: they must end before the next plan.
func TestAnApplyThatEndsEarlyNamesItsTasks(t *testing.T) {
	t.Parallel()
	s := fixture.Setup{Server: testserver.Config{DeployDuration: time.Minute}}
	fixture.WithList(t, s, []string{"192.0.2.0/25"}, func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.0/24"}, anything)
		require.NoError(f, err)
		result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true}, webdelivery.WaitTimeout(time.Second))
		require.ErrorIs(f, err, context.DeadlineExceeded)
		require.Len(f, result.Tasks, 1)
		assert.Equal(f, 1, result.Added)
		_, err = f.Client.Tasks.Wait(f.Context(), result.Tasks[0])
		require.NoError(f, err)
	})
}
