package webdelivery_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
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

// Apply runs 4 removals at a time. Progress is called after each change, and at the end.
func TestApply(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(60)[:50], func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, fixture.Addresses(60)[40:], anything)
		require.NoError(f, err)
		f.AddFault(testserver.Fault{Delay: 100 * time.Millisecond})
		var steps [][3]int
		began := time.Now()
		result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Progress: func(added, removed, total int) {
			steps = append(steps, [3]int{added, removed, total})
		}})
		require.NoError(f, err)
		// It reads one page before and after, 100 ms each. One call adds; 40 removals follow.
		assert.Equal(f, (1+1+10+1)*100*time.Millisecond, time.Since(began))
		require.Len(f, steps, 1+40+1)
		assert.Equal(f, [3]int{10, 0, 50}, steps[0])
		assert.Equal(f, [3]int{10, 1, 50}, steps[1])
		assert.Equal(f, [3]int{10, 40, 50}, steps[41])
		assert.Equal(f, 10, result.Added)
		assert.Equal(f, 40, result.Removed)
		assert.Len(f, result.Tasks, 41)
		assert.Equal(f, fixture.Addresses(60)[40:], f.Srv.Entries(fixture.ListID))
	})
}

// In a full list, Apply makes room first: it removes entries that the desired set does not cover. The list never holds
// more than it may.
func TestAFullList(t *testing.T) {
	t.Parallel()
	all := fixture.Addresses(600)
	fixture.WithList(t, fixture.Setup{}, all[:500], func(f *fixture.Fixture) {
		desired := append(slices.Clone(all[60:500]), all[500:555]...)
		plan, err := watch(f).NetworkLists.Plan(f.Context(), fixture.ListID, desired, webdelivery.PlanOptions{})
		require.NoError(f, err)
		assert.Zero(f, plan.UncoveredDuringApply)
		_, err = watch(f).NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		got, want := f.Srv.Entries(fixture.ListID), slices.Clone(desired)
		slices.Sort(got)
		slices.Sort(want)
		assert.Equal(f, want, got)
	})
}

// watch returns a client of lists of 500 entries, 50 a call. It fails the test as soon as the list holds more.
func watch(f *fixture.Fixture) *webdelivery.Client {
	return f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{
		Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := f.HTTP.Transport.RoundTrip(r)
			if r.Method == http.MethodPost {
				assert.LessOrEqual(f, len(f.Srv.Entries(fixture.ListID)), 500)
			}
			return resp, err
		}),
	})}}).Limited(500, 50)
}

// With random lists, desired sets and faults, planning and applying again ends with the desired set. An address that
// is protected before and after is protected all the time.
func TestPlanAndApplyConverge(t *testing.T) {
	t.Parallel()
	for seed := range uint64(25) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			before, desired := randomEntries(r), randomEntries(r)
			s := fixture.Setup{Options: []webdelivery.Option{webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 2})}}
			fixture.WithList(t, s, before, func(f *fixture.Fixture) {
				both := covering(before)
				for i, covered := range covering(desired) {
					both[i] = both[i] && covered
				}
				client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: append(s.Options, webdelivery.WithHTTPClient(&http.Client{
					Transport: fixture.RoundTripper(func(r *http.Request) (*http.Response, error) {
						resp, err := f.HTTP.Transport.RoundTrip(r)
						now := covering(f.Srv.Entries(fixture.ListID))
						for i, must := range both {
							assert.False(f, must && !now[i], "address %d is uncovered", i)
						}
						return resp, err
					}),
				}))})
				options := webdelivery.PlanOptions{MaxRemove: -1, Aggregate: r.IntN(2) == 0}
				for round := 0; ; round++ {
					require.Less(f, round, 40, "it does not converge")
					randomFault(f, r)
					if attemptToApply(f, client, desired, options, r) {
						break
					}
				}
				assert.Equal(f, covering(desired), covering(f.Srv.Entries(fixture.ListID)))
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, desired, options)
				require.NoError(f, err)
				assert.True(f, plan.Empty(), "%v", plan)
			})
		})
	}
}

// attemptToApply plans and applies once. A context that ends at a random moment stands for a crash.
func attemptToApply(f *fixture.Fixture, client *webdelivery.Client, desired []string, options webdelivery.PlanOptions, r *rand.Rand) bool {
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	if r.IntN(3) == 0 {
		defer time.AfterFunc(time.Duration(r.IntN(2000))*time.Millisecond, cancel).Stop()
	}
	plan, err := client.NetworkLists.Plan(ctx, fixture.ListID, desired, options)
	if err != nil {
		return false
	}
	result, err := client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{})
	if err == nil {
		assert.Equal(f, len(plan.Add), result.Added)
		assert.Equal(f, len(plan.Remove), result.Removed)
		assert.Equal(f, plan.Keep+len(plan.Add), result.Size)
		return true
	}
	return false
}

