package operations

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// calls are the operations with Do, one of each kind.
func calls() []Operation {
	return []Operation{
		{
			Name: "Do", Variant: "GET", Kind: Reads, Method: http.MethodGet, Path: "/tasks/{task}", Requests: 1,
			call: func(ctx context.Context, c *webdelivery.Client, use *Use) error {
				return c.Do(ctx, http.MethodGet, "/tasks/"+url.PathEscape(use.Task), nil, new(any))
			},
		},
		{
			Name: "Do", Variant: "DELETE", Kind: Deletes, Method: http.MethodDelete, Path: "/config/networklists/{list}/{entry}",
			Requests: 1, prepare: firstEntry, applied: isUnlisted,
			call: func(ctx context.Context, c *webdelivery.Client, use *Use) error {
				return c.Do(ctx, http.MethodDelete, "/config/networklists/"+use.List+"/"+use.Entry, nil, nil)
			},
		},
		{
			Name: "Do", Variant: "purge", Kind: Purges, Method: http.MethodPost, Path: "/cache/purge", Requests: 1, applied: isPurged,
			call: func(ctx context.Context, c *webdelivery.Client, _ *Use) error {
				return c.Do(ctx, http.MethodPost, "/cache/purge", map[string]any{"purge_request": purgeOf(NewObject)}, new(json.RawMessage))
			},
		},
		{
			Name: "Do", Variant: "POST", Kind: Writes, Method: http.MethodPost, Path: "/config/networklists/{list}/entries",
			Requests: 1, applied: isListed,
			call: func(ctx context.Context, c *webdelivery.Client, use *Use) error {
				body := []map[string]string{{"entry": NewEntry}}
				return c.Do(ctx, http.MethodPost, "/config/networklists/"+use.List+"/entries", body, nil)
			},
		},
	}
}

func sessions() []Operation {
	return []Operation{{
		Name: "Sessions.Create", Kind: LogsIn, Method: http.MethodPost, Path: "/sessions", Requests: 1,
		call: shown(func(ctx context.Context, c *webdelivery.Client, _ *Use) (*webdelivery.Session, error) {
			return c.Sessions.Create(ctx)
		}),
		applied: func(srv *testserver.Server, _ *Use) bool { return srv.Logins() > 0 },
	}}
}
