package webdelivery

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/rowjson"
	"github.com/webdelivery/webdelivery-go/internal/statsquery"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// StatsService reads security statistics (service-interface section 4.3). It is [Client.Stats], and safe for concurrent
// use.
type StatsService struct {
	funnel *funnel

	// Events reads raw events. They exist for the previous three days and the elapsed part of today (service-interface
	// section 6).
	Events *StatsFamily[EventsQuery]
	// WAFTrends reads hits over time of what the WAF saw.
	WAFTrends *AggregatedFamily[TrendsQuery]
	// RequestTrends reads hits over time of requests.
	RequestTrends *AggregatedFamily[TrendsQuery]
	// TrafficShapingTrends reads hits over time of blocking and rate limiting.
	TrafficShapingTrends *AggregatedFamily[TrendsQuery]
}

// WAFCategory is by what a WAF top-K groups (service-interface section 4.3).
type WAFCategory string

// The categories of the WAF top-K.
const (
	WAFByBrowser     WAFCategory = "browser"     // by browser of the client
	WAFByClientIP    WAFCategory = "clientip"    // by address of the client
	WAFByCountry     WAFCategory = "country"     // by country of the client
	WAFByRequestPath WAFCategory = "requestpath" // by path that was requested
	WAFByRuleID      WAFCategory = "ruleid"      // by rule that applied
	WAFBySeverity    WAFCategory = "severity"    // by severity of the event
)

// ShapingCategory is by what a traffic shaping top-K groups (service-interface section 4.3).
type ShapingCategory string

// The categories of the traffic shaping top-K.
const (
	ShapingByBrowser           ShapingCategory = "browser"           // by browser of the client
	ShapingByClientIP          ShapingCategory = "clientip"          // by address of the client
	ShapingByCountry           ShapingCategory = "country"           // by country of the client
	ShapingByRateLimitClientIP ShapingCategory = "ratelimitclientip" // by address of the client that is rate limited
	ShapingByRateLimitCountry  ShapingCategory = "ratelimitcountry"  // by country that is rate limited
	ShapingByRequestPath       ShapingCategory = "requestpath"       // by path that was requested
)

func newStatsService(f *funnel) *StatsService {
	return &StatsService{
		funnel:               f,
		Events:               &StatsFamily[EventsQuery]{funnel: f, rules: statsquery.Events},
		WAFTrends:            aggregated[TrendsQuery](f, statsquery.WAFTrends),
		RequestTrends:        aggregated[TrendsQuery](f, statsquery.RequestTrends),
		TrafficShapingTrends: aggregated[TrendsQuery](f, statsquery.ShapingTrends),
	}
}

// WAFTopK reads the 20 largest groups of what the WAF saw (service-interface section 4.3). A category that is not one of
// the constants is a [*ValidationError] of every call of the family. Nothing is sent here.
func (s *StatsService) WAFTopK(category WAFCategory) *AggregatedFamily[WAFTopKQuery] {
	rules, known := statsquery.WAFTopK(string(category))
	family := aggregated[WAFTopKQuery](s.via(), rules)
	if !known {
		family.refused = invalid("category", "%q is not one of the WAF top-K", string(category))
	}
	return family
}

// TrafficShapingTopK reads the largest groups of blocking and rate limiting, 1,000 at most (service-interface section
// 4.3). A category that is not one of the constants is a [*ValidationError] of every call of the family. Nothing is sent
// here.
func (s *StatsService) TrafficShapingTopK(category ShapingCategory) *AggregatedFamily[ShapingTopKQuery] {
	rules, known := statsquery.ShapingTopK(string(category))
	family := aggregated[ShapingTopKQuery](s.via(), rules)
	if !known {
		family.refused = invalid("category", "%q is not one of the traffic shaping top-K", string(category))
	}
	return family
}

// StatsFamily reads one family of statistics (service-interface section 4.3); Q is its query, with just the parameters
// that the family takes. It is part of a [StatsService], and safe for concurrent use.
type StatsFamily[Q StatsQuery] struct {
	funnel  *funnel
	rules   statsquery.Family
	refused error // of a category that the service does not have
}

