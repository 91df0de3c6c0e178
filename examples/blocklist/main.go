// Blocklist keeps a network list true to one or more feeds: it prints what would change, and changes it when told to.
//
//	blocklist [flags] LIST FEED...
//	blocklist [-wait] [-json] -apply-plan FILE
//
// LIST is the id of a list, or a name that only one list has. A FEED is a file, or an http or https address; its entries
// are IP addresses, CIDR ranges or country codes, in one of three formats:
//
//	plain  one entry a line; what follows # or ; or // is a comment
//	csv    the column -column of a table: a name says that the first line has names, a number that no line has
//	json   an array of strings, or what -field leads to: with "prefixes.ip" {"prefixes": [{"ip": "192.0.2.1"}]}
//
// Without -format the extension or the Content-Type says which. A feed that is empty, broken or a web page is an error
// that names its line, and nothing is changed. At most 20 entries each way are printed; -json and -save-plan give all.
//
// Exit codes: 0 the list is as the feeds say, 1 failed and nothing was changed, 2 used wrongly, 3 changed in part, or
// perhaps, or it could not be printed, 4 there is something to change, and -apply was not given.
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
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/blocklist/feed"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

//go:embed main.go
var source string // begins with the help

//go:embed sample.txt
var sample string // the feed when there are neither arguments nor settings

func main() { program.Main("blocklist", term.IsTerminal, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	j, err := parse(args, s)
	if err != nil {
		return err
	}
	service, err := program.Connect(s.Err, nil, nil, func(srv *webdeliverytest.Server) {
		entries := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "198.51.100.0/25", "198.51.100.200", "2001:db8:bad::/48"}
		srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "blocklist", Entries: entries})
	})
	if err != nil {
		return err
	}
	defer service.Close()
	plan, err := j.plan(ctx, service.Client.NetworkLists)
	if err != nil {
		return err
	}
	if err = j.print(plan, plan.String()); err == nil && j.savePlan != "" {
		text, _ := json.MarshalIndent(plan, "", "  ") //nolint:errchkjson // its times have come as JSON
		err = program.Replace(j.savePlan, func(w io.Writer) error { _, err := w.Write(text); return err })
	}
	switch {
	case err != nil || plan.Empty() && !j.apply:
		return err
	case j.apply:
		return j.carryOut(ctx, service.Client.NetworkLists, plan)
	}
	return &program.Exit{Code: 4, Err: errors.New("nothing was changed; -apply changes it")} // a pipeline can wait for that
}

// job is what the command line asks for.
type job struct {
	s                   program.Streams
	reader              feed.Reader
	options             webdelivery.PlanOptions
	apply, wait, json   bool
	savePlan, applyPlan string
	operands            []string // LIST FEED..., or none
}

func parse(args []string, s program.Streams) (*job, error) {
	j := &job{s: s}
	flags := program.Flags("blocklist", source, s)
	flags.StringVar(&j.reader.Format, "format", "", "`format` of the feeds: plain, csv or json")
	flags.StringVar(&j.reader.Column, "column", "", "`name` of the CSV column in the first line, or its number if no line has names; CSV needs it")
	flags.StringVar(&j.reader.Field, "field", "", "`name` of the JSON member that is the array or is in its objects; a.b is b in the objects of the array a")
	flags.Float64Var(&j.options.MaxRemove, "max-remove", 0.2, "largest `part` of the list that may be removed, 0 to 1")
	flags.BoolVar(&j.options.Aggregate, "aggregate", false, "merge entries into the fewest ranges that cover the same addresses")
	flags.BoolVar(&j.apply, "apply", false, "carry out the plan")
	flags.BoolVar(&j.wait, "wait", false, "wait until the changed list is deployed")
	flags.BoolVar(&j.json, "json", false, "print JSON: the plan, and with -apply what became of it as a second value")
	flags.StringVar(&j.savePlan, "save-plan", "", "write the plan to a regular `file`, which is for its owner alone, to look at it before -apply-plan")
	flags.StringVar(&j.applyPlan, "apply-plan", "", "carry out the plan of `file`, unless the list has changed since")
	if err := program.Parse(flags, args); err != nil {
		return nil, err
	}
	j.operands, j.apply = flags.Args(), j.apply || j.applyPlan != ""
	stray := flags.NArg() // what -apply-plan would not heed
	flags.Visit(func(f *flag.Flag) {
		if !slices.Contains([]string{"apply-plan", "apply", "wait", "json"}, f.Name) {
			stray++
		}
	})
	switch {
	case program.Special(j.savePlan): // a file would take the place of the device or link
		return nil, program.Misused("-save-plan: %s is there, and no regular file", j.savePlan)
	case j.applyPlan != "" && stray > 0:
		return nil, program.Misused("-apply-plan takes no LIST, no FEED and no flag but -apply, -wait and -json")
	case j.applyPlan == "" && flags.NArg() < 2 && (flags.NArg() == 1 || program.Configured()):
		return nil, program.Misused("LIST and FEED are needed; -h tells more")
	case !slices.Contains([]string{"", "plain", "csv", "json"}, j.reader.Format):
		return nil, program.Misused("-format %q is none of plain, csv and json", j.reader.Format)
	case !(j.options.MaxRemove >= 0 && j.options.MaxRemove <= 1):
		return nil, program.Misused("-max-remove %v is not between 0 and 1", j.options.MaxRemove)
	case j.applyPlan == "" && flags.NArg() == 0:
		j.operands = []string{"blocklist"}
		return j, j.reader.Parse("sample.txt", "", strings.NewReader(sample))
	}
	return j, nil
}

