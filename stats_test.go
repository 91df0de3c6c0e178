package webdelivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // for machines without it

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/suite/operations"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// berlin is a zone that is never UTC.
var berlin = time.FixedZone("", 3600)

var (
	spanStart = time.Date(2026, 11, 20, 9, 30, 0, 999, berlin)
	spanEnd   = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
)

func trends() webdelivery.TrendsQuery {
	return webdelivery.TrendsQuery{
		Dimensions: []string{webdelivery.DimClientCountryCode},
		Start:      spanStart, End: spanEnd, Granularity: webdelivery.GranularityHour,
	}
}

// Each category has a path of its own (section 4.3) and, if the service document names one, a dimension that a query need
// not name. Hits is the metric of all. The client refuses any other category.
func TestCategories(t *testing.T) {
	t.Parallel()
	ask := map[string]func(ctx context.Context, s *webdelivery.StatsService, category string, dimensions ...string) error{
		"waf": func(ctx context.Context, s *webdelivery.StatsService, category string, dimensions ...string) error {
			q := webdelivery.TopKQuery{Dimensions: dimensions, Start: spanStart, End: spanEnd}
			_, err1 := s.WAFTopK(webdelivery.WAFCategory(category)).Query(ctx, q)
			_, err2 := collect(s.WAFTopK(webdelivery.WAFCategory(category)).All(ctx, q))
			return errors.Join(err1, err2)
		},
		"trafficshaping": func(ctx context.Context, s *webdelivery.StatsService, category string, dimensions ...string) error {
			q := webdelivery.TopKQuery{Dimensions: dimensions, Start: spanStart, End: spanEnd}
			_, err1 := s.TrafficShapingTopK(webdelivery.TrafficShapingCategory(category)).Query(ctx, q)
			_, err2 := collect(s.TrafficShapingTopK(webdelivery.TrafficShapingCategory(category)).All(ctx, q))
			return errors.Join(err1, err2)
		},
	}
	const undocumented, unknown = "", "?"
	for _, tt := range []struct{ family, category, name, dimension string }{
		{"waf", string(webdelivery.WAFByBrowser), "browser", "client_browser"},
		{"waf", string(webdelivery.WAFByClientIP), "clientip", "client_ip"},
		{"waf", string(webdelivery.WAFByCountry), "country", "client_country_code"},
		{"waf", string(webdelivery.WAFByRuleID), "ruleid", "rule_id"},
		{"waf", string(webdelivery.WAFBySeverity), "severity", "event_severity"},
		{"waf", string(webdelivery.WAFByRequestPath), "requestpath", undocumented},
		{"trafficshaping", string(webdelivery.TrafficShapingByBrowser), "browser", "client_browser"},
		{"trafficshaping", string(webdelivery.TrafficShapingByClientIP), "clientip", "client_ip"},
		{"trafficshaping", string(webdelivery.TrafficShapingByCountry), "country", "client_country_code"},
		{"trafficshaping", string(webdelivery.TrafficShapingByRateLimitClientIP), "ratelimitclientip", undocumented},
		{"trafficshaping", string(webdelivery.TrafficShapingByRateLimitCountry), "ratelimitcountry", undocumented},
		{"trafficshaping", string(webdelivery.TrafficShapingByRequestPath), "requestpath", undocumented},
		{"waf", "", "", unknown},
		{"waf", "../../events", "", unknown},
		{"trafficshaping", "asn", "", unknown},
		{"trafficshaping", "Browser", "", unknown},
	} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			f.Srv.Fail(faultFor("", resultOf([]string{"a"})))
			switch err := ask[tt.family](f.Context(), f.Client.Stats, tt.category); tt.dimension {
			case unknown:
				refusedAs(f.T, "category", err, tt.category)
				return
			case undocumented:
				refusedAs(f.T, "dimensions", err, tt.category)
				require.ErrorContains(f, err, "must be set, because the dimension of this category is not documented; ask Dimensions for the names")
				assert.Empty(f, f.Srv.Requests())
				require.NoError(f, ask[tt.family](f.Context(), f.Client.Stats, tt.category, "a"))
				tt.dimension = "a"
			default:
				require.NoError(f, err)
			}
			require.Len(f, f.Srv.Requests(), 2)
			for _, r := range f.Srv.Requests() {
				assert.Equal(f, "/acme/v1/stats/security/"+tt.family+"/topk/"+tt.name+"/data", r.Path)
				assert.Contains(f, r.RawQuery, "dimensions="+tt.dimension+"&")
				assert.Contains(f, r.RawQuery, "metrics=hits&")
			}
		})
	}
}

