package report

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// shown is how many values a panel shows, and latest how many events.
const shown, latest = 8, 25

// none is the value of hits without one.
const none = "none"

// panel is a part of the page.
type panel struct {
	Title, Dimension string // the dimension of its groups
	Missing          bool   // it could not be read
	Total            int64
	Groups           []*group // the largest first
	Chart            *chart   // of a trend
	Events           []event
}

// Empty reports whether the service has no events for the panel.
func (p *panel) Empty() bool { return !p.Missing && len(p.Groups)+len(p.Events) == 0 }

// Top returns the largest groups.
func (p *panel) Top() []*group { return p.Groups[:min(shown, len(p.Groups))] }

// Width returns the length of the bar of a group, as a part of the longest, for an attribute of SVG.
func (p *panel) Width(g *group) string {
	return fmt.Sprintf("%.1f%%", 100*float64(g.Hits)/float64(max(p.Groups[0].Hits, 1)))
}

// group is a value of a dimension with its hits.
type group struct {
	Name    string
	Hits    int64
	colour  string  // in the chart; "" if it has no line there
	buckets []int64 // the hits in each bucket of time; the last one is not over
}

// columns are those of the latest events, behind the time.
var columns = []struct{ Title, Dimension string }{
	{"Action", webdelivery.DimEventAction},
	{"Type", webdelivery.DimEventType},
	{"Severity", webdelivery.DimEventSeverity},
	{"Rule", webdelivery.DimRuleID},
	{"Client", webdelivery.DimClientIP},
	{"Country", webdelivery.DimClientCountryCode},
	{"Domain", webdelivery.DimDomain},
}

// event is a row of the latest events.
type event struct {
	Time   time.Time
	Values []string // one for each of the columns; that of null is empty
}

// chart is a chart of lines. The page holds it as JSON, which html/template escapes.
type chart struct {
	Times []string `json:"times"` // the bucket of each point
	Lines []line   `json:"lines"` // the most severe first, then the largest
}

// line is a line of a chart.
type line struct {
	Name   string  `json:"-"`
	Short  string  `json:"name"` // the name, without its middle if it is long
	Hits   int64   `json:"-"`
	Values []int64 `json:"values"`
	Style  style   `json:"style"`
}

type rows = iter.Seq2[webdelivery.Row, error]

func (p *panel) latest(_ query, rows rows) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		if len(p.Events) == latest { // more than the query asks for
			return nil
		}
		at, _ := row.Get(webdelivery.DimEventTimestamp)
		e := event{}
		if e.Time, err = at.Time(); err != nil {
			return err
		}
		for _, column := range columns {
			value, _ := row.Get(column.Dimension)
			e.Values = append(e.Values, value.String())
		}
		p.Events = append(p.Events, e)
	}
	return nil
}

// groups reads groups without buckets of time.
func (p *panel) groups(q query, rows rows) error { return p.count(q, 1, rows) }

// lines reads groups with their buckets of time. The chart has a line for each of the largest groups, and one for the
// sum of the others. It leaves out a bucket that is not over, which would make each line fall at its end.
func (p *panel) lines(q query, rows rows) error {
	times := q.times()
	if err := p.count(q, len(times)+1, rows); err != nil {
		return err
	}
	p.Chart = &chart{Times: times}
	top := slices.SortedStableFunc(slices.Values(p.Top()), func(a, b *group) int { return cmp.Compare(rank(a.Name), rank(b.Name)) })
	colour(top)
	for i, g := range top {
		p.Chart.Lines = append(p.Chart.Lines, line{g.Name, short(g.Name, 28).Text, g.Hits, g.buckets[:len(times)], styleOf(i, g.colour)})
	}
	if rest := p.Groups[len(top):]; len(rest) > 0 {
		name := fmt.Sprintf("other (%d)", len(rest))
		other := line{name, name, 0, make([]int64, len(times)), styleOf(shown, otherColour)}
		for _, g := range rest {
			other.Hits += g.Hits
			for i := range times {
				other.Values[i] += g.buckets[i]
			}
		}
		p.Chart.Lines = append(p.Chart.Lines, other)
	}
	return nil
}

// count reads groups, and their buckets if rows have a time.
func (p *panel) count(q query, buckets int, rows rows) error {
	groups := map[string]*group{}
	for row, err := range rows {
		name, hits, at := none, int64(0), q.Start
		for i, column := range row.Columns() {
			switch value := row.At(i); {
			case err != nil: // the loop returns it below
			case column == webdelivery.DimEventTimestamp:
				at, err = value.Time()
			case column == webdelivery.MetricHits:
				hits, err = value.Int64()
			default:
				name = cmp.Or(value.String(), name)
			}
		}
		if err != nil {
			return err
		}
		if groups[name] == nil {
			groups[name] = &group{Name: name, buckets: make([]int64, buckets)}
		}
		groups[name].buckets[q.bucket(at, buckets)] += hits
		groups[name].Hits += hits
		p.Total += hits
	}
	p.Groups = slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// tones are the colours of words of event_action and event_severity, in lower case. The service document shows few
// words, and portals show others. Nothing depends on a word: the page shows unknown words like all others.
var tones = map[string]string{
	"block": grave, "critical": grave, "high": grave,
	"warn": warning, "error": warning, "medium": warning,
	"allow": mild, "warning": mild, "low": mild,
	"notice": slight, "info": slight, none: slight,
}

// Colours of the style sheet.
const grave, warning, mild, slight, otherColour = "c3", "c2", "c1", "c6", "c9"

// freeColours are for words without a tone, in this order.
var freeColours = []string{mild, "c4", "c5", "c7", "c8", slight, warning, grave}

func tone(word string) string { return tones[strings.ToLower(word)] }

// rank returns a smaller number for a word that is more severe. Words without a tone come last.
func rank(word string) int {
	return slices.Index([]string{grave, warning, mild, slight, ""}, tone(word))
}

// colour gives each of at most eight groups of a chart the colour of its tone, or a free one.
func colour(groups []*group) {
	used := map[string]bool{}
	for _, g := range groups {
		g.colour = tone(g.Name)
		used[g.colour] = true
	}
	for _, g := range groups {
		if g.colour == "" {
			g.colour = freeColours[slices.IndexFunc(freeColours, func(free string) bool { return !used[free] })]
			used[g.colour] = true
		}
	}
}

// Colour returns the colour of an action or severity, which is the same in all parts of the page. It returns "" for
// other dimensions, and for an unknown word that is not in a chart.
func (s *statistics) Colour(dimension, word string) string {
	for _, p := range []*panel{s.Requests, s.Sections[0].Trend} {
		if p.Dimension == dimension {
			i := slices.IndexFunc(p.Top(), func(g *group) bool { return g.Name == word })
			if i < 0 {
				return tone(word)
			}
			return p.Groups[i].colour
		}
	}
	return ""
}

// style is how a line looks. Dash and marker differ as well as the colour, for readers who cannot tell the colours
// apart and for black-and-white print.
type style struct {
	Colour string `json:"colour"` // of the style sheet
	Dash   []int  `json:"dash"`   // lengths of dashes and gaps; nil is a solid line
	Marker string `json:"marker"` // circle, rect, triangle or diamond
}

var (
	dashes  = [][]int{nil, {8, 4}, {2, 3}, {10, 3, 2, 3}}
	markers = []string{"circle", "rect", "triangle", "diamond"}
)

// styleOf returns the style of a line. Each of 16 lines has a different pair of dash and marker.
func styleOf(line int, colour string) style {
	return style{colour, dashes[(line+line/len(markers))%len(dashes)], markers[line%len(markers)]}
}
