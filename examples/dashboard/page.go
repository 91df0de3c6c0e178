package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
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
	"github.com/webdelivery/webdelivery-go/filters"
)

// page is what the template shows. It holds its style and scripts: it is the same served and as a file.
type page struct {
	*report.Report
	Problem         string // with what is picked; there is no report then
	Status          int    // of HTTP
	Picked          url.Values
	Spans           []report.Span
	Policy          string // of a file; a page that is served has it in its header, and a form
	Style           template.CSS
	Library, Script template.JS
}

var (
	//go:embed main.go
	source string // whose comment is the help
	//go:embed assets/page.html
	body string
	//go:embed assets/style.css
	style template.CSS
	//go:embed assets/echarts.min.js
	library template.JS
	//go:embed assets/charts.js
	script       template.JS
	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"number":  func(n int64) string { return message.NewPrinter(language.English).Sprint(n) },
		"percent": func(part, all int64) string { return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(all, 1))) },
		"is":      filters.Eq,
	}).Parse(body))
	policy = "default-src 'none'; base-uri 'none'; form-action 'self'; img-src data:; style-src " + hash(string(style)) +
		"; script-src " + hash(string(library)) + " " + hash(string(script))
)

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// newPage joins what is picked by AND. The service takes no OR beside it, and the problem then says so.
func newPage(ctx context.Context, stats *webdelivery.StatsService, picked url.Values) *page {
	p := &page{Picked: picked, Spans: report.Spans, Style: style, Library: library, Script: script}
	all := []string{picked.Get("filter"), picked.Get("country"), picked.Get("action")}
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
func handler(stats *webdelivery.StatsService) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) {
			http.Error(w, "this page is for localhost", http.StatusMisdirectedRequest)
			return
		}
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		picked, _ := url.ParseQuery(strings.ReplaceAll(r.URL.RawQuery, ";", "%3B")) // a filter may be typed as it is
		p := newPage(r.Context(), stats, picked)
		w.Header().Set("Content-Security-Policy", policy+"; frame-ancestors 'none'")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(p.Status)
		_ = pageTemplate.Execute(w, p)
	}
}

// isLoopback tells whether a host, perhaps with a port, is this machine's own name or address.
func isLoopback(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}
