package webdelivery

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-querystring/query"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
)

// StatsService reads security statistics. (Section 4.3.)
type StatsService struct {
	conn *conn

	// Events reads raw events. The service keeps those of the previous three days and of today: section 6.
	Events *StatsFamily[EventsQuery]
	// WAFTrends reads the hits of the WAF over time.
	WAFTrends *StatsFamily[TrendsQuery]
	// RequestTrends reads the hits of requests over time.
	RequestTrends *StatsFamily[TrendsQuery]
	// TrafficShapingTrends reads the hits of blocking and rate limiting over time.
	TrafficShapingTrends *StatsFamily[TrendsQuery]
}

func newStatsService(c *conn) *StatsService {
	return &StatsService{
		conn:                 c,
		Events:               &StatsFamily[EventsQuery]{conn: c, rules: eventsRules},
		WAFTrends:            &StatsFamily[TrendsQuery]{conn: c, rules: wafTrendsRules},
		RequestTrends:        &StatsFamily[TrendsQuery]{conn: c, rules: requestTrendsRules},
		TrafficShapingTrends: &StatsFamily[TrendsQuery]{conn: c, rules: shapingTrendsRules},
	}
}

// WAFTopK returns the family that reads the 20 largest groups of WAF hits. It sends nothing. If category is not one of
// the constants, every call of the family returns a [*ValidationError].
func (s *StatsService) WAFTopK(category WAFCategory) *StatsFamily[TopKQuery] {
	dimension, ok := wafCategories[category]
	return s.topK(string(category), ok, statsRules{
		name: "Stats.WAFTopK", path: "/stats/security/waf/topk/", noLimit: true, top: wafTopKRows, dimension: dimension,
	})
}

// TrafficShapingTopK returns the family that reads up to 1,000 of the largest groups of blocking and rate limiting.
// Otherwise it behaves like WAFTopK.
func (s *StatsService) TrafficShapingTopK(category TrafficShapingCategory) *StatsFamily[TopKQuery] {
	dimension, ok := shapingCategories[category]
	return s.topK(string(category), ok, statsRules{
		name: "Stats.TrafficShapingTopK", path: "/stats/security/trafficshaping/topk/", top: shapingTopKRows, dimension: dimension,
	})
}

func (s *StatsService) topK(category string, ok bool, rules statsRules) *StatsFamily[TopKQuery] {
	rules.path, rules.aggregated = rules.path+category, true
	family := &StatsFamily[TopKQuery]{conn: s.conn, rules: rules}
	if !ok {
		family.refused = invalid("category", "%q is not a category of %s", category, rules.name)
	}
	return family
}

// StatsFamily reads one family of statistics. The rows of every family but Events are groups with their hits.
type StatsFamily[Q StatsQuery] struct {
	conn    *conn
	rules   statsRules
	refused error // the category is unknown
}

// Result is a whole response in compact form. Any number of goroutines may read it. (Section 2.4.)
type Result struct {
	Columns      []string `json:"columns"`       // column names, in the order of the values of a row
	Rows         []Row    `json:"rows"`          // valid as long as the Result
	TotalResults int64    `json:"total_results"` // number of matching rows, whatever the limit
}

// Truncated reports whether TotalResults says that more rows match than the Result has, because of the Limit of the
// query or its default of 10. The TotalResults of a top-K may count only the largest groups.
func (r *Result) Truncated() bool { return r.TotalResults > int64(len(r.Rows)) }

// All returns the rows as a sequence, for [Scan]. It never yields an error.
func (r *Result) All() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for _, row := range r.Rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// Query reads one response, of 10 rows if a query that has a Limit leaves it 0. [Result.Truncated] reports whether more
// match; All streams every row. A trend that is cut because it has no Limit is logged ([WithLogger]).
// [WithMaxResponseBytes] limits the response. If rows are missing, Query returns the partial Result together with an
// [*IncompleteError].
func (f *StatsFamily[Q]) Query(ctx context.Context, query Q) (*Result, error) {
	p := query.params()
	parameters, err := f.parameters(&p)
	if err != nil {
		return nil, err
	}
	f.warn(ctx, f.rules.warnings(&p, time.Now())...)
	var kept rowjson.Store
	in, err := f.whole(ctx, parameters, &kept)
	if err != nil {
		return nil, err
	}
	err = f.rules.complete(in.Count(), in.Total(), p.Limit, false)
	if err == nil && f.rules.aggregated && f.rules.top == 0 && in.Count() < in.Total() && p.Limit == 0 {
		f.warn(ctx, fmt.Sprintf("the response has %d of %d rows, because the query has no Limit; All reads every row", in.Count(), in.Total()))
	}
	rows := make([]Row, 0, in.Count())
	for row := range kept.All() {
		rows = append(rows, Row{row})
	}
	return &Result{Columns: in.Columns(), TotalResults: in.Total(), Rows: rows}, err
}

