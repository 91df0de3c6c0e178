package report

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/url"
	"path"
	"slices"
	"strconv"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
)

// page is what the template shows.
type page struct {
	query
	site

	Problem  error // of the query; nothing was read then
	Latest   *panel
	Requests *panel
	Sections []*section
	Missing  int     // panels that could not be read
	Faults   []fault // why

	panels []*panel
}

// Parts returns how many panels there are.
func (p *page) Parts() int { return len(p.panels) }

// site is the service and the customer that the page shows.
type site struct {
	Customer, Host string
	Fake           bool

	stats *webdelivery.StatsService
}

func siteOf(client *webdelivery.Client, fake bool) site {
	at, _ := url.Parse(client.URL()) // {base URL}/{customer}/v1
	return site{path.Base(path.Dir(at.Path)), at.Host, fake, client.Stats}
}

// newPage reads the statistics. If the time range or the filter cannot be read, it sends nothing.
func newPage(ctx context.Context, shown site, since, filter string, served bool) *page {
	p := &page{site: shown}
	p.query, p.Problem = newQuery(since, filter, served)
	if p.Problem == nil {
		p.plan(shown.stats)
		p.read(ctx)
	}
	return p
}

// The template includes the style and the scripts, so a file and a served page are the same. A served page has its
// policy in its header.
var (
	//go:embed assets
	assets       embed.FS
	pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
		"number": number, "percent": percent, "short": short,
		"columns": func() any { return columns },
		"policy":  func() string { return policy },
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

// Spans returns the time ranges of the form, with the one that is shown.
func (q query) Spans() []string {
	spans := []string{"1h", "6h", "24h", "3d", "7d", "30d"}
	if !slices.Contains(spans, q.Since) {
		spans = append(spans, q.Since)
	}
	return spans
}

// The size of a page is bounded, although a value appears in many places of it and may be of any length.
const (
	longestTitle = 400   // characters; no tooltip shows more
	longestLink  = 2_000 // bytes; every browser, proxy and server takes that many
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
	return word{
		Text:  string(runes[:most/2]) + "…" + string(runes[len(runes)-(most-most/2-1):]),
		Title: string(runes[:min(len(runes), longestTitle)]),
	}
}

// Word returns a value, on a served page with a link that adds it to the filter, unless the link would be too long. A
// filter with an OR is replaced, because the service accepts no AND beside it.
func (q query) Word(dimension, text string, most int) word {
	w := short(text, most)
	w.Colour = tone(text)
	added := filters.Eq(dimension, text)
	if !q.Served || text == "" || text == none || added.Validate() != nil {
		return w
	}
	var all []filters.Filter
	if q.Filter != nil && q.Filter == filters.And(q.Filter.Filters()...) {
		all = slices.DeleteFunc(q.Filter.Filters(), func(f filters.Filter) bool { return f == added })
	}
	filter := filters.And(append(all, added)...).String()
	if link := "/?" + (url.Values{"since": {q.Since}, "filter": {filter}}).Encode(); len(link) <= longestLink {
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

func percent(part, all int64) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(all, 1)))
}
