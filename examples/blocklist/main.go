// Blocklist keeps a network list true to one or more feeds: it prints what would change, and changes it when told to.
//
//	blocklist [flags] LIST FEED...
//	blocklist [-wait] [-json] -apply-plan FILE
//
// LIST is the id of a list, or a name that only one list has. A FEED is a file, an http or https address, or - for
// standard input; its entries are IP addresses, CIDR ranges or country codes, in one of three formats:
//
//	plain  one entry a line; what follows # or ; or // is a comment
//	csv    the column -column of a table: a name says that the first line has names, a number that no line has
//	json   an array of strings, or what -field leads to: with "prefixes.ip" {"prefixes": [{"ip": "192.0.2.1"}]}
//
// Without -format the extension or the Content-Type says which, and otherwise it is plain. A feed that is empty, broken or
// a web page is an error that names its line, and nothing is changed. So is one of more than 16 MiB or 2,097,152 entries.
// Of wrong entries, the first 100 are reported. At most 20 entries each way are printed; -json and -save-plan give all.
//
// A feed that did not come whole over http is an error too. If only the end of the connection ends it, its last line must
// end with a newline. If the writer of a pipe is killed, blocklist cannot know: let the writer make a file, look at its
// exit code, and name the file.
//
// -max-remove, -max-add, -widest-ipv4 and -widest-ipv6 bound what a feed may change. Beyond them nothing is changed, and
// the error says which entry it is, or one of them, and which value of which flag allows it. The plan is printed all the
// same, and not saved. -max-remove is none, all, a share such as 20%, or a number of entries. Without it, 20% may go, of a
// list with fewer than 20 entries up to 3, and never more than half of these. Many ranges that are each within the bounds
// get through unless -max-add is set.
//
// With -wait, an entry is removed only after the task of the addition that covers it. If blocklist ends early, its tasks
// go on: let them end before it runs again, because it takes what the list shows for in effect. -json gives their ids.
//
// Exit codes: 0 the list is as the feeds say; 1 nothing was changed, because a feed is broken, or a call failed or was
// interrupted; 2 used wrongly; 3 changed in part, or perhaps, or it could not be printed; 4 there is something to change,
// and -apply was not given; 5 nothing was changed, because the plan is beyond a bound.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

//go:embed main.go
var source string // begins with the help

//go:embed sample.txt
var sample string // the feed when there are neither arguments nor settings

// beyond is the exit code for a plan that a bound does not allow.
const beyond = 5

func main() { program.Main("blocklist", term.IsTerminal, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	j, err := parse(ctx, args, s)
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
	return &program.Exit{Code: 4, Err: errors.New("nothing was changed; add -apply to change the list")} // a pipeline can wait for that
}

// plan compares the feeds with the list, or reads the plan that was saved.
func (j *job) plan(ctx context.Context, lists *webdelivery.NetworkListsService) (plan *webdelivery.Plan, err error) {
	if j.applyPlan != "" {
		plan = &webdelivery.Plan{}
		text, err := program.ReadFile(ctx, j.applyPlan)
		if err == nil {
			err = json.Unmarshal(text, plan)
		}
		if err == nil && plan.ListID == "" {
			err = errors.New("no list_id")
		}
		if err != nil {
			err = fmt.Errorf("%s is no plan that can be applied: %v", j.applyPlan, err) //nolint:errorlint // a bad file is no misuse of a flag
		}
		return plan, err
	}
	if err = j.reader.Read(ctx, j.operands[1:]...); err != nil {
		return nil, err
	}
	list, err := find(ctx, lists, j.operands[0])
	if err == nil {
		plan, err = lists.Plan(ctx, list, j.reader.Entries, j.options)
	}
	if errors.Is(err, webdelivery.ErrInvalid) || errors.Is(err, webdelivery.ErrPlanRefused) {
		err = j.refused(err)
	}
	return plan, err
}

// find gives the id of the list that has this id, or alone has this name.
func find(ctx context.Context, lists *webdelivery.NetworkListsService, name string) (string, error) {
	var ids, names []string
	for list, err := range lists.All(ctx, webdelivery.NetworkListOptions{Deprecated: true, Count: 100}) {
		if err != nil || list.ID == name {
			return name, err
		}
		names = append(names, list.Name)
		if list.Name == name {
			ids = append(ids, list.ID)
		}
	}
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("no list has the id or name %q; the lists are %q", name, names)
	case 1:
		return ids[0], nil
	default:
		return "", fmt.Errorf("%d lists have the name %q; use an id instead: %q", len(ids), name, ids)
	}
}

func (j *job) carryOut(ctx context.Context, lists *webdelivery.NetworkListsService, plan *webdelivery.Plan) error {
	progress := webdelivery.OnProgress(func(p webdelivery.Progress) { j.s.Show(p.Status + " " + program.Bar(p.Percent)) })
	result, err := lists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: j.wait}, progress)
	j.s.Show("")
	if result == nil {
		code := program.Failed
		if errors.Is(err, webdelivery.ErrPlanRefused) { // the file was edited
			code = beyond
		}
		return &program.Exit{Code: code, Err: fmt.Errorf("nothing was changed, plan again: %w", err)}
	}
	err = errors.Join(err, j.print(result, fmt.Sprintf("added %d, removed %d\n", result.Added, result.Removed)))
	if webdelivery.OutcomeOf(err) == webdelivery.OutcomeUnknown { // as it is when nothing failed but the printing
		again := "plan and apply again"
		if j.wait && len(result.Tasks) > 0 {
			again += " when the tasks have ended, whose ids -json gives"
		}
		return &program.Exit{Code: program.Partly, Err: fmt.Errorf("perhaps not all was changed, %s: %w", again, err)}
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
