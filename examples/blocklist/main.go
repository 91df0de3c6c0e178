// Blocklist keeps a network list true to one or more feeds: it prints what would change, and changes it when told to.
//
//	blocklist [flags] LIST FEED...
//	blocklist [-wait] [-json] -apply-plan FILE
//
// LIST is the id of a list, or a name that only one list has. Each FEED is a file, an http or https URL, or - for
// standard input; its entries are IP addresses, CIDR ranges or country codes, in one of three formats:
//
//	plain  one entry a line; what follows # or ; or // is a comment
//	csv    the column -column of a table
//	json   an array of strings, or what -field leads to: with "prefixes.ip" {"prefixes": [{"ip": "192.0.2.1"}]}
//
// Without -format the ending of the name says which, else the Content-Type, else it is plain. A feed that is empty,
// broken or a web page is an error that names its line, and the list stays as it is. So is one that is longer than 32 MiB,
// that takes longer than -timeout, or that names a range of all addresses.
//
// A plan is printed, and with -apply it is carried out. In between, -save-plan can keep it for somebody to read, and
// -apply-plan carries out what was read, if the list has not changed since. -json prints the plan as JSON; what became of
// it follows, as another JSON value.
//
// Exit codes: 0 the list is as the feeds say, 1 failed and nothing was changed, 2 used wrongly, 3 changed in part, or
// perhaps, 4 there is something to change, and it was not asked for.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// pending is the exit code of a plan that was only printed: a pipeline can wait there for an approval.
const pending = 4

func main() { program.Main("blocklist", term.IsTerminal, run) }

//go:embed main.go
var source string // for its package comment, which is the help

//go:embed sample.txt
var sample string // what is read when there are no arguments and no service

// settings are what the command line says.
type settings struct {
	list                 string
	feeds                []string
	reader               reader
	options              webdelivery.PlanOptions
	apply, wait, asJSON  bool
	savePlan, storedPlan string
}

func parse(args []string, s program.Streams) (*settings, error) {
	set := &settings{}
	flags := flag.NewFlagSet("blocklist", flag.ContinueOnError)
	flags.SetOutput(s.Err)
	flags.Usage = func() {
		comment, _, _ := strings.Cut("\n"+source, "\npackage main")
		fmt.Fprintf(s.Err, "%s\n\n%s\n\nFlags:\n\n", strings.NewReplacer("\n// ", "\n", "\n//", "\n").Replace(comment)[1:], program.Settings)
		flags.PrintDefaults()
	}
	flags.StringVar(&set.reader.format, "format", "", "`format` of the feeds: plain, csv or json")
	flags.StringVar(&set.reader.column, "column", "1", "`name` of the CSV column in the first line, or its number where there is no such line")
	flags.StringVar(&set.reader.field, "field", "", "`name` of the JSON member, or several with dots in between")
	flags.DurationVar(&set.reader.timeout, "timeout", 30*time.Second, "`time` that a feed may take over http")
	flags.Float64Var(&set.options.MaxRemove, "max-remove", 0.2, "largest `part` of the list that may be removed, 0 to 1")
	flags.BoolVar(&set.options.Aggregate, "aggregate", false, "merge entries into the fewest ranges that cover the same addresses")
	flags.BoolVar(&set.apply, "apply", false, "carry out the plan")
	flags.BoolVar(&set.wait, "wait", false, "wait until the changed list is deployed")
	flags.BoolVar(&set.asJSON, "json", false, "print JSON")
	flags.StringVar(&set.savePlan, "save-plan", "", "write the plan to `file`")
	flags.StringVar(&set.storedPlan, "apply-plan", "", "carry out the plan of `file`, without feeds")
	if err := program.Parse(flags, args); err != nil {
		return nil, err
	}
	if set.storedPlan != "" {
		return set, checkStored(flags)
	}
	switch part := set.options.MaxRemove; {
	case !(part >= 0 && part <= 1):
		return nil, program.Misused("-max-remove %v is not between 0 and 1", part)
	case part == 0:
		set.options.MaxRemove = 1e-12 // less than any entry: to the SDK, 0 is its default
	}
	if set.wait && !set.apply {
		return nil, program.Misused("-wait needs -apply or -apply-plan")
	}
	if err := set.reader.check(); err != nil {
		return nil, err
	}
	return set, set.setOperands(flags.Args(), s)
}

