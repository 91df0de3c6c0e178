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
		return cmp.Or(context.Cause(ctx), errors.New(cli.Printable(trouble)))
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
	p := &page{app: app}
	p.line(summary)
	differ := p.list("Differs from the document (number in docs/open-points.md, section, rule):", results, conformance.Differs)
	p.list("Left open by the document (number in docs/open-points.md, section, subject):", results, conformance.Seen)
	p.list("Not tried:", results, conformance.NotTried)
	p.dialect(service)
	_, err = io.WriteString(app.Out, p.String())
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
		err = cli.Advise(err, "if purges differ, check that --purge-uri is of a property of this customer, and that the user may purge it")
	}
	return err
}

// page is the text that is printed.
type page struct {
	strings.Builder

	app *cli.App
}

// line adds a line. Where it is longer than a terminal is wide, it goes on below.
func (p *page) line(text string) {
	const indent = "     "
	text = cli.Printable(text)
	for width := p.app.Width; p.app.OutTerminal && width > 0 && len(text) > width; {
		end := strings.LastIndexByte(text[:width+1], ' ')
		if end <= len(indent) {
			break
		}
		fmt.Fprintln(p, text[:end])
		text = indent + text[end+1:]
	}
	fmt.Fprintln(p, text)
}

// list prints the rules with a verdict, and reports whether there are any. Those with the same detail are one line.
func (p *page) list(title string, results []conformance.Result, verdict conformance.Verdict) bool {
	type answer struct {
		point  int
		detail string
	}
	var all []answer
	rules := map[answer][]string{}
	for _, r := range results {
		if r.Verdict == verdict {
			a := answer{r.Point, conformance.OneLine(r.Detail)}
			if verdict == conformance.NotTried {
				a.point = 0
			}
			if rules[a] == nil {
				all = append(all, a)
			}
			rules[a] = append(rules[a], r.Section+" "+r.Text)
		}
	}
	if all != nil {
		fmt.Fprintf(p, "\n%s\n", title)
	}
	slices.SortStableFunc(all, func(a, b answer) int { return a.point - b.point })
	for _, a := range all {
		more := ""
		if n := len(rules[a]) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		point := cmp.Or(strings.TrimLeft(strconv.Itoa(a.point), "0"), "-")
		p.line(fmt.Sprintf("%3s  %s%s: %s", point, rules[a][0], more, a.detail))
	}
	return all != nil
}

// dialect prints the members that the document does not name, and the Dialect that fits.
func (p *page) dialect(service *conformance.Service) {
	if members := service.Unnamed(); members != nil {
		fmt.Fprintf(p, "\nMembers that the document does not name, by type of the SDK:\n  %s\n", strings.Join(members, "\n  "))
	}
	var tried, fields []string
	for _, d := range service.Dialect() {
		if tried = append(tried, d.Field); d.Value != d.Default {
			fields = append(fields, fmt.Sprintf("%s: %q", d.Field, d.Value))
		}
	}
	fmt.Fprintln(p)
	p.line("Fields of the dialect that were tried (--write-list tries all): " + strings.Join(tried, ", ") + ".")
	if fields == nil {
		fmt.Fprintln(p, "Their defaults fit.")
		return
	}
	fmt.Fprintf(p, "These fit, for this program and in Go:\n\n  export WEBDELIVERY_DIALECT=%q\n  webdelivery.Dialect{%s}\n",
		conformance.Fits(service.Dialect()), strings.Join(fields, ", "))
}
