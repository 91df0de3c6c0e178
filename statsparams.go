package webdelivery

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-querystring/query"

	"github.com/webdelivery/webdelivery-go/filters"
)

// statsParams has the parameters of the queries of all families (service document, section 4.2).
type statsParams struct {
	Dimensions  []string     `url:"dimensions,comma,omitempty"`
	Metrics     []string     `url:"metrics,comma,omitempty"`
	Start       time.Time    `url:"-"` // a tag cannot have the name of its parameter, which depends on the Dialect
	End         time.Time    `url:"endtime" layout:"2006-01-02T15:04:05"`
	Granularity Granularity  `url:"granularity,omitempty"`
	Filter      filters.Expr `url:"filters,omitempty"` // encoded as its String
	SortBy      sortKeys     `url:"sortby,omitempty"`
	Limit       int64        `url:"limit,omitempty"` // 0: the default of the service
}

// timeLayout is the pattern of section 4.2. The service rejects a zone designator.
const timeLayout = "2006-01-02T15:04:05"

// sortKeys encodes an order as one parameter.
type sortKeys []Sort

// EncodeValues is called by go-querystring.
func (s sortKeys) EncodeValues(name string, values *url.Values) error {
	keys := make([]string, len(s))
	for i, key := range s {
		keys[i] = key.name
		if key.descending {
			keys[i] = "-" + key.name
		}
	}
	values.Set(name, strings.Join(keys, ","))
	return nil
}

// unshare gives p slices of its own, so that the caller may change those of the query.
func (p *statsParams) unshare() {
	p.Dimensions, p.Metrics, p.SortBy = slices.Clone(p.Dimensions), slices.Clone(p.Metrics), slices.Clone(p.SortBy)
}

// encode returns the query string. startTime is the name of the parameter for the start.
func (p *statsParams) encode(startTime string) (string, error) {
	values, err := query.Values(p)
	if err != nil {
		return "", invalid("query", "%v", err)
	}
	values.Set(startTime, p.Start.Format(timeLayout))
	return values.Encode(), nil
}

// prepare sets the family's defaults, truncates the times to whole seconds of UTC, as they are sent, and returns what the
// rules of section 4.2 and of the family forbid.
func (p *statsParams) prepare(family *statsRules) error {
	var bad problems
	switch {
	case len(p.Dimensions) > 0 || family.top == 0:
		checkNames(&bad, "dimensions", p.Dimensions)
	case family.dimension != "":
		p.Dimensions = []string{family.dimension}
	default:
		bad.add("dimensions", "must be set, because the dimension of this category is not documented; ask Dimensions for the names")
	}
	if family.aggregated {
		if len(p.Metrics) == 0 {
			p.Metrics = []string{MetricHits}
		}
		checkNames(&bad, "metrics", p.Metrics)
		for i, m := range p.Metrics {
			if m != MetricHits {
				bad.add(fmt.Sprintf("metrics[%d]", i), "%q is not a metric; the only one is hits", m)
			}
		}
	}
	p.checkTime(family, &bad)
	if p.Filter != nil {
		if err := p.Filter.Validate(); err != nil {
			bad.add("filters", "%v", err)
		}
	}
	for i, key := range p.SortBy {
		if !isName(key.name) || strings.HasPrefix(key.name, "-") {
			bad.add(fmt.Sprintf("sortby[%d]", i), "%q is not a valid name; use Asc or Desc with a name alone", key.name)
		}
	}
	if p.Limit < 0 {
		bad.add("limit", "%d is below 0", p.Limit)
	}
	return bad.err()
}

// isName reports whether a comma-separated parameter can carry a name.
func isName(name string) bool { return name != "" && !strings.ContainsAny(name, ", ") }

// checkNames refuses lists of names that the comma-separated parameter cannot carry.
func checkNames(bad *problems, field string, names []string) {
	if len(names) == 0 {
		bad.add(field, "is empty")
	}
	for i, name := range names {
		switch {
		case !isName(name):
			bad.add(fmt.Sprintf("%s[%d]", field, i), "%q is not a valid name", name)
		case slices.Contains(names[:i], name):
			bad.add(fmt.Sprintf("%s[%d]", field, i), "%q is given twice", name)
		}
	}
}

func (p *statsParams) checkTime(family *statsRules, bad *problems) {
	if p.Start.IsZero() {
		bad.add("starttime", "is not set")
	}
	if p.End.IsZero() {
		bad.add("endtime", "is not set")
	}
	p.Start, p.End = p.Start.UTC().Truncate(time.Second), p.End.UTC().Truncate(time.Second)
	checkYear(bad, "starttime", p.Start)
	checkYear(bad, "endtime", p.End)
	if !p.Start.IsZero() && !p.End.IsZero() && !p.End.After(p.Start) {
		bad.add("endtime", "%s is not after starttime %s, in whole seconds", p.End.Format(timeLayout), p.Start.Format(timeLayout))
	}
	switch p.Granularity {
	case Granularity5Minute, GranularityHour, GranularityDay:
	case "":
		if family.granularity {
			bad.add("granularity", "must be set to 5minute, hour or day")
		}
	default:
		bad.add("granularity", "%q is not 5minute, hour or day", string(p.Granularity))
	}
}