// whole reads a response to its end, within the time of an attempt. If kept is nil, it keeps only the total and
// checks it. Otherwise it keeps the rows.
func (f *StatsFamily[Q]) whole(ctx context.Context, parameters string, kept *rowjson.Store) (*rowjson.Reader, error) {
	var in *rowjson.Reader
	cl := f.dataCall(parameters)
	cl.Take = func(body io.Reader) int {
		if kept != nil {
			*kept = rowjson.Store{} // an earlier attempt may have left something
		}
		in = rowjson.NewReader(body, f.reading())
		in.ReadAll(kept)
		return in.EnvelopeCode()
	}
	r, err := f.conn.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	if err := r.checkPresent(); err != nil {
		return nil, err
	}
	if in.Err() != nil {
		return nil, r.bad("", in.Err())
	}
	if kept == nil && in.Count() > in.Total() {
		return nil, r.bad(fmt.Sprintf("total_results is %d, and the response has %d rows", in.Total(), in.Count()), nil)
	}
	return in, nil
}

func (f *StatsFamily[Q]) reading() rowjson.Config {
	return rowjson.Config{
		Limit: rowjson.Limit{Bytes: f.conn.maxBody, Err: ErrResponseTooLarge}, Redactor: f.conn.secrets,
	}
}

// All streams rows in constant memory. If the query has a Limit, it requests that many. Otherwise it first reads
// total_results, and then requests that many rows and 1,000 more, or 1 % if that is more, because the service may add
// rows in the meantime. A row is valid until the next step. All retries a failed response only until its first row has
// arrived. If rows are missing, or if as many arrived as All requested, so that more may match, the error is an
// [*IncompleteError].
func (f *StatsFamily[Q]) All(ctx context.Context, query Q) iter.Seq2[Row, error] {
	var s streaming
	p := query.params()
	s.all = p.Limit == 0 && !f.rules.noLimit
	if s.all {
		p.Limit = 1
	}
	first, err := f.parameters(&p)
	if err != nil {
		return failing[Row](err)
	}
	warnings := f.rules.warnings(&p, time.Now())
	return func(yield func(Row, error) bool) {
		f.warn(ctx, warnings...)
		if err := f.streamAll(ctx, first, p, s, yield); err != nil {
			yield(Row{}, err)
		}
	}
}

// Warnings says, in plain words, which part of the time range of a query the service may no longer have: raw events
// before [EventsRetention], and trends finer than [GranularityFor] returns. With GranularityDay it also says whether
// the range begins, or ends before today, within a day of UTC. It sends nothing. Query and All send such a query
// anyway, and log the warnings ([WithLogger]).
func (f *StatsFamily[Q]) Warnings(query Q) []string {
	p := query.params()
	if _, err := f.parameters(&p); err != nil {
		return nil
	}
	return f.rules.warnings(&p, time.Now())
}

// streaming is how a stream is read.
type streaming struct {
	all       bool  // the SDK chose the limit, so a response that reaches it may lack rows
	announced int64 // rows that an earlier response has counted; 0: unknown, or they may change
}

// failing returns a sequence that yields one error.
func failing[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) { yield(*new(T), err) }
}

// streamAll streams the rows of a query. If the SDK chooses the limit, it asks for their number first.
func (f *StatsFamily[Q]) streamAll(ctx context.Context, parameters string, p statsParams, s streaming, yield func(Row, error) bool) error {
	if s.all {
		one, err := f.whole(ctx, parameters, nil)
		switch {
		case err != nil:
			return err
		case one.Total() == 0:
			return nil
		}
		p.Limit = f.rules.withHeadroom(one.Total())
		if f.rules.top == 0 && f.rules.gone(&p, time.Now().Add(time.Hour)) == nil { // the service drops and reorders no rows meanwhile
			s.announced = one.Total()
		}
		if parameters, err = f.parameters(&p); err != nil {
			return err
		}
	}
	return f.stream(ctx, parameters, p.Limit, s, yield)
}

