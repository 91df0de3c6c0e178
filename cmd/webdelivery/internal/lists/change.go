package lists

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/feed"
)

const feeds = `

A FEED is a file, an http or https address, or - for standard input. Its format
is that of its extension or Content-Type, or --format; otherwise plain:
  plain  one entry per line; # or ; or // begins a comment
  csv    --column is a name in the first line, or a number if it has no names
  json   an array of strings, or what --field leads to: prefixes.ip reads
         {"prefixes": [{"ip": "192.0.2.1"}]}
An empty or damaged feed is an error and changes nothing. So is a plan beyond a
limit (--max-..., --widest-..., --never), with the exit code 5.`

const planHelp = `Say what would make a list equal to feeds, and change nothing. The exit code is
4 if there is something to change. At most 20 added and 20 removed entries are
shown; -o json and --save have all.` + feeds

const applyHelp = `Make a list equal to feeds, or carry out a plan that "lists plan" has saved,
unless the list has changed since. New entries are added before the ones that
they cover are removed; with --wait, their tasks end before that.` + outcome + feeds

const outcome = `

-o json prints an object: tasks (ids) and, except of clear and delete, added,
removed and size (of the list at the end). The exit code is 3 if the list was,
or may be, changed in part, or if a task failed or did not end in time.`

func plan(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "plan LIST FEED...", Short: "Say what would make a list equal to feeds", Args: cobra.MinimumNArgs(2), Long: planHelp,
		Example: `  webdelivery lists plan blocklist bots.txt
  webdelivery lists plan blocklist scanners.csv --column ip --save plan.json`,
	}
	ch := &changer{app: app, output: cli.Format(c, "table", "json")}
	compare := ch.feeds(c)
	save := c.Flags().String("save", "", "write the plan to this `file`, for: webdelivery lists apply --plan")
	c.RunE = func(c *cobra.Command, args []string) error {
		plan, err := compare(c.Context(), args)
		if plan == nil {
			return err
		}
		err = errors.Join(err, ch.print(plan, plan.String()))
		if err == nil && *save != "" {
			text, _ := json.MarshalIndent(plan, "", "  ") //nolint:errchkjson // its times were read from JSON
			err = cli.WriteFile(*save, text)
		}
		if err == nil && !plan.Empty() {
			step := "to change the list, use apply"
			if *save != "" {
				step = "to carry out the plan: webdelivery lists apply --plan " + *save
			}
			err = &cli.Exit{Code: 4, Err: cli.Advise(errors.New("nothing was changed"), step)}
		}
		return err
	}
	return c
}

func apply(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "apply {LIST FEED... | --plan FILE}", Short: "Make a list equal to feeds, or carry out a plan", Long: applyHelp,
		Example: `  webdelivery lists apply blocklist https://feeds.example.com/bots.txt --yes
  webdelivery lists apply --plan plan.json --wait`,
	}
	ch := newChanger(app, c, true)
	compare := ch.feeds(c)
	var plan *webdelivery.Plan
	c.Flags().Func("plan", "carry out the plan in this `file`; asks on a terminal only", func(file string) error {
		text, err := app.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &plan)
		}
		return err
	})
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		stray, own := len(args) > 0, []string{"plan", "output", "wait", "timeout", "yes", "fake"}
		c.Flags().Visit(func(f *pflag.Flag) { stray = stray || !slices.Contains(own, f.Name) })
		switch {
		case plan != nil && stray, plan == nil && len(args) < 2:
			return cli.Misused("want LIST, FEED and their flags, or --plan without them; see %s --help", c.CommandPath())
		case plan == nil:
			plan, err = compare(c.Context(), args)
		default:
			ch.yes, ch.again = ch.yes || !app.InTerminal, "make a new plan, and apply it"
			ch.client, err = app.Connect()
		}
		return ch.change(c.Context(), plan, err)
	}
	return c
}

