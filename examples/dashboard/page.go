package main

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"maps"
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

// page is what the template shows. The template includes the style and the scripts, so a file and a served page are
// the same.
type page struct {
	*report.Report
	Site    site
	Problem *problem // of the selection; the report then is blank
	Status  int      // of HTTP
	Picked  url.Values
	Filter  filters.Expr // what is picked; nil is all
	Policy  string       // of a file; a served page has its policy in the header, and has the form
}

var (
	//go:embed main.go assets
	files        embed.FS
	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"number":  func(n int64) string { return message.NewPrinter(language.English).Sprint(n) },
		"percent": func(part, all int64) string { return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(all, 1))) },
		"short":   short,
		"spans":   func() []report.Span { return report.Spans },
		"pickers": func() []picker { return pickers },
		"key":     newKey,
		"columns": func() any { return report.Columns },
		"in":      func(p *page, panel *report.Panel, unit string) inPage { return inPage{panel, p, unit} },
		"style":   func(name string) template.CSS { return template.CSS(file(name)) }, //nolint:gosec // our own
		"script":  func(name string) template.JS { return template.JS(file(name)) },   //nolint:gosec // as above
	}).ParseFS(files, "assets/page.html", "assets/parts.html")).Lookup("page.html")
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

// newPage reads the statistics that are picked. If the selection has a problem, newPage sends nothing.
func newPage(ctx context.Context, shown site, picked url.Values) *page {
	filter, wrong := selection(picked)
	p := &page{Site: shown, Picked: picked, Filter: filter}
	query, err := report.NewQuery(picked.Get("since"), filter, time.Now())
	if err != nil {
		wrong = &problem{Title: "The time range cannot be read", Reason: err.Error()}
	}
	if wrong != nil {
		p.Problem, p.Report, p.Status = wrong, report.Blank(query), http.StatusBadRequest
		return p
	}
	p.Report, p.Status = report.Read(ctx, shown.Stats, query), http.StatusOK
	if p.Missing == p.Parts {
		p.Status = http.StatusBadGateway
	}
	if p.Status != http.StatusOK && filter != nil && len(p.Faults) == 1 && errors.Is(p.Faults[0].Err, webdelivery.ErrBadRequest) {
		p.Status = http.StatusBadRequest // the service rejects the filter
	}
	return p
}

// Custom reports whether the form has no button for the time range.
func (p *page) Custom() bool { return !slices.Contains(report.Spans, p.Span) }

// inPage is a panel for the template.
type inPage struct {
	*report.Panel
	Page *page
	Unit string // what a trend counts
}

// The size of a page is bounded, although a value appears in many places of it and may be of any length.
const (
	longestTitle  = 400   // characters; no tooltip shows more
	longestLink   = 2_000 // bytes; every browser, proxy and server takes that many
	longestOption = 40    // characters
	mostOptions   = 20    // as many countries as a top-K of the firewall has
)

// word is a value of the service, as the page shows it: isolated from the text beside it, which a value that is written
// from right to left would otherwise move.
type word struct {
	Text         string
	Title        string // more of the value; "" if Text is all of it
	Colour, Link string
}

// short returns a value with at most that many characters.
func short(text string, most int) word {
	w := word{Text: report.Short(text, most)}
	if w.Text != text {
		w.Title = report.Short(text, longestTitle)
	}
	return w
}

// Word returns a value with a link to the page that shows it alone, unless the link would be too long. A file has no
// links, because it has no server.
func (p *page) Word(dimension, text string, most int) word {
	w := short(text, most)
	w.Colour = p.Colour(dimension, text)
	if p.Policy != "" || text == "" || text == "none" {
		return w
	}
	term, field := filters.Eq(dimension, text).String(), "filter"
	for _, picker := range pickers {
		if picker.Dimension == dimension {
			field = picker.Name
		}
	}
	picked := maps.Clone(p.Picked)
	picked.Set(field, term)
	if typed := p.Picked.Get("filter"); field == "filter" && typed != "" && typed != term {
		picked.Set(field, strings.TrimSuffix(typed, ";"+term)+";"+term)
	}
	if _, wrong := selection(picked); wrong != nil { // the filter has an OR, to which nothing can be added
		picked.Set("filter", "")
		picked.Set(field, term)
	}
	if link := "/?" + picked.Encode(); len(link) <= longestLink {
		w.Link = link
	}
	return w
}

// option is one of a picker.
type option struct {
	Value, Text string
	Selected    bool
}

// Choices returns the largest values of a picker, and what is picked if it is none of them.
func (p *page) Choices(of picker) (all []option) {
	picked, groups := p.Picked.Get(of.Name), p.Options[of.Dimension].Groups
	known := picked == ""
	for _, g := range groups[:min(len(groups), mostOptions)] {
		term := filters.Eq(of.Dimension, g.Name).String()
		if g.Name == "none" || len(term) > longestLink {
			continue
		}
		known = known || term == picked
		all = append(all, option{term, report.Short(g.Name, longestOption), term == picked})
	}
	if !known {
		all = append(all, option{picked, report.Short(value(picked), longestOption), true})
	}
	return all
}

// key is the sample of a line in a legend, as attributes of SVG.
type key struct{ Colour, Dash, Marker string }

func newKey(s report.Style) key {
	k := key{Colour: s.Colour, Marker: map[string]string{
		"circle": "M12.5 6a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", "rect": "M12.5 2.5h7v7h-7z",
		"triangle": "M16 2l4 7.5h-8z", "diamond": "M16 1.5l4 4.5l-4 4.5l-4 -4.5z",
	}[s.Marker]}
	for _, length := range s.Dash {
		k.Dash += fmt.Sprint(length, " ")
	}
	return k
}