// AggregatedFamily is a family whose rows are groups with their hits (service-interface section 4.3): it has all of
// [StatsFamily], with Groupings and Metrics.
type AggregatedFamily[Q StatsQuery] struct {
	StatsFamily[Q] // what every family has
}

func aggregated[Q StatsQuery](f *funnel, rules statsquery.Family) *AggregatedFamily[Q] {
	return &AggregatedFamily[Q]{StatsFamily[Q]{funnel: f, rules: rules}}
}

// Result is a reply that is kept whole, in compact form (service-interface section 2.4). Any number of goroutines may read
// it. [Result.Truncated] reports whether more match than it has rows.
type Result struct {
	Query        QueryEcho `json:"query"`         // as the service understood it
	Columns      []string  `json:"columns"`       // names, in the order of the values of a row
	Rows         []Row     `json:"rows"`          // valid as long as the Result
	TotalResults int64     `json:"total_results"` // that match, whatever the limit

	// ReplacedTexts counts the values in which U+FFFD replaces what is no text, see [Value]. It is no member of the reply.
	ReplacedTexts int64 `json:"replaced_texts,omitempty"`
	// Warnings says, in words for people, which part of the span the service may no longer have, so that rows are missing or
	// hits are too small: raw events before [EventsRetention], and trends finer than [GranularityFor] returns. The query is
	// sent all the same. It is nil if there is nothing to say, and no member of the response.
	Warnings []string `json:"warnings,omitempty"`
}

// Truncated reports whether more results match than there are rows: the Limit of the query, its default of 10, or the size
// of a top-K has cut the others off.
func (r *Result) Truncated() bool { return r.TotalResults > int64(len(r.Rows)) }

// All is the sequence of the rows, for [Scan]. It never yields an error.
func (r *Result) All() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for _, row := range r.Rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// QueryEcho is the query as the service understood it (service-interface section 2.4).
type QueryEcho struct {
	StartTime  string   `json:"starttime"`  // as sent, in UTC
	EndTime    string   `json:"endtime"`    // as sent, in UTC
	Start      int64    `json:"start"`      // number of the first row, 0 (open point 41)
	Limit      int64    `json:"limit"`      // most rows
	Dimensions []string `json:"dimensions"` // as sent
	// Filters is what was supplied with the service's filter on the customer; filters.ParseEcho splits it.
	Filters string `json:"filters"`
}

// Query reads a reply whole, up to [WithMaxResponseBytes] (service-interface sections 2.4 and 4.3). Without a limit in the
// query the service gives 10 rows, even if more match: [Result.Truncated] reports that, and All gives every row. Fewer
// rows than it should have are an [*IncompleteError], with which the Result is returned too; with every other error it is
// nil. A reply that is not a result is [ErrBadReply].
func (f *StatsFamily[Q]) Query(ctx context.Context, query Q) (*Result, error) {
	p := query.params()
	parameters, err := f.parameters(ctx, &p)
	if err != nil {
		return nil, err
	}
	warnings := f.rules.Warnings(&p, time.Now())
	f.warn(ctx, warnings)
	var kept keptResult
	in, err := f.whole(ctx, parameters, &kept)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, 0, in.Count())
	for row := range kept.rows.All() {
		rows = append(rows, Row{row})
	}
	result := &Result{Query: kept.echo, Columns: in.Columns(), TotalResults: in.Total(), Rows: rows, ReplacedTexts: in.Replaced()}
	result.Warnings = warnings
	return result, f.complete(in, p.Limit, false)
}

// keptResult is what Query keeps of a response.
type keptResult struct {
	rows rowjson.Store
	echo QueryEcho
}

