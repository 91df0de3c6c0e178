// Package lists has the commands for network lists.
package lists

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

const about = `Network lists hold IP addresses and ranges (type IP), or countries by their
two-letter codes (type GEO). Rules of the service block, allow or limit these.
LIST is the name of a list, if only one list has it, or an id.

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
		all := client.NetworkLists.All(c.Context(), webdelivery.NetworkListOptions{
			Type: webdelivery.NetworkListType(strings.ToUpper(*kind)), Count: 100,
			Deprecated: true, // a rule may still use one
		})
		header := []string{"id", "name", "type", "description"}
		return cli.Print(app, *format, header, all, func(list webdelivery.NetworkList) []string {
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
		header := []string{"entry", "added_by", "creation_timestamp"}
		return cli.Print(app, *format, header, all, func(e webdelivery.NetworkListEntry) []string {
			return []string{e.Entry, e.AddedBy, cli.Time(e.CreationTimestamp)}
		})
	}
	return c
}

func find(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "find ADDR...", Short: "Say which lists and entries cover addresses", Args: cobra.MinimumNArgs(1),
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
		header := []string{"addr", "list", "entry", "added_by", "creation_timestamp"}
		err = cli.Print(app, *format, header, cli.All(matches), func(m webdelivery.NetworkListMatch) []string {
			return []string{m.Addr.String(), m.List.Name, m.Entry.Entry, m.Entry.AddedBy, cli.Time(m.Entry.CreationTimestamp)}
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
	return c
}

// open returns the client, and the list that has this name or id.
func open(ctx context.Context, app *cli.App, name string) (*webdelivery.Client, *webdelivery.NetworkList, error) {
	client, err := app.Connect()
	if err != nil {
		return nil, nil, err
	}
	list, err := client.NetworkLists.GetByName(ctx, name)
	if errors.Is(err, webdelivery.ErrNotFound) {
		if byID, failed := client.NetworkLists.GetSummary(ctx, name); !errors.Is(failed, webdelivery.ErrNotFound) {
			return client, byID, failed
		}
		err = cli.Advise(err, "webdelivery lists ls shows the lists; only the id finds a deprecated one")
	}
	return client, list, err
}
