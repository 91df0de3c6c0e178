package webdelivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// ErrInvalid means that nothing was sent. So no error matches it after the service has got a request. If the client
// can detect an invalid argument by itself, it returns ErrInvalid before any request. TestForeignBodies shows the
// first half for bodies of every shape; this file shows it for addresses and ids of the service's, and for arguments.

// leadingAstray answers with every requested resource, but with ids and addresses that no request can use.
type leadingAstray struct {
	id, address string
	honestReads bool // reads get honest answers

	requests atomic.Int64
}

func (s *leadingAstray) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests.Add(1)
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	honest := s.honestReads && r.Method == http.MethodGet
	return response(http.StatusOK, everyResponse{
		text: func(member string) string {
			switch {
			case member == "type":
				return "IP"
			case member == "list":
				return "192.0.2.1"
			case member == "id" && !honest:
				return s.id
			}
			return member
		},
		address: func(member string) string {
			if honest || member == "next_uri" {
				return ""
			}
			return s.address
		},
		page: 1, lacking: !honest,
	}.to(r)), nil
}

// No id and no address of a response causes ErrInvalid, whatever the operation does with it.
func TestErrInvalidIsNoErrorOfAResponse(t *testing.T) {
	t.Parallel()
	ids := []string{"..", ".", "a/../b", `a\..\b`, "\x01", "", "a/b"}
	addresses := []string{
		"https://elsewhere.example.com/tasks/1", "//elsewhere.example.com/x", "/../x", "/x/%2e%2e/y", "%zz", "http://[", "/x#y", "mailto:a@b", "",
		"/config/networklists/" + listID + "/entries/deletions?a b",
	}
	for i, op := range everyStep(time.Second) {
		t.Run(fmt.Sprint(i, " ", op), func(t *testing.T) {
			t.Parallel()
			for _, honestReads := range []bool{false, true} {
				for i := range max(len(ids), len(addresses)) {
					service := &leadingAstray{id: ids[i%len(ids)], address: addresses[i%len(addresses)], honestReads: honestReads}
					err := runAlone(t, op, service)
					require.Positive(t, service.requests.Load())
					assert.NotErrorIs(t, err, webdelivery.ErrInvalid, "id %q, address %q, honest reads %t", service.id, service.address, honestReads)
				}
			}
		})
	}
}

// If Do reads into a type whose decoder returns a ValidationError, the error does not match ErrInvalid, because the
// request was sent.
func TestErrInvalidIsNoErrorOfWhatDoReads(t *testing.T) {
	t.Parallel()
	err := always(t, []byte(`{"version":7}`)).Do(t.Context(), http.MethodGet, "/tasks/plan", nil, &webdelivery.Plan{})
	require.ErrorIs(t, err, webdelivery.ErrBadReply)
	require.ErrorContains(t, err, "the plan has version 7")
	assert.NotErrorIs(t, err, webdelivery.ErrInvalid)
}

// An entry cannot be removed if its id cannot be part of an address. For the same reason, a task with such an id
// cannot be polled.
func TestIDsThatNoAddressHolds(t *testing.T) {
	t.Parallel()
	withList(t, setup{}, []string{"192.0.2.1"}, func(f *fixture) {
		plan, err := f.client.NetworkLists.Plan(f.Context(), listID, []string{"192.0.2.2"}, anything)
		require.NoError(f, err)
		restore := f.srv.Fail(testserver.Fault{Method: http.MethodPost, Status: http.StatusOK, Body: `{"task_id":".."}`})
		_, err = f.client.NetworkLists.AddEntries(f.Context(), listID, []string{"192.0.2.3"})
		require.ErrorIs(f, err, webdelivery.ErrBadReply)
		assert.Equal(f, webdelivery.OutcomeUnknown, webdelivery.OutcomeOf(err))
		_, err = f.client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{Wait: true})
		require.ErrorIs(f, err, webdelivery.ErrBadReply)
		restore()

		f.fail(testserver.Fault{Path: "/config/networklists/*/entries", Status: http.StatusOK, Body: `{"items":[{"id":"..","entry":"192.0.2.1"}],"total":1}`})
		_, err = f.client.NetworkLists.Plan(f.Context(), listID, []string{"192.0.2.2"}, anything)
		require.ErrorIs(f, err, webdelivery.ErrBadReply)
		require.ErrorContains(f, err, `"192.0.2.1" has no id of its own`)
	})
}

