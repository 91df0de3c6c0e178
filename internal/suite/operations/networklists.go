package operations

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

const (
	lists   = "/config/networklists"
	oneList = lists + "/{list}"
	entries = oneList + "/entries"

	namedList = "77777777-7777-4777-8777-777777777777"
	listName  = "office"
)

func networkLists() []Operation { return slices.Concat(listReads(), entryReads(), listChanges()) }

func listReads() []Operation {
	return []Operation{
		reads("NetworkLists.List", lists, func(ctx context.Context, c *webdelivery.Client, use *Use) error {
			options := webdelivery.NetworkListOptions{Type: webdelivery.ListTypeIP}
			page, err := c.NetworkLists.List(ctx, options)
			use.Show(options, page)
			return err
		}),
		{
			Name: "NetworkLists.All", Kind: Pages, Method: http.MethodGet, Path: lists, Requests: filled, Items: filled,
			InOrder: true,
			sequence: plain(func(ctx context.Context, c *webdelivery.Client, _ *Use) iter.Seq2[webdelivery.NetworkList, error] {
				return c.NetworkLists.All(ctx, webdelivery.NetworkListOptions{Count: 1})
			}),
		},
		reads("NetworkLists.Get", oneList, shown(func(ctx context.Context, c *webdelivery.Client, use *Use) (*webdelivery.NetworkList, error) {
			return c.NetworkLists.Get(ctx, use.List)
		})),
		reads("NetworkLists.GetSummary", oneList, shown(func(ctx context.Context, c *webdelivery.Client, use *Use) (*webdelivery.NetworkList, error) {
			return c.NetworkLists.GetSummary(ctx, use.List)
		})),
		{
			Name: "NetworkLists.GetByName", Kind: Reads, Method: http.MethodGet, Path: lists, Requests: 1,
			prepare: func(_ context.Context, s Service, _ *Use) error {
				s.Server.AddNetworkList(testserver.NetworkListSpec{ID: namedList, Name: listName})
				return nil
			},
			call: shown(func(ctx context.Context, c *webdelivery.Client, _ *Use) (*webdelivery.NetworkList, error) {
				return c.NetworkLists.GetByName(ctx, listName)
			}),
		},
		reads("NetworkLists.Find", lists, shown(func(ctx context.Context, c *webdelivery.Client, _ *Use) ([]webdelivery.NetworkListMatch, error) {
			matches, unreadable, err := c.NetworkLists.Find(ctx, []netip.Addr{netip.MustParseAddr(oldEntry)})
			return append(matches, unreadable...), err
		})),
	}
}

func entryReads() []Operation {
	all := func(ahead int) func(context.Context, *webdelivery.Client, *Use) iter.Seq2[any, error] {
		return plain(func(ctx context.Context, c *webdelivery.Client, use *Use) iter.Seq2[webdelivery.NetworkListEntry, error] {
			options := webdelivery.EntryOptions{Count: 1, ReadAhead: ahead}
			use.Show(options)
			return c.NetworkLists.AllEntries(ctx, use.List, options)
		})
	}
	return []Operation{
		reads("NetworkLists.Entries", entries, func(ctx context.Context, c *webdelivery.Client, use *Use) error {
			options := webdelivery.EntryOptions{Count: 10}
			page, err := c.NetworkLists.Entries(ctx, use.List, options)
			use.Show(options, page)
			return err
		}),
		{
			Name: "NetworkLists.AllEntries", Kind: Pages, Method: http.MethodGet, Path: entries, Requests: filled, Items: filled,
			InOrder: true, sequence: all(0),
		},
		{
			Name: "NetworkLists.AllEntries", Variant: "with ReadAhead", Kind: Pages, Method: http.MethodGet, Path: entries,
			Requests: filled, Items: filled, sequence: all(4),
		},
		{
			Name: "NetworkLists.GetEntry", Kind: Reads, Method: http.MethodGet, Path: entries + "/{entry}", Requests: 1,
			prepare: firstEntry,
			call: shown(func(ctx context.Context, c *webdelivery.Client, use *Use) (*webdelivery.NetworkListEntry, error) {
				return c.NetworkLists.GetEntry(ctx, use.List, use.Entry)
			}),
		},
	}
}