// plan compares the feeds with the list, or reads the plan that was saved.
func (j *job) plan(ctx context.Context, lists *webdelivery.NetworkListsService) (plan *webdelivery.Plan, err error) {
	if j.applyPlan != "" {
		plan = &webdelivery.Plan{}
		text, err := program.ReadFile(ctx, j.applyPlan)
		if err == nil && (json.Unmarshal(text, plan) != nil || plan.ListID == "") {
			err = fmt.Errorf("%s is not what -save-plan writes", j.applyPlan)
		}
		return plan, err
	}
	if err = j.reader.Read(ctx, j.operands[1:]...); err != nil {
		return nil, err
	}
	list, err := find(ctx, lists, j.operands[0])
	if err == nil {
		j.options.MaxRemove = max(j.options.MaxRemove, 1e-12) // to the SDK, 0 is its default
		plan, err = lists.Plan(ctx, list, j.reader.Entries, j.options)
	}
	if invalid, ok := errors.AsType[*webdelivery.ValidationError](err); ok {
		var i int
		if _, other := fmt.Sscanf(invalid.Field, "desired[%d]", &i); other == nil {
			err = fmt.Errorf("%s: %s", j.reader.Places[i], invalid.Reason)
		}
		err = &program.Exit{Code: program.Failed, Err: err} // the fault of the feed, not of the command line
	}
	return plan, err
}

// find gives the id of the list that has this id, or alone has this name.
func find(ctx context.Context, lists *webdelivery.NetworkListsService, name string) (string, error) {
	var ids []string
	for list, err := range lists.All(ctx, webdelivery.NetworkListOptions{Deprecated: true, Count: 100}) {
		if err != nil || list.ID == name {
			return name, err
		}
		if list.Name == name {
			ids = append(ids, list.ID)
		}
	}
	if len(ids) != 1 {
		return "", fmt.Errorf("no list has the id %q, and %d have the name: %q", name, len(ids), ids)
	}
	return ids[0], nil
}

func (j *job) carryOut(ctx context.Context, lists *webdelivery.NetworkListsService, plan *webdelivery.Plan) error {
	progress := webdelivery.OnProgress(func(p webdelivery.Progress) { j.s.Show(p.Status + " " + program.Bar(p.Percent)) })
	result, err := lists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: j.wait}, progress)
	j.s.Show("")
	if result == nil {
		return fmt.Errorf("nothing was changed, plan again: %w", err)
	}
	err = errors.Join(err, j.print(result, fmt.Sprintf("added %d, removed %d\n", result.Added, result.Removed)))
	if webdelivery.OutcomeOf(err) == webdelivery.Unknown { // as it is when nothing failed but the printing
		return &program.Exit{Code: program.Partly, Err: fmt.Errorf("perhaps not all was changed, plan and apply again: %w", err)}
	}
	return err
}

// print prints for machines or for people.
func (j *job) print(value any, text string) error {
	if j.json {
		return json.NewEncoder(j.s.Out).Encode(value)
	}
	if j.s.OutTerminal && os.Getenv("NO_COLOR") == "" {
		text = strings.NewReplacer("\n+", "\x1b[0m\n\x1b[32m+", "\n-", "\x1b[0m\n\x1b[31m-", "\n", "\x1b[0m\n").Replace(text)
	}
	_, err := fmt.Fprint(j.s.Out, text)
	return err
}
