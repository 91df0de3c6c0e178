package webdelivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// listService is the fake with a list whose entries are shown at once, and are in effect when the task of their addition ends.
// Some requests are lost, or arrive late, and some responses are.
type listService struct {
	*fixture.Fixture
	*rand.Rand

	deploy time.Duration  // of a task
	late   sync.WaitGroup // requests that arrive late

	mu      sync.Mutex
	faults  bool
	restore []func()                  // end the faults of the fake
	since   map[addressBits]time.Time // when entries take effect
	counts  addressBits               // addresses that may not go out of effect
	gaps    int
}

// inEffect returns the addresses of the entries that are shown and in effect.
func (s *listService) inEffect() (set addressBits) {
	for _, text := range s.Srv.Entries(fixture.ListID) {
		if at, known := s.since[bitsOf(text)]; known && !time.Now().Before(at) {
			set |= bitsOf(text)
		}
	}
	return set
}

// carryOut lets the fake process a request, whatever becomes of its caller.
func (s *listService) carryOut(r *http.Request, sent []byte) (*http.Response, error) {
	r = r.Clone(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(sent))
	effect := time.Now().Add(s.deploy)
	resp, err := s.HTTP.Transport.RoundTrip(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.since
	s.since = map[addressBits]time.Time{}
	for _, text := range s.Srv.Entries(fixture.ListID) {
		at, known := before[bitsOf(text)]
		if !known {
			at = effect
		}
		s.since[bitsOf(text)] = at
	}
	if s.counts&^s.inEffect() != 0 {
		s.gaps++
	}
	return resp, err
}

func (s *listService) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
	}
	time.Sleep(10 * time.Millisecond)
	s.mu.Lock()
	delay, late := time.Duration(s.Int64N(int64(3*time.Second))), s.faults && r.Method != http.MethodGet && s.IntN(12) == 0
	s.mu.Unlock()
	if !late {
		return s.carryOut(r, sent)
	}
	s.late.Go(func() {
		time.Sleep(delay)
		if resp, err := s.carryOut(r, sent); err == nil {
			_ = resp.Body.Close()
		}
	})
	return nil, errors.New("timeout")
}

// lose adds faults to all requests.
func (s *listService) lose(seed uint64) {
	s.faults = true
	for i, fault := range []testserver.Fault{
		{Cut: testserver.CutBeforeRead}, {Cut: testserver.CutAfterExecute}, {Status: 502, Execute: true}, {Status: 400}, {Status: 429}, {Status: 500}, {Status: 503},
	} {
		for method, p := range map[string]float64{http.MethodPost: 0.07, http.MethodDelete: 0.05, http.MethodGet: 0.01} {
			fault.Method, fault.Probability, fault.Seed = method, p, seed*10+uint64(i)
			s.restore = append(s.restore, s.Srv.Fail(fault))
		}
	}
}

// work ends the faults.
func (s *listService) work() {
	s.late.Wait()
	s.faults = false
	for _, restore := range s.restore {
		restore()
	}
	s.restore = nil
}

// nestedLists returns a list of up to 8 ranges, and desired ones, many of which are wider or narrower.
func nestedLists(r *rand.Rand) (held, desired []string) {
	text := func(at, narrow int) string { return fmt.Sprintf("198.51.100.%d/%d", at>>narrow<<narrow, 32-narrow) }
	for n := 8 - r.IntN(3)*r.IntN(2); len(held) < n; {
		at, narrow := r.IntN(64), r.IntN(2+r.IntN(5))
		if slices.Contains(held, text(at, narrow)) {
			continue
		}
		held = append(held, text(at, narrow))
		switch r.IntN(4) {
		case 0, 1:
			desired = append(desired, text(at, narrow+1))
		case 2:
			desired = append(desired, text(at, max(0, narrow-1)))
		}
	}
	for len(desired) < 8 && r.IntN(2) > 0 {
		desired = append(desired, text(r.IntN(64), r.IntN(5)))
	}
	return held, desired
}

