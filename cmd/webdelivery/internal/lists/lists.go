// Package lists has the commands for network lists.
package lists

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

const about = `Network lists hold IP addresses and ranges (type IP), or countries by their
two-letter codes (type GEO). Rules of the service block, allow or limit these.
LIST is the id of a list, or a name that only one list has.

The service accepts a change, and deploys it with tasks, whose ids are printed.
With --wait, a command waits for them; otherwise, and after ^C, they go on.`

// Command returns the command.
func Command(app *cli.App) *cobra.Command {
	c := cli.Group("lists", "Show and change lists of addresses and countries", about,
		append(edits(app), ls(app), show(app), find(app), plan(app), apply(app))...)
	c.Example = `  webdelivery lists add office 192.0.2.7 && webdelivery lists find 192.0.2.9
  webdelivery lists plan blocklist https://feeds.example.com/bots.txt`
	return c
}

func ls(app *cli.App) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "Show all lists", Args: cobra.NoArgs, Example: "  webdelivery lists ls --type GEO"}
	kind := c.Flags().String("type", "", "only lists of this `type`: IP or GEO")
	format := cli.Format(c, cli.Formats...)
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := app.Connect()
		if err != nil {
			return err
		}
		options := webdelivery.NetworkListOptions{Type: webdelivery.NetworkListType(strings.ToUpper(*kind)), Deprecated: true, Count: 100}
		all := client.NetworkLists.All(c.Context(), options) // a rule may still use a deprecated list
		return printAll(app, *format, []string{"id", "name", "type", "description"}, all, func(list webdelivery.NetworkList) []string {
			if list.Deprecated {
				list.Description = strings.TrimSpace("(deprecated) " + list.Description)
			}
			return []string{list.ID, list.Name, string(list.Type), list.Description}
		})
	}
	return c
}

func show(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "show LIST", Short: "Show the entries of a list, who added them, and when", Args: cobra.ExactArgs(1),
		Example: "  webdelivery lists show blocklist -o csv > blocklist.csv",
	}
	format := cli.Format(c, cli.Formats...)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, list, err := open(c.Context(), app, args[0])
		if err != nil {
			return err
		}
		all := client.NetworkLists.AllEntries(c.Context(), list.ID, webdelivery.EntryOptions{ReadAhead: 4})
		return printAll(app, *format, []string{"entry", "added_by", "creation_timestamp"}, all, func(e webdelivery.NetworkListEntry) []string {
			return []string{e.Entry, e.AddedBy, cli.Time(e.CreationTimestamp)}
		})
	}
	return c
}

func printAll[T any](app *cli.App, format string, header []string, items iter.Seq2[T, error], cells func(T) []string) error {
	return app.Print(format, header, func(yield func(cli.Record, error) bool) {
		for item, err := range items {
			if !yield(cli.Record{Value: item, Cells: cells(item)}, err) {
				return
			}
		}
	})
}

func find(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "find ADDR...", Short: "Say why addresses are blocked: the entries that cover them", Args: cobra.MinimumNArgs(1),
		Long: `Print the entries of all lists that cover an address: the address itself, and
ranges that contain it; not countries, as the service does not say where it is.
Standard error names the addresses that no list covers. -o json prints objects
with addr, list and entry.`,
		Example: "  webdelivery lists find 192.0.2.9 2001:db8::1",
	}
	format := cli.Format(c, cli.Formats...)
	c.RunE = func(c *cobra.Command, args []string) error {
		addrs := make([]netip.Addr, len(args))
		for i, text := range args {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				return cli.Misused("%q is not an address, such as 192.0.2.9 or 2001:db8::1", text)
			}
			addrs[i] = addr.Unmap().WithZone("") // as in a match
		}
		client, err := app.Connect()
		if err != nil {
			return err
		}
		matches, unreadable, err := client.NetworkLists.Find(c.Context(), addrs)
		if err != nil {
			return err
		}
		return explain(app, *format, addrs, matches, unreadable)
	}
	return c
}

func explain(app *cli.App, format string, addrs []netip.Addr, matches, unreadable []webdelivery.NetworkListMatch) error {
	err := app.Print(format, []string{"addr", "list", "entry", "added_by", "creation_timestamp"}, func(yield func(cli.Record, error) bool) {
		for _, m := range matches {
			cells := []string{m.Addr.String(), m.List.Name, m.Entry.Entry, m.Entry.AddedBy, cli.Time(m.Entry.CreationTimestamp)}
			if !yield(cli.Record{Value: m, Cells: cells}, nil) {
				return
			}
		}
	})
	for _, addr := range addrs {
		if !slices.ContainsFunc(matches, func(m webdelivery.NetworkListMatch) bool { return m.Addr == addr }) {
			app.Tell("no list covers %s", addr)
		}
	}
	for _, m := range unreadable {
		app.Tell("list %q has %q, which is neither an address nor a range: what it covers is unknown", m.List.Name, m.Entry.Entry)
	}
	return err
}

// open returns the client, and the list that has this id, or is the only one with this name.
func open(ctx context.Context, app *cli.App, name string) (client *webdelivery.Client, found webdelivery.NetworkList, err error) {
	if client, err = app.Connect(); err != nil {
		return nil, found, err
	}
	var named, others []string
	for list, err := range client.NetworkLists.All(ctx, webdelivery.NetworkListOptions{Deprecated: true, Count: 100}) {
		if err != nil || strings.EqualFold(list.ID, name) {
			return client, list, err
		}
		if text := fmt.Sprintf("%q (%s)", list.Name, list.ID); list.Name == name {
			found, named = list, append(named, text)
		} else {
			others = append(others, text)
		}
	}
	if len(named) != 1 {
		err = fmt.Errorf("%d lists have the id or name %q; give the id of one of %s", len(named), name, some(append(named, others...)))
	}
	return client, found, err
}