// withoutArguments are the operations without an argument that could be wrong.
var withoutArguments = map[string]bool{"Sessions.Create": true}

// wrongly calls every method with an argument that the client can reject by itself. All others have a wrong id in
// operations.Use, or a wrong interval.
func wrongly() map[string]func(ctx context.Context, c *webdelivery.Client) error {
	type client = webdelivery.Client
	calls := map[string]func(ctx context.Context, c *client) error{
		"Do": func(ctx context.Context, c *client) error { return c.Do(ctx, http.MethodGet, "/a/../b", nil, nil) },
		"Tasks.List": func(ctx context.Context, c *client) error {
			_, err := c.Tasks.List(ctx, webdelivery.TaskListOptions{Page: -1})
			return err
		},
		"Tasks.All": func(ctx context.Context, c *client) error {
			return drain(c.Tasks.All(ctx, webdelivery.TaskListOptions{Count: -1}), func(...any) {})
		},
		"NetworkLists.GetByName": func(ctx context.Context, c *client) error {
			_, err := c.NetworkLists.GetByName(ctx, "")
			return err
		},
		"NetworkLists.Find": func(ctx context.Context, c *client) error {
			_, err := c.NetworkLists.Find(ctx, netip.Addr{})
			return err
		},
		"NetworkLists.List": func(ctx context.Context, c *client) error {
			_, err := c.NetworkLists.List(ctx, webdelivery.NetworkListOptions{Type: "IPX"})
			return err
		},
		"NetworkLists.All": func(ctx context.Context, c *client) error {
			return drain(c.NetworkLists.All(ctx, webdelivery.NetworkListOptions{MaxPages: -1}), func(...any) {})
		},
		"PurgeQueue.PurgeFrom": func(ctx context.Context, c *client) error {
			queue, err := c.Purge.NewQueue(webdelivery.QueueOptions{})
			if err != nil {
				return err
			}
			return queue.PurgeFrom(ctx, callsFor(nil), nil)
		},
		"Purge.Submit": func(ctx context.Context, c *client) error {
			_, err := c.Purge.Submit(ctx, webdelivery.PurgeRequest{})
			return err
		},
		"Export.All": func(ctx context.Context, c *client) error {
			return drain(c.Stats.NewExport(webdelivery.EventsQuery{}, webdelivery.Cursor{}).All(ctx), func(...any) {})
		},
		"PurgeQueue.Purge": func(ctx context.Context, c *client) error {
			queue, err := c.Purge.NewQueue(webdelivery.QueueOptions{})
			if err != nil {
				return err
			}
			_, err = queue.Purge(ctx)
			_ = queue.Close(ctx)
			return err
		},
	}
	of(calls, "Stats.Events", func(c *client) *webdelivery.StatsFamily[webdelivery.EventsQuery] { return c.Stats.Events })
	of(calls, "Stats.WAFTrends", func(c *client) *webdelivery.StatsFamily[webdelivery.TrendsQuery] {
		return &c.Stats.WAFTrends.StatsFamily
	})
	of(calls, "Stats.RequestTrends", func(c *client) *webdelivery.StatsFamily[webdelivery.TrendsQuery] {
		return &c.Stats.RequestTrends.StatsFamily
	})
	of(calls, "Stats.TrafficShapingTrends", func(c *client) *webdelivery.StatsFamily[webdelivery.TrendsQuery] {
		return &c.Stats.TrafficShapingTrends.StatsFamily
	})
	waf := func(c *client) *webdelivery.AggregatedFamily[webdelivery.WAFTopKQuery] {
		return c.Stats.WAFTopK("color")
	}
	shaping := func(c *client) *webdelivery.AggregatedFamily[webdelivery.ShapingTopKQuery] {
		return c.Stats.TrafficShapingTopK("color")
	}
	of(calls, "Stats.WAFTopK", func(c *client) *webdelivery.StatsFamily[webdelivery.WAFTopKQuery] { return &waf(c).StatsFamily })
	of(calls, "Stats.TrafficShapingTopK", func(c *client) *webdelivery.StatsFamily[webdelivery.ShapingTopKQuery] { return &shaping(c).StatsFamily })
	ofCategory(calls, "Stats.WAFTopK", waf)
	ofCategory(calls, "Stats.TrafficShapingTopK", shaping)
	return calls
}