// Whatever requests and responses are lost, and whenever the context ends, no address that is covered before and after is
// uncovered in between, unless the plan says so. With Wait, only entries in effect cover addresses. After a failed Apply and
// the end of its tasks, planning and applying again ends with the desired entries.
func TestApplyWithLostResponses(t *testing.T) {
	t.Parallel()
	const shards, applies = 4, 400
	for shard := range uint64(fixture.Cases(shards, 1)) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			failed, announced, rounds := 0, 0, 0
			for n, seed := 0, shard; n < applies/shards; seed += shards {
				r := rand.New(rand.NewPCG(seed, 30))
				held, desired := nestedLists(r)
				wait, most := r.IntN(3) > 0, 8+r.IntN(13)
				setup := fixture.Setup{Server: testserver.Config{DeployDuration: time.Duration(1 + r.Int64N(int64(20*time.Second)))}}
				shapes := []string{"task", "task_id", "id", "entries", "empty"} // of responses to additions (open point 21)
				shape := r.IntN(len(shapes))
				if setup.Server.Dialect.EntriesReply = shapes[shape]; shape > 2 { // they name no task
					setup.Server.DeployDuration = -1
				}
				fixture.WithList(t, setup, held, func(f *fixture.Fixture) {
					s := &listService{Fixture: f, Rand: r, since: map[addressBits]time.Time{}}
					if wait {
						s.deploy = max(0, setup.Server.DeployDuration)
					}
					for _, text := range held {
						s.since[bitsOf(text)] = time.Now()
					}
					client := f.NewClient(f.Srv.URL(), fixture.Setup{Options: []webdelivery.Option{webdelivery.WithHTTPClient(&http.Client{Transport: s})}})
					client = client.Limited(most, 3)
					options := webdelivery.PlanOptions{MaxRemove: -1, Aggregate: r.IntN(4) == 0}
					for round := 0; ; round++ {
						require.Less(t, round, 30, "seed %d does not converge", seed)
						plan, err := client.NetworkLists.Plan(f.Context(), fixture.ListID, desired, options)
						require.NoError(t, err)
						if plan.Empty() {
							rounds = max(rounds, round)
							break
						}
						s.gaps, s.counts = 0, coveredBy(slices.Values(desired))&s.inEffect()
						if round < 20 {
							s.lose(seed + uint64(round)<<20)
						}
						ctx, cancel := context.WithTimeout(f.Context(), time.Duration(1+s.Int64N(int64(5*time.Minute))))
						result, err := client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: wait})
						cancel()
						s.work()
						time.Sleep(20 * time.Second) // until no task runs
						n++
						if err != nil {
							failed++
							require.Equal(t, result == nil, webdelivery.OutcomeOf(err) == webdelivery.OutcomeNotApplied, "seed %d: %v", seed, err)
						} else {
							require.Equal(t, []int{len(plan.Add), len(plan.Remove)}, []int{result.Added, result.Removed})
						}
						if plan.UncoveredDuringApply > 0 {
							announced++
							continue
						}
						require.Zero(t, s.gaps, "seed %d, round %d: %v\n%v", seed, round, plan, err)
					}
					assert.Equal(t, coveredBy(slices.Values(desired)), coveredBy(slices.Values(f.Srv.Entries(fixture.ListID))))
				})
			}
			t.Logf("%d failed, %d with announced gaps, at most %d rounds", failed, announced, rounds)
			assert.Less(t, announced, applies/shards/2, "the lists are too full to prove anything")
			assert.Greater(t, failed, applies/shards/10)
		})
	}
}

