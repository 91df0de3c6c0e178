package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/internal/conformance"
)

// examine tries all rules, and prints what is worth knowing about the service.
func examine(ctx context.Context, app *cli.App, t conformance.Target, save string) error {
	service, err := conformance.NewService(t)
	if err != nil {
		return cli.Misused("WEBDELIVERY settings: %w", err)
	}
	if trouble := service.Diagnose(ctx); trouble != "" {
		return cmp.Or(context.Cause(ctx), errors.New(trouble))
	}
	if err := lookUp(ctx, t); err != nil {
		return err
	}
	rules := conformance.Rules()
	var results []conformance.Result
	for i := 0; i < len(rules) && ctx.Err() == nil; i++ {
		app.Show(cli.Bar(100*i/len(rules)) + " " + rules[i].Section + " " + rules[i].Text)
		results = append(results, service.Try(ctx, rules[i]))
	}
	app.Show("")
	report := conformance.Report(results, service.Unnamed())
	summary, _, _ := strings.Cut(report, "\n")
	text := new(strings.Builder)
	fmt.Fprintln(text, summary)
	const behind = " (number in docs/open-points.md, section, rule)"
	differ := list(text, "Differs from the document"+behind, results, conformance.Differs)
	list(text, "Left open by the document"+behind, results, conformance.Seen)
	list(text, "Not tried", results, conformance.NotTried)
	dialect(text, service)
	_, err = io.WriteString(app.Out, text.String())
	if save != "" {
		err = errors.Join(err, cli.WriteFile(save, []byte(report)))
	}
	if err != nil {
		return &cli.Exit{Code: cli.Failed, Err: err} // not Misuse: the rules were tried
	}
	if ctx.Err() != nil {
		return fmt.Errorf("ended early, after %d of %d rules: %w", len(results), len(rules), context.Cause(ctx))
	}
	if !differ {
		return nil
	}
	err = errors.New("the service differs from the service document")
	if t.PurgeURI != "" {
		err = cli.Advise(err, "if purges differ, check that --purge-uri is of a property of this customer, "+
			"and that the user may purge it")
	}
	return err
}

// list prints the rules with a verdict, and reports whether there are any. Those with the same detail are one line.
func list(text *strings.Builder, title string, results []conformance.Result, verdict conformance.Verdict) bool {
	type answer struct {
		point  int
		detail string
	}
	var all []answer
	rules := map[answer][]string{}
	for _, r := range results {
		if r.Verdict != verdict {
			continue
		}
		a := answer{r.Point, cli.Printable(conformance.OneLine(r.Detail))}
		if verdict == conformance.NotTried {
			a.point = 0
		}
		if rules[a] == nil {
			all = append(all, a)
		}
		rules[a] = append(rules[a], r.Section+" "+r.Text)
	}
	if all != nil {
		fmt.Fprintf(text, "\n%s:\n", title)
	}
	slices.SortStableFunc(all, func(a, b answer) int { return a.point - b.point })
	for _, a := range all {
		point, more := "-", ""
		if a.point > 0 {
			point = strconv.Itoa(a.point)
		}
		if n := len(rules[a]) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		fmt.Fprintf(text, "%3s  %s%s: %s\n", point, rules[a][0], more, a.detail)
	}
	return all != nil
}

// dialect prints the members that the document does not name, and the fields of Dialect that fit.
func dialect(text *strings.Builder, service *conformance.Service) {
	if members := service.Unnamed(); members != nil {
		fmt.Fprintf(text, "\nMembers that the document does not name, by type of the SDK:\n  %s\n",
			strings.Join(members, "\n  "))
	}
	var tried []string
	for _, d := range service.Dialect() {
		tried = append(tried, d.Field)
	}
	fmt.Fprintf(text, "\nFields of the dialect that were tried (--write-list tries all): %s.\n", strings.Join(tried, ", "))
	if fits := conformance.Fits(service.Dialect()); fits == "" {
		fmt.Fprintln(text, "Their defaults fit.")
	} else {
		fmt.Fprintf(text, "These fit:\n\n  export WEBDELIVERY_DIALECT=%q\n", fits)
	}
}
