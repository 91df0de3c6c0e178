// Package report has the command that shows security statistics on a web page.
package report

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

const long = `Show the trends of security statistics, their largest values and the latest
events on a web page: in a file, or served.

The file is one HTML page that loads nothing, and that only you can read. The
served page has a form for the time range and the filter, and a click on a
value filters by it. It asks for no password, so only this computer gets it.

The statistics are read for at most 15 seconds. Parts that cannot be read by
then are missing, and the page says why; the exit code then is 3. A file
without any part is not written, and the exit code is 1.`

// Command returns the command.
func Command(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "report (--save FILE | --serve)", Short: "Show security statistics on a web page", Long: long,
		Example: `  webdelivery report --save report.html --since 7d
  webdelivery report --save - --filter 'client_country_code==CN' | gzip >cn.gz
  webdelivery report --serve`,
		Args: cobra.NoArgs,
	}
	c.Flags().SortFlags = false
	save := c.Flags().String("save", "", "write the page to this `file`; - is standard output")
	served := c.Flags().Bool("serve", false, "serve the page until ^C")
	listen := c.Flags().String("listen", "127.0.0.1:8080", "with --serve: a loopback `address`; port 0 takes a free one")
	var since string
	cli.SinceFlag(c.Flags(), &since, defaultSince)
	filter := cli.FilterFlag(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		_, err := newQuery(since, "", false)
		switch {
		case err != nil:
			return cli.Misused("--%w", err)
		case *served == (*save != ""):
			return cli.Misused("give --save FILE or --serve; see %s --help", c.CommandPath())
		case !*served && c.Flags().Changed("listen"):
			return cli.Misused("--listen needs --serve")
		case !cli.Loopback(*listen):
			return cli.Misused("--listen %s: want a loopback address such as 127.0.0.1:8080, "+
				"because the page asks for no password", *listen)
		}
		client, err := app.Connect()
		if err != nil {
			return err
		}
		shown := siteOf(client, app.Fake())
		if !*served {
			return write(c.Context(), app, *save, shown, since, filter.String())
		}
		return app.Serve(c.Context(), *listen, handler(shown, since, filter.String()),
			"The report is at %s until you press ^C.")
	}
	return c
}

// write writes the page to a file that only its owner can read: attacks are not public.
func write(ctx context.Context, app *cli.App, name string, shown site, since, filter string) error {
	app.Show("reading statistics ...")
	p := newPage(ctx, shown, since, filter, false)
	app.Show("")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.Missing == p.Parts() {
		return p.missing()
	}
	var text bytes.Buffer
	err := pageTemplate.Execute(&text, p)
	switch {
	case err != nil:
	case name == "-":
		_, err = app.Out.Write(text.Bytes())
	default:
		err = cli.WriteFile(name, text.Bytes())
	}
	return cmp.Or(err, p.missing())
}

// missing returns an error with a line for each fault, and with all that can be done about them; nil if there are none.
func (p *page) missing() error {
	var lines []error
	var advice []string
	for _, f := range p.Faults {
		lines = append(lines, fmt.Errorf("%d of %d parts are missing. %s: %w", len(f.Parts), p.Parts(), f.Summary, f.Err))
		advice = append(advice, f.Advice)
	}
	if lines == nil {
		return nil
	}
	return cli.Ended(p.Parts()-p.Missing, cli.Advise(errors.Join(lines...), strings.Join(advice, " ")))
}

// handler serves pages under local names only. With DNS rebinding, a foreign site could otherwise read them under its
// own name. An address without a query has the time range and the filter of the command line.
func handler(shown site, since, filter string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		if !cli.Loopback(r.Host) {
			http.Error(w, "this page is for localhost", http.StatusMisdirectedRequest)
			return
		}
		since, filter := since, filter
		if r.URL.RawQuery != "" {
			typed := strings.ReplaceAll(r.URL.RawQuery, ";", "%3B") // by people, without escapes
			picked, _ := url.ParseQuery(typed)
			since, filter = cmp.Or(picked.Get("since"), defaultSince), picked.Get("filter")
		}
		p := newPage(r.Context(), shown, since, filter, true)
		w.Header().Set("Content-Security-Policy", policy+"; frame-ancestors 'none'")
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case p.Problem != nil:
			w.WriteHeader(http.StatusBadRequest)
		case p.Missing == p.Parts():
			w.WriteHeader(http.StatusBadGateway)
		}
		_ = pageTemplate.Execute(w, p)
	})
	return mux
}