// of adds the calls with an empty query.
func of[Q webdelivery.StatsQuery](
	calls map[string]func(context.Context, *webdelivery.Client) error, name string, family func(*webdelivery.Client) *webdelivery.StatsFamily[Q],
) {
	var empty Q
	calls[name+".Query"] = func(ctx context.Context, c *webdelivery.Client) error {
		_, err := family(c).Query(ctx, empty)
		return err
	}
	calls[name+".All"] = func(ctx context.Context, c *webdelivery.Client) error {
		return drain(family(c).All(ctx, empty), func(...any) {})
	}
}

// ofCategory adds the calls whose only argument is the category.
func ofCategory[Q webdelivery.StatsQuery](
	calls map[string]func(context.Context, *webdelivery.Client) error, name string, family func(*webdelivery.Client) *webdelivery.AggregatedFamily[Q],
) {
	for method, call := range map[string]func(context.Context, *webdelivery.AggregatedFamily[Q]) (any, error){
		"Dimensions": func(ctx context.Context, f *webdelivery.AggregatedFamily[Q]) (any, error) { return f.Dimensions(ctx) },
		"Metrics":    func(ctx context.Context, f *webdelivery.AggregatedFamily[Q]) (any, error) { return f.Metrics(ctx) },
		"Groupings":  func(ctx context.Context, f *webdelivery.AggregatedFamily[Q]) (any, error) { return f.Groupings(ctx) },
		"Head": func(ctx context.Context, f *webdelivery.AggregatedFamily[Q]) (any, error) {
			return f.Head(ctx, *new(Q))
		},
	} {
		calls[name+"."+method] = func(ctx context.Context, c *webdelivery.Client) error {
			_, err := call(ctx, family(c))
			return err
		}
	}
}

// Every operation with arguments returns ErrInvalid for a wrong one, and the service gets no request.
func TestWrongArgumentsAreErrInvalid(t *testing.T) {
	t.Parallel()
	calls, withoutArguments := wrongly(), maps.Clone(withoutArguments)
	for _, family := range []string{"Events", "WAFTrends", "RequestTrends", "TrafficShapingTrends"} {
		for _, method := range []string{"Dimensions", "Metrics", "Groupings", "Head"} {
			withoutArguments["Stats."+family+"."+method] = true
		}
	}
	for _, op := range operations.All() {
		if withoutArguments[op.Name] {
			continue
		}
		call := calls[op.Name]
		if call == nil {
			call = func(ctx context.Context, c *webdelivery.Client) error {
				return op.Run(ctx, c, &operations.Use{Task: "..", List: "..", Entry: "..", Transaction: -1, Poll: -1, Show: func(...any) {}})
			}
		}
		t.Run(op.String(), func(t *testing.T) {
			t.Parallel()
			service := &leadingAstray{}
			err := runAlone(t, step{op, func(ctx context.Context, c *webdelivery.Client, _ func(...any)) error { return call(ctx, c) }}, service)
			require.ErrorIs(t, err, webdelivery.ErrInvalid, "if the operation has no argument that can be wrong, add it to withoutArguments")
			require.NotErrorIs(t, err, webdelivery.ErrPlanRefused)
			assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			assert.Zero(t, service.requests.Load())
		})
	}
}