// Open point 14: the client reads every shape of the lists. An unknown shape is an error
// that contains it.
func TestListsOfNames(t *testing.T) {
	t.Parallel()
	ab, abc := []string{"a", "b"}, [][]string{{"a", "b"}, {"c"}}
	for _, tt := range []struct {
		body      string
		names     []string // nil: an error
		groupings [][]string
	}{
		{`["a","b"]`, ab, [][]string{{"a"}, {"b"}}},
		{`[{"name":"a","type":"x"},{"name":"b"}]`, ab, [][]string{{"a"}, {"b"}}},
		{`{"dimensions":["a"],"groupings":["a"],"metrics":["a"],"items":["z"]}`, []string{"a"}, [][]string{{"a"}}},
		{`{"items":[{"name":"a"},{"name":"b"}]}`, ab, [][]string{{"a"}, {"b"}}},
		{`[]`, []string{}, [][]string{}},
		{`[["a","b"],["c"]]`, nil, abc},
		{`[[{"name":"a"},{"name":"b"}],[{"name":"c"}]]`, nil, abc},
		{`["a,b","c"]`, nil, abc},
		{`[["a"],["b"]]`, ab, [][]string{{"a"}, {"b"}}},
		// A page that is all, and pages of which there are others.
		{`{"items":["a"],"total":1,"page_count":1,"page_index":1,"has_more":false,"next_uri":null}`, []string{"a"}, [][]string{{"a"}}},
		{`{"items":["a"],"page_count":3,"page_index":1}`, nil, nil},
		{`{"items":["a"],"total":25}`, nil, nil},
		{`{"items":["a"],"has_more":true,"next_uri":5}`, nil, nil},
		{`{"items":["a"],"has_more":"true"}`, nil, nil},
		{`{"items":["a"],"next_uri":5}`, nil, nil},
		// Network lists.
		{`{"items":[{"id":"l","name":"block","uri":"/config/networklists/l"}]}`, nil, nil},
		{`{"items":[{"id":"l","name":"block","deprecated":false}]}`, nil, nil},
		{`{"dimensions":["a"],"dimensions":["b"],"groupings":["a"],"metrics":["a"]}`, nil, nil},
		{`[[["a"]]]`, nil, nil},
		{`null`, nil, nil},
		{`7`, nil, nil},
		{`[1,2]`, nil, nil},
		{`["a",null]`, nil, nil},
		{`[{"id":"a"}]`, nil, nil},
		{`{"names":["a"]}`, nil, nil},
	} {
		check := func(isRead bool, err error) {
			if isRead {
				require.NoError(t, err, tt.body)
				return
			}
			var e *webdelivery.Error
			require.ErrorAs(t, err, &e, tt.body)
			require.ErrorIs(t, err, webdelivery.ErrBadResponse)
			assert.Equal(t, tt.body, string(e.Body))
			assert.NotContains(t, err.Error(), "EOF", "the body is complete")
		}
		stats := fixture.Always(t, []byte(tt.body)).Stats
		names, err := stats.Events.Dimensions(t.Context())
		check(tt.names != nil, err)
		assert.Equal(t, tt.names, names)
		names, err = stats.RequestTrends.Metrics(t.Context())
		check(tt.names != nil, err)
		assert.Equal(t, tt.names, names)
		groupings, err := stats.WAFTopK(webdelivery.WAFByCountry).Groupings(t.Context())
		check(tt.groupings != nil, err)
		assert.Equal(t, tt.groupings, groupings)
	}
}

