// Blocklist makes a network list equal to one or more feeds. It prints what would change, and changes the list only
// with -apply.
//
//	blocklist [flags] LIST FEED...
//	blocklist [-wait] [-json] -apply-plan FILE
//	blocklist [-json] -find ADDRESS
//
// LIST is the id of a list, or a name that only one list has. A FEED is a file, an http or https address, or - for
// standard input. Its entries are IP addresses, CIDR ranges or country codes, in one of three formats:
//
//	plain  one entry per line; # or ; or // begins a comment; blank lines and spaces around an entry are ignored
//	csv    a column of a table: -column is a name from the first line, or a number if no line has names
//	json   an array of strings, or what -field leads to: with "prefixes.ip" {"prefixes": [{"ip": "192.0.2.1"}]}
//
// Without -format, the extension or the Content-Type decides; the default is plain. A feed that is empty, damaged or a
// web page is an error, and so is one of more than 16 MiB or 2,097,152 entries. The error names the line, and the list
// is not changed. At most 100 invalid entries are reported. The program prints at most 20 added and 20 removed entries;
// -json and -save-plan have all.
//
// A feed that arrives incomplete over http is an error, too; if only the end of the connection marks its end, its last
// line must end with a newline. If the writer of a pipe is killed, blocklist cannot tell: let the writer create a file,
// check its exit code, and name the file.
//
// -max-remove, -max-add, -widest-ipv4 and -widest-ipv6 limit what a feed may change. If a plan exceeds a limit, the
// list is not changed; the error names an entry, and the flag with the value that would allow it. The plan is printed,
// but not saved. -max-remove is none, all, a share such as 20%, or a number of entries. By default, 20% may be removed;
// of a list with fewer than 20 entries, up to 3, but never more than half. Any number of ranges that are each within
// the limits are added, unless -max-add is set.
//
// -never names a file of your own addresses and ranges. A plan that would add an entry that overlaps one of them is
// refused. -find prints why an address is blocked: each list and entry that covers it, who added it, and when.
//
// With -wait, an entry is removed only after the task of the addition that covers it. If blocklist ends early, its
// tasks continue. Wait for them before you run it again, because it assumes that all entries of the list are deployed.
// -json prints their ids.
//
// Exit codes:
//
//	0  the list equals the feeds
//	1  nothing was changed: a feed is damaged, or a call failed or was interrupted
//	2  wrong usage, or a file cannot be opened
//	3  the list was or may have been changed in part, or the result could not be printed
//	4  there is something to change, and -apply is missing
//	5  nothing was changed: the plan exceeds a limit
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/feed"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

//go:embed main.go
var source string // begins with the help

//go:embed sample.txt
var sample string // the feed if there are no arguments and no settings

// beyond is the exit code for a plan that exceeds a limit.
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
	if j.find.IsValid() {
		return j.explain(ctx, service.Client.NetworkLists)
	}
	plan, err := j.plan(ctx, service.Client.NetworkLists)
	if err != nil {
		return err
	}
	if err = j.print(plan, plan.String()); err == nil && j.savePlan != "" {
		text, _ := json.MarshalIndent(plan, "", "  ") //nolint:errchkjson // its times were read from JSON
		err = program.Replace(j.savePlan, func(w io.Writer) error { _, err := w.Write(text); return err })
	}
	switch {
	case err != nil || plan.Empty() && !j.apply:
		return err
	case j.apply:
		return j.carryOut(ctx, service.Client.NetworkLists, plan)
	}
	return &program.Exit{Code: 4, Err: errors.New("nothing was changed; add -apply to change the list")} // a pipeline can ask for approval
}

// plan compares the feeds with the list, or reads a saved plan.
func (j *job) plan(ctx context.Context, lists *webdelivery.NetworkListsService) (plan *webdelivery.Plan, err error) {
	if j.applyPlan != "" {
		plan = &webdelivery.Plan{}
		text, err := program.ReadFile(ctx, j.applyPlan)
		if err != nil {
			return nil, err
		}
		err = json.Unmarshal(text, plan)
		if err == nil && plan.ListID == "" {
			err = errors.New("no list_id")
		}
		if err != nil {
			err = fmt.Errorf("%s cannot be applied: %v; save a plan with -save-plan", j.applyPlan, err) //nolint:errorlint // a damaged file is not wrong usage
		}
		return plan, err
	}
	if err = j.reader.Read(ctx, j.operands[1:]...); err == nil {
		err = j.readNever(ctx)
	}
	if errors.Is(err, feed.ErrNoColumn) {
		err = program.Misused("%w: set -column, such as -column ip", err)
	}
	if err != nil {
		return nil, err
	}
	list, err := find(ctx, lists, j.operands[0])
	if err == nil {
		plan, err = lists.Plan(ctx, list, j.reader.Entries, j.options)
	}
	if errors.Is(err, webdelivery.ErrInvalid) || errors.As(err, new(*webdelivery.PlanError)) {
		err = j.refused(err)
	}
	return plan, err
}

// explain prints the entries that cover an address.
func (j *job) explain(ctx context.Context, lists *webdelivery.NetworkListsService) error {
	matches, unreadable, err := lists.Find(ctx, []netip.Addr{j.find})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("no list covers %s\n", j.find)
	if len(matches) > 0 {
		text = ""
	}
	for _, match := range matches {
		text += fmt.Sprintf("%q (%s): %s, added by %q at %s\n", match.List.Name, match.List.ID,
			match.Entry.Entry, match.Entry.AddedBy, match.Entry.CreationTimestamp.Format(time.RFC3339))
	}
	for _, unread := range unreadable {
		text += fmt.Sprintf("%q (%s): %q is neither an address nor a range\n", unread.List.Name, unread.List.ID, unread.Entry.Entry)
	}
	return j.print(struct {
		Matches    []webdelivery.NetworkListMatch `json:"matches"`
		Unreadable []webdelivery.NetworkListMatch `json:"unreadable,omitempty"`
	}{append([]webdelivery.NetworkListMatch{}, matches...), unreadable}, text)
}

// find returns the id of the list that has this id, or is the only one with this name.
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
	result, err := lists.Apply(ctx, plan, webdelivery.ApplyOptions{Wait: j.wait, Progress: func(added, removed, total int) {
		j.s.Show(program.Bar(100 * (added + removed) / max(1, total)))
	}})
	j.s.Show("")
	if result == nil {
		code := program.Failed
		if errors.As(err, new(*webdelivery.PlanError)) { // the file was edited
			code = beyond
		}
		return &program.Exit{Code: code, Err: fmt.Errorf("nothing was changed; plan again: %w", err)}
	}
	err = errors.Join(err, j.print(result, fmt.Sprintf("added %d, removed %d\n", result.Added, result.Removed)))
	if webdelivery.OutcomeOf(err) == webdelivery.OutcomeUnknown { // even if only the printing failed
		again := "plan and apply again"
		if j.wait && len(result.Tasks) > 0 {
			again += " after the tasks have ended; -json prints their ids"
		}
		return &program.Exit{Code: program.Partly, Err: fmt.Errorf("perhaps not everything was changed; %s: %w", again, err)}
	}
	return err
}

// print prints the value as JSON with -json, and the text otherwise.
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