// What an Apply returns that meets a fault, how far it got, and how often it sent additions. As long as nothing was changed, the
// result is nil, and the outcome not applied.
func TestApplyWithFaults(t *testing.T) {
	t.Parallel()
	type fault = testserver.Fault
	const noRoute = `{"id":"task-1","complete":true,"error_info":{"message":"no route"}}`
	isError := func(err error) bool { return errors.As(err, new(*webdelivery.Error)) }
	isTaskError := func(err error) bool { return errors.As(err, new(*webdelivery.TaskError)) }
	badTask := []fault{{Path: "/tasks/*", Status: 200, Body: noRoute}}
	lost, taken := fault{Method: http.MethodPost, Cut: testserver.CutAfterRead}, fault{Method: http.MethodPost, Cut: testserver.CutAfterExecute}
	once := func(f fault) fault {
		f.Count = 1
		return f
	}
	noTask := "did not name its task, so Apply cannot wait for it; wait until no task of the list runs, then plan and apply again"
	for rule, tt := range map[string]struct {
		held, desired         string
		wait                  bool
		faults                []fault
		want                  any // nil: no error; an error, a part of its text, or a func(error) bool
		added, removed, posts int
	}{
		"an addition is lost, but taken": {"", "192.0.2.1 192.0.2.2", false, []fault{once(taken)}, nil, 2, 0, 1},
		"an addition is lost":            {"", "192.0.2.1 192.0.2.2", false, []fault{once(lost)}, nil, 2, 0, 2},
		"an addition is always lost":     {"192.0.2.9", "192.0.2.1", false, []fault{lost}, isError, 0, 0, 3},
		"an addition is lost, and the list cannot be read": {
			"192.0.2.9", "192.0.2.1", false, []fault{
				{Method: "POST", Status: 504}, {Method: "GET", Path: oneList + "/entries", Skip: 2, Status: 403},
			}, webdelivery.ErrForbidden, 0, 0, 1,
		},
		"the first addition is refused":  {"192.0.2.9", "192.0.2.1", false, []fault{{Method: "POST", Status: 403}}, webdelivery.ErrForbidden, 0, 0, 1},
		"a removal is refused":           {"192.0.2.9", "192.0.2.1", false, []fault{{Method: "DELETE", Status: 403}}, webdelivery.ErrForbidden, 1, 0, 1},
		"the last reading is refused":    {"192.0.2.9", "192.0.2.1", false, []fault{{Method: "GET", Skip: 3, Status: 403}}, webdelivery.ErrForbidden, 1, 1, 1},
		"an entry is already gone":       {"192.0.2.9", "", false, []fault{{Method: "DELETE", Count: 1, Status: 404, Execute: true}}, nil, 0, 1, 0},
		"a removal is always lost":       {"192.0.2.9", "", false, []fault{{Method: "DELETE", Cut: testserver.CutAfterRead}}, isError, 0, 0, 0},
		"some removals are refused":      {strings.Join(fixture.Addresses(40), " "), "", false, []fault{{Method: "DELETE", Skip: 20, Status: 403}}, webdelivery.ErrForbidden, 0, 20, 0},
		"the task of an addition fails":  {"192.0.2.0/25", "192.0.2.0/24", true, badTask, isTaskError, 1, 0, 1},
		"a response shows a failed task": {"192.0.2.0/25", "192.0.2.0/24", false, []fault{{Method: "POST", Status: 200, Body: noRoute}}, isTaskError, 1, 0, 1},
		// With Wait, a repeat must name a task: the list shows the entry, but does not tell whether it is in effect.
		"and each repeat, too":                           {"192.0.2.0/25", "192.0.2.0/24", true, []fault{taken}, noTask, 0, 0, 3},
		"and each repeat names no task":                  {"192.0.2.0/25", "192.0.2.0/24", true, []fault{once(taken), {Method: "POST", Status: 204}}, noTask, 0, 0, 3},
		"and each repeat comes too early":                {"192.0.2.0/25", "192.0.2.0/24", true, []fault{once(taken), {Method: "POST", Status: 429}}, noTask, 0, 0, 7},
		"one task fails, and another one cannot be read": {"192.0.2.8 192.0.2.9", "", true, badTask, isTaskError, 0, 2, 0},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			fixture.WithList(t, fixture.Setup{}, strings.Fields(tt.held), func(f *fixture.Fixture) {
				for _, fault := range tt.faults {
					f.AddFault(fault)
				}
				plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, strings.Fields(tt.desired), anything)
				require.NoError(f, err)
				result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: tt.wait})
				switch want := tt.want.(type) {
				case nil:
					require.NoError(f, err)
				case error:
					require.ErrorIs(f, err, want)
				case string:
					require.ErrorContains(f, err, want)
				case func(error) bool:
					require.True(f, want(err), "%v", err)
				}
				posts, deletes := f.Srv.Count(http.MethodPost, ""), f.Srv.Count(http.MethodDelete, "")
				assert.Equal(f, tt.posts, posts)
				assert.LessOrEqual(f, deletes, tt.removed+4, "4 at a time")
				if unchanged := rule == "the first addition is refused"; unchanged {
					assert.Nil(f, result)
					assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
					return
				}
				require.Equal(f, tt.want != nil, webdelivery.OutcomeOf(err) == webdelivery.OutcomeUnknown) // otherwise result is nil
				assert.Equal(f, []int{tt.added, tt.removed}, []int{result.Added, result.Removed})
				if tt.want == nil {
					assert.Equal(f, strings.Fields(tt.desired), append([]string{}, f.Srv.Entries(fixture.ListID)...))
				}
			})
		})
	}
	fixture.WithList(t, fixture.Setup{}, nil, func(f *fixture.Fixture) { // what the list holds is not sent again
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.1", "192.0.2.2"}, anything)
		require.NoError(f, err)
		f.AddFault(fault{Method: http.MethodPost, Count: 1, Handler: func(w http.ResponseWriter, _ *http.Request) {
			f.Srv.ChangeEntries(fixture.ListID, []string{"192.0.2.1"}, nil)
			w.WriteHeader(http.StatusGatewayTimeout)
		}})
		result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Equal(f, 2, result.Added)
		sent := slices.DeleteFunc(f.Srv.Requests(), func(r testserver.Request) bool { return r.Method != http.MethodPost })
		assert.JSONEq(f, `[{"entry":"192.0.2.2"}]`, string(sent[1].Body))
	})
}

