package testserver

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// statsQuery is a valid data query of statistics (service document, section 4.2).
type statsQuery struct {
	family  *family
	echo    queryEcho
	history history

	start, end time.Time // the part of the requested range that exists
	columns    []column  // the dimensions, then the metrics
	filter     filter
	order      []sortKey
	limit      int
	dialect    Dialect
}

// queryEcho is the member query of a result (section 2.4).
type queryEcho struct {
	StartTime  string   `json:"starttime"`
	EndTime    string   `json:"endtime"`
	Start      int      `json:"start"`
	Limit      int      `json:"limit"`
	Dimensions []string `json:"dimensions"`
	Filters    string   `json:"filters"`
}

// column is a column of a result; of is nil for a metric.
type column struct {
	name string
	of   func(*record) value
}

type sortKey struct {
	column     int
	descending bool
}

// params returns the parameters of the family's data method.
func (f *family) params(d Dialect) []string {
	names := []string{"dimensions", d.StartTimeParam, "endtime", "filters"}
	if !f.raw() {
		names = append(names, "metrics")
	}
	if f.granular != never {
		names = append(names, "granularity")
	}
	if f.ordered {
		names = append(names, "sortby")
	}
	if f.limited {
		names = append(names, "limit")
	}
	return names
}

// statsQuery reads the query string.
func (c *call) statsQuery(f *family) (*statsQuery, error) {
	q := &statsQuery{family: f, history: c.s.history(), dialect: c.s.dialect}
	q.echo = queryEcho{
		StartTime: c.query.Get(q.dialect.StartTimeParam), EndTime: c.query.Get("endtime"),
		Dimensions: strings.Split(c.query.Get("dimensions"), ","),
		Filters:    withCustomer(c.query.Get("filters"), c.s.cfg.Customer),
	}
	if err := c.requireParams(f); err != nil {
		return nil, err
	}
	g, err := c.granularity()
	if err != nil {
		return nil, err
	}
	lookup := func(name string) (column, error) {
		col, err := f.column(name, g)
		return col.showing(absentValues[q.dialect.Absent]), err
	}
	if err := q.readSpan(g); err != nil {
		return nil, err
	}
	if err := q.readColumns(c.query.Get("metrics"), lookup); err != nil {
		return nil, err
	}
	if q.filter, err = parseFilter(c.query.Get("filters"), lookup); err != nil {
		return nil, err
	}
	if q.order, err = q.readOrder(c.query.Get("sortby")); err != nil {
		return nil, err
	}
	q.limit, err = q.readLimit(c.query.Get("limit"))
	q.echo.Limit = q.limit
	return q, err
}

func (c *call) requireParams(f *family) error {
	for _, name := range f.params(c.s.dialect) {
		if !c.query.Has(name) && f.needs(name) {
			return refuse(http.StatusBadRequest, "query parameter %q is missing", name)
		}
	}
	return nil
}

// needs reports whether a parameter is required.
func (f *family) needs(param string) bool {
	switch param {
	case "filters", "sortby", "limit":
		return false
	case "granularity":
		return f.granular == required
	default:
		return true
	}
}

// granularity returns nil if the query has none.
func (c *call) granularity() (*granularity, error) {
	if !c.query.Has("granularity") {
		return nil, nil
	}
	for i, g := range granularities {
		if g.name == c.query.Get("granularity") {
			return &granularities[i], nil
		}
	}
	return nil, refuse(http.StatusBadRequest, "granularity must be day, hour or 5minute")
}

// column finds a dimension of the family. In aggregated data, the time dimension is the start of the bucket, so it
// requires a granularity.
func (f *family) column(name string, g *granularity) (column, error) {
	if !slices.Contains(f.dimensions, name) {
		return column{}, refuse(http.StatusBadRequest, "unknown dimension %q", name)
	}
	i := slices.IndexFunc(dimensions, func(d dimension) bool { return d.name == name })
	c := column(dimensions[i])
	if name != timeDimension || f.raw() {
		return c, nil
	}
	if g == nil {
		return column{}, refuse(http.StatusBadRequest, "dimension %q requires a granularity", name)
	}
	c.of = g.bucket
	return c, nil
}

