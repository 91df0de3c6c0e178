// Dashboard is a web page of the security statistics: trends, the largest groups of every category, the latest events.
//
//	dashboard [-listen 127.0.0.1:8080]
//	dashboard -o report.html [-since 7d] [-filter 'client_country_code==CN;event_action!=WARN']
//
// It prints its address and serves the page to this machine until it is interrupted; the page's form picks span and
// filter. With -o it writes the page to one file, - being stdout. A part that could not be read says why in its place.
//
// Exit codes: 0 done, 1 failed, nothing was written, 2 used wrongly, 3 written, but some parts could not be read.
package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/dashboard/report"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func main() { program.Main("dashboard", nil, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	set := program.Flags("dashboard", file("main.go"), s)
	listen := set.String("listen", "127.0.0.1:8080", "loopback `address` to serve on; port 0 takes a free one")
	output := set.String("o", "", "`file` to write the page to, instead of serving it")
	since := set.String("since", "", "with -o: `span` until now: 1h, 6h, 1d (without it), 3d, 7d, 30d")
	filter := set.String("filter", "", "with -o: `expression` in the service's syntax")
	if err := program.Parse(set, args); err != nil {
		return err
	}
	switch {
	case set.NArg() > 0:
		return program.Misused("unexpected argument %q", set.Arg(0))
	case *output == "" && *since+*filter != "":
		return program.Misused("-since and -filter go with -o; the page that is served has a form for them")
	case *output != "-" && program.Special(*output): // a new file would take the place of a device
		return program.Misused("-o: %s is there and is no regular file", *output)
	case !isLoopback(*listen):
		return program.Misused("-listen: %q is not of this machine alone, and the page asks for no password", *listen)
	}
	service, err := program.Connect(s.Err, nil, []webdeliverytest.Option{webdeliverytest.WithEvents(0.5, 7, time.Time{})}, nil)
	if err != nil {
		return err
	}
	defer service.Close()
	if *output == "" {
		return serve(ctx, *listen, handler(service.Client.Stats), s)
	}
	return write(ctx, *output, newPage(ctx, service.Client.Stats, url.Values{"since": {*since}, "filter": {*filter}}), s)
}

// write makes a file of a page, for its owner alone: what attackers did is not for everybody.
func write(ctx context.Context, name string, p *page, s program.Streams) error {
	var text strings.Builder
	p.Policy = policy
	err := pageTemplate.Execute(&text, p)
	switch {
	case p.Report == nil:
		return program.Misused("%s", p.Problem)
	case ctx.Err() != nil:
		return ctx.Err()
	case p.Status != http.StatusOK:
		return fmt.Errorf("no part of the page could be read: %s", p.Events[0].Error)
	case err != nil:
	case name == "-":
		_, err = fmt.Fprint(s.Out, text.String())
	default:
		err = program.Replace(name, func(w io.Writer) error { _, err := io.WriteString(w, text.String()); return err })
	}
	if failed := p.Failed.Load(); err == nil && failed > 0 {
		return &program.Exit{Code: program.Partly, Err: fmt.Errorf("%d of %d parts could not be read", failed, p.Asked.Load())}
	}
	return err
}

// page is what the template shows, which holds its style and scripts: it is the same served and as a file.
type page struct {
	*report.Report
	Problem string // with what is picked; there is no report then
	Status  int    // of HTTP
	Picked  url.Values
	Spans   []report.Span
	Policy  string // of a file; a page that is served has it in its header, and a form
}

// picker is a list of the form: of the values that a dimension has.
type picker struct{ Label, Name, Dimension string }

var (
	pickers = []picker{{"Country", "country", webdelivery.DimClientCountryCode}, {"Action", "action", webdelivery.DimEventAction}}
	//go:embed main.go assets
	files        embed.FS
	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"number":  func(n int64) string { return message.NewPrinter(language.English).Sprint(n) },
		"percent": func(part, all int64) string { return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(all, 1))) },
		"is":      filters.Eq,
		"tone":    report.Tone,
		"pickers": func() []picker { return pickers },
		"style":   func(name string) template.CSS { return template.CSS(file(name)) }, //nolint:gosec // it is the page's own
		"script":  func(name string) template.JS { return template.JS(file(name)) },   //nolint:gosec // too
	}).Parse(file("assets/page.html")))
	policy = "default-src 'none'; base-uri 'none'; form-action 'self'; img-src data:; style-src " + hash("assets/style.css") +
		"; script-src " + hash("assets/echarts.min.js") + " " + hash("assets/charts.js")
)

func file(name string) string {
	text, _ := files.ReadFile(name)
	return string(text)
}

func hash(name string) string {
	sum := sha256.Sum256([]byte(file(name)))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// newPage joins what is picked by AND. The service takes no OR beside it, and the problem then says so.
func newPage(ctx context.Context, stats *webdelivery.StatsService, picked url.Values) *page {
	p := &page{Picked: picked, Spans: report.Spans}
	all := []string{picked.Get("filter")}
	for _, picker := range pickers {
		all = append(all, picked.Get(picker.Name))
	}
	all = slices.DeleteFunc(all, func(filter string) bool { return filter == "" })
	q, err := report.NewQuery(picked.Get("since"), strings.Join(all, ";"), time.Now())
	if err != nil {
		p.Problem, p.Status = err.Error(), http.StatusBadRequest
		return p
	}
	p.Report, p.Status = report.Make(ctx, stats, q), http.StatusOK
	if p.Failed.Load() == p.Asked.Load() {
		p.Status = http.StatusBadGateway
	}
	return p
}

// handler answers with pages, under local names alone: a site whose name suddenly leads here (DNS rebinding) gets none.
func handler(stats *webdelivery.StatsService) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			http.Error(w, "this page is for localhost", http.StatusMisdirectedRequest)
			return
		}
		picked, _ := url.ParseQuery(strings.ReplaceAll(r.URL.RawQuery, ";", "%3B")) // a filter may be typed as it is
		p := newPage(r.Context(), stats, picked)
		w.Header().Set("Content-Security-Policy", policy+"; frame-ancestors 'none'")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(p.Status)
		_ = pageTemplate.Execute(w, p)
	})
	return mux
}

// serve serves until the context ends, and with it the pages that are being made.
func serve(ctx context.Context, address string, pages http.Handler, s program.Streams) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: pages, ReadHeaderTimeout: time.Second}
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(s.Out, "The dashboard is at http://%s/, and stops on ^C.\n", listener.Addr())
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// isLoopback tells whether a host, perhaps with a port, is this machine's own name or address.
func isLoopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}