// If Plan and Apply can detect a problem without the list, they return ErrInvalid. If they have to read the list,
// they return another error, whose outcome is that the list was not changed.
func TestErrorsOfPlans(t *testing.T) {
	t.Parallel()
	plan := func(desired []string, options webdelivery.PlanOptions) func(f *fixture, made *webdelivery.Plan) error {
		return func(f *fixture, _ *webdelivery.Plan) error {
			_, err := f.client.NetworkLists.Plan(f.Context(), listID, desired, options)
			return err
		}
	}
	apply := func(change func(f *fixture, p *webdelivery.Plan)) func(f *fixture, made *webdelivery.Plan) error {
		return func(f *fixture, made *webdelivery.Plan) error {
			change(f, made)
			before := len(f.srv.Requests())
			_, err := f.client.NetworkLists.Apply(f.Context(), made, webdelivery.ApplyOptions{})
			if len(f.srv.Requests()) == before {
				return &unsent{err}
			}
			return err
		}
	}
	held := addresses(10)
	for name, tt := range map[string]struct {
		call  func(f *fixture, made *webdelivery.Plan) error
		want  error
		plan  bool // the error contains the plan
		early bool // Apply sent nothing
	}{
		"no limit":               {call: plan(held, webdelivery.PlanOptions{MaxRemove: "half"}), want: webdelivery.ErrInvalid},
		"two types":              {call: plan([]string{"192.0.2.1", "DE"}, anything), want: webdelivery.ErrInvalid},
		"too many removals":      {call: plan(held[4:], webdelivery.PlanOptions{}), want: webdelivery.ErrPlanRefused, plan: true},
		"an empty feed":          {call: plan(nil, webdelivery.PlanOptions{}), want: webdelivery.ErrPlanRefused, plan: true},
		"too many additions":     {call: plan(append(addresses(12), held...), webdelivery.PlanOptions{MaxAdd: 1}), want: webdelivery.ErrPlanRefused, plan: true},
		"too wide":               {call: plan(append([]string{"0.0.0.0/1"}, held...), webdelivery.PlanOptions{}), want: webdelivery.ErrPlanRefused, plan: true},
		"too wide, of IPv6":      {call: plan(append([]string{"2000::/3"}, held...), webdelivery.PlanOptions{}), want: webdelivery.ErrPlanRefused, plan: true},
		"too much of everything": {call: plan([]string{"0.0.0.0/1", "2000::/3"}, webdelivery.PlanOptions{MaxAdd: 1}), want: webdelivery.ErrPlanRefused, plan: true},
		"the other type":         {call: plan([]string{"DE"}, anything), want: webdelivery.ErrPlanRefused},
		"no entry":               {call: plan([]string{"x y"}, anything), want: webdelivery.ErrPlanRefused},
		"edited to remove too much": {
			call: apply(func(_ *fixture, p *webdelivery.Plan) { p.MaxRemove = webdelivery.RemoveNone }),
			want: webdelivery.ErrPlanRefused, plan: true,
		},
		"edited to add too much": {
			call: apply(func(_ *fixture, p *webdelivery.Plan) { p.Add[0] = "0.0.0.0/0" }),
			want: webdelivery.ErrPlanRefused, plan: true,
		},
		"edited to have no type": {call: apply(func(_ *fixture, p *webdelivery.Plan) { p.Type = "" }), want: webdelivery.ErrInvalid, early: true},
		"does not fit": {
			call: apply(func(_ *fixture, p *webdelivery.Plan) { p.Remove = append(p.Remove, p.Remove[0]) }),
			want: webdelivery.ErrPlanRefused, plan: true,
		},
		"stale": {
			call: apply(func(f *fixture, _ *webdelivery.Plan) { f.srv.ChangeEntries(listID, []string{"203.0.113.7"}, nil) }),
			want: webdelivery.ErrPlanStale,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withList(t, setup{}, held, func(f *fixture) {
				made, err := f.client.NetworkLists.Plan(f.Context(), listID, append([]string{"203.0.113.0/24"}, held[1:]...), webdelivery.PlanOptions{})
				require.NoError(f, err)
				err = tt.call(f, made)
				require.ErrorIs(f, err, tt.want)
				is := func(target error) bool { return errors.Is(tt.want, target) }
				assert.Equal(f, is(webdelivery.ErrInvalid), errors.Is(err, webdelivery.ErrInvalid))
				assert.Equal(f, is(webdelivery.ErrPlanRefused), errors.Is(err, webdelivery.ErrPlanRefused))
				assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				assert.Zero(f, f.srv.Count(http.MethodPost, "")+f.srv.Count(http.MethodDelete, ""))
				var sentNothing *unsent
				assert.Equal(f, tt.early, errors.As(err, &sentNothing))
				var refused *webdelivery.PlanError
				if errors.As(err, &refused) {
					assert.Equal(f, tt.plan, refused.Plan != nil)
				} else {
					assert.False(f, tt.plan)
				}
			})
		})
	}
}