// HEAD on the base path has the parameters of the query, and returns headers and no body (section 4.3). Head removes
// cookies from the headers.
func TestHead(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Method: http.MethodHead, Status: 200, Header: http.Header{"X-Total": {"7"}, "Set-Cookie": {"authtoken=x"}}})
		h, err := f.Client.Stats.RequestTrends.Head(f.Context(), trends())
		require.NoError(f, err)
		assert.Equal(f, "7", h.Get("X-Total"))
		assert.Empty(f, h.Values("Set-Cookie"))
		assert.Equal(f, 1, f.Srv.Count(http.MethodHead, "/stats/security/request/trends"))
		assert.Contains(f, f.Srv.Requests()[0].RawQuery, "endtime=")
	})
}

// rowsOf returns a result of rows with one value, of which so many match.
func rowsOf(rows int, total int64) string {
	return fmt.Sprintf(`{"columns":[{"name":"a"}],"rows":[%s],"total_results":%d}`, strings.TrimSuffix(strings.Repeat("[1],", rows), ","), total)
}

// All requests one row to get total_results, then as many rows and some more. The second response must have as
// many as the first one announced, and may have more, because rows may be added in between.
func TestAll(t *testing.T) {
	t.Parallel()
	type incomplete = webdelivery.IncompleteError
	for _, tt := range []struct {
		name, first, second string
		rows                int
		limit               string // of the second request
		want                *incomplete
	}{
		{"all of them", rowsOf(1, 3), rowsOf(3, 3), 3, "1003", nil},
		{"none", rowsOf(0, 0), "", 0, "", nil},
		{"one", rowsOf(1, 1), rowsOf(1, 1), 1, "1001", nil},
		{"more were added", rowsOf(1, 2), rowsOf(1001, 1001), 1001, "1002", nil},
		{"more were added than the limit", rowsOf(1, 2), rowsOf(1002, 1300), 1002, "1002", &incomplete{Got: 1002, Total: 1300}},
		{"as many as the limit", rowsOf(1, 2), rowsOf(1002, 1002), 1002, "1002", &incomplete{Got: 1002, Total: 1002}},
		{"as many as the limit, and a total that is too small", rowsOf(1, 2), rowsOf(1002, 5), 1002, "1002", &incomplete{Got: 1002, Total: 5}},
		{"a limit that the service ignores", rowsOf(1, 2), rowsOf(1003, 1003), 1003, "1002", nil},
		{"fewer arrive", rowsOf(1, 3), rowsOf(2, 3), 2, "1003", &incomplete{Got: 2, Total: 3}},
		{"a replica that lags has fewer", rowsOf(1, 3), rowsOf(2, 2), 2, "1003", &incomplete{Got: 2, Total: 3}},
		{"a replica that lags has none", rowsOf(1, 3), rowsOf(0, 0), 0, "1003", &incomplete{Got: 0, Total: 3}},
		{"a replica that lags, and fewer arrive", rowsOf(1, 5), rowsOf(2, 4), 2, "1005", &incomplete{Got: 2, Total: 4}},
		{"the first is incomplete", rowsOf(0, 3), rowsOf(3, 3), 3, "1003", nil},
		{"100,000", rowsOf(1, 100_000), rowsOf(1, 1), 1, "101000", &incomplete{Got: 1, Total: 100_000}},
		{"1 % more", rowsOf(1, 1_000_000), rowsOf(1, 1), 1, "1010000", &incomplete{Got: 1, Total: 1_000_000}},
		{"the largest total", rowsOf(1, math.MaxInt64), rowsOf(1, 1), 1, "9223372036854775807", &incomplete{Got: 1, Total: math.MaxInt64}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				fixture.AnswerWith(f, fixture.EventsData, tt.first, tt.second)
				rows, err := collect(f.Client.Stats.Events.All(f.Context(), fixture.ADay))
				assert.Len(f, rows, tt.rows)
				assert.Equal(f, strings.Fields("1 "+tt.limit), limitsOf(f))
				got, _ := errors.AsType[*incomplete](err)
				require.Equal(f, tt.want, got)
				switch {
				case tt.want == nil:
					require.NoError(f, err)
				case got.Got < got.Total:
					assert.Regexp(f, fmt.Sprintf(`^webdelivery: %d rows? arrived, and %d match$`, got.Got, got.Total), err)
				default:
					assert.EqualError(f, err, fmt.Sprintf("webdelivery: %d rows arrived, as many as requested, so more than %d may match", got.Got, got.Total))
				}
			})
		})
	}
}