// randomFault hits one of the next calls.
func randomFault(f *fixture.Fixture, r *rand.Rand) {
	faults := []testserver.Fault{
		{},
		{Status: 500},
		{Status: 400},
		{Status: 429},
		{Cut: testserver.CutAfterRead},
		{Cut: testserver.CutAfterExecute},
		{Cut: testserver.CutBody},
		{Status: 502, Execute: true},
		{Delay: 10 * time.Minute},
	}
	fault := faults[r.IntN(len(faults))]
	fault.Method = []string{"", http.MethodPost, http.MethodDelete, http.MethodGet}[r.IntN(4)]
	fault.Skip, fault.Count = r.IntN(30), 1+r.IntN(3)
	f.AddFault(fault)
}

// randomEntries are addresses and ranges of 192.0.2.0/24.
func randomEntries(r *rand.Rand) []string {
	var entries []string
	seen := map[netip.Prefix]bool{}
	for range r.IntN(60) {
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(256))}), 26+r.IntN(7)).Masked()
		if !seen[p] {
			seen[p] = true
			entries = append(entries, p.String())
		}
	}
	return entries
}

// covering returns, for each address of 192.0.2.0/24, whether an entry covers it.
func covering(entries []string) (covered [256]bool) {
	for _, e := range entries {
		p, err := netip.ParsePrefix(e)
		if err != nil {
			addr := netip.MustParseAddr(e)
			p = netip.PrefixFrom(addr, addr.BitLen())
		}
		for i := range covered {
			if p.Contains(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})) {
				covered[i] = true
			}
		}
	}
	return covered
}

// If the outcome of an addition is unknown, Apply reads the list and goes on with what is missing.
func TestApplySettlesWhatIsUnknown(t *testing.T) {
	t.Parallel()
	calls := map[testserver.Cut]int{testserver.CutAfterExecute: 1, testserver.CutAfterRead: 2}
	for name, cut := range map[string]testserver.Cut{"taken": testserver.CutAfterExecute, "not taken": testserver.CutAfterRead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.1", "192.0.2.2"}, anything)
				require.NoError(f, err)
				f.AddFault(testserver.Fault{Method: http.MethodPost, Count: 1, Cut: cut})
				result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				require.NoError(f, err)
				assert.Equal(f, 2, result.Added)
				assert.Equal(f, []string{"192.0.2.1", "192.0.2.2"}, f.Srv.Entries(fixture.ListID))
				assert.Equal(f, calls[cut], f.Srv.Count(http.MethodPost, ""), "entries that are in the list are not sent again")
			})
		})
	}
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) {
			plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.1"}, anything)
			require.NoError(f, err)
			f.AddFault(testserver.Fault{Method: http.MethodPost, Cut: testserver.CutAfterRead})
			result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
			require.Error(f, err)
			assert.Zero(f, result.Added)
			assert.Equal(f, 3, f.Srv.Count(http.MethodPost, ""))
		})
	})
}

// An entry that is already gone counts as removed. A removal that fails stops the rest, and the result contains what
// was done.
func TestRemovalsThatFail(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(40), func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, nil, anything)
		require.NoError(f, err)
		f.AddFault(testserver.Fault{Method: http.MethodDelete, Count: 1, Status: 404, Execute: true})
		f.AddFault(testserver.Fault{Method: http.MethodDelete, Skip: 19, Status: 403})
		result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.ErrorIs(f, err, webdelivery.ErrForbidden)
		assert.Equal(f, 20, result.Removed)
		assert.LessOrEqual(f, f.Srv.Count(http.MethodDelete, ""), 24)
	})
}

// The outcome of an Apply that fails: not applied as long as nothing was changed, unknown afterwards.
func TestOutcomeOfAFailedApply(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault testserver.Fault
		want  webdelivery.Outcome
	}{
		{"the first addition is rejected", testserver.Fault{Method: http.MethodPost, Status: 403}, webdelivery.OutcomeNotApplied},
		{"every attempt of an addition is cut", testserver.Fault{Method: http.MethodPost, Cut: testserver.CutAfterRead}, webdelivery.OutcomeUnknown},
		{"a removal is rejected", testserver.Fault{Method: http.MethodDelete, Status: 403}, webdelivery.OutcomeUnknown},
		{"the last read is rejected", testserver.Fault{Method: http.MethodGet, Skip: 3, Status: 403}, webdelivery.OutcomeUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
				f.AddFault(tt.fault)
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.2"}, anything)
				require.NoError(f, err)
				_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				require.Error(f, err)
				assert.Equal(f, tt.want, webdelivery.OutcomeOf(err))
			})
		})
	}
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, nil, anything)
		require.NoError(f, err)
		f.Srv.ChangeEntries(fixture.ListID, []string{"192.0.2.9"}, nil)
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.ErrorIs(f, err, webdelivery.ErrPlanStale)
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
	})
}