// unsent marks the error of a call that sent nothing.
type unsent struct{ error }

func (e *unsent) Unwrap() error { return e.error }

// A plan with too many removals returns an error with their number and with the plan. The plan can be shown, and
// Apply refuses it with the same error, also after it was stored. Apply accepts the plan when its limit is changed.
func TestARefusedRemovalHasItsPlan(t *testing.T) {
	t.Parallel()
	held := addresses(10)
	withList(t, setup{}, held, func(f *fixture) {
		plan, err := f.client.NetworkLists.Plan(f.Context(), listID, held[4:], webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveShare(0.25)})
		assert.Nil(f, plan)
		var refused *webdelivery.PlanError
		for range 2 {
			require.ErrorAs(f, err, &refused)
			assert.Equal(f, webdelivery.RemoveShare(0.25), refused.Plan.MaxRemove)
			assert.Equal(f, "MaxRemove", refused.Field)
			assert.Contains(f, refused.Plan.String(), "add 0, remove 4, keep 6; 10 entries become 6")
			require.EqualError(f, err, `webdelivery: plan refused: MaxRemove: 4 of 10 entries would be removed, for example 198.18.0.0, `+
				`but at most 2 are allowed (25%); set MaxRemove to "4" or "40%" to allow it`)

			stored, jsonErr := json.Marshal(refused.Plan)
			require.NoError(f, jsonErr)
			plan = &webdelivery.Plan{}
			require.NoError(f, json.Unmarshal(stored, plan))
			_, err = f.client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		}
		plan.MaxRemove = webdelivery.RemoveAtMost(4)
		_, err = f.client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
		require.NoError(f, err)
		assert.Equal(f, held[4:], f.srv.Entries(listID))
	})
}

// By default, a plan may remove a fifth of a list. Of a small list it may remove up to three entries, but never more
// than half. So an empty feed never empties a list. A stored plan has the same limit.
func TestRemovalsOfSmallLists(t *testing.T) {
	t.Parallel()
	for size, most := range map[int]int{0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 2, 6: 3, 7: 3, 8: 3, 9: 3, 10: 3, 11: 3, 12: 3, 100: 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			held := addresses(size)
			withList(t, setup{}, held, func(f *fixture) {
				plan, err := f.client.NetworkLists.Plan(f.Context(), listID, held[most:], webdelivery.PlanOptions{})
				require.NoError(f, err)
				assert.Len(f, plan.Remove, most)
				assert.Equal(f, webdelivery.RemoveDefault, plan.MaxRemove)
				if size == 0 {
					return
				}
				_, err = f.client.NetworkLists.Plan(f.Context(), listID, held[most+1:], webdelivery.PlanOptions{})
				var refused *webdelivery.PlanError
				require.ErrorAs(f, err, &refused)
				assert.Len(f, refused.Plan.Remove, most+1)
				assert.Contains(f, refused.Reason, fmt.Sprintf("%d of %d entries would be removed", most+1, size))
				assert.Contains(f, refused.Reason, fmt.Sprintf("at most %d are allowed", most))
				_, err = f.client.NetworkLists.Plan(f.Context(), listID, nil, webdelivery.PlanOptions{})
				require.ErrorIs(f, err, webdelivery.ErrPlanRefused, "an empty feed")
				_, err = f.client.NetworkLists.Apply(f.Context(), plan, webdelivery.ApplyOptions{})
				require.NoError(f, err)
			})
		})
	}
}