func listChanges() []Operation {
	return []Operation{
		{
			Name: "NetworkLists.AddEntries", Kind: Writes, Method: http.MethodPost, Path: entries, Requests: 1, applied: isListed,
			call: shown(func(ctx context.Context, c *webdelivery.Client, use *Use) ([]string, error) {
				return c.NetworkLists.AddEntries(ctx, use.List, []string{NewEntry})
			}),
		},
		{
			Name: "NetworkLists.Plan", Kind: Reads, Method: http.MethodGet, Path: entries, Requests: 1, Before: 1,
			call: func(ctx context.Context, c *webdelivery.Client, use *Use) error {
				_, err := plan(ctx, c, use)
				return err
			},
		},
		{
			Name: "NetworkLists.Apply", Kind: Writes, Method: http.MethodPost, Path: entries, Requests: 1, Before: 3, applied: isListed,
			call: func(ctx context.Context, c *webdelivery.Client, use *Use) error {
				// If the list cannot be read, there is no plan, and Apply must report that itself.
				planned, planErr := plan(ctx, c, use)
				if planned == nil {
					base, _ := url.Parse(c.URL()) // the client's own
					planned = &webdelivery.Plan{
						Version: 1, ListID: use.List, Type: webdelivery.ListTypeIP,
						Service: base.Scheme + "://" + base.Host, Customer: path.Base(path.Dir(base.Path)),
					}
				}
				options := webdelivery.ApplyOptions{Wait: true}
				result, err := c.NetworkLists.Apply(ctx, planned, options)
				use.Show(options, result)
				if planErr != nil {
					return errors.Join(planErr, err)
				}
				return err
			},
		},
		{
			Name: "NetworkLists.DeleteEntry", Kind: Deletes, Method: http.MethodDelete, Path: oneList + "/{entry}", Requests: 1,
			prepare: firstEntry, applied: isUnlisted,
			call: shown(func(ctx context.Context, c *webdelivery.Client, use *Use) (*webdelivery.Task, error) {
				return c.NetworkLists.DeleteEntry(ctx, use.List, use.Entry)
			}),
		},
		{
			Name: "NetworkLists.RemoveEntries", Kind: Deletes, Method: http.MethodDelete, Path: oneList + "/{entry}", Requests: 1, Before: 1,
			prepare: firstEntry, applied: isUnlisted,
			call: shown(func(ctx context.Context, c *webdelivery.Client, use *Use) (*webdelivery.RemoveEntriesResult, error) {
				return c.NetworkLists.RemoveEntries(ctx, use.List, []string{cmp.Or(use.Value, "192.0.2.1")})
			}),
		},
		{
			Name: "NetworkLists.ClearEntries", Kind: Writes, Method: http.MethodPost, Path: entries + "/deletions", Requests: 1, Before: 1,
			call: shown(func(ctx context.Context, c *webdelivery.Client, use *Use) (*webdelivery.Task, error) {
				return c.NetworkLists.ClearEntries(ctx, use.List)
			}),
			applied: func(srv *testserver.Server, use *Use) bool { return len(srv.Entries(use.List)) == 0 },
		},
		{
			Name: "NetworkLists.Delete", Kind: Deletes, Method: http.MethodDelete, Path: oneList, Requests: 1, Bodiless: true,
			call: shown(func(ctx context.Context, c *webdelivery.Client, use *Use) (*webdelivery.Task, error) {
				return c.NetworkLists.Delete(ctx, use.List)
			}),
			applied: func(srv *testserver.Server, use *Use) bool { return srv.Entries(use.List) == nil },
		},
	}
}

// plan returns a plan that adds an entry and removes all others except the last two.
func plan(ctx context.Context, c *webdelivery.Client, use *Use) (*webdelivery.Plan, error) {
	options := webdelivery.PlanOptions{MaxRemove: -1}
	planned, err := c.NetworkLists.Plan(ctx, use.List, []string{NewEntry, "192.0.2.2", "192.0.2.3"}, options)
	use.Show(options, planned)
	return planned, err
}
