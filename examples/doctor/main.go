// Doctor checks a service before you trust the SDK with it: whether the settings are right, which rules of the service
// document the service breaks, what it does where the document leaves something open, which members of a response the
// document does not name, and which Dialect fits.
//
//	doctor [-report FILE] [what it may change]
//
// It only reads, and creates one session. To see how the service refuses requests, it also sends up to 15 that must be
// refused, with a user or a session that does not exist. Flags name what it may change: -write-list, an empty list of
// type IP; -full-list, one with 50,000 entries, to which it tries to add another; -delete-list, which it deletes;
// -purge-uri, which it purges about 45 times, with everything that begins with it; -purge-wildcard, which it purges as a
// prefix. A list is named by its ID. The program sends at most two purges a second, and 2,000 requests in all.
// WEBDELIVERY_VISITOR_USERNAME and WEBDELIVERY_VISITOR_PASSWORD name a second user who may neither view the
// configuration nor purge.
//
// ^C prints what was found until then. Set WEBDELIVERY_DIALECT="TasksPrefix=/..." if tasks are neither at /tasks nor at
// /config/tasks.
//
// Exit codes: 0 no rule differs, 1 a rule differs or the service refuses the settings, 2 wrong usage or settings, or a
// flag names a list that the service does not have, or one that is not what the flag needs. With 2, nothing was changed.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/conformance"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

//go:embed main.go
var source string // begins with the help

func main() { program.Main("doctor", nil, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	set := program.Flags("doctor", source, s)
	var t conformance.Target
	report := set.String("report", "", "also write all rules as a Markdown table to this `file`")
	set.StringVar(&t.WriteList, "write-list", "", "`id` of an empty list of type IP whose entries may be added and removed")
	set.StringVar(&t.FullList, "full-list", "", "`id` of a list with 50,000 entries; the program tries to add one more")
	set.StringVar(&t.DeleteList, "delete-list", "", "`id` of a list that may be deleted")
	set.StringVar(&t.PurgeURI, "purge-uri", "", "`address` that may be purged, with everything that begins with it")
	set.StringVar(&t.PurgeWildcard, "purge-wildcard", "", "`pattern` with a wildcard domain that may be purged as a prefix")
	if err := program.ParseAlone(set, args); err != nil {
		return err
	}
	t.BaseURL, t.Customer = os.Getenv("WEBDELIVERY_BASE_URL"), os.Getenv("WEBDELIVERY_CUSTOMER")
	t.User = conformance.User{Name: os.Getenv("WEBDELIVERY_USERNAME"), Password: os.Getenv("WEBDELIVERY_PASSWORD")}
	t.Visitor = conformance.User{Name: os.Getenv("WEBDELIVERY_VISITOR_USERNAME"), Password: os.Getenv("WEBDELIVERY_VISITOR_PASSWORD")}
	if err := check(set, t); err != nil {
		return err
	}
	if program.Configured() {
		if _, err := webdelivery.NewClientFromEnv(); err != nil {
			return err
		}
		for field := range strings.SplitSeq(os.Getenv("WEBDELIVERY_DIALECT"), ",") { // NewClientFromEnv has checked it
			if prefix, found := strings.CutPrefix(strings.TrimSpace(field), "TasksPrefix="); found {
				t.TasksPrefix = prefix
			}
		}
		if file := os.Getenv("WEBDELIVERY_PASSWORD_FILE"); file != "" {
			text, err := os.ReadFile(file) //nolint:gosec // G304: who sets the variable chooses the file
			if err != nil {
				return err
			}
			t.User.Password = strings.TrimRight(string(text), "\r\n")
		}
	} else {
		fake, err := webdeliverytest.Start()
		if err != nil {
			return err
		}
		defer fake.Close()
		t.BaseURL, t.Customer, t.User = fake.URL, fake.Customer, conformance.User{Name: fake.Username, Password: fake.Password}
		fmt.Fprintln(s.Err, "WEBDELIVERY_BASE_URL is not set: this examines a fake service.")
	}
	if !program.IsSet(set, "report") {
		return examine(ctx, s.Out, t, nil)
	}
	file, err := os.OpenFile(*report, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return program.Misused("-report: %w", err)
	}
	defer func() { _ = file.Close() }()
	return examine(ctx, s.Out, t, file)
}

// check returns what is wrong with the flags and the visitor, as far as this shows without asking the service.
func check(set *flag.FlagSet, t conformance.Target) (wrong error) {
	set.Visit(func(f *flag.Flag) {
		if f.Value.String() == "" {
			wrong = program.Misused("-%s is empty: set the variable that it comes from, or remove it", f.Name)
		}
	})
	if wrong != nil {
		return wrong
	}
	flags := map[string]string{} // by id
	for _, l := range listsOf(t) {
		switch other := flags[strings.ToLower(l.id)]; {
		case l.id == "":
			continue
		case !address.Fits(l.id):
			return program.Misused("-%s: %q is not the ID of a list", l.flag, l.id)
		case other != "":
			return program.Misused("-%s and -%s name the same list; each needs a list of its own", other, l.flag)
		}
		flags[strings.ToLower(l.id)] = l.flag
	}
	switch {
	case (t.Visitor.Name == "") != (t.Visitor.Password == ""):
		return program.Misused("set both WEBDELIVERY_VISITOR_USERNAME and WEBDELIVERY_VISITOR_PASSWORD, or neither")
	case t.Visitor.Name != "" && t.Visitor.Name == t.User.Name:
		return program.Misused("WEBDELIVERY_VISITOR_USERNAME and WEBDELIVERY_USERNAME name the same user; " +
			"the visitor has fewer rights")
	}
	return checkPurges(t)
}

func checkPurges(t conformance.Target) error {
	if t.PurgeURI != "" { // the rules purge it in both ways
		why := cmp.Or(problem(webdelivery.Exact(t.PurgeURI)), problem(webdelivery.Prefix(t.PurgeURI)))
		if why != "" {
			return program.Misused("-purge-uri: %q %s; write an object, such as https://www.example.com/app.css", t.PurgeURI, why)
		}
	}
	if t.PurgeWildcard != "" {
		why := problem(webdelivery.Prefix(t.PurgeWildcard))
		if why == "" && !strings.Contains(t.PurgeWildcard, "*") {
			why = "has no wildcard in its domain"
		}
		switch {
		case why != "":
			return program.Misused("-purge-wildcard: %q %s; write a pattern, such as *.example.com/app", t.PurgeWildcard, why)
		case t.PurgeURI == "":
			return program.Misused("-purge-wildcard needs -purge-uri, without which nothing is purged")
		}
	}
	return nil
}

// problem returns what the SDK finds wrong with a URI, without its advice, which is about Go.
func problem(uri webdelivery.PurgeURI) string {
	invalid, _ := errors.AsType[*webdelivery.ValidationError](webdelivery.PurgeRequest{URIs: []webdelivery.PurgeURI{uri}}.Validate())
	if invalid == nil {
		return ""
	}
	why, _, _ := strings.Cut(invalid.Reason, ";")
	return why
}

// namedList is a list that a flag names.
type namedList struct{ flag, id string }

func listsOf(t conformance.Target) []namedList {
	return []namedList{{"write-list", t.WriteList}, {"full-list", t.FullList}, {"delete-list", t.DeleteList}}
}

// noSuchList are the statuses of a list that does not exist or is hidden. The service document names none for it.
var noSuchList = []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound}

