package suite_test

import (
	"context"
	"errors"
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
// first half; this file shows it for arguments.

// withoutArguments are the operations without an argument that could be wrong.
var withoutArguments = regexp.MustCompile(`^Sessions\.Create$|^Stats\.\w+\.(Dimensions|Metrics|Groupings)$`)

type callOf = func(ctx context.Context, c *webdelivery.Client) error

// wrongly calls methods with an argument that the client can reject by itself. All others have a wrong id in
// operations.Use, a wrong interval, or a year that cannot be sent.
func wrongly() map[string]callOf {
	type client = webdelivery.Client
	calls := map[string]callOf{
		"Do": func(ctx context.Context, c *client) error { return c.Do(ctx, http.MethodGet, "/a/../b", nil, nil) },
		"Tasks.List": func(ctx context.Context, c *client) error {
			return errorOf(c.Tasks.List(ctx, webdelivery.TaskListOptions{Page: -1}))
		},
		"Tasks.All": func(ctx context.Context, c *client) error {
			return errorOf(webdelivery.Collect(c.Tasks.All(ctx, webdelivery.TaskListOptions{Count: -1})))
		},
		"NetworkLists.GetByName": func(ctx context.Context, c *client) error { return errorOf(c.NetworkLists.GetByName(ctx, "")) },
		"NetworkLists.Find": func(ctx context.Context, c *client) error {
			_, _, err := c.NetworkLists.Find(ctx, []netip.Addr{{}})
			return err
		},
		"NetworkLists.List": func(ctx context.Context, c *client) error {
			return errorOf(c.NetworkLists.List(ctx, webdelivery.NetworkListOptions{Type: "IPX"}))
		},
		"NetworkLists.All": func(ctx context.Context, c *client) error {
			return errorOf(webdelivery.Collect(c.NetworkLists.All(ctx, webdelivery.NetworkListOptions{Page: -1})))
		},
		"Purge.Submit": func(ctx context.Context, c *client) error {
			return errorOf(c.Purge.Submit(ctx, webdelivery.PurgeRequest{}))
		},
		"PurgeQueue.Purge": func(ctx context.Context, c *client) error {
			queue, err := c.Purge.NewQueue(webdelivery.QueueOptions{})
			if err == nil {
				_, err = queue.Purge(ctx)
				err = errors.Join(err, queue.Close(ctx))
			}
			return err
		},
	}
	ofCategory(calls, "Stats.WAFTopK", func(c *client) *webdelivery.StatsFamily[webdelivery.TopKQuery] { return c.Stats.WAFTopK("color") })
	ofCategory(calls, "Stats.TrafficShapingTopK", func(c *client) *webdelivery.StatsFamily[webdelivery.TopKQuery] {
		return c.Stats.TrafficShapingTopK("color")
	})
	return calls
}

func errorOf[T any](_ T, err error) error { return err }

// ofCategory adds the calls whose only argument is the category.
func ofCategory[Q webdelivery.StatsQuery](calls map[string]callOf, name string, of func(*webdelivery.Client) *webdelivery.StatsFamily[Q]) {
	calls[name+".Dimensions"] = func(ctx context.Context, c *webdelivery.Client) error { return errorOf(of(c).Dimensions(ctx)) }
	calls[name+".Metrics"] = func(ctx context.Context, c *webdelivery.Client) error { return errorOf(of(c).Metrics(ctx)) }
	calls[name+".Groupings"] = func(ctx context.Context, c *webdelivery.Client) error { return errorOf(of(c).Groupings(ctx)) }
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
				return op.Run(ctx, c, &operations.Use{
					Task: "..", List: "..", Entry: "..", Transaction: -1, Poll: -1, Now: time.Date(10_001, 1, 1, 0, 0, 0, 0, time.UTC), Show: func(...any) {},
				})
			}
		}
		t.Run(op.String(), func(t *testing.T) {
			t.Parallel()
			requests := atomic.Int64{}
			var err error
			inBubble(t, fixture.RoundTripper(func(*http.Request) (*http.Response, error) {
				requests.Add(1)
				return fixture.Response(http.StatusOK, []byte(`{}`)), nil
			}), func(ctx context.Context, c *webdelivery.Client) { err = call(ctx, c) })
			require.ErrorIs(t, err, webdelivery.ErrInvalid, "if the operation has no argument that can be wrong, add it to withoutArguments")
			require.NotErrorAs(t, err, new(*webdelivery.PlanError))
			assert.Equal(t, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
			assert.Zero(t, requests.Load())
		})
	}
}