// stream sends a query with these parameters and yields its rows. It returns nil if the loop has stopped. limit is
// that of the parameters.
func (f *StatsFamily[Q]) stream(ctx context.Context, parameters string, limit int64, s streaming, yield func(Row, error) bool) error {
	var in *rowjson.Reader
	found := false
	var echo struct {
		Limit int64 `json:"limit"`
	}
	cl := f.dataCall(parameters)
	cl.Begin = func(body io.Reader) int {
		config := f.reading()
		if s.all {
			config.Query = &echo
		}
		in = rowjson.NewReader(body, config)
		found = in.Next()
		return in.EnvelopeCode()
	}
	r, err := f.conn.send(ctx, cl)
	if err != nil {
		return err
	}
	defer r.Stream.Close()
	in.ReadOn(r.Stream) // no need to keep the beginning any longer
	for ; found; found = in.Next() {
		if !yield(Row{in.Row()}, nil) {
			return nil
		}
	}
	switch {
	case in.EnvelopeCode() >= http.StatusBadRequest:
		var words string
		r.Code, words = in.Envelope()
		e := r.conn.newError(r.Response, nil)
		e.Description = r.conn.secrets.Text(cmp.Or(words, http.StatusText(r.Code)))
		return e
	case in.Err() != nil:
		if cut := r.Stream.Broken(); cut != nil { // by the connection or the caller
			return r.conn.newError(r.Response, cut)
		}
		return r.bad("", in.Err())
	}
	if echo.Limit > 0 {
		limit = min(limit, echo.Limit) // the service has its own limit
	}
	err = f.rules.complete(in.Count(), in.Total(), limit, s.all)
	if err == nil && in.Count() < s.announced {
		err = &IncompleteError{Got: in.Count(), Total: s.announced}
	}
	return err
}

func (f *StatsFamily[Q]) warn(ctx context.Context, warnings ...string) {
	for _, warning := range warnings {
		f.conn.transport.Warn(ctx, f.dataCall("").Request, "webdelivery: statistics", warning)
	}
}

// dataCall describes a request for rows.
func (f *StatsFamily[Q]) dataCall(parameters string) call {
	return describe(f.rules.name, http.MethodGet, f.rules.path+"/data", parameters)
}

// parameters returns the query string of p, which it prepares.
func (f *StatsFamily[Q]) parameters(p *statsParams) (string, error) {
	if f.refused != nil {
		return "", f.refused
	}
	if err := p.prepare(&f.rules); err != nil {
		return "", err
	}
	values, err := query.Values(p)
	if err != nil {
		return "", invalid("query", "%v", err)
	}
	values.Set(f.conn.dialect.StartTimeParam, p.Start.Format(timeLayout))
	return values.Encode(), nil
}

// Head returns the headers of the family's base path, without cookies and other credentials. It sends the parameters
// of the query, which the service may require.
func (f *StatsFamily[Q]) Head(ctx context.Context, query Q) (http.Header, error) {
	p := query.params()
	parameters, err := f.parameters(&p)
	if err != nil {
		return nil, err
	}
	r, err := f.conn.send(ctx, describe(f.rules.name, http.MethodHead, f.rules.path, parameters))
	if err != nil {
		return nil, err
	}
	return f.conn.safeHeader(r.Response), nil
}

// Dimensions returns the names of the dimensions of the family. If the list has an unknown shape, it returns
// [ErrBadResponse], and the Body of the [*Error] has the list.
func (f *StatsFamily[Q]) Dimensions(ctx context.Context) ([]string, error) {
	return f.names(ctx, "dimensions")
}

// Metrics returns the names of the metrics of the family, as Dimensions does. Raw events have none, so Metrics of Events
// returns a [*ValidationError].
func (f *StatsFamily[Q]) Metrics(ctx context.Context) ([]string, error) {
	return f.names(ctx, "metrics")
}

// Groupings returns the sets of dimensions that one query of the family may ask for together, as Metrics does.
// (Section 4.3.)
func (f *StatsFamily[Q]) Groupings(ctx context.Context) ([][]string, error) {
	return f.list(ctx, "groupings")
}

func (f *StatsFamily[Q]) names(ctx context.Context, what string) ([]string, error) {
	items, err := f.list(ctx, what)
	if err != nil {
		return nil, err
	}
	return append([]string{}, slices.Concat(items...)...), nil
}

// list reads one of the lists of open point 14.
func (f *StatsFamily[Q]) list(ctx context.Context, what string) ([][]string, error) {
	switch {
	case f.refused != nil:
		return nil, f.refused
	case !f.rules.aggregated && what != "dimensions":
		return nil, invalid(what, "raw events have none")
	}
	r, err := f.conn.send(ctx, describe(f.rules.name, http.MethodGet, f.rules.path+"/"+what, ""))
	if err != nil {
		return nil, err
	}
	if err := r.checkText(); err != nil {
		return nil, err
	}
	items, wrong, err := rowjson.Names(r.Body, what)
	if wrong != "" {
		return nil, r.bad(wrong, err)
	}
	return items, nil
}