// An Apply that waits ends with its context, or soon after the first task that failed, although the tasks of later changes go on
// for long. It names the tasks that it leaves: they must end before the next plan.
func TestApplyEndsWithTheFirstFailure(t *testing.T) {
	t.Parallel()
	s := fixture.Setup{Server: testserver.Config{DeployDuration: time.Hour}}
	fixture.WithList(t, s, fixture.Addresses(50), func(f *fixture.Fixture) {
		plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, nil, anything)
		require.NoError(f, err)
		f.AddFault(testserver.Fault{Path: "/tasks/task-1", Skip: 3, Status: 200, Body: `{"id":"task-1","error_info":{"message":"no route"}}`})
		began := time.Now()
		result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
		var failed *webdelivery.TaskError
		require.ErrorAs(f, err, &failed)
		assert.Equal(f, "task-1", failed.Task.ID)
		assert.Less(f, time.Since(began), 5*time.Minute, "50 tasks, 4 in 5 s, 4 times")
		assert.Len(f, result.Tasks, 50)

		plan, err = f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.1"}, anything)
		require.NoError(f, err)
		began = time.Now()
		ctx, cancel := context.WithTimeout(f.Context(), 5*time.Second)
		defer cancel()
		result, err = f.Client.NetworkLists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: true})
		require.ErrorIs(f, err, context.DeadlineExceeded)
		assert.Equal(f, 5*time.Second, time.Since(began))
		assert.Equal(f, []string{"task-51"}, result.Tasks)
	})
}

// With Wait, entries are removed only after the tasks of the additions have ended, and in a full list entries are added only
// after the tasks of the removals that make room. Without Wait nothing waits. A wait notices the end of a task within 6 s.
func TestApplyAwaitsWhatCovers(t *testing.T) {
	t.Parallel()
	s := fixture.Setup{Server: testserver.Config{DeployDuration: time.Minute}}
	for _, tt := range []struct {
		wait    bool
		most    int
		changes string // what Progress is told: added, removed, and of how many; and the minute
	}{
		{true, 3, "1 0 3 0m, 1 1 3 1m, 1 2 3 1m, 1 2 3 2m"},
		{true, 2, "0 1 3 0m, 1 1 3 1m, 1 2 3 2m, 1 2 3 3m"},
		{false, 3, "1 0 3 0m, 1 1 3 0m, 1 2 3 0m, 1 2 3 0m"},
	} {
		fixture.WithList(t, s, []string{"192.0.2.0/25", "203.0.113.9"}, func(f *fixture.Fixture) {
			client := f.Client.Limited(tt.most, 5)
			plan, err := client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.0/24"}, anything)
			require.NoError(f, err)
			assert.Zero(f, plan.UncoveredDuringApply, "what makes room covers nothing")
			began := time.Now()
			var got []string
			result, err := client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: tt.wait, Progress: func(added, removed, total int) {
				got = append(got, fmt.Sprintf("%d %d %d %.0fm", added, removed, total, time.Since(began).Minutes()))
			}})
			require.NoError(f, err)
			assert.Equal(f, tt.changes, strings.Join(got, ", "))
			assert.Len(f, result.Tasks, 3)
		})
	}
}

