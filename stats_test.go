package webdelivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
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
	ask := func(ctx context.Context, s *webdelivery.StatsService, family, category string, dimensions ...string) error {
		of := s.WAFTopK(webdelivery.WAFCategory(category))
		if family == "trafficshaping" {
			of = s.TrafficShapingTopK(webdelivery.TrafficShapingCategory(category))
		}
		q := webdelivery.TopKQuery{Dimensions: dimensions, Start: spanStart, End: spanEnd}
		_, err1 := of.Query(ctx, q)
		_, err2 := collect(of.All(ctx, q))
		return errors.Join(err1, err2)
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
			f.AddFault(testserver.Fault{Status: 200, Body: resultOf([]string{"a"})})
			switch err := ask(f.Context(), f.Client.Stats, tt.family, tt.category); tt.dimension {
			case unknown:
				refusedAs(f.T, "category", err, tt.category)
				return
			case undocumented:
				refusedAs(f.T, "dimensions", err, tt.category)
				require.ErrorContains(f, err, "must be set, because the dimension of this category is not documented; ask Dimensions for the names")
				assert.Empty(f, f.Srv.Requests())
				require.NoError(f, ask(f.Context(), f.Client.Stats, tt.family, tt.category, "a"))
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
		{`[]`, []string{}, [][]string{}},
		{`[["a","b"],["c"]]`, nil, abc},
		{`[[{"name":"a"},{"name":"b"}],[{"name":"c"}]]`, nil, abc},
		{`["a,b","c"]`, nil, abc},
		{`[["a"],["b"]]`, ab, [][]string{{"a"}, {"b"}}},
		// A page that is all, and pages of which there are others.
		{`{"items":["a"],"total":1,"page_count":1,"page_index":1,"has_more":false,"next_uri":null}`, []string{"a"}, [][]string{{"a"}}},
		{`{"items":["a"],"page_count":3,"page_index":1}`, nil, nil},
		{`{"items":["a"],"total":2}`, nil, nil},
		{`{"items":["a"],"has_more":true,"next_uri":5}`, nil, nil},
		{`{"items":["a"],"next_uri":5}`, nil, nil},
		// Network lists.
		{`{"items":[{"id":"l","name":"block","uri":"/config/networklists/l"}]}`, nil, nil},
		{`{"dimensions":["a"],"dimensions":["b"],"groupings":["a"],"metrics":["a"]}`, nil, nil},
		{`[[["a"]]]`, nil, nil},
		{`null`, nil, nil},
		{`[1,2]`, nil, nil},
		{`["a",null]`, nil, nil},
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

// HEAD on the base path has the parameters of the query, is a read like any other, and returns headers and no body (section
// 4.3). Head removes cookies from the headers.
func TestHead(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 503, Count: 1})
		f.AddFault(testserver.Fault{Status: 200, Count: 1, Header: http.Header{"X-Total": {"7"}, "Set-Cookie": {"authtoken=x"}}})
		h, err := f.Client.Stats.RequestTrends.Head(f.Context(), trends())
		require.NoError(f, err)
		assert.Equal(f, "7", h.Get("X-Total"))
		assert.Empty(f, h.Values("Set-Cookie"))
		assert.Equal(f, 2, f.Srv.Count(http.MethodHead, "/stats/security/request/trends"))
		assert.Contains(f, f.Srv.Requests()[0].RawQuery, "endtime=")

		f.AddFault(testserver.Fault{Status: 503})
		_, err = f.Client.Stats.RequestTrends.Head(f.Context(), trends())
		assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
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
		{"as many as a limit of the service's own", rowsOf(1, 2), `{"query":{"limit":2},` + rowsOf(2, 2)[1:], 2, "1002", &incomplete{Got: 2, Total: 2}},
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

// A response has all matching rows up to the limit, 10 by default, and up to the size of a top-K: 20 for the WAF, which has
// no limit parameter, and 1,000 for traffic shaping (section 8). Fewer are incomplete; the call returns them all the same.
func TestCompleteResponses(t *testing.T) {
	t.Parallel()
	const events, waf, shaping = "events", "WAF", "traffic shaping"
	for _, tt := range []struct {
		family      string
		limit, rows int
		total       int64
		missing     bool
	}{
		{events, 0, 0, 0, false},
		{events, 0, 9, 9, false},
		{events, 0, 8, 9, true},
		{events, 0, 10, 11, false},
		{events, 0, 9, 11, true},
		{events, 11, 11, 11, false},
		{events, 11, 11, 50, false},
		{events, 11, 10, 50, true},
		{events, 50, 12, 11, false}, // more than the total says
		{events, 500, 98, 99, true},
		{events, 1, 3, 3, false}, // more than the limit
		{waf, 0, 20, 500, false},
		{waf, 0, 19, 500, true},
		{waf, 0, 11, 12, true},
		{shaping, 0, 10, 500, false},
		{shaping, 3000, 1000, 5000, false},
		{shaping, 3000, 999, 5000, true},
	} {
		stats := fixture.Always(t, []byte(rowsOf(tt.rows, tt.total))).Stats
		q := webdelivery.TopKQuery{Dimensions: []string{"a"}, Start: spanStart, End: spanEnd, Limit: tt.limit}
		var result *webdelivery.Result
		var err error
		switch tt.family {
		case events:
			result, err = stats.Events.Query(t.Context(), webdelivery.EventsQuery(q))
			if tt.limit > 0 {
				all, err := collect(stats.Events.All(t.Context(), webdelivery.EventsQuery(q)))
				assert.Len(t, all, tt.rows)
				assertIncomplete(t, tt.missing, tt.rows, tt.total, err)
			}
		case waf:
			result, err = stats.WAFTopK(webdelivery.WAFByBrowser).Query(t.Context(), q)
		default:
			result, err = stats.TrafficShapingTopK(webdelivery.TrafficShapingByBrowser).Query(t.Context(), q)
		}
		assertIncomplete(t, tt.missing, tt.rows, tt.total, err)
		assert.Len(t, result.Rows, tt.rows)
		assert.Equal(t, tt.total > int64(tt.rows), result.Truncated())
	}
}

// assertIncomplete checks that a result is incomplete, or is not.
func assertIncomplete(t *testing.T, want bool, rows int, total int64, err error) {
	t.Helper()
	if !want {
		require.NoError(t, err, "%d of %d", rows, total)
		return
	}
	var incomplete *webdelivery.IncompleteError
	require.ErrorAs(t, err, &incomplete, "%d of %d", rows, total)
	assert.Equal(t, webdelivery.IncompleteError{Got: int64(rows), Total: total}, *incomplete)
}

// All of a top-K with a limit requests as many rows as a top-K has at most. If that many arrive, they are complete.
func TestAllOfATopK(t *testing.T) {
	t.Parallel()
	q := webdelivery.TopKQuery{Start: spanStart, End: spanEnd}
	for _, tt := range []struct {
		first      int64
		rows       int
		total      int64
		incomplete bool
	}{{5, 7, 7, false}, {5, 1000, 1200, false}, {5000, 1000, 5000, false}, {5000, 999, 5000, true}, {5000, 1000, 1000, false}} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			fixture.AnswerWith(f, "/stats/security/trafficshaping/topk/country/data", rowsOf(1, tt.first), rowsOf(tt.rows, tt.total))
			got, err := collect(f.Client.Stats.TrafficShapingTopK(webdelivery.TrafficShapingByCountry).All(f.Context(), q))
			assert.Len(f, got, tt.rows)
			assert.Equal(f, []string{"1", "1000"}, limitsOf(f))
			assertIncomplete(f.T, tt.incomplete, tt.rows, tt.total, err)
		})
	}
	for rows, incomplete := range map[int]bool{20: false, 19: true} {
		_, err := collect(fixture.Always(t, []byte(rowsOf(rows, 5000))).Stats.WAFTopK(webdelivery.WAFByBrowser).All(t.Context(), q))
		assertIncomplete(t, incomplete, rows, 5000, err)
	}
}