// checkStored refuses what a stored plan has no use for, lest it is believed to have been heeded.
func checkStored(flags *flag.FlagSet) (err error) {
	if flags.NArg() > 0 {
		return program.Misused("-apply-plan takes no LIST and no FEED: %s", flags.Arg(0))
	}
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "apply-plan" && f.Name != "wait" && f.Name != "json" {
			err = program.Misused("-%s does not go with -apply-plan", f.Name)
		}
	})
	return err
}

func (set *settings) setOperands(args []string, s program.Streams) error {
	if len(args) == 0 && os.Getenv("WEBDELIVERY_BASE_URL") == "" {
		fmt.Fprintln(s.Err, "There are no arguments: this is the list blocklist of the fake service, and a sample feed.")
		set.list, set.feeds, set.reader.in = "blocklist", []string{"-"}, strings.NewReader(sample)
		return nil
	}
	if len(args) < 2 {
		return program.Misused("LIST and FEED are needed; -h tells more")
	}
	for _, feed := range args[1:] {
		switch {
		case feed == "-" && s.InTerminal:
			return program.Misused("standard input is a terminal and no feed")
		case feed != "-" && strings.HasPrefix(feed, "-"):
			return program.Misused("%s comes after LIST: flags come first", feed)
		}
	}
	set.list, set.feeds, set.reader.in = args[0], args[1:], s.In
	return nil
}

func run(ctx context.Context, args []string, s program.Streams) error {
	set, err := parse(args, s)
	if err != nil {
		return err
	}
	service, err := program.Connect(s.Err, nil, nil, fill)
	if err != nil {
		return err
	}
	defer service.Close()
	lists := service.Client.NetworkLists
	var plan *webdelivery.Plan
	if set.storedPlan != "" {
		plan, err = load(set.storedPlan)
	} else {
		plan, err = set.plan(ctx, lists)
	}
	if err != nil {
		return err
	}
	if err := show(s, set.asJSON, plan); err != nil {
		return err
	}
	if set.savePlan != "" {
		if err := save(set.savePlan, plan); err != nil {
			return err
		}
	}
	switch {
	case set.apply || set.storedPlan != "":
		return set.carryOut(ctx, lists, plan, s)
	case plan.Empty():
		return nil
	default:
		return &program.Exit{Code: pending, Err: errors.New("nothing was changed; -apply changes it")}
	}
}

// fill gives the fake service something to compare with.
func fill(srv *webdeliverytest.Server) {
	srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "blocklist", Entries: []string{
		"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "198.51.100.0/25", "198.51.100.200", "2001:db8:bad::/48",
	}})
}

// colours of the lines that add, green, and that remove, red.
var colours = map[byte]string{'+': "\x1b[32m", '-': "\x1b[31m"}

// show prints a plan.
func show(s program.Streams, asJSON bool, plan *webdelivery.Plan) error {
	if asJSON {
		return printJSON(s.Out, plan)
	}
	coloured := s.OutTerminal && os.Getenv("NO_COLOR") == ""
	for line := range strings.Lines(plan.String()) {
		if colour := colours[line[0]]; coloured && colour != "" {
			line = colour + strings.TrimSuffix(line, "\n") + "\x1b[0m\n"
		}
		if _, err := io.WriteString(s.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// save writes a plan that others on the machine cannot read, and that is never there by half.
func save(name string, plan *webdelivery.Plan) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".blocklist-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // when all went well, it is not there any more
	if err := errors.Join(printJSON(file, plan), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
