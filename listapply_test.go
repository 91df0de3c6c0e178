package webdelivery_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// With Wait, an entry that an addition covers goes only after the task of that addition has ended. Other entries do not
// wait, nor does anything without Wait.
func TestApplyAwaitsWhatCovers(t *testing.T) {
	t.Parallel()
	s := setup{server: testserver.Config{DeployDuration: time.Minute}}
	for name, tt := range map[string]struct {
		wait  bool
		first time.Duration // after which the first entry goes
		last  time.Duration // after which the covered one goes
		took  time.Duration
	}{
		"waiting":     {true, 0, time.Minute, 2 * time.Minute},
		"not waiting": {false, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withList(t, s, []string{"192.0.2.0/25", "203.0.113.9"}, func(f *fixture) {
				plan, err := f.client.NetworkLists.Plan(f.Context(), listID, []string{"192.0.2.0/24"}, anything)
				require.NoError(f, err)
				assert.Contains(f, plan.String(), "1 added entries cover removed ones; unless Apply waits, they must be in effect when their call is accepted\n")
				began := time.Now()
				var removed []time.Duration
				_, err = f.client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: tt.wait}, webdelivery.PollEvery(time.Second),
					webdelivery.OnProgress(func(p webdelivery.Progress) {
						if p.Status == "removing" {
							removed = append(removed, time.Since(began))
						}
					}))
				require.NoError(f, err)
				assert.Equal(f, []time.Duration{tt.first, tt.last}, removed)
				assert.Equal(f, tt.took, time.Since(began))
			})
		})
	}
}

// If the task of an addition fails, what it covers stays in the list.
func TestAFailedAdditionRemovesNothing(t *testing.T) {
	t.Parallel()
	withList(t, setup{}, []string{"192.0.2.0/25", "192.0.2.128/25"}, func(f *fixture) {
		plan, err := f.client.NetworkLists.Plan(f.Context(), listID, []string{"192.0.2.0/24"}, anything)
		require.NoError(f, err)
		// A service on which an addition takes effect with its task.
		f.fail(testserver.Fault{Method: http.MethodPost, Status: 200, Body: `{"task_id":"t1"}`})
		f.fail(testserver.Fault{Path: "/tasks/t1", Status: 200, Body: `{"id":"t1","complete":true,"error_info":{"message":"no route"}}`})
		result, err := f.client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
		var failed *webdelivery.TaskError
		require.ErrorAs(f, err, &failed)
		assert.Equal(f, webdelivery.Unknown, webdelivery.OutcomeOf(err))
		assert.Zero(f, result.Removed)
		assert.Equal(f, []string{"192.0.2.0/25", "192.0.2.128/25"}, f.srv.Entries(listID))
	})
}

// WaitTimeout bounds the waits before and after the removals together.
func TestApplyWaitsNoLongerInAll(t *testing.T) {
	t.Parallel()
	s := setup{server: testserver.Config{DeployDuration: time.Minute}}
	withList(t, s, []string{"192.0.2.0/25"}, func(f *fixture) {
		plan, err := f.client.NetworkLists.Plan(f.Context(), listID, []string{"192.0.2.0/24"}, anything)
		require.NoError(f, err)
		began := time.Now()
		_, err = f.client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true},
			webdelivery.PollEvery(time.Second), webdelivery.WaitTimeout(90*time.Second))
		require.ErrorContains(f, err, "still pending")
		assert.Equal(f, 90*time.Second, time.Since(began))
		assert.Equal(f, []string{"192.0.2.0/24"}, f.srv.Entries(listID), "the second wait was cut off")
	})
}

// In a full list with Wait, room counts only when the task of the removal has ended.
func TestApplyAwaitsRoom(t *testing.T) {
	t.Parallel()
	full(t)
	all := addresses(50_001)
	s := setup{server: testserver.Config{DeployDuration: time.Minute}}
	withList(t, s, all[:50_000], func(f *fixture) {
		plan, err := f.client.NetworkLists.Plan(f.Context(), listID, all[1:], webdelivery.PlanOptions{})
		require.NoError(f, err)
		assert.Zero(f, plan.Unprotected)
		began := time.Now()
		var added time.Duration
		_, err = f.client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true}, webdelivery.PollEvery(time.Second),
			webdelivery.OnProgress(func(p webdelivery.Progress) {
				if p.Status == "adding" {
					added = time.Since(began)
				}
			}))
		require.NoError(f, err)
		assert.Equal(f, time.Minute, added)
		assert.Equal(f, 2*time.Minute, time.Since(began))
	})
}