// limitsOf returns the limits of all requests.
func limitsOf(f *fixture.Fixture) (limits []string) {
	for _, r := range f.Srv.Requests() {
		values, err := url.ParseQuery(r.RawQuery)
		require.NoError(f, err)
		limits = append(limits, values.Get("limit"))
	}
	return limits
}

// A top-K has at most K rows (section 8). All of one with a limit requests as many at most. If that many arrive, they are
// complete.
func TestAllOfATopK(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		first      int64
		rows       int
		total      int64
		incomplete bool
	}{{5, 5, 5, false}, {5, 7, 7, false}, {5, 1000, 1200, false}, {5000, 1000, 5000, false}, {5000, 999, 5000, true}, {5000, 1000, 1000, false}} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			fixture.AnswerWith(f, "/stats/security/trafficshaping/topk/country/data", rowsOf(1, tt.first), rowsOf(tt.rows, tt.total))
			q := webdelivery.TopKQuery{Start: spanStart, End: spanEnd}
			got, err := collect(f.Client.Stats.TrafficShapingTopK(webdelivery.TrafficShapingByCountry).All(f.Context(), q))
			assert.Len(f, got, tt.rows)
			assert.Equal(f, []string{"1", "1000"}, limitsOf(f))
			assertIncomplete(f.T, tt.incomplete, tt.rows, tt.total, err)
		})
	}
	for _, tt := range []struct {
		rows       int
		total      int64
		incomplete bool
	}{{20, 5000, false}, {19, 5000, true}, {7, 7, false}} {
		family := fixture.Always(t, []byte(rowsOf(tt.rows, tt.total))).Stats.WAFTopK(webdelivery.WAFByBrowser)
		_, err := family.Query(t.Context(), webdelivery.TopKQuery{Start: spanStart, End: spanEnd})
		assertIncomplete(t, tt.incomplete, tt.rows, tt.total, err)
		_, err = collect(family.All(t.Context(), webdelivery.TopKQuery{Start: spanStart, End: spanEnd}))
		assertIncomplete(t, tt.incomplete, tt.rows, tt.total, err)
	}
}

// assertIncomplete checks that a result is incomplete, or is not.
func assertIncomplete(t *testing.T, want bool, rows int, total int64, err error) {
	t.Helper()
	if !want {
		require.NoError(t, err)
		return
	}
	var incomplete *webdelivery.IncompleteError
	require.ErrorAs(t, err, &incomplete)
	assert.Equal(t, webdelivery.IncompleteError{Got: int64(rows), Total: total}, *incomplete)
}

// All reads a whole time range to which 50 events per second are added, however late the service records them. Each
// call returns the rows that existed when its second request arrived. A response takes up to 3 s.
func TestAllOnALiveSpan(t *testing.T) {
	t.Parallel()
	const calls = 30
	for _, delay := range []time.Duration{0, time.Second, 5 * time.Second, 30 * time.Second} {
		t.Run(delay.String(), func(t *testing.T) {
			t.Parallel()
			s := fixture.Setup{Server: testserver.Config{EventsPerSecond: 50, EventSeed: 7, RecordingDelay: delay}}
			fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
				grown := 0
				f.AddFault(testserver.Fault{Path: fixture.EventsData, Delay: 1500 * time.Millisecond})
				for i := range calls {
					time.Sleep(time.Duration(i%17) * 397 * time.Millisecond)
					q := webdelivery.EventsQuery{
						Dimensions: []string{webdelivery.DimClientIP}, Start: time.Now().Add(-delay - 5*time.Second), End: time.Now().Add(time.Duration(1+i%3) * time.Second),
					}
					before := f.Srv.EventCount(q.Start.Truncate(time.Second), q.End.Truncate(time.Second))
					rows, err := collect(f.Client.Stats.Events.All(f.Context(), q))
					require.NoError(f, err, "call %d", i)
					requests := f.Srv.Requests()
					recorded := requests[len(requests)-1].Time.Add(1500*time.Millisecond - delay + time.Millisecond)
					if end := q.End.Truncate(time.Second); end.Before(recorded) {
						recorded = end
					}
					want := f.Srv.EventCount(q.Start.Truncate(time.Second), recorded)
					require.Len(f, rows, want, "call %d", i)
					if want > before {
						grown++
					}
				}
				assert.Greater(f, grown, calls*9/10, "rows were added in nearly every call")
			})
		})
	}
}

