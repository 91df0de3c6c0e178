package suite_test

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
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
	return fixture.Response(http.StatusOK, everyResponse{
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

// withoutArguments are the operations without an argument that could be wrong.
var withoutArguments = regexp.MustCompile(`^Sessions\.Create$|^Stats\.\w+\.(Dimensions|Metrics|Groupings)$`)

// wrongly calls methods with an argument that the client can reject by itself. All others have a wrong id in
// operations.Use, a wrong interval, or a year that cannot be sent.
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
			return drain(c.NetworkLists.All(ctx, webdelivery.NetworkListOptions{Page: -1}), func(...any) {})
		},
		"PurgeQueue.PurgeFrom": func(ctx context.Context, c *client) error {
			queue, err := c.Purge.NewQueue(webdelivery.QueueOptions{})
			if err != nil {
				return err
			}
			return queue.PurgeFrom(ctx, fixture.CallsFor(nil), nil)
		},
		"Purge.Submit": func(ctx context.Context, c *client) error {
			_, err := c.Purge.Submit(ctx, webdelivery.PurgeRequest{})
			return err
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
	calls["Stats.Events.Metrics"] = func(ctx context.Context, c *client) error {
		_, err := c.Stats.Events.Metrics(ctx)
		return err
	}
	calls["Stats.Events.Groupings"] = func(ctx context.Context, c *client) error {
		_, err := c.Stats.Events.Groupings(ctx)
		return err
	}
	waf := func(c *client) *webdelivery.StatsFamily[webdelivery.WAFTopKQuery] {
		return c.Stats.WAFTopK("color")
	}
	shaping := func(c *client) *webdelivery.StatsFamily[webdelivery.TrafficShapingTopKQuery] {
		return c.Stats.TrafficShapingTopK("color")
	}
	ofCategory(calls, "Stats.WAFTopK", waf)
	ofCategory(calls, "Stats.TrafficShapingTopK", shaping)
	return calls
}

// ofCategory adds the calls whose only argument is the category.
func ofCategory[Q webdelivery.StatsQuery](
	calls map[string]func(context.Context, *webdelivery.Client) error, name string, family func(*webdelivery.Client) *webdelivery.StatsFamily[Q],
) {
	for method, call := range map[string]func(context.Context, *webdelivery.StatsFamily[Q]) (any, error){
		"Dimensions": func(ctx context.Context, f *webdelivery.StatsFamily[Q]) (any, error) { return f.Dimensions(ctx) },
		"Metrics":    func(ctx context.Context, f *webdelivery.StatsFamily[Q]) (any, error) { return f.Metrics(ctx) },
		"Groupings":  func(ctx context.Context, f *webdelivery.StatsFamily[Q]) (any, error) { return f.Groupings(ctx) },
		"Head": func(ctx context.Context, f *webdelivery.StatsFamily[Q]) (any, error) {
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
	calls := wrongly()
	for _, op := range operations.All() {
		call := calls[op.Name]
		if call == nil && withoutArguments.MatchString(op.Name) {
			continue
		}
		if call == nil {
			call = func(ctx context.Context, c *webdelivery.Client) error {
				return op.Run(ctx, c, &operations.Use{Task: "..", List: "..", Entry: "..", Transaction: -1, Poll: -1, Now: time.Date(10_001, 1, 1, 0, 0, 0, 0, time.UTC), Show: func(...any) {}})
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
