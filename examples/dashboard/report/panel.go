package report

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go"
)

// shown is how many values a panel shows, and latest how many events.
const shown, latest = 8, 25

// Panel is a part of a report.
type Panel struct {
	Title, Dimension string // the dimension of its groups
	Missing          bool   // the report could not read it
	Total            int64
	Groups           []*Group // the largest first
	Chart            *Chart   // of a trend
	Events           []Event
}

// Empty reports whether the service has no events for the panel.
func (p *Panel) Empty() bool { return !p.Missing && len(p.Groups)+len(p.Events) == 0 }

// Top returns the largest groups.
func (p *Panel) Top() []*Group { return p.Groups[:min(shown, len(p.Groups))] }

// Width returns the length of the bar of a group, as a part of the longest, for an attribute of SVG.
func (p *Panel) Width(g *Group) string {
	return fmt.Sprintf("%.1f%%", 100*float64(g.Hits)/float64(max(p.Groups[0].Hits, 1)))
}

// Group is a value of a dimension with its hits.
type Group struct {
	Name    string
	Hits    int64
	colour  string  // in the chart; "" if it has no line there
	buckets []int64 // the hits in each bucket of time; the last one is not over
}

// Columns are those of the latest events, behind the time.
var Columns = []struct{ Title, Dimension string }{
	{"Action", webdelivery.DimEventAction},
	{"Type", webdelivery.DimEventType},
	{"Severity", webdelivery.DimEventSeverity},
	{"Rule", webdelivery.DimRuleID},
	{"Client", webdelivery.DimClientIP},
	{"Country", webdelivery.DimClientCountryCode},
	{"Domain", webdelivery.DimDomain},
}

// Event is a row of the latest events.
type Event struct {
	Time   time.Time
	Values []string // one for each of the Columns; that of null is empty
}

// Chart is a chart of lines. The page holds it as JSON, which html/template escapes.
type Chart struct {
	Times []string `json:"times"` // the bucket of each point
	Lines []Line   `json:"lines"` // the most severe first, then the largest
}

// Line is a line of a chart.
type Line struct {
	Name   string  `json:"-"`
	Short  string  `json:"name"` // the name, without its middle if it is long
	Hits   int64   `json:"-"`
	Values []int64 `json:"values"`
	Style  Style   `json:"style"`
}

type rows = iter.Seq2[webdelivery.Row, error]

func (p *Panel) latest(_ Query, rows rows) error {
	for row, err := range rows {
		if err != nil {
			return err
		}
		if len(p.Events) == latest { // more than the query asks for
			return nil
		}
		var event Event
		at, _ := row.Get(webdelivery.DimEventTimestamp)
		if event.Time, err = at.Time(); err != nil {
			return err
		}
		for _, column := range Columns {
			value, _ := row.Get(column.Dimension)
			event.Values = append(event.Values, value.String())
		}
		p.Events = append(p.Events, event)
	}
	return nil
}

// groups reads groups without buckets of time.
func (p *Panel) groups(q Query, rows rows) error { return p.count(q, 1, rows) }

// lines reads groups with their buckets of time. The chart has a line for each of the largest groups, and one for the
// sum of the others. It leaves out a bucket that is not over, which would make each line fall at its end.
func (p *Panel) lines(q Query, rows rows) error {
	times := q.times()
	if err := p.count(q, len(times)+1, rows); err != nil {
		return err
	}
	p.Chart = &Chart{Times: times}
	top := slices.SortedStableFunc(slices.Values(p.Top()), func(a, b *Group) int { return cmp.Compare(rank(a.Name), rank(b.Name)) })
	colour(top)
	for i, g := range top {
		p.Chart.Lines = append(p.Chart.Lines, Line{g.Name, Short(g.Name, 28), g.Hits, g.buckets[:len(times)], styleOf(i, g.colour)})
	}
	if rest := p.Groups[len(top):]; len(rest) > 0 {
		name := fmt.Sprintf("other (%d)", len(rest))
		other := Line{name, name, 0, make([]int64, len(times)), styleOf(shown, otherColour)}
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
func (p *Panel) count(q Query, buckets int, rows rows) error {
	groups := map[string]*Group{}
	for row, err := range rows {
		name, hits, at := "none", int64(0), q.Start
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
			groups[name] = &Group{Name: name, buckets: make([]int64, buckets)}
		}
		groups[name].buckets[q.bucket(at, buckets)] += hits
		groups[name].Hits += hits
		p.Total += hits
	}
	p.Groups = slices.SortedFunc(maps.Values(groups), func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// Short shortens a text to a maximum number of characters by replacing its middle with an ellipsis. The ends of addresses,
// paths and browsers often differ most.
func Short(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	begin, end := 0, len(text)
	for range most / 2 {
		_, size := utf8.DecodeRuneInString(text[begin:])
		begin += size
	}
	for range most - most/2 - 1 {
		_, size := utf8.DecodeLastRuneInString(text[:end])
		end -= size
	}
	return text[:begin] + "…" + text[end:]
}
