package testserver

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"net/url"
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
	dialect Dialect

	granularity *granularity // nil if the query has none
	start, end  time.Time    // the part of the requested range that exists
	columns     []column     // the dimensions, then the metrics
	filter      filter
	order       []sortKey
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

type sortKey struct {
	column     int
	descending bool
}

// params returns the parameters of the family's data method.
func (f *family) params(d Dialect) (required, optional []string) {
	required = append([]string{"dimensions", d.StartTimeParam, "endtime"}, f.needs...)
	if !f.raw() {
		required = append(required, "metrics")
	}
	return required, append([]string{"filters"}, f.takes...)
}

// statsQuery reads the query string.
func (c *call) statsQuery(f *family) (*statsQuery, error) {
	q := &statsQuery{family: f, history: c.s.history(), dialect: c.s.dialect}
	q.echo = queryEcho{
		StartTime: c.query.Get(q.dialect.StartTimeParam), EndTime: c.query.Get("endtime"),
		Dimensions: strings.Split(c.query.Get("dimensions"), ","),
		Filters:    withCustomer(c.query.Get("filters"), c.s.cfg.Customer),
	}
	required, _ := f.params(q.dialect)
	for _, name := range required {
		if !c.query.Has(name) {
			return nil, refuse(http.StatusBadRequest, "query parameter %q is missing", name)
		}
	}
	for _, read := range []func(url.Values) error{
		q.readGranularity, q.readSpan, q.readColumns, q.readFilter, q.readOrder, q.readLimit,
	} {
		if err := read(c.query); err != nil {
			return nil, err
		}
	}
	return q, nil
}

func (q *statsQuery) readGranularity(query url.Values) error {
	if !query.Has("granularity") {
		return nil
	}
	name := query.Get("granularity")
	i := slices.IndexFunc(granularities, func(g granularity) bool { return g.name == name })
	if i < 0 {
		return refuse(http.StatusBadRequest, "granularity must be day, hour or 5minute")
	}
	q.granularity = &granularities[i]
	return nil
}

// column finds a dimension of the family. In aggregated data, the time dimension is the start of the bucket, so it
// requires a granularity.
func (q *statsQuery) column(name string) (column, error) {
	if !slices.Contains(q.family.dimensions, name) {
		return column{}, refuse(http.StatusBadRequest, "unknown dimension %q", name)
	}
	c := dimensions[indexOf(dimensions, name)]
	if name == timeDimension && !q.family.raw() {
		if q.granularity == nil {
			return column{}, refuse(http.StatusBadRequest, "dimension %q requires a granularity", name)
		}
		return column{name, q.granularity.bucket}, nil
	}
	absent := absentValues[q.dialect.Absent]
	return column{name, func(e *record) value {
		if v := c.of(e); v.kind != null {
			return v
		}
		return absent
	}}, nil
}

func indexOf(columns []column, name string) int {
	return slices.IndexFunc(columns, func(c column) bool { return c.name == name })
}

// absentValues are what a row has for a dimension that the event lacks (open point 51), by Dialect.Absent.
var absentValues = map[string]value{"empty": {kind: text}, "dash": {kind: text, text: "-"}}

// readSpan reads the times, and leaves out the part that is no longer stored: that part gives no rows, and no error.
// Aggregated data without a granularity are stored as long as daily data.
func (q *statsQuery) readSpan(url.Values) error {
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
	case q.granularity != nil:
		q.start = latest(q.start, q.granularity.since(q.history.now))
	}
	return nil
}

// readColumns reads the columns. For raw events it puts event_timestamp_ms first, unless the query names it (section
// 2.4).
func (q *statsQuery) readColumns(query url.Values) error {
	names := q.echo.Dimensions
	if q.family.raw() && !slices.Contains(names, timeDimension) {
		names = slices.Concat([]string{timeDimension}, names)
	}
	for _, name := range names {
		c, err := q.column(name)
		if err != nil {
			return err
		}
		if indexOf(q.columns, name) >= 0 {
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
	if query.Get("metrics") != hits {
		return refuse(http.StatusBadRequest, "metrics must be %s", hits)
	}
	q.columns = append(q.columns, column{hits, func(*record) value { return value{kind: number} }}) // counted later
	return nil
}

// groups reports whether the names are a valid grouping set, in any order.
func (f *family) groups(names []string) bool {
	names = slices.Sorted(slices.Values(names))
	return slices.ContainsFunc(f.groupings, func(set []string) bool {
		return slices.Equal(slices.Sorted(slices.Values(set)), names)
	})
}

func (q *statsQuery) readFilter(query url.Values) (err error) {
	q.filter, err = parseFilter(query.Get("filters"), q.column)
	return err
}

func (q *statsQuery) readOrder(query url.Values) error {
	if !query.Has("sortby") {
		return nil
	}
	for part := range strings.SplitSeq(query.Get("sortby"), ",") {
		name, descending := strings.CutPrefix(part, "-")
		i := indexOf(q.columns, name)
		if i < 0 {
			return refuse(http.StatusBadRequest, "cannot sort by %q: it is not a column of the result", name)
		}
		q.order = append(q.order, sortKey{i, descending})
	}
	return nil
}

// readLimit accepts any number of digits, because there is no upper bound (section 8). With a limit of 0, only
// total_results remains.
func (q *statsQuery) readLimit(query url.Values) error {
	if !query.Has("limit") {
		q.echo.Limit = q.family.limit
		return nil
	}
	n, err := strconv.ParseUint(query.Get("limit"), 10, 63)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return refuse(http.StatusBadRequest, "limit must be an integer that is not negative")
	}
	q.echo.Limit = int(min(n, math.MaxInt64))
	return nil
}