func edits(app *cli.App) []*cobra.Command {
	return []*cobra.Command{
		editing(app, &cobra.Command{
			Use: "add LIST [ENTRY...]", Short: "Add addresses, ranges or countries to a list", Args: cobra.MinimumNArgs(1),
			Long: `Add entries to a list: addresses, ranges, or codes of countries. Without ENTRY,
they are lines of --file or standard input. A range wider than /8, or /19 of
IPv6, is refused.` + outcome,
			Example: `  webdelivery lists add office 192.0.2.7 198.51.100.0/24
  webdelivery lists add blocklist -f addresses.txt --wait`,
		}, false, webdelivery.PlanOptions{AddOnly: true}),
		editing(app, &cobra.Command{
			Use: "remove LIST [ENTRY...]", Short: "Remove entries from a list", Args: cobra.MinimumNArgs(1),
			Long: `Remove entries from a list, however they are written: 2001:DB8::1 is also
2001:db8::1. An address does not remove a range that contains it. Without
ENTRY, they are lines of --file or standard input.` + outcome,
			Example: `  webdelivery lists remove office 192.0.2.7
  webdelivery lists remove blocklist -f addresses.txt --yes`,
		}, true, webdelivery.PlanOptions{RemoveOnly: true, MaxRemove: -1}),
		whole(app, &cobra.Command{
			Use: "clear LIST", Short: "Remove all entries of a list", Args: cobra.ExactArgs(1),
			Long: "Remove all entries of a list, and keep the list." + outcome, Example: "  webdelivery lists clear office --wait",
		}, "Remove all entries of %q?", (*webdelivery.NetworkListsService).ClearEntries),
		whole(app, &cobra.Command{
			Use: "delete LIST", Short: "Delete a list for good", Args: cobra.ExactArgs(1),
			Long:    "Delete a list with its entries. No command can create it again." + outcome,
			Example: "  webdelivery lists delete office --yes",
		}, "Delete the list %q with its entries for good?", (*webdelivery.NetworkListsService).Delete),
	}
}

// changer is a command that changes a list.
type changer struct {
	app     *cli.App
	client  *webdelivery.Client
	output  *string
	yes     bool   // do not ask
	again   string // what to do after a change in part; "" is the same command
	waiting cli.Waiting
}

func newChanger(app *cli.App, c *cobra.Command, asks bool) *changer {
	ch := &changer{app: app, output: cli.Format(c, "table", "json"), yes: !asks}
	ch.waiting.Flags(c.Flags(), "wait until the change is deployed")
	if asks {
		c.Flags().BoolVar(&ch.yes, "yes", false, "do not ask")
	}
	return ch
}

// feeds adds the flags of a command whose arguments are a list and feeds, and returns what plans with them.
func (ch *changer) feeds(c *cobra.Command) func(ctx context.Context, args []string) (*webdelivery.Plan, error) {
	var o webdelivery.PlanOptions
	r := feed.Reader{Open: func(_ context.Context, name string) (io.ReadCloser, error) { return ch.app.Open(name) }}
	format := cli.Choice(c, "format", "", "", "format of the feeds", "plain", "csv", "json")
	flags := c.Flags()
	flags.StringVar(&r.Column, "column", "", "`name` or number of the column of CSV feeds")
	flags.StringVar(&r.Field, "field", "",
		"`name` of the member of JSON feeds that is the array or is in its objects; a.b if they differ")
	flags.IntVar(&o.MaxRemove, "max-remove", 0,
		"remove at most this `number` of entries; 0 is 20 % of the list, or up to 3 of fewer than 20; -1 allows all")
	flags.IntVar(&o.MaxAdd, "max-add", 0, "add at most this `number` of entries; 0 is 50000, a full list")
	flags.IntVar(&o.WidestIPv4, "widest-ipv4", 8, "prefix `length` of the widest IPv4 range that may be added; -1 allows all")
	flags.IntVar(&o.WidestIPv6, "widest-ipv6", 19, "prefix `length` of the widest IPv6 range that may be added; -1 allows all")
	flags.BoolVar(&o.Aggregate, "aggregate", false, "merge entries into the fewest ranges that cover the same addresses")
	flags.BoolVar(&o.AddOnly, "add-only", false, "add what the feeds have, and remove nothing")
	flags.BoolVar(&o.RemoveOnly, "remove-only", false, "remove what the feeds have, and add nothing")
	flags.Func("never", "`file` of addresses and ranges that no added entry may overlap", func(file string) (err error) {
		o.Never, err = ranges(c.Context(), feed.Reader{Format: "plain", Open: r.Open}, file)
		return err
	})
	return func(ctx context.Context, args []string) (*webdelivery.Plan, error) {
		r.Format = *format
		if err := r.Read(ctx, args[1:]...); errors.Is(err, feed.ErrNoColumn) {
			return nil, cli.Misused("%w: set --column, such as --column ip", err)
		} else if err != nil {
			return nil, err
		}
		return ch.plan(ctx, args[0], r.Entries, r.Places, cli.Failed, o)
	}
}

