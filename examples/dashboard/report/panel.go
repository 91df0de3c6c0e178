package report

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/opts"

	"github.com/webdelivery/webdelivery-go"
)

// Panel is one part of a report: what there is of its family, or why it could not be read. Its chart is data that
// html/template escapes. The HTML of go-echarts is not used: it turns "__f__" in a value, which is anybody's, into code.
type Panel struct {
	Title, Error string
	Total        int64
	Groups       []*group // largest first
	Chart        map[string]any
	Events       []event
}

// group is a value of a dimension with its hits, in all and in each bucket of time.
type group struct {
	Name    string
	Hits    int64
	buckets []opts.LineData
}

type event struct { // nil is null
	Time     time.Time   `stats:"event_timestamp_ms"`
	Action   *string     `stats:"event_action"`
	Type     *string     `stats:"event_type"`
	Severity *string     `stats:"event_severity"`
	Rule     *string     `stats:"rule_id"`
	Client   *netip.Addr `stats:"client_ip"`
	Country  *string     `stats:"client_country_code"`
	Domain   *string     `stats:"domain"`
}

type rows = iter.Seq2[webdelivery.Row, error]

func (p *Panel) latest(_ Query, rows rows) error {
	for event, err := range webdelivery.Scan[event](rows) {
		if err != nil {
			return err
		}
		p.Events = append(p.Events, event)
	}
	return nil
}

// lines draws a line for each group, up to the last bucket that is full: the next would look like a fall.
func (p *Panel) lines(q Query, rows rows) error {
	var times []string
	for at := q.Start; !at.Add(q.width).After(q.End); at = at.Add(q.width) {
		times = append(times, at.Format(q.layout))
	}
	err := p.count(q, len(times), rows)
	chart := charts.NewLine().SetXAxis(times)
	for _, g := range p.Groups {
		chart.AddSeries(g.Name, g.buckets)
	}
	chart.Validate()
	p.Chart = chart.JSON()
	return err
}

// bars draws a bar for each of the largest groups, the first on top.
func (p *Panel) bars(q Query, rows rows) error {
	err := p.count(q, 1, rows)
	var names []string
	var hits []opts.BarData
	for _, g := range slices.Backward(p.Groups[:min(8, len(p.Groups))]) {
		names = append(names, g.Name)
		hits = append(hits, opts.BarData{Value: g.Hits})
	}
	chart := charts.NewBar().SetXAxis(names).XYReversal().AddSeries("hits", hits)
	chart.Validate()
	p.Chart = chart.JSON()
	return err
}

// count reads groups, and their buckets where rows have a time.
func (p *Panel) count(q Query, buckets int, rows rows) error {
	groups := map[string]*group{}
	for row, err := range rows {
		name, hits, at := "none", int64(0), q.Start
		for i, column := range row.Columns() {
			switch value := row.At(i); {
			case err != nil: // is told below
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
			groups[name] = &group{Name: name, buckets: slices.Repeat([]opts.LineData{{Value: int64(0)}}, buckets)}
		}
		if i := int(at.Sub(q.Start) / q.width); i >= 0 && i < buckets {
			groups[name].buckets[i].Value = groups[name].buckets[i].Value.(int64) + hits
		}
		groups[name].Hits += hits
		p.Total += hits
	}
	p.Groups = slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), cmp.Compare(a.Name, b.Name))
	})
	return nil
}