// withEvents runs a test with the events that the fake generates: about 2,500.
func withEvents(t *testing.T, seed uint64, test func(f *fixture.Fixture, all []webdelivery.Row)) {
	t.Helper()
	fixture.InFakeTime(t, fixture.Setup{Server: testserver.Config{EventsPerSecond: 0.01, EventSeed: seed}}, func(f *fixture.Fixture) {
		all := records(f, nil)
		require.Greater(f, len(all), 1000)
		test(f, all)
	})
}

// filterDimensions are the dimensions of the events of a test. Each may be null.
var filterDimensions = []string{"client_country_code", "client_asn", "client_browser", "event_type", "event_action", "rule_id"}

// whole returns the time range in which raw events exist when the bubble's clock is at its start.
func whole() (start, end time.Time) {
	now := time.Now()
	return webdelivery.EventsRetention(now), now
}

func records(f *fixture.Fixture, filter filters.Expr) []webdelivery.Row {
	f.Helper()
	start, end := whole()
	all, err := webdelivery.Collect(f.Client.Stats.Events.All(f.Context(), webdelivery.EventsQuery{
		Dimensions: filterDimensions, Start: start, End: end, Filter: filter, SortBy: []string{webdelivery.DimEventTimestamp},
	}))
	require.NoError(f, err)
	return all
}

// condition is a random comparison with a value that occurs, or with one that needs escapes.
func condition(all []webdelivery.Row, r *rand.Rand) filters.Filter {
	dimension := filterDimensions[r.IntN(len(filterDimensions))]
	value, _ := all[r.IntN(len(all))].Get(dimension)
	text := value.String()
	if value.IsNull() {
		text = "a,b;c"
	}
	if r.IntN(2) == 0 {
		return filters.Eq(dimension, text)
	}
	return filters.Ne(dimension, text)
}

func holds(f filters.Filter, row webdelivery.Row) bool {
	value, _ := row.Get(f.Dimension)
	return (!value.IsNull() && value.String() == f.Value) == (f.Operator == filters.Equal)
}

// A AND B and A OR B match exactly the events for which they are true, each once, in order of time. The events are
// counted by hand.
func TestFiltersGiveWhatTheySay(t *testing.T) {
	t.Parallel()
	withEvents(t, 1, func(f *fixture.Fixture, all []webdelivery.Row) {
		start, end := whole()
		assert.Len(f, all, f.Srv.EventCount(start, end))
		r := rand.New(rand.NewPCG(1, 1))
		for range 10 {
			conditions := []filters.Filter{condition(all, r), condition(all, r), condition(all, r)}[:1+r.IntN(3)]
			var both, either []webdelivery.Row
			for _, event := range all {
				n := 0
				for _, c := range conditions {
					if holds(c, event) {
						n++
					}
				}
				if n == len(conditions) {
					both = append(both, event)
				}
				if n > 0 {
					either = append(either, event)
				}
			}
			require.Equal(f, fmt.Sprint(both), fmt.Sprint(records(f, filters.And(conditions...))), "%v", conditions)
			require.Equal(f, fmt.Sprint(either), fmt.Sprint(records(f, filters.Or(conditions...))), "%v", conditions)
		}
	})
}

