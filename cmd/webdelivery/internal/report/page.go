package report

import (
	"cmp"
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
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
)

// page is what the template shows. The template includes the style and the scripts, so a file and a served page are
// the same.
type page struct {
	*statistics

	Site    site
	Problem *problem // of the selection; nothing was read then
	Status  int      // of HTTP
	Picked  url.Values
	Filter  filters.Expr // what is picked; nil is all
	Policy  string       // of a file; a served page has its policy in the header, and has the form
}

var (
	//go:embed assets
	assets       embed.FS
	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"number": number, "short": short, "key": newKey,
		"percent": func(part, all int64) string { return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(all, 1))) },
		"spans":   func() any { return spans },
		"pickers": func() any { return pickers },
		"columns": func() any { return columns },
		"in":      func(p *page, panel *panel, unit string) inPage { return inPage{panel, p, unit} },
		"style":   func(name string) template.CSS { return template.CSS(asset(name)) }, //nolint:gosec // our own
		"script":  func(name string) template.JS { return template.JS(asset(name)) },   //nolint:gosec // as above
	}).ParseFS(assets, "assets/page.html", "assets/parts.html")).Lookup("page.html")
	policy = "default-src 'none'; base-uri 'none'; form-action 'self'; img-src data:; style-src " + hash("style.css") +
		"; script-src " + hash("echarts.min.js") + " " + hash("charts.js")
)

func asset(name string) string {
	text, _ := assets.ReadFile("assets/" + name)
	return string(text)
}