// Bodies that a service may send to a change (open points 21 and 23), and that do not show what was added.
var unclearBodies = map[string]string{
	"a word": `"ok"`, "null": `null`, "no item": `[]`, "a null": `[null]`, "plain text": `OK`, "nothing": ``, "no id": `{"id":null}`, "an object": `{}`,
	"of a proxy": `{"status":"maintenance"}`, "another entry": `[{"id":"e","entry":"198.51.100.9"}]`, "a text": `["192.0.2.0/24"]`,
	"the list":              `{"uri":"/config/networklists/{list}","id":"{list}","type":"IP","name":"blocklist","deprecated":false}`,
	"the list, in short":    `{"id":"{list}","uri":"/config/networklists/{list}"}`,
	"the list's id":         `{"id":"{list}"}`,
	"the entry":             `{"uri":"/config/networklists/{list}/entries/e1","id":"e1","entry":"192.0.2.0/24","added_by":"alice"}`,
	"the entry, in short":   `{"id":"e1","uri":"/config/networklists/{list}/entries/e1"}`,
	"the entry's info":      `{"id":"e1","type":"IP","network_list_uri":"/config/networklists/{list}"}`,
	"a page":                `{"uri":"/x","items":[{"id":"e1","entry":"192.0.2.0/24"}],"total":1,"has_more":false,"page_count":1,"page_index":1}`,
	"the deleted entry":     `{"id":"{entry}"}`,
	"the deleted, in short": `{"id":"{entry}","uri":"/config/networklists/{list}/entries/{entry}"}`,
}

// A response that neither names a task nor shows the entries proves no addition; only the list does. Apply does not
// remove an entry that the addition covers before that.
func TestAnAdditionWithoutProofRemovesNothing(t *testing.T) {
	t.Parallel()
	test := func(t *testing.T, held []string, body string, wait, taken bool) {
		t.Helper()
		fixture.WithList(t, fixture.Setup{}, held, func(f *fixture.Fixture) {
			plan, err := f.Client.NetworkLists.Plan(f.Context(), fixture.ListID, []string{"192.0.2.0/24", "203.0.113.9"}, anything)
			require.NoError(f, err)
			body = strings.ReplaceAll(body, "{list}", fixture.ListID)
			deletion := testserver.Fault{Method: http.MethodDelete, Status: 200, Execute: true, Body: body}
			if strings.Contains(body, "{entry}") { // otherwise the same body is the response to the addition, too
				deletion.Body = strings.ReplaceAll(body, "{entry}", plan.Remove[0].ID)
			} else {
				f.AddFault(testserver.Fault{Method: http.MethodPost, Status: 200, Execute: taken, Body: body})
			}
			f.AddFault(deletion)
			result, err := f.Client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: wait})
			if taken {
				require.NoError(f, err)
				assert.Equal(f, []int{2, len(held), 2}, []int{result.Added, result.Removed, result.Size})
				return
			}
			require.ErrorIs(f, err, webdelivery.ErrBadResponse)
			require.ErrorContains(f, err, "2 of 2 added entries are not in the list, for example 192.0.2.0/24")
			if body != "" && len(body) < 50 {
				require.ErrorContains(f, err, strconv.Quote(body))
			}
			assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
			assert.Equal(f, []int{0, 0}, []int{result.Added, result.Removed})
			assert.Zero(f, f.Srv.Count(http.MethodDelete, ""))
		})
	}
	for shape, body := range unclearBodies {
		for _, wait := range []bool{false, true} {
			t.Run(fmt.Sprint(shape, ", wait ", wait), func(t *testing.T) {
				t.Parallel()
				test(t, []string{"192.0.2.0/25"}, body, wait, true)
				if !strings.Contains(body, "{entry}") {
					test(t, []string{"192.0.2.0/25"}, body, wait, false)
				}
			})
		}
	}
	test(t, nil, unclearBodies["of a proxy"], false, false) // nothing relies on the addition, but still nothing was added
	test(t, []string{"192.0.2.0/25"}, `[{"id":"e1","entry":"192.0.2.0/24"},{"id":"e2","entry":"203.0.113.9"}]`, true, true)
}