// absentValues are what a row has for a dimension that the event lacks (open point 51), by Dialect.Absent.
var absentValues = map[string]value{"empty": {kind: text}, "dash": {kind: text, text: "-"}}

// showing returns the column with another value in place of null.
func (c column) showing(absent value) column {
	of := c.of
	c.of = func(e *record) value {
		v := of(e)
		if v.kind == null {
			return absent
		}
		return v
	}
	return c
}

// readSpan reads the times, and leaves out the part that is no longer stored: that part gives no rows, and no error.
// Aggregated data without a granularity are stored as long as daily data.
func (q *statsQuery) readSpan(g *granularity) error {
	var startErr, endErr error
	q.start, startErr = parseStatsTime(q.dialect.StartTimeParam, q.echo.StartTime)
	q.end, endErr = parseStatsTime("endtime", q.echo.EndTime)
	if err := cmp.Or(startErr, endErr); err != nil {
		return err
	}
	if !q.end.After(q.start) {
		return refuse(http.StatusBadRequest, "endtime must be later than %s", q.dialect.StartTimeParam)
	}
	switch {
	case q.family.raw():
		q.start = latest(q.start, rawSince(q.history.now))
	case g != nil:
		q.start = latest(q.start, g.since(q.history.now))
	}
	return nil
}

// readColumns reads the columns. For raw events it puts event_timestamp_ms first, unless the query names it (section
// 2.4).
func (q *statsQuery) readColumns(metrics string, lookup func(string) (column, error)) error {
	names := q.echo.Dimensions
	if q.family.raw() && !slices.Contains(names, timeDimension) {
		names = slices.Concat([]string{timeDimension}, names)
	}
	for _, name := range names {
		c, err := lookup(name)
		if err != nil {
			return err
		}
		if q.columnIndex(name) >= 0 {
			return refuse(http.StatusBadRequest, "dimension %q is given twice", name)
		}
		q.columns = append(q.columns, c)
	}
	if q.family.raw() {
		return nil
	}
	if !q.family.groups(names) {
		return refuse(http.StatusBadRequest, "dimensions %q are not a valid grouping set", strings.Join(names, ","))
	}
	if metrics != hits {
		return refuse(http.StatusBadRequest, "metrics must be %s", hits)
	}
	q.columns = append(q.columns, column{name: hits})
	return nil
}

// groups reports whether the names are a valid grouping set, in any order.
func (f *family) groups(names []string) bool {
	names = slices.Sorted(slices.Values(names))
	return slices.ContainsFunc(f.groupings, func(set []string) bool {
		return slices.Equal(slices.Sorted(slices.Values(set)), names)
	})
}

func (q *statsQuery) columnIndex(name string) int {
	return slices.IndexFunc(q.columns, func(c column) bool { return c.name == name })
}

func (q *statsQuery) readOrder(sortby string) ([]sortKey, error) {
	if sortby == "" {
		return nil, nil
	}
	var keys []sortKey
	for part := range strings.SplitSeq(sortby, ",") {
		name, descending := strings.CutPrefix(part, "-")
		i := q.columnIndex(name)
		if i < 0 {
			return nil, refuse(http.StatusBadRequest, "cannot sort by %q: it is not a column of the result", name)
		}
		keys = append(keys, sortKey{i, descending})
	}
	return keys, nil
}

// readLimit accepts any number of digits, because there is no upper bound (section 8). With a limit of 0, only
// total_results remains.
func (q *statsQuery) readLimit(limit string) (int, error) {
	switch {
	case !q.family.limited:
		return q.family.top, nil
	case limit == "":
		return 10, nil
	}
	n, err := strconv.ParseUint(limit, 10, 63)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, refuse(http.StatusBadRequest, "limit must be an integer that is not negative")
	}
	return int(min(n, math.MaxInt64)), nil
}