func hash(name string) string {
	sum := sha256.Sum256([]byte(asset(name)))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// newPage reads the statistics that are picked. If the selection has a problem, newPage sends nothing.
func newPage(ctx context.Context, shown site, picked url.Values) *page {
	p := &page{Site: shown, Picked: picked, Status: http.StatusOK}
	p.Filter, p.Problem = selection(picked)
	query, err := newQuery(cmp.Or(picked.Get("since"), defaultSince), p.Filter, time.Now())
	if err != nil {
		p.Problem = &problem{Title: "The time range cannot be read", Reason: err.Error()}
	}
	p.statistics = blank(shown.Stats, query)
	if p.Problem != nil {
		p.Status = http.StatusBadRequest
		return p
	}
	p.read(ctx)
	if p.Missing == p.Parts {
		p.Status = http.StatusBadGateway
		if p.Filter != nil && len(p.Faults) == 1 && errors.Is(p.Faults[0].Err, webdelivery.ErrBadRequest) {
			p.Status = http.StatusBadRequest // the service rejects the filter
		}
	}
	return p
}

// span is a time range of the form, which ends now.
type span struct{ Since, Label string }

var spans = []span{{"1h", "1 hour"}, {"6h", "6 hours"}, {"24h", "24 hours"}, {"3d", "3 days"}, {"7d", "7 days"}, {"30d", "30 days"}}

const defaultSince = "24h"

// Custom reports whether the form has no button for the time range.
func (p *page) Custom() bool {
	return !slices.ContainsFunc(spans, func(s span) bool { return s.Since == p.Since })
}

// picker is a list of the form with the values of a dimension.
type picker struct{ Label, Name, Dimension string }

var pickers = []picker{{"Country", "country", webdelivery.DimClientCountryCode}, {"Action", "action", webdelivery.DimEventAction}}

// Choices returns the largest values of a picker, and what is picked if it is none of them.
func (p *page) Choices(of picker) (values []string) {
	groups := p.Options[of.Dimension].Groups
	for _, g := range groups[:min(len(groups), mostOptions)] {
		if g.Name != none && len(g.Name) <= longestLink {
			values = append(values, g.Name)
		}
	}
	if picked := p.Picked.Get(of.Name); picked != "" && !slices.Contains(values, picked) {
		values = append(values, picked)
	}
	return values
}

// problem says in words what is wrong with a selection.
type problem struct{ Title, Reason, Text string }

// selection joins the typed filter and the picked values by AND. It returns nil if there are none.
func selection(picked url.Values) (filters.Expr, *problem) {
	var all []filters.Filter
	var labels []string
	typed := picked.Get("filter")
	expression, err := filters.Parse(typed)
	if wrong, ok := errors.AsType[*filters.SyntaxError](err); ok && typed != "" {
		at := utf8.RuneCountInString(typed[:min(wrong.Offset, len(typed))]) + 1
		return nil, &problem{"The filter cannot be read", fmt.Sprintf("At character %d: %s.", at, wrong.Reason), typed}
	}
	if typed != "" {
		all = expression.Filters()
	}
	for _, p := range pickers {
		if value := picked.Get(p.Name); value != "" {
			all, labels = append(all, filters.Eq(p.Dimension, value)), append(labels, p.Label)
		}
	}
	if labels == nil {
		return expression, nil
	}
	names := strings.Join(labels, " and ")
	if typed != "" && expression != filters.And(expression.Filters()...) {
		return nil, &problem{names + " cannot be combined with a filter that has OR", fmt.Sprintf("The page joins %s and the filter by AND, "+
			"but the service accepts either AND (;) or OR (,) in one query. Set %s to “any”, or use only ; in the filter.", names, names), ""}
	}
	if expression = filters.And(all...); expression.Validate() != nil {
		return nil, &problem{names + " cannot be used as a filter", expression.Validate().Error(), ""}
	}
	return expression, nil
}

// inPage is a panel for the template.
type inPage struct {
	*panel

	Page *page
	Unit string // what a trend counts
}

// The size of a page is bounded, although a value appears in many places of it and may be of any length.
const (
	longestTitle = 400   // characters; no tooltip shows more
	longestLink  = 2_000 // bytes; every browser, proxy and server takes that many
	mostOptions  = 20    // as many countries as a top-K of the firewall has
)

// word is a value of the service, as the page shows it: isolated from the text beside it, which a value that is written
// from right to left would otherwise move.
type word struct {
	Text         string
	Title        string // more of the value; "" if Text is all of it
	Colour, Link string
}

// short returns a value with at most that many characters. The ends of addresses, paths and browsers often differ
// most, so it leaves out the middle.
func short(text string, most int) word {
	runes := []rune(text)
	if len(runes) <= most {
		return word{Text: text}
	}
	w := word{Text: string(runes[:most/2]) + "…" + string(runes[len(runes)-(most-most/2-1):])}
	if most < longestTitle {
		w.Title = short(text, longestTitle).Text
	}
	return w
}

// Word returns a value with a link to the page that shows it alone, unless the link would be too long. A file has no
// links, because it has no server.
func (p *page) Word(dimension, text string, most int) word {
	w := short(text, most)
	w.Colour = p.Colour(dimension, text)
	filter := filters.Eq(dimension, text)
	if p.Policy != "" || text == "" || text == none || filter.Validate() != nil {
		return w
	}
	term, picked := filter.String(), maps.Clone(p.Picked)
	instead := term // of a filter with an OR, to which nothing can be added
	if i := slices.IndexFunc(pickers, func(of picker) bool { return of.Dimension == dimension }); i >= 0 {
		picked.Set(pickers[i].Name, text)
		instead = ""
	} else if typed := p.Picked.Get("filter"); typed == "" || typed == term {
		picked.Set("filter", term)
	} else {
		picked.Set("filter", strings.TrimSuffix(typed, ";"+term)+";"+term)
	}
	if _, wrong := selection(picked); wrong != nil {
		picked.Set("filter", instead)
	}
	if link := "/?" + picked.Encode(); len(link) <= longestLink {
		w.Link = link
	}
	return w
}

// number returns a number with a comma before each three digits.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// key is the sample of a line in a legend, as attributes of SVG.
type key struct{ Colour, Dash, Marker string }

func newKey(s style) key {
	return key{s.Colour, strings.Trim(fmt.Sprint(s.Dash), "[]"), map[string]string{
		"circle": "M12.5 6a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", "rect": "M12.5 2.5h7v7h-7z",
		"triangle": "M16 2l4 7.5h-8z", "diamond": "M16 1.5l4 4.5l-4 4.5l-4 -4.5z",
	}[s.Marker]}
}