// A stream fails when the service sends nothing for the time of WithIdleTimeout, by default a minute. While bytes arrive,
// it has no time limit. A reader may take any time for a row.
func TestIdleStreams(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		service, reader time.Duration // that each takes for a row
		options         []webdelivery.Option
		says            string // "": it does not fail
	}{
		{0, time.Hour, nil, ""},
		{59 * time.Second, 0, nil, ""},
		{61 * time.Second, 0, nil, "nothing arrived for 1m0s"},
		{3 * time.Second, 0, []webdelivery.Option{webdelivery.WithIdleTimeout(2 * time.Second)}, "nothing arrived for 2s"},
	} {
		fixture.InFakeTime(t, fixture.Setup{Options: tt.options}, func(f *fixture.Fixture) {
			f.AddFault(testserver.Fault{Path: fixture.EventsData, Handler: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"columns":[{"name":"a"}],"rows":[[0]`)
				for range 3 {
					_ = http.NewResponseController(w).Flush()
					select {
					case <-time.After(tt.service):
					case <-r.Context().Done():
						return
					}
					_, _ = io.WriteString(w, `,["`+strings.Repeat("x", 64<<10)+`"]`) // more than any buffer holds
				}
				_, _ = io.WriteString(w, `],"total_results":4}`)
			}})
			n := 0
			var failed error
			for _, err := range f.Client.Stats.Events.All(f.Context(), fixture.FirstRows) {
				if failed = err; err == nil {
					n++
					time.Sleep(tt.reader)
				}
			}
			if tt.says != "" {
				require.ErrorIs(f, failed, os.ErrDeadlineExceeded)
				require.ErrorContains(f, failed, tt.says)
				require.NotErrorIs(f, failed, webdelivery.ErrBadResponse)
				assert.Equal(f, 1, n)
				return
			}
			require.NoError(f, failed)
			assert.Equal(f, 4, n)
		})
	}
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

// The service has every dimension that the SDK names.
func TestEventsOfTheService(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		dimensions, err := f.Client.Stats.Events.Dimensions(f.Context())
		require.NoError(f, err)
		assert.Subset(f, dimensions, []string{
			webdelivery.DimEventTimestamp, webdelivery.DimEventSeverity, webdelivery.DimEventType, webdelivery.DimEventAction,
			webdelivery.DimClientConnectionRemoteIP, webdelivery.DimClientIP, webdelivery.DimClientBrowser,
			webdelivery.DimClientCountryCode, webdelivery.DimClientASN, webdelivery.DimRuleID, webdelivery.DimDomain,
			webdelivery.DimProperty, webdelivery.DimWAFAction,
		})
	})
}

// However the service writes its lists, totals and results without rows, and orders its members, the client reads the same
// (open points 14, 30 and 50).
func TestStatisticsInEveryDialect(t *testing.T) {
	t.Parallel()
	for _, d := range []testserver.Dialect{
		{Names: "objects", MemberOrder: "rows-first"},
		{Names: "member", MemberOrder: "total-first"},
		{Names: "items", NoRows: "null", Total: "float", MemberOrder: "rows-first"},
		{NoRows: "null"},
		{Total: "float"},
	} {
		fixture.InFakeTime(t, fixture.Setup{Server: testserver.Config{EventsPerSecond: 0.001, EventSeed: 7, Dialect: d}}, func(f *fixture.Fixture) {
			stats, now := f.Client.Stats, time.Now()
			query := webdelivery.EventsQuery{Dimensions: []string{"event_type"}, Start: webdelivery.EventsRetention(now), End: now}
			for _, want := range []int{f.Srv.EventCount(query.Start, query.End), 0} {
				rows, err := collect(stats.Events.All(f.Context(), query))
				require.NoError(f, err, "%+v", d)
				assert.Len(f, rows, want)
				rows, err = collect(stats.NewExport(query, webdelivery.Cursor{}, webdelivery.ExportOptions{}).All(f.Context()))
				require.NoError(f, err, "%+v", d)
				assert.Len(f, rows, want)
				result, err := stats.Events.Query(f.Context(), query)
				require.NoError(f, err, "%+v", d)
				assert.Equal(f, int64(want), result.TotalResults)
				query.Filter = filters.Eq("event_type", "none")
			}
			groupings, err := stats.WAFTrends.Groupings(f.Context())
			require.NoError(f, err, "%+v", d)
			assert.NotEmpty(f, groupings)
			metrics, err := stats.WAFTrends.Metrics(f.Context())
			require.NoError(f, err, "%+v", d)
			assert.Equal(f, []string{"hits"}, metrics)
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
// month, daily data forever. The clocks may differ by five minutes. The last bucket of a day that is not over is cut anyway.
func TestQueriesBeyondTheRetention(t *testing.T) {
	t.Parallel()
	now := time.Date(2000, 1, 9, 6, 0, 0, 0, time.UTC)
	today := now.Truncate(24 * time.Hour)
	const cut, events, hits = "does not begin and end with a day in UTC", "raw events are kept for three days and today", "is kept for a "
	inLog(t, func(f *fixture.Fixture, log func() string) {
		time.Sleep(time.Until(now))
		stats := f.Client.Stats
		oldEvents := webdelivery.EventsQuery{Dimensions: []string{webdelivery.DimClientIP}, Start: now.AddDate(0, 0, -10), End: now}
		oldTrend := webdelivery.TrendsQuery{
			Dimensions: []string{webdelivery.DimEventTimestamp}, Start: now.AddDate(0, -2, 0), End: now, Granularity: webdelivery.GranularityHour, Limit: 100,
		}
		for _, tt := range []struct {
			start, end  time.Time
			granularity webdelivery.Granularity // of trends; "" for raw events
			want        string
		}{
			{oldEvents.Start, now, "", events},
			{today.AddDate(0, 0, -3), now, "", ""},
			{today.AddDate(0, 0, -3).Add(-5 * time.Minute), now, "", ""},
			{today.AddDate(0, 0, -3).Add(-5*time.Minute - time.Second), now, "", events},
			{now.AddDate(0, -1, 0), now, webdelivery.Granularity5Minute, hits + "week; hits before that may be missing, so use granularity hour"},
			{now.AddDate(0, 0, -7), now, webdelivery.Granularity5Minute, ""},
			{oldTrend.Start, now, webdelivery.GranularityHour, hits + "month; hits before that may be missing, so use granularity day"},
			{now.AddDate(0, -1, 0).Add(-5 * time.Minute), now, webdelivery.GranularityHour, ""},
			{now.AddDate(0, -1, 0).Add(-5*time.Minute - time.Second), now, webdelivery.GranularityHour, hits + "month; "},
			{today.AddDate(-1, 0, 0), now, webdelivery.GranularityDay, ""},
			{today.AddDate(0, 0, -7).Add(-time.Hour), now, webdelivery.GranularityDay, cut},
			{today.AddDate(0, 0, -7), today.Add(-time.Hour), webdelivery.GranularityDay, cut},
		} {
			q := oldEvents
			q.Start, q.End = tt.start, tt.end
			warnings := stats.Events.Warnings(q)
			if tt.granularity != "" {
				trend := oldTrend
				trend.Start, trend.End, trend.Granularity = tt.start, tt.end, tt.granularity
				warnings = stats.WAFTrends.Warnings(trend)
			}
			if tt.want == "" {
				assert.Empty(f, warnings, "%+v", tt)
				continue
			}
			require.Len(f, warnings, 1, "%+v", tt)
			assert.Contains(f, warnings[0], tt.start.Format("2006-01-02T15:04:05"))
			assert.Contains(f, warnings[0], tt.want)
		}
		// The client sends such a query, and logs one warning.
		export := stats.NewExport(oldEvents, webdelivery.Cursor{}, webdelivery.ExportOptions{})
		for call, err := range map[string]func() error{
			"events/ Query": func() error { _, err := stats.Events.Query(f.Context(), oldEvents); return err },
			"events/ Export": func() error {
				_, err1 := collect(export.All(f.Context()))
				_, err2 := collect(export.All(f.Context()))
				return errors.Join(err1, err2)
			},
			"waf/trends/ Query": func() error { _, err := stats.WAFTrends.Query(f.Context(), oldTrend); return err },
			"waf/trends/ All":   func() error { _, err := collect(stats.WAFTrends.All(f.Context(), oldTrend)); return err },
		} {
			require.NoError(f, err(), call)
			logged := log()
			assert.Equal(f, 1, strings.Count(logged, "webdelivery: statistics"), "%s: %s", call, logged)
			path, _, _ := strings.Cut(call, " ")
			assert.Contains(f, logged, "method=GET path=/acme/v1/stats/security/"+path, call)
		}
	})
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