func ranges(ctx context.Context, r feed.Reader, file string) (all []netip.Prefix, err error) {
	err = r.Read(ctx, file)
	for i, text := range r.Entries {
		prefix, wrong := netip.ParsePrefix(text)
		if addr, err := netip.ParseAddr(text); err == nil {
			prefix, wrong = addr.Prefix(addr.BitLen())
		}
		if wrong != nil {
			return nil, fmt.Errorf("%s: %q is neither an address nor a range", r.Places[i], text)
		}
		all = append(all, prefix)
	}
	return all, err
}

var desired = regexp.MustCompile(`desired\[(\d+)\]`)

var inFlags = strings.NewReplacer(
	"webdelivery: invalid ", "", "webdelivery: plan refused: ", "", "; invalid ", "\n", "; plan refused: ", "\n", "desired: ", "",
	"AddOnly", "--add-only", "RemoveOnly", "--remove-only", "MaxRemove", "--max-remove", "MaxAdd", "--max-add",
	"WidestIPv4", "--widest-ipv4", "WidestIPv6", "--widest-ipv6", "Never", "--never", "Aggregate", "--aggregate")

// plan compares entries with a list. If a limit does not allow the plan, it returns both the plan and an error. An error
// names the places of entries, and for a wrong one has the exit code wrong.
func (ch *changer) plan(
	ctx context.Context, name string, entries, places []string, wrong int, options webdelivery.PlanOptions,
) (*webdelivery.Plan, error) {
	client, list, err := open(ctx, ch.app, name)
	if err != nil {
		return nil, err
	}
	ch.client = client
	plan, err := client.NetworkLists.Plan(ctx, list.ID, entries, options)
	invalid, isInvalid := errors.AsType[*webdelivery.ValidationError](err)
	refused, isRefused := errors.AsType[*webdelivery.PlanError](err)
	switch {
	case !isInvalid && !isRefused:
		return plan, err
	case isRefused && refused.Plan != nil:
		plan, wrong = refused.Plan, 5
	case isInvalid && !strings.HasPrefix(invalid.Field, "desired"): // a flag
		wrong = cli.Misuse
	}
	text := desired.ReplaceAllStringFunc(inFlags.Replace(err.Error()), func(entry string) string {
		if i, err := strconv.Atoi(desired.FindStringSubmatch(entry)[1]); err == nil && i < len(places) {
			return places[i]
		}
		return entry // the text of an entry looks like a place
	})
	return plan, &cli.Exit{Code: wrong, Err: errors.New(text)}
}

// editing makes c a command whose arguments are a list and entries.
func editing(app *cli.App, c *cobra.Command, asks bool, options webdelivery.PlanOptions) *cobra.Command {
	ch := newChanger(app, c, asks)
	file := c.Flags().StringP("file", "f", "", "`file` with one entry per line; - is standard input")
	c.RunE = func(c *cobra.Command, args []string) error {
		missing := "ENTRY is missing; type: " + c.CommandPath() + " LIST ENTRY..."
		lines, err := app.Lines(args[1:], *file, missing)
		if err != nil {
			return err
		}
		entries, err := webdelivery.Collect(lines)
		if err == nil && len(entries) == 0 { // a variable may not be set
			err = cli.Misused("%s", missing)
		}
		if err != nil {
			return err
		}
		places := slices.Repeat([]string{"your entry"}, len(entries))
		plan, err := ch.plan(c.Context(), args[0], entries, places, cli.Misuse, options)
		if plan != nil && err != nil {
			err = cli.Advise(err, "if it is meant, use lists apply with that flag, and --add-only or --remove-only")
		}
		return ch.change(c.Context(), plan, err)
	}
	return c
}