// lookUp returns an error for a list that the service does not have or that is not what its flag needs: the rules would
// blame the service. Other responses are left to the rules, which say more about them.
func lookUp(ctx context.Context, t conformance.Target) error {
	client, err := webdelivery.NewClient(t.BaseURL, t.Customer, webdelivery.BasicAuth(t.User.Name, t.User.Password),
		webdelivery.WithHTTPClient(&http.Client{Transport: t.Transport}), webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
	if err != nil {
		return err
	}
	for _, l := range listsOf(t) {
		if l.id == "" {
			continue
		}
		list, err := client.NetworkLists.Get(ctx, l.id)
		refused, _ := errors.AsType[*webdelivery.Error](err)
		switch {
		case refused != nil && slices.Contains(noSuchList, refused.StatusCode):
			return program.Misused("-%s: the service has no list with the ID %q that the user may read (%d); "+
				"the name of a list is not its ID", l.flag, l.id, refused.StatusCode)
		case err != nil || l.flag == "delete-list":
		case list.Type == webdelivery.ListTypeGEO:
			return program.Misused("-%s: the list with the ID %q is of type GEO; name one of type IP", l.flag, l.id)
		case l.flag == "write-list" && len(list.List) > 0:
			return program.Misused("-%s: the list with the ID %q is not empty; name an empty one", l.flag, l.id)
		}
	}
	return nil
}

// examine prints what is worth knowing about a service.
func examine(ctx context.Context, out io.Writer, t conformance.Target, report io.Writer) error {
	service, err := conformance.NewService(t)
	if err != nil {
		return program.Misused("WEBDELIVERY settings: %v", err)
	}
	if trouble := service.Diagnose(ctx); trouble != "" {
		return errors.New(trouble)
	}
	if err := lookUp(ctx, t); err != nil {
		return err
	}
	results := make([]conformance.Result, 0, len(conformance.Rules()))
	for _, rule := range conformance.Rules() {
		if ctx.Err() != nil {
			break
		}
		results = append(results, service.Try(ctx, rule))
	}
	differ := count(out, results)
	list(out, "Differs from the service document (open point, section, rule: what was seen):", results, conformance.Differs)
	list(out, "The document leaves it open (open point of docs/open-points.md, section, subject: what was seen):", results, conformance.Seen)
	if unnamed := service.Unnamed(); unnamed != nil {
		fmt.Fprintf(out, "The document does not name these members, by type of the SDK:\n  %s\n\n", strings.Join(unnamed, "\n  "))
	}
	tellDialect(out, service.Dialect())
	if report != nil {
		if _, err := io.WriteString(report, conformance.Report(results, service.Unnamed())); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("ended early, after %d of %d rules: %w", len(results), len(conformance.Rules()), ctx.Err())
	case differ > 0:
		return program.Advise(errors.New("the service differs from the service document"), advice(results))
	}
	return nil
}

// advice returns what to check before blaming the service. A service also refuses to purge what is not the customer's.
func advice(results []conformance.Result) string {
	for _, r := range results {
		purge := r.Text == "action PURGE is accepted" || r.Text == "action EXPIRE is accepted"
		if purge && r.Verdict != conformance.Differs {
			return ""
		}
	}
	return "no purge was accepted: check that -purge-uri is of a property of this customer, and that the user may purge it"
}

// count prints the number of rules for each verdict, and why rules were not tried. It returns how many differ.
func count(out io.Writer, results []conformance.Result) (differ int) {
	rules, why := map[conformance.Verdict]int{}, map[string]int{}
	for _, r := range results {
		if rules[r.Verdict]++; r.Verdict == conformance.NotTried {
			why[r.Detail]++
		}
	}
	fmt.Fprintf(out, "%d rules hold, %d differ, %d are left open, %d were not tried:\n",
		rules[conformance.Holds], rules[conformance.Differs], rules[conformance.Seen], rules[conformance.NotTried])
	reasons := slices.SortedFunc(maps.Keys(why), func(a, b string) int { return cmp.Or(cmp.Compare(why[b], why[a]), cmp.Compare(a, b)) })
	const shown = 5
	for _, reason := range reasons[:min(shown, len(reasons))] {
		fmt.Fprintf(out, "%4d because %s\n", why[reason], conformance.OneLine(reason))
	}
	if len(reasons) > shown {
		fmt.Fprintln(out, "     the others: see -report")
	}
	fmt.Fprintln(out)
	return rules[conformance.Differs]
}

func list(out io.Writer, title string, results []conformance.Result, verdict conformance.Verdict) {
	type seen struct {
		point  int
		detail string
	}
	var order []seen
	texts := map[seen][]string{} // rules of the same open point with the same answer are one line
	for _, r := range results {
		if r.Verdict != verdict {
			continue
		}
		line := seen{r.Point, conformance.OneLine(r.Detail)}
		if texts[line] == nil {
			order = append(order, line)
		}
		texts[line] = append(texts[line], r.Section+" "+r.Text)
	}
	if order == nil {
		return
	}
	slices.SortStableFunc(order, func(a, b seen) int { return cmp.Compare(a.point, b.point) })
	fmt.Fprintln(out, title)
	for _, line := range order {
		point, more := "-", ""
		if line.point > 0 {
			point = strconv.Itoa(line.point)
		}
		if n := len(texts[line]) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more rules)", n)
		}
		fmt.Fprintf(out, "%3s  %s%s: %s\n", point, texts[line][0], more, line.detail)
	}
	fmt.Fprintln(out)
}

// tellDialect prints the Dialect that fits, as Go and as the variable that every program here reads.
func tellDialect(out io.Writer, known []conformance.Spelling) {
	fits := conformance.Fits(known)
	if fits == "" {
		fmt.Fprint(out, "The default Dialect fits, as far as it was tried")
	} else {
		var fields []string
		for _, d := range known {
			if d.Value != d.Default {
				fields = append(fields, fmt.Sprintf("%s: %q", d.Field, d.Value))
			}
		}
		fmt.Fprintf(out, "The Dialect that fits, as far as it was tried:\n\n  webdelivery.Dialect{%s}\n  export WEBDELIVERY_DIALECT=%q\n\n",
			strings.Join(fields, ", "), fits)
		fmt.Fprint(out, "It was tried")
	}
	tried := make([]string, len(known))
	for i, d := range known {
		tried[i] = d.Field
	}
	fmt.Fprintf(out, " for %s.\n", strings.Join(tried, ", "))
	if !slices.Contains(tried, "TasksPrefix") {
		fmt.Fprintln(out, "Tasks were not found: see -h for TasksPrefix.")
	}
	if !slices.Contains(tried, "EntryKey") {
		fmt.Fprintln(out, "The other fields can only be tried with -write-list.")
	}
}