// The context limits the waits for all tasks, and a task that failed ends them.
func TestApplyWaitsNoLonger(t *testing.T) {
	t.Parallel()
	s := fixture.Setup{Server: testserver.Config{DeployDuration: time.Hour}}
	fixture.WithList(t, s, fixture.Addresses(10), func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, nil, anything)
		require.NoError(f, err)
		began := time.Now()
		ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
		defer cancel()
		_, err = f.Client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: true})
		require.ErrorIs(f, err, context.DeadlineExceeded)
		assert.Equal(f, 5*time.Second, time.Since(began))
	})
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(2), func(f *fixture.Fixture) { // also if the other task cannot be read
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, nil, anything)
		require.NoError(f, err)
		f.AddFault(testserver.Fault{Path: "/tasks/*", Status: 200, Body: `{"id":"task-1","error_info":{"message":"no route"}}`})
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
		var failed *webdelivery.TaskError
		require.ErrorAs(f, err, &failed)
	})
}

// Apply learns soon of the first change whose task failed, although the tasks of later changes go on for long.
func TestApplyEndsWithTheFirstFailure(t *testing.T) {
	t.Parallel()
	s := fixture.Setup{Server: testserver.Config{DeployDuration: time.Hour}}
	fixture.WithList(t, s, fixture.Addresses(50), func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, nil, anything)
		require.NoError(f, err)
		f.AddFault(testserver.Fault{Path: "/tasks/task-1", Skip: 3, Status: 200, Body: `{"id":"task-1","error_info":{"message":"no route"}}`})
		began := time.Now()
		_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
		var failed *webdelivery.TaskError
		require.ErrorAs(f, err, &failed)
		assert.Equal(f, "task-1", failed.Task.ID)
		assert.Less(f, time.Since(began), 5*time.Minute, "50 tasks, 4 in 5 s, 4 times")
	})
}

// The response to an addition is lost, and the list cannot be read to find out whether it was applied. Apply returns
// both errors, counts nothing as added, and removes nothing.
func TestAnAdditionThatCannotBeSettled(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, []string{"192.0.2.1"}, func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.2", "192.0.2.3"}, anything)
		require.NoError(f, err)
		f.AddFault(testserver.Fault{Method: http.MethodPost, Status: 504})
		f.AddFault(testserver.Fault{Method: http.MethodGet, Path: oneList + "/entries", Skip: 1, Status: 403})
		result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.ErrorIs(f, err, webdelivery.ErrServer)
		require.ErrorIs(f, err, webdelivery.ErrForbidden)
		assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		assert.Zero(f, result.Added)
		assert.Equal(f, 1, f.Srv.Count(http.MethodPost, ""))
		assert.Equal(f, []string{"192.0.2.1"}, f.Srv.Entries(fixture.ListID))
	})
}

// Apply refuses wrong options before it reads the list.
func TestWrongOptionsOfApply(t *testing.T) {
	t.Parallel()
	fixture.WithList(t, fixture.Setup{}, fixture.Addresses(3), func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, fixture.Addresses(4), anything)
		require.NoError(f, err)
		before := len(f.Srv.Requests())
		for field, apply := range map[string]func() (*webdelivery.ApplyResult, error){
			"plan": func() (*webdelivery.ApplyResult, error) {
				return f.Client.NetworkLists.Apply(f.Context(), nil, webdelivery.ApplyOptions{})
			},
			"MaxOutage": func() (*webdelivery.ApplyResult, error) {
				return f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{MaxOutage: -1})
			},
		} {
			result, err := apply()
			var invalid *webdelivery.ValidationError
			require.ErrorAs(f, err, &invalid, field)
			assert.Equal(f, field, invalid.Field)
			assert.Nil(f, result)
		}
		assert.Len(f, f.Srv.Requests(), before)
	})
}

const poll = 6.0 // seconds between two polls at most

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
			options := webdelivery.ApplyOptions{Wait: wait, Progress: func(_, gone, _ int) {
				if gone > len(removed) {
					removed = append(removed, time.Since(began))
				}
			}}
			_, err = f.Client.NetworkLists.Apply(f.Context(), plan, options)
			require.NoError(f, err)
			require.Len(f, removed, 2)
			assert.InDelta(f, took.Seconds(), removed[0].Seconds(), poll)
			assert.InDelta(f, 2*took.Seconds(), time.Since(began).Seconds(), 2*poll)
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
		options := webdelivery.ApplyOptions{Wait: true, Progress: func(n, _, _ int) {
			if n == 1 && added == 0 {
				added = time.Since(began)
			}
		}}
		_, err = watch(f).NetworkLists.Apply(f.Context(), plan, options)
		require.NoError(f, err)
		assert.InDelta(f, 60, added.Seconds(), poll)
		assert.InDelta(f, 120, time.Since(began).Seconds(), 2*poll)
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
				_, err = f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Progress: func(_, removed, _ int) {
					if removed == 1 {
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
		ctx, cancel := context.WithTimeout(f.Context(), time.Second)
		defer cancel()
		result, err := f.Client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: true})
		require.ErrorIs(f, err, context.DeadlineExceeded)
		require.Len(f, result.Tasks, 1)
		assert.Equal(f, 1, result.Added)
		_, err = f.Client.Tasks.Wait(f.Context(), result.Tasks[0])
		require.NoError(f, err)
	})
}