// whole reads a response to its end, within the time of an attempt, and keeps the result unless kept is nil: then its
// total is what counts, and has to be one.
func (f *StatsFamily[Q]) whole(ctx context.Context, parameters string, kept *keptResult) (*rowjson.Reader, error) {
	var in *rowjson.Reader
	cl := getCall(f.rules.Path+"/data", parameters)
	cl.Take = func(body io.Reader) (int, error) {
		config, rows := f.reading(), (*rowjson.Store)(nil)
		if kept != nil {
			*kept = keptResult{} // an attempt before may have left something
			config.Query, rows = &kept.echo, &kept.rows
		}
		in = rowjson.NewReader(body, config)
		in.ReadAll(rows)
		return in.EnvelopeCode(), in.Err()
	}
	r, err := f.funnel.send(ctx, cl)
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

// reading is how every response with rows is read.
func (f *StatsFamily[Q]) reading() rowjson.Config {
	return rowjson.Config{
		Limit: rowjson.Limit{Bytes: f.funnel.maxBody, Err: ErrResponseTooLarge}, Redactor: f.funnel.secrets,
		StrictTexts: f.funnel.strictTexts,
	}
}

// Rows streams a reply: each row as it arrives, in constant memory, however many there are (service-interface section
// 4.3). Without a limit in the query the service gives 10 rows; All gives every one, and [OnSummary] says how many match.
// It ends with the first error, which is yielded with a zero Row; a reply that is cut short, or has fewer rows than it
// should have, never ends without one. A row is valid until the next step. Stopping early closes the connection. Each
// range over the sequence sends a new request; several goroutines may range over it at the same time.
//
// Rows retries a response that fails before its first row has arrived, and not after that. If the response has a code of
// 400 or more, Rows yields an [*Error] with that code, and retries it like the status if it comes before the first row.
func (f *StatsFamily[Q]) Rows(ctx context.Context, query Q, options ...StreamOption) iter.Seq2[Row, error] {
	s, err := newStreaming(options)
	if err != nil {
		return failing[Row](err)
	}
	p := query.params()
	parameters, err := f.parameters(ctx, &p)
	if err != nil {
		return failing[Row](err)
	}
	s.warnings = f.rules.Warnings(&p, time.Now())
	return func(yield func(Row, error) bool) {
		f.warn(ctx, s.warnings)
		if err := f.stream(ctx, parameters, p.Limit, s, yield); err != nil {
			yield(Row{}, err)
		}
	}
}

// All streams every row of the span, whatever the Limit of the query: it reads total_results first, then asks for as many
// rows and some more (service-interface section 4.3), so rows may be added in the meantime: 1,000, or 1 % if that is more.
// The second response alone says whether it is complete. If it has fewer rows than its own total_results, or as many as
// were asked for, so that more may match, All ends with an [*IncompleteError]. Of a top-K it gives all rows that the
// service has of it. Otherwise All behaves like Rows.
func (f *StatsFamily[Q]) All(ctx context.Context, query Q, options ...StreamOption) iter.Seq2[Row, error] {
	if f == nil || f.rules.NoLimit {
		return f.Rows(ctx, query, options...)
	}
	s, err := newStreaming(options)
	if err != nil {
		return failing[Row](err)
	}
	s.all = true
	asked := query.params().Clone()
	asked.Limit = cmp.Or(min(asked.Limit, 1), 1) // a limit below 0 is refused as everywhere
	first, err := f.parameters(ctx, &asked)
	if err != nil {
		return failing[Row](err)
	}
	s.warnings = f.rules.Warnings(&asked, time.Now())
	return func(yield func(Row, error) bool) {
		f.warn(ctx, s.warnings)
		one, err := f.whole(ctx, first, nil)
		switch {
		case err != nil:
		case one.Total() == 0:
			s.done(StreamSummary{})
		default:
			p := asked // several loops may run at the same time
			p.Limit = f.rules.WithHeadroom(one.Total())
			var parameters string
			if parameters, err = f.parameters(ctx, &p); err == nil {
				err = f.stream(ctx, parameters, p.Limit, s, yield)
			}
		}
		if err != nil {
			yield(Row{}, err)
		}
	}
}

// stream sends a query with these parameters and yields its rows. It returns nil when the user has stopped. The limit is
// that of the parameters.
func (f *StatsFamily[Q]) stream(ctx context.Context, parameters string, limit int64, s streaming, yield func(Row, error) bool) error {
	var in *rowjson.Reader
	found := false
	var echo QueryEcho
	cl := getCall(f.rules.Path+"/data", parameters)
	cl.Begin = func(body io.Reader) (int, error) {
		config := f.reading()
		if s.all {
			config.Query = &echo
		}
		in = rowjson.NewReader(body, config)
		found = in.Next()
		return in.EnvelopeCode(), in.Err()
	}
	r, err := f.funnel.send(ctx, cl)
	if err != nil {
		return err
	}
	defer r.Stream.Close()
	if wire.IsHTML(r.Header) {
		return r.bad("an HTML page", nil)
	}
	in.ReadOn(r.Stream) // the beginning need not be kept any longer
	for ; found; found = in.Next() {
		if !yield(Row{in.Row()}, nil) {
			return nil
		}
	}
	switch {
	case in.EnvelopeCode() >= http.StatusBadRequest:
		code, words := in.Envelope()
		return newError(r.Refused(code, words))
	case in.Err() != nil:
		return r.broken(in.Err())
	}
	if echo.Limit > 0 {
		limit = min(limit, echo.Limit) // the service bounds it
	}
	err = f.complete(in, limit, s.all)
	if err == nil {
		s.done(StreamSummary{Rows: in.Count(), TotalResults: in.Total(), ReplacedTexts: in.Replaced()})
	}
	return err
}

// complete returns an error if rows are missing.
func (f *StatsFamily[Q]) complete(in *rowjson.Reader, limit int64, all bool) error {
	if f.rules.Complete(in.Count(), in.Total(), limit, all) {
		return nil
	}
	return &IncompleteError{Got: in.Count(), Total: in.Total()}
}

// usable refuses a family that no client has created, one of a category that does not exist, and no context.
func (f *StatsFamily[Q]) usable(ctx context.Context) error {
	f = cmp.Or(f, &StatsFamily[Q]{})
	return cmp.Or(f.refused, f.funnel.usable(ctx))
}

// warn logs what the service may no longer have of a query.
func (f *StatsFamily[Q]) warn(ctx context.Context, warnings []string) {
	for _, warning := range warnings {
		f.funnel.transport.Warn(ctx, getCall(f.rules.Path+"/data", "").Request, "webdelivery: beyond retention", warning)
	}
}

// parameters validates those of a query, and encodes them.
func (f *StatsFamily[Q]) parameters(ctx context.Context, p *statsquery.Query) (string, error) {
	if err := f.usable(ctx); err != nil {
		return "", err
	}
	return f.encode(p)
}

// encode is parameters of a family that can be used.
func (f *StatsFamily[Q]) encode(p *statsquery.Query) (string, error) {
	var bad problems
	parameters := f.rules.Encode(p, f.funnel.dialect.StartTimeParam, bad.add)
	return parameters, bad.err()
}

// Head asks for the headers of the family's base path (service-interface section 4.3). It sends no parameters, and a
// service may require some (open point 36). Cookies and all that may hold a credential are left out. The header is a copy.
func (f *StatsFamily[Q]) Head(ctx context.Context) (http.Header, error) {
	if err := f.usable(ctx); err != nil {
		return nil, err
	}
	r, err := f.funnel.send(ctx, describe(http.MethodHead, f.rules.Path, ""))
	if err != nil {
		return nil, err
	}
	return f.funnel.secrets.Header(r.Header), nil
}

// IncompleteError is a statistics response with fewer rows than it should have: as many as match the query, up to its
// limit, or the default of 10, and up to the size of a top-K (service-interface sections 2.4 and 8). The rows before it
// are good. Got may also be below the limit while Total is far above it.
//
// All reads two responses: one for total_results, one for the rows. Both numbers are those of the second. Of All, Got may
// also be as large as Total, or larger: the response then has as many rows as All asked for, so more may match than it
// says. Ask again, or let the span end before rows are still added to it.
type IncompleteError struct {
	Got   int64 // rows in the response
	Total int64 // total_results of the response
}

// Error gives both numbers, and what they mean.
func (e *IncompleteError) Error() string {
	if e.Got >= e.Total {
		return fmt.Sprintf("webdelivery: %d rows arrived, as many as were asked for, so more than %d may match", e.Got, e.Total)
	}
	return fmt.Sprintf("webdelivery: %d rows arrived, and %d match", e.Got, e.Total)
}

func (e *IncompleteError) outcomeOfWrite() Outcome { return OutcomeNotApplied }
