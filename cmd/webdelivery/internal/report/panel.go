package report

import (
	"cmp"
	"context"
	"fmt"
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
	query

	Title     string
	Dimension string // of its groups; the panel of events has none
	Missing   bool   // it could not be read
	Total     int64
	Groups    []*group // the largest first
	Chart     chart    // of a trend
	Events    []event

	name string // its title with that of its section
	rows rows
	err  error
}

// Empty reports whether the service has no events for the panel.
func (p *panel) Empty() bool { return !p.Missing && len(p.Groups)+len(p.Events) == 0 }

// Top returns the largest groups.
func (p *panel) Top() []*group { return p.Groups[:min(shown, len(p.Groups))] }

// Width returns the length of the bar of a group, as a part of the longest, for an attribute of SVG.
func (p *panel) Width(g *group) string {
	return fmt.Sprintf("%.1f%%", 100*float64(g.Hits)/float64(max(p.Groups[0].Hits, 1)))
}

// chart is a chart of lines. The page holds it as JSON, which html/template escapes.
type chart struct {
	Times []string `json:"times"` // the bucket of each point
	Lines []*group `json:"lines"` // in the order of the legend
}

// group is a value of a dimension with its hits.
type group struct {
	Dimension string  `json:"-"` // "" for the sum of several groups
	Name      string  `json:"-"`
	Hits      int64   `json:"-"`
	Colour    string  `json:"-"`      // in the chart
	Values    []int64 `json:"values"` // the hits in each bucket of the chart
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

// read reads the panel.
func (p *panel) read(ctx context.Context) error {
	read := p.readGroups
	if p.Dimension == "" {
		read = p.readEvents
	}
	err := read(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	p.Missing = err != nil
	return err
}

func (p *panel) readEvents(ctx context.Context) error {
	for row, err := range p.rows(ctx) {
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

// readGroups reads groups and, for a chart, their buckets of time. A bucket that is not over is left out of the chart:
// it would make each line fall at its end.
func (p *panel) readGroups(ctx context.Context) error {
	groups := map[string]*group{}
	for row, err := range p.rows(ctx) {
		name, hits, at := none, int64(0), p.Start
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
		g := groups[name]
		if g == nil {
			g = &group{Dimension: p.Dimension, Name: name, Values: make([]int64, len(p.Chart.Times))}
			groups[name] = g
		}
		if bucket := p.bucket(at); bucket < len(g.Values) {
			g.Values[bucket] += hits
		}
		g.Hits += hits
		p.Total += hits
	}
	p.Groups = slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), cmp.Compare(a.Name, b.Name))
	})
	p.Chart.Lines = lines(p.Top(), p.Groups[len(p.Top()):], len(p.Chart.Times))
	return nil
}

// lines gives each of the largest groups a colour, and adds the sum of the others.
func lines(top, others []*group, times int) []*group {
	free := []string{"c4", "c5", "c7", "c8"} // for words without a tone; lines of one colour differ in their dashes
	for i, g := range top {
		g.Colour = cmp.Or(tone(g.Name), free[i%len(free)])
	}
	if len(others) == 0 {
		return top
	}
	sum := &group{Name: fmt.Sprintf("other (%d)", len(others)), Colour: "c9", Values: make([]int64, times)}
	for _, g := range others {
		sum.Hits += g.Hits
		for i, hits := range g.Values {
			sum.Values[i] += hits
		}
	}
	return append(slices.Clone(top), sum)
}

// tones are the colours of severities and actions in the style sheet, which are the same in all parts of the page. The
// service document shows few words, and portals show others. The page shows unknown words like all others.
var tones = map[string]string{
	"block": "c3", "critical": "c3", "high": "c3",
	"warn": "c2", "error": "c2", "medium": "c2",
	"allow": "c1", "warning": "c1", "low": "c1",
	"notice": "c6", "info": "c6", none: "c6",
}

func tone(word string) string { return tones[strings.ToLower(word)] }