// What a service may answer to a change (open points 21 and 23). Apply ends well whenever the list is as desired, and
// waits for what is a task.
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
			withList(t, setup{}, []string{"192.0.2.0/25"}, func(f *fixture) {
				client := f.newClient(f.srv.URL(), setup{options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{
					Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
						resp, err := f.http.Transport.RoundTrip(r)
						adding := strings.Contains(shape, "{entry}")
						if err != nil || r.Method == http.MethodGet || r.Method == http.MethodPost && adding {
							return resp, err
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
						entry := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
						body := strings.NewReplacer("{list}", listID, "{entry}", entry).Replace(shape)
						resp.Header = http.Header{"Content-Type": {"application/json"}}
						resp.ContentLength, resp.Body = int64(len(body)), io.NopCloser(strings.NewReader(body))
						return resp, nil
					}),
				})}})
				plan, err := client.NetworkLists.Plan(f.Context(), listID, []string{"192.0.2.0/24"}, anything)
				require.NoError(f, err)
				result, err := client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
				require.NoError(f, err)
				assert.Equal(f, []string{"192.0.2.0/24"}, f.srv.Entries(listID))
				assert.LessOrEqual(f, len(result.Tasks), 1, "no task was named but for the addition whose response is the service's own")
			})
		})
	}
}

// ErrPlanStale says that somebody else changed the list only if this Apply cannot have done it.
func TestAStalePlanSaysWhoChangedTheList(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		add, remove []string // by somebody else, after the addition
		lost        bool     // the response to the addition is lost
		says        string
	}{
		"an entry that the plan keeps goes":      {nil, []string{"192.0.2.2"}, false, "; somebody else changed it"},
		"an entry that the plan does not know":   {[]string{"203.0.113.9"}, nil, false, "; somebody else changed it"},
		"the added entry is not there":           {nil, []string{"192.0.2.3"}, false, "; a change of this Apply is not in effect yet, or somebody else"},
		"the same, after a response was lost":    {nil, []string{"192.0.2.3"}, true, "; a change whose response was lost may have come late, or somebody else"},
		"another one, after a response was lost": {[]string{"203.0.113.9"}, nil, true, "; somebody else changed it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withList(t, setup{}, []string{"192.0.2.1", "192.0.2.2"}, func(f *fixture) {
				plan, err := f.client.NetworkLists.Plan(f.Context(), listID, []string{"192.0.2.2", "192.0.2.3"}, anything)
				require.NoError(f, err)
				if tt.lost {
					f.fail(testserver.Fault{Method: http.MethodPost, Count: 1, Cut: testserver.CutAfterExecute})
				}
				_, err = f.client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{},
					webdelivery.OnProgress(func(p webdelivery.Progress) {
						if p.Status == "removing" {
							f.srv.ChangeEntries(listID, tt.add, tt.remove)
						}
					}))
				require.ErrorIs(f, err, webdelivery.ErrPlanStale)
				require.ErrorContains(f, err, tt.says)
			})
		})
	}
}

// A full list whose entries are merged: the obsolete one goes first, then what was merged, as soon as its range is there.
// Nothing is uncovered at any time.
func TestAFullListIsMergedWithoutAGap(t *testing.T) {
	t.Parallel()
	full(t)
	all := addresses(50_000) // the first 200 are 100 ranges of two
	withList(t, setup{}, all, func(f *fixture) {
		desired := slices.Clone(all[200:49_999])
		for i := range 100 {
			desired = append(desired, fmt.Sprintf("198.18.0.%d/31", 2*i))
		}
		plan, err := f.client.NetworkLists.Plan(f.Context(), listID, desired, webdelivery.PlanOptions{})
		require.NoError(f, err)
		assert.Zero(f, plan.Unprotected)
		assert.Equal(f, 50_000, plan.Largest)
		assert.Equal(f, all[49_999], plan.Remove[0].Entry, "the obsolete one")
		assert.Less(f, plan.Calls, 201+100, "more than one at a time, as soon as there is room")

		must := map[string]string{} // what covers an address when it is gone
		for i, text := range all[:200] {
			must[text] = fmt.Sprintf("198.18.0.%d/31", i&^1)
		}
		client := f.newClient(f.srv.URL(), setup{options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{
			Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				resp, err := f.http.Transport.RoundTrip(r)
				if r.Method == http.MethodPost {
					has := map[string]bool{}
					entries := f.srv.Entries(listID)
					for _, text := range entries {
						has[text] = true
					}
					assert.LessOrEqual(f, len(entries), 50_000)
					for text, covering := range must {
						assert.True(f, has[text] || has[covering], "%s is uncovered", text)
					}
				}
				return resp, err
			}),
		})}})
		_, err = client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.NoError(f, err)
	})
}