// The service has every dimension that the SDK names. The echoed query has the supplied filter and the customer's in
// separate fields.
func TestEventsOfTheService(t *testing.T) {
	t.Parallel()
	withEvents(t, 6, func(f *fixture.Fixture, _ []webdelivery.Row) {
		dimensions, err := f.Client.Stats.Events.Dimensions(f.Context())
		require.NoError(f, err)
		assert.Subset(f, dimensions, []string{
			webdelivery.DimEventTimestamp, webdelivery.DimEventSeverity, webdelivery.DimEventType, webdelivery.DimEventAction,
			webdelivery.DimClientConnectionRemoteIP, webdelivery.DimClientIP, webdelivery.DimClientBrowser,
			webdelivery.DimClientCountryCode, webdelivery.DimClientASN, webdelivery.DimRuleID, webdelivery.DimDomain,
			webdelivery.DimProperty, webdelivery.DimWAFAction,
		})
		start, end := whole()
		or := filters.Or(filters.Eq("client_country_code", "CN"), filters.Eq("client_country_code", "DE"))
		result, err := f.Client.Stats.Events.Query(f.Context(), webdelivery.EventsQuery{
			Dimensions: []string{"client_ip"}, Start: start, End: end, Filter: or, Limit: 3,
		})
		require.NoError(f, err)
		assert.Equal(f, []string{"event_timestamp_ms", "client_ip"}, result.Columns)
	})
}

// However the service writes its lists, totals and results without rows, and orders its members, the client reads the same
// (open points 14, 30 and 50).
func TestStatisticsInEveryDialect(t *testing.T) {
	t.Parallel()
	for _, d := range []testserver.Dialect{
		{MemberOrder: "rows-first"},
		{MemberOrder: "total-first"},
		{Names: "objects"},
		{Names: "member"},
		{Names: "items"},
		{NoRows: "null"},
		{Total: "float"},
		{NoRows: "null", Total: "float", MemberOrder: "rows-first"},
	} {
		t.Run(fmt.Sprint(d), func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{Server: testserver.Config{EventsPerSecond: 0.001, EventSeed: 7, Dialect: d}}, func(f *fixture.Fixture) {
				start, end := whole()
				query := webdelivery.EventsQuery{Dimensions: []string{"event_type"}, Start: start, End: end}
				for filter, want := range map[string]int{"": f.Srv.EventCount(start, end), "none": 0} {
					if filter != "" {
						query.Filter = filters.Eq("event_type", filter)
					}
					rows, err := collect(f.Client.Stats.Events.All(f.Context(), query))
					require.NoError(f, err)
					assert.Len(f, rows, want)
					rows, err = collect(f.Client.Stats.NewExport(query, webdelivery.Cursor{}, webdelivery.ExportOptions{}).All(f.Context()))
					require.NoError(f, err)
					assert.Len(f, rows, want)
					result, err := f.Client.Stats.Events.Query(f.Context(), query)
					require.NoError(f, err)
					assert.Equal(f, int64(want), result.TotalResults)
					query.Filter = nil
				}
				groupings, err := f.Client.Stats.WAFTrends.Groupings(f.Context())
				require.NoError(f, err)
				assert.NotEmpty(f, groupings)
				metrics, err := f.Client.Stats.WAFTrends.Metrics(f.Context())
				require.NoError(f, err)
				assert.Equal(f, []string{"hits"}, metrics)
			})
		})
	}
}

// inLog runs a test with a client that logs into a text, at Warn.
func inLog(t *testing.T, test func(f *fixture.Fixture, log func() string)) {
	t.Helper()
	var b bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := fixture.Setup{Options: []webdelivery.Option{webdelivery.WithLogger(logger)}}
	s.Server.EventsPerSecond = operations.EventRate
	fixture.InFakeTime(t, s, func(f *fixture.Fixture) {
		test(f, func() string {
			defer b.Reset()
			return b.String()
		})
	})
}