// change asks, carries out a plan, and prints what was done. With an error of the plan, it only prints the plan.
func (ch *changer) change(ctx context.Context, plan *webdelivery.Plan, err error) error {
	if plan != nil && *ch.output == "table" {
		err = errors.Join(err, ch.print(nil, plan.String()))
	}
	if err == nil && !plan.Empty() {
		err = ch.app.Confirm(ch.yes, fmt.Sprintf("Add %d and remove %d entries of %q?", len(plan.Add), len(plan.Remove), plan.Name))
	}
	if err != nil {
		if plan != nil {
			ch.app.Tell("nothing was changed")
		}
		return err
	}
	ctx, stop := ch.waiting.Context(ctx)
	defer stop()
	options := webdelivery.ApplyOptions{Wait: ch.waiting.Wait, Progress: func(added, removed, total int) {
		ch.app.Show(cli.Bar(100*(added+removed)/max(1, total)) + " changed")
	}}
	result, err := ch.client.NetworkLists.Apply(ctx, plan, options)
	ch.app.Show("")
	if result == nil {
		code := cli.Failed
		if errors.As(err, new(*webdelivery.PlanError)) { // the file was edited
			code = 5
		}
		return &cli.Exit{Code: code, Err: fmt.Errorf("nothing was changed: %w", err)}
	}
	result.Tasks = append([]string{}, result.Tasks...) // not null
	text := fmt.Sprintf("added %d, removed %d; tasks: %s\n", result.Added, result.Removed, listed(result.Tasks))
	shown := map[string]any{"added": result.Added, "removed": result.Removed, "tasks": result.Tasks}
	if err == nil { // otherwise it is not known
		shown["size"] = result.Size
	}
	all := result.Added >= len(plan.Add) && result.Removed >= len(plan.Remove)
	return ch.ended(ctx, errors.Join(err, ch.print(shown, text)), result.Tasks, all)
}

// whole makes c a command that changes a whole list with one request.
func whole(
	app *cli.App, c *cobra.Command, question string,
	change func(*webdelivery.NetworkListsService, context.Context, string) (*webdelivery.Task, error),
) *cobra.Command {
	ch := newChanger(app, c, true)
	c.RunE = func(c *cobra.Command, args []string) error {
		client, list, err := open(c.Context(), app, args[0])
		if err == nil {
			err = app.Confirm(ch.yes, fmt.Sprintf(question, list.Name))
		}
		if err != nil {
			return err
		}
		tasks := []string{} // not null
		task, err := change(client.NetworkLists, c.Context(), list.ID)
		if task != nil && task.ID != "" {
			tasks = append(tasks, task.ID)
		}
		if err == nil {
			err = ch.print(map[string][]string{"tasks": tasks}, "accepted; tasks: "+listed(tasks)+"\n")
		}
		ctx, stop := ch.waiting.Context(c.Context())
		defer stop()
		if err == nil && ch.waiting.Wait {
			_, err = client.Tasks.WaitAll(ctx, tasks, app.Poll())
			app.Show("")
		}
		return ch.ended(ctx, err, tasks, len(tasks) > 0)
	}
	return c
}

// ended returns the error of a command whose change may have begun, with what to do about it.
func (ch *changer) ended(ctx context.Context, err error, tasks []string, all bool) error {
	step := cmp.Or(ch.again, "run the same command again: what is done stays done")
	wait := "webdelivery tasks wait " + strings.Join(tasks, " ")
	switch {
	case err == nil || webdelivery.OutcomeOf(err) == webdelivery.OutcomeNotApplied:
		return err
	case errors.As(err, new(*webdelivery.TaskError)):
		step = "the list shows a change that is not in effect: undo it and make it again"
	case all && ctx.Err() != nil: // only the wait has ended
		err, step = fmt.Errorf("%w; the tasks go on", context.Cause(ctx)), "to wait for them: "+wait
	default:
		err = fmt.Errorf("%w; the service may have changed more than that", err)
		if len(tasks) > 0 {
			step = "wait for the tasks, which go on (" + wait + "), and " + step
		}
	}
	return &cli.Exit{Code: cli.Partly, Err: cli.Advise(err, step)}
}

func (ch *changer) print(value any, text string) error {
	if *ch.output == "json" {
		return ch.app.JSON(value, true)
	}
	_, err := io.WriteString(ch.app.Out, strings.ReplaceAll(text, "(AddEntries cannot", "(add cannot"))
	return err
}

func listed(tasks []string) string { return cli.Printable(cmp.Or(strings.Join(tasks, ", "), "none")) }