// Section 6: raw events exist for three days and today. Section 8: 5-minute data exists for a week, hourly data for a
// month, daily data forever. The client sends a query for more, and logs one warning.
func TestQueriesBeyondTheRetention(t *testing.T) {
	t.Parallel()
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of a bubble
	const day, events, hits = "does not begin and end with a day in UTC", "raw events are kept for three days and today", "is kept for a "
	for _, tt := range []struct {
		start       time.Time
		granularity webdelivery.Granularity // of trends; "" for raw events
		want        string
	}{
		{now.AddDate(0, 0, -10), "", events},
		{now.AddDate(0, 0, -3), "", ""},
		{now.AddDate(0, -1, 0), webdelivery.Granularity5Minute, hits + "week; hits before that may be missing, so use granularity hour"},
		{now.AddDate(0, 0, -6), webdelivery.Granularity5Minute, ""},
		{now.AddDate(0, -2, 0), webdelivery.GranularityHour, hits + "month; hits before that may be missing, so use granularity day"},
		{now.AddDate(0, 0, -8), webdelivery.GranularityHour, ""},
		{now.AddDate(-1, 0, 0), webdelivery.GranularityDay, ""},
		{now.AddDate(0, 0, -7).Add(-time.Hour), webdelivery.GranularityDay, day},
	} {
		inLog(t, func(f *fixture.Fixture, log func() string) {
			check := func(call string, warnings []string, err error) {
				f.Helper()
				require.NoError(f, err, call)
				logged := log()
				if tt.want == "" {
					assert.Empty(f, warnings, call)
					assert.Empty(f, logged, call)
					return
				}
				require.Len(f, warnings, 1, call)
				assert.Contains(f, warnings[0], tt.start.Format("2006-01-02T15:04:05"), call)
				assert.Contains(f, warnings[0], tt.want, call)
				assert.Equal(f, 1, strings.Count(logged, "webdelivery: statistics"), "%s: %s", call, logged)
				assert.Contains(f, logged, tt.want, call)
				assert.Contains(f, logged, "method=GET path=/acme/v1/stats/security/", call)
			}
			stats, dimensions := f.Client.Stats, []string{webdelivery.DimClientCountryCode}
			if tt.granularity == "" {
				query := webdelivery.EventsQuery{Dimensions: dimensions, Start: tt.start, End: now}
				_, err := stats.Events.Query(f.Context(), query)
				check("Query", stats.Events.Warnings(query), err)
				export := stats.NewExport(query, webdelivery.Cursor{}, webdelivery.ExportOptions{})
				_, err1 := collect(export.All(f.Context()))
				_, err2 := collect(export.All(f.Context()))
				check("Export", stats.Events.Warnings(query), errors.Join(err1, err2))
				return
			}
			if tt.granularity == webdelivery.GranularityDay {
				dimensions = append(dimensions, webdelivery.DimEventTimestamp)
			}
			query := webdelivery.TrendsQuery{Dimensions: dimensions, Start: tt.start, End: now, Granularity: tt.granularity, Limit: 100}
			_, err := stats.WAFTrends.Query(f.Context(), query)
			check("Query", stats.WAFTrends.Warnings(query), err)
			_, err = collect(stats.WAFTrends.All(f.Context(), query))
			check("All", stats.WAFTrends.Warnings(query), err)
		})
	}
}

// A trend without a Limit is logged if it is cut. A top-K is cut on purpose, and so is a query with a Limit.
func TestTrendsCutBySilence(t *testing.T) {
	t.Parallel()
	inLog(t, func(f *fixture.Fixture, log func() string) {
		end := time.Now()
		start := end.Add(-12 * time.Hour)
		countries := webdelivery.TrendsQuery{
			Dimensions: []string{webdelivery.DimClientCountryCode}, Start: start, End: end, Granularity: webdelivery.Granularity5Minute,
		}
		result, err := f.Client.Stats.WAFTrends.Query(f.Context(), countries)
		require.NoError(f, err)
		require.True(f, result.Truncated())
		assert.Contains(f, log(), fmt.Sprintf("the response has 10 of %d rows, because the query has no Limit", result.TotalResults))
		countries.Limit = 3
		_, err = f.Client.Stats.WAFTrends.Query(f.Context(), countries)
		require.NoError(f, err)
		_, err = f.Client.Stats.TrafficShapingTopK(webdelivery.TrafficShapingByCountry).Query(f.Context(), webdelivery.TopKQuery{
			Dimensions: countries.Dimensions, Start: start, End: end,
		})
		require.NoError(f, err)
		assert.Empty(f, log())
	})
}
