package webdelivery_test

import (
	"context"
	"fmt"
	"math"
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
		Dimensions: []string{webdelivery.DimClientCountryCode}, Metrics: []string{webdelivery.MetricHits},
		Start: spanStart, End: spanEnd, Granularity: webdelivery.GranularityHour,
	}
}

// Each family has its path and sends only the parameters that it supports (section 4.3), with times in UTC without a
// designator (section 4.2).
func TestWhatAQuerySends(t *testing.T) {
	t.Parallel()
	and := filters.And(filters.Eq("client_country_code", "CN"), filters.Ne("client_browser", "a,b"))
	full := trends()
	full.Filter, full.Limit = and, 500
	full.SortBy = []webdelivery.Sort{webdelivery.Desc("hits"), webdelivery.Asc("client_country_code")}
	open := trends()
	open.Granularity = ""
	base := url.Values{
		"dimensions": {"client_country_code"}, "metrics": {"hits"},
		"starttime": {"2026-11-20T08:30:00"}, "endtime": {"2026-11-21T00:00:00"},
	}
	with := func(pairs ...string) url.Values {
		v := url.Values{}
		for name, values := range base {
			v[name] = values
		}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	tests := []struct {
		name string
		call func(context.Context, *webdelivery.StatsService) error
		path string
		want url.Values
	}{
		{"events", func(ctx context.Context, s *webdelivery.StatsService) error {
			_, err := s.Events.Query(ctx, webdelivery.EventsQuery{
				Dimensions: []string{"client_ip", "rule_id"}, Start: spanStart, End: spanEnd, Filter: filters.Or(filters.Eq("a", "1"), filters.Eq("b", "")),
				SortBy: []webdelivery.Sort{webdelivery.Desc("event_timestamp_ms")}, Limit: 1,
			})
			return err
		}, "/stats/security/events/data", url.Values{
			"dimensions": {"client_ip,rule_id"}, "starttime": {"2026-11-20T08:30:00"}, "endtime": {"2026-11-21T00:00:00"},
			"filters": {"a==1,b=="}, "sortby": {"-event_timestamp_ms"}, "limit": {"1"},
		}},
		{"WAF trends", func(ctx context.Context, s *webdelivery.StatsService) error {
			_, err := s.WAFTrends.Query(ctx, full)
			return err
		}, "/stats/security/waf/trends/data", with("granularity", "hour", "limit", "500", "sortby", "-hits,client_country_code",
			"filters", `client_country_code==CN;client_browser!=a\,b`)},
		{"request trends without granularity", func(ctx context.Context, s *webdelivery.StatsService) error {
			_, err := s.RequestTrends.Query(ctx, open)
			return err
		}, "/stats/security/request/trends/data", base},
		{"traffic shaping trends", func(ctx context.Context, s *webdelivery.StatsService) error {
			_, err := s.TrafficShapingTrends.Query(ctx, trends())
			return err
		}, "/stats/security/trafficshaping/trends/data", with("granularity", "hour")},
		{"WAF top-K", func(ctx context.Context, s *webdelivery.StatsService) error {
			_, err := s.WAFTopK(webdelivery.WAFByClientIP).Query(ctx, webdelivery.WAFTopKQuery{
				Dimensions: full.Dimensions, Metrics: full.Metrics, Start: spanStart, End: spanEnd, Filter: filters.Eq("a", "1"),
			})
			return err
		}, "/stats/security/waf/topk/clientip/data", with("filters", "a==1")},
		{"traffic shaping top-K", func(ctx context.Context, s *webdelivery.StatsService) error {
			_, err := s.TrafficShapingTopK(webdelivery.TrafficShapingByRateLimitCountry).Query(ctx, webdelivery.TrafficShapingTopKQuery{
				Dimensions: full.Dimensions, Metrics: full.Metrics, Start: spanStart, End: spanEnd,
				SortBy: []webdelivery.Sort{webdelivery.Asc("hits")}, Limit: 7,
			})
			return err
		}, "/stats/security/trafficshaping/topk/ratelimitcountry/data", with("sortby", "hits", "limit", "7")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				f.Srv.Fail(faultFor("", resultOf([]string{"a"})))
				require.NoError(f, tt.call(f.Context(), f.Client.Stats))
				seen := f.Srv.Requests()
				require.Len(f, seen, 1)
				assert.Equal(f, http.MethodGet, seen[0].Method)
				assert.Equal(f, "/acme/v1"+tt.path, seen[0].Path)
				got, err := url.ParseQuery(seen[0].RawQuery)
				require.NoError(f, err)
				assert.Equal(f, tt.want, got)
			})
		})
	}
}

// Each category has a path of its own (section 4.3); the client refuses any other category.
func TestCategories(t *testing.T) {
	t.Parallel()
	span := webdelivery.WAFTopKQuery{Dimensions: []string{"a"}, Metrics: []string{"hits"}, Start: spanStart, End: spanEnd}
	shaping := webdelivery.TrafficShapingTopKQuery{Dimensions: span.Dimensions, Metrics: span.Metrics, Start: spanStart, End: spanEnd}
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.Srv.Fail(faultFor("", resultOf([]string{"a"})))
		var want []string
		for category, name := range map[webdelivery.WAFCategory]string{
			webdelivery.WAFByBrowser: "browser", webdelivery.WAFByClientIP: "clientip", webdelivery.WAFByCountry: "country",
			webdelivery.WAFByRequestPath: "requestpath", webdelivery.WAFByRuleID: "ruleid", webdelivery.WAFBySeverity: "severity",
		} {
			_, err := f.Client.Stats.WAFTopK(category).Query(f.Context(), span)
			require.NoError(f, err)
			want = append(want, "/acme/v1/stats/security/waf/topk/"+name+"/data")
		}
		for category, name := range map[webdelivery.TrafficShapingCategory]string{
			webdelivery.TrafficShapingByBrowser: "browser", webdelivery.TrafficShapingByClientIP: "clientip", webdelivery.TrafficShapingByCountry: "country",
			webdelivery.TrafficShapingByRateLimitClientIP: "ratelimitclientip", webdelivery.TrafficShapingByRateLimitCountry: "ratelimitcountry",
			webdelivery.TrafficShapingByRequestPath: "requestpath",
		} {
			_, err := f.Client.Stats.TrafficShapingTopK(category).Query(f.Context(), shaping)
			require.NoError(f, err)
			want = append(want, "/acme/v1/stats/security/trafficshaping/topk/"+name+"/data")
		}
		var got []string
		for _, r := range f.Srv.Requests() {
			got = append(got, r.Path)
		}
		assert.Equal(f, want, got)

		for _, unknown := range []string{"", "asn", "../../events", "Browser"} {
			waf, shape := f.Client.Stats.WAFTopK(webdelivery.WAFCategory(unknown)), f.Client.Stats.TrafficShapingTopK(webdelivery.TrafficShapingCategory(unknown))
			_, err1 := waf.Query(f.Context(), span)
			_, err2 := shape.Query(f.Context(), shaping)
			_, err3 := waf.Head(f.Context(), span)
			_, err4 := shape.Groupings(f.Context())
			_, err5 := collect(waf.All(f.Context(), span))
			for _, err := range []error{err1, err2, err3, err4, err5} {
				var invalid *webdelivery.ValidationError
				require.ErrorAs(f, err, &invalid, unknown)
				assert.Equal(f, "category", invalid.Field)
			}
		}
		assert.Len(f, f.Srv.Requests(), len(want))
	})
}

// Sections 4.2 and 7: the client refuses what the service would reject. The error names the parameter, and nothing is
// sent.
func TestQueriesThatAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*webdelivery.TrendsQuery)
		field  string
	}{
		{"no dimensions", func(q *webdelivery.TrendsQuery) { q.Dimensions = nil }, "dimensions"},
		{"an empty dimension", func(q *webdelivery.TrendsQuery) { q.Dimensions = []string{"client_ip", ""} }, "dimensions[1]"},
		{"two dimensions in one", func(q *webdelivery.TrendsQuery) { q.Dimensions = []string{"a,b"} }, "dimensions[0]"},
		{"a dimension twice", func(q *webdelivery.TrendsQuery) { q.Dimensions = []string{"a", "b", "a"} }, "dimensions[2]"},
		{"another metric", func(q *webdelivery.TrendsQuery) { q.Metrics = []string{"bytes"} }, "metrics[0]"},
		{"no start", func(q *webdelivery.TrendsQuery) { q.Start = time.Time{} }, "starttime"},
		{"no end", func(q *webdelivery.TrendsQuery) { q.End = time.Time{} }, "endtime"},
		{"end before start", func(q *webdelivery.TrendsQuery) { q.End = q.Start.Add(-time.Second) }, "endtime"},
		{"end is start", func(q *webdelivery.TrendsQuery) { q.End = q.Start.In(time.UTC) }, "endtime"},
		{"end in the same second", func(q *webdelivery.TrendsQuery) { q.End = q.Start.Truncate(time.Second).Add(999 * time.Millisecond) }, "endtime"},
		{"no granularity", func(q *webdelivery.TrendsQuery) { q.Granularity = "" }, "granularity"},
		{"another granularity", func(q *webdelivery.TrendsQuery) { q.Granularity = "minute" }, "granularity"},
		{"an invalid filter", func(q *webdelivery.TrendsQuery) { q.Filter = filters.Eq("a b", "") }, "filters"},
		{"no filters to join", func(q *webdelivery.TrendsQuery) { q.Filter = filters.And() }, "filters"},
		{"sorted by no name", func(q *webdelivery.TrendsQuery) {
			q.SortBy = []webdelivery.Sort{webdelivery.Asc("hits"), webdelivery.Desc("client,ip")}
		}, "sortby[1]"},
		{"sorted by a direction", func(q *webdelivery.TrendsQuery) { q.SortBy = []webdelivery.Sort{webdelivery.Asc("-hits")} }, "sortby[0]"},
		{"sorted by nothing", func(q *webdelivery.TrendsQuery) { q.SortBy = []webdelivery.Sort{{}} }, "sortby[0]"},
		{"a start after the year 9999", func(q *webdelivery.TrendsQuery) {
			q.Start, q.End = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC)
		}, "starttime"},
		{"an end after the year 9999 in UTC", func(q *webdelivery.TrendsQuery) {
			q.End = time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -2*3600))
		}, "endtime"},
		{"a start before the year 1", func(q *webdelivery.TrendsQuery) { q.Start = time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC) }, "starttime"},
		{"a start before the year 1 in UTC", func(q *webdelivery.TrendsQuery) {
			q.Start = time.Date(1, 1, 1, 0, 30, 0, 0, time.FixedZone("", 3600))
		}, "starttime"},
		{"a limit below 0", func(q *webdelivery.TrendsQuery) { q.Limit = -1 }, "limit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				q := trends()
				tt.change(&q)
				_, err1 := f.Client.Stats.WAFTrends.Query(f.Context(), q)
				_, err2 := collect(f.Client.Stats.TrafficShapingTrends.All(f.Context(), q))
				errs := []error{err1, err2}
				_, err3 := collect(f.Client.Stats.WAFTrends.All(f.Context(), q))
				errs = append(errs, err3)
				for _, err := range errs {
					var invalid *webdelivery.ValidationError
					require.ErrorAs(f, err, &invalid)
					assert.Equal(f, tt.field, invalid.Field)
					assert.Equal(f, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				}
				assert.Empty(f, f.Srv.Requests())
			})
		})
	}
}

// Open point 14: the client reads every shape of the lists and returns the raw response. An unknown shape is an error
// that contains it.
func TestListsOfNames(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		names      []string
		groupings  [][]string
	}{
		{"strings", `["a","b"]`, []string{"a", "b"}, [][]string{{"a"}, {"b"}}},
		{"objects", `[{"name":"a","type":"x"},{"name":"b"}]`, []string{"a", "b"}, [][]string{{"a"}, {"b"}}},
		{"member", `{"dimensions":["a"],"groupings":["a"],"metrics":["a"],"items":["z"]}`, []string{"a"}, [][]string{{"a"}}},
		{"items", `{"items":[{"name":"a"},{"name":"b"}]}`, []string{"a", "b"}, [][]string{{"a"}, {"b"}}},
		{"none", `[]`, []string{}, [][]string{}},
		{"arrays", `[["a","b"],["c"]]`, nil, [][]string{{"a", "b"}, {"c"}}},
		{"arrays of objects", `[[{"name":"a"},{"name":"b"}],[{"name":"c"}]]`, nil, [][]string{{"a", "b"}, {"c"}}},
		{"sets as texts", `["a,b","c"]`, nil, [][]string{{"a", "b"}, {"c"}}},
		{"arrays of one", `[["a"],["b"]]`, []string{"a", "b"}, [][]string{{"a"}, {"b"}}},
		{"a page that is all", `{"items":["a"],"total":1,"page_count":1,"page_index":1,"has_more":false,"next_uri":null}`, []string{"a"}, [][]string{{"a"}}},
		{"a page with others, by its page_count", `{"items":["a"],"page_count":3,"page_index":1}`, nil, nil},
		{"a page with others, by its total", `{"items":["a"],"total":25}`, nil, nil},
		{"a page with others, by its has_more", `{"items":["a"],"has_more":true,"next_uri":5}`, nil, nil},
		{"a page with others, by its has_more as a text", `{"items":["a"],"has_more":"true"}`, nil, nil},
		{"a page with others, by its next_uri", `{"items":["a"],"next_uri":5}`, nil, nil},
		{"network lists", `{"items":[{"id":"l","name":"block","uri":"/config/networklists/l"}]}`, nil, nil},
		{"network lists without addresses", `{"items":[{"id":"l","name":"block","deprecated":false}]}`, nil, nil},
		{"a member twice", `{"dimensions":["a"],"dimensions":["b"],"groupings":["a"],"metrics":["a"]}`, nil, nil},
		{"arrays in arrays", `[[["a"]]]`, nil, nil},
		{"null", `null`, nil, nil},
		{"a number", `7`, nil, nil},
		{"numbers", `[1,2]`, nil, nil},
		{"a null in it", `["a",null]`, nil, nil},
		{"an object without a name", `[{"id":"a"}]`, nil, nil},
		{"another member", `{"names":["a"]}`, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				f.Srv.Fail(faultFor("", tt.body))
				dimensions, err1 := f.Client.Stats.Events.Dimensions(f.Context())
				metrics, err2 := f.Client.Stats.RequestTrends.Metrics(f.Context())
				groupings, err3 := f.Client.Stats.WAFTopK(webdelivery.WAFByCountry).Groupings(f.Context())
				var paths []string
				for _, r := range f.Srv.Requests() {
					paths = append(paths, r.Path)
				}
				assert.Equal(f, []string{
					"/acme/v1/stats/security/events/dimensions", "/acme/v1/stats/security/request/trends/metrics",
					"/acme/v1/stats/security/waf/topk/country/groupings",
				}, paths)
				refused := func(err error) {
					var e *webdelivery.Error
					require.ErrorAs(f, err, &e)
					require.ErrorIs(f, err, webdelivery.ErrBadResponse)
					assert.Equal(f, tt.body, string(e.Body))
				}
				if tt.names == nil {
					refused(err1)
					refused(err2)
				} else {
					require.NoError(f, err1)
					require.NoError(f, err2)
					assert.Equal(f, tt.names, dimensions)
					assert.Equal(f, tt.names, metrics)
				}
				if tt.groupings == nil {
					refused(err3)
				} else {
					require.NoError(f, err3)
					assert.Equal(f, tt.groupings, groupings)
				}
			})
		})
	}
}

// HEAD on the base path has the parameters of the query, and returns headers and no body (section 4.3). Head removes
// cookies from the headers.
func TestHead(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Method: http.MethodHead, Status: 200, Header: http.Header{"X-Total": {"7"}, "Set-Cookie": {"authtoken=x"}}})
		span := webdelivery.WAFTopKQuery{Dimensions: []string{"a"}, Start: spanStart, End: spanEnd}
		shaping := webdelivery.TrafficShapingTopKQuery{Dimensions: []string{"a"}, Start: spanStart, End: spanEnd}
		for path, head := range map[string]func(context.Context) (http.Header, error){
			"/stats/security/events": func(ctx context.Context) (http.Header, error) { return f.Client.Stats.Events.Head(ctx, fixture.ADay) },
			"/stats/security/request/trends": func(ctx context.Context) (http.Header, error) {
				return f.Client.Stats.RequestTrends.Head(ctx, trends())
			},
			"/stats/security/waf/topk/ruleid": func(ctx context.Context) (http.Header, error) {
				return f.Client.Stats.WAFTopK(webdelivery.WAFByRuleID).Head(ctx, span)
			},
			"/stats/security/trafficshaping/topk/clientip": func(ctx context.Context) (http.Header, error) {
				return f.Client.Stats.TrafficShapingTopK(webdelivery.TrafficShapingByClientIP).Head(ctx, shaping)
			},
		} {
			h, err := head(f.Context())
			require.NoError(f, err)
			assert.Equal(f, "7", h.Get("X-Total"))
			assert.Empty(f, h.Values("Set-Cookie"))
			assert.Equal(f, 1, f.Srv.Count(http.MethodHead, path))
		}
		for _, r := range f.Srv.Requests() {
			assert.Contains(f, r.RawQuery, "endtime=")
		}
	})
}

// All requests one row to get total_results, then as many rows and some more. The second response must have as
// many as the first one announced, and may have more, because rows may be added in between.
func TestAll(t *testing.T) {
	t.Parallel()
	result := func(rows int, total int64) string {
		return fmt.Sprintf(`{"columns":[{"name":"a"}],"rows":[%s],"total_results":%d}`, strings.TrimSuffix(strings.Repeat("[1],", rows), ","), total)
	}
	incomplete := func(got, total int64) *webdelivery.IncompleteError {
		return &webdelivery.IncompleteError{Got: got, Total: total}
	}
	tests := []struct {
		name, first, second string
		rows                int
		limits              []string
		incomplete          *webdelivery.IncompleteError
	}{
		{"all of them", result(1, 3), result(3, 3), 3, []string{"1", "1003"}, nil},
		{"none", result(0, 0), "", 0, []string{"1"}, nil},
		{"one", result(1, 1), result(1, 1), 1, []string{"1", "1001"}, nil},
		{"more were added", result(1, 2), result(1001, 1001), 1001, []string{"1", "1002"}, nil},
		{"more were added than the limit", result(1, 2), result(1002, 1300), 1002, []string{"1", "1002"}, incomplete(1002, 1300)},
		{"as many as the limit", result(1, 2), result(1002, 1002), 1002, []string{"1", "1002"}, incomplete(1002, 1002)},
		{"as many as the limit, and a total that is too small", result(1, 2), result(1002, 5), 1002, []string{"1", "1002"}, incomplete(1002, 5)},
		{"a limit that the service ignores", result(1, 2), result(1003, 1003), 1003, []string{"1", "1002"}, nil},
		{"fewer arrive", result(1, 3), result(2, 3), 2, []string{"1", "1003"}, incomplete(2, 3)},
		{"a replica that lags has fewer", result(1, 3), result(2, 2), 2, []string{"1", "1003"}, incomplete(2, 3)},
		{"a replica that lags has none", result(1, 3), result(0, 0), 0, []string{"1", "1003"}, incomplete(0, 3)},
		{"a replica that lags, and fewer arrive", result(1, 5), result(2, 4), 2, []string{"1", "1005"}, incomplete(2, 4)},
		{"the first is incomplete", result(0, 3), result(3, 3), 3, []string{"1", "1003"}, nil},
		{"100,000", result(1, 100_000), result(1, 1), 1, []string{"1", "101000"}, incomplete(1, 100_000)},
		{"1 % more", result(1, 1_000_000), result(1, 1), 1, []string{"1", "1010000"}, incomplete(1, 1_000_000)},
		{"the largest total", result(1, math.MaxInt64), result(1, 1), 1, []string{"1", "9223372036854775807"}, incomplete(1, math.MaxInt64)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
				first := faultFor(fixture.EventsData, tt.first)
				first.Count = 1
				f.AddFault(first)
				answers(f, tt.second)
				q := fixture.ADay
				q.Limit = 0
				rows, err := collect(f.Client.Stats.Events.All(f.Context(), q))
				assert.Len(f, rows, tt.rows)
				assert.Equal(f, tt.limits, limitsOf(f))
				if tt.incomplete == nil {
					require.NoError(f, err)
					return
				}
				var incomplete *webdelivery.IncompleteError
				require.ErrorAs(f, err, &incomplete)
				assert.Equal(f, tt.incomplete, incomplete)
				if incomplete.Got < incomplete.Total {
					rows := map[bool]string{true: "row", false: "rows"}[incomplete.Got == 1]
					assert.EqualError(f, err, fmt.Sprintf("webdelivery: %d %s arrived, and %d match", incomplete.Got, rows, incomplete.Total))
				} else {
					assert.EqualError(f, err, fmt.Sprintf("webdelivery: %d rows arrived, as many as requested, so more than %d may match",
						incomplete.Got, incomplete.Total))
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

// All of a top-K requests its size at most. If as many rows arrive, they are complete.
func TestAllOfATopK(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		first, rows, total int
		incomplete         bool
	}{{5, 5, 5, false}, {5, 7, 7, false}, {5, 1000, 1200, false}, {5000, 1000, 5000, false}, {5000, 999, 5000, true}, {5000, 1000, 1000, false}} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			const path = "/stats/security/trafficshaping/topk/country/data"
			first := faultFor(path, fmt.Sprintf(`{"columns":[{"name":"a"}],"rows":[[1]],"total_results":%d}`, tt.first))
			first.Count = 1
			f.AddFault(first)
			rows := strings.TrimSuffix(strings.Repeat("[1],", tt.rows), ",")
			f.AddFault(faultFor(path, fmt.Sprintf(`{"columns":[{"name":"a"}],"rows":[%s],"total_results":%d}`, rows, tt.total)))
			q := webdelivery.TrafficShapingTopKQuery{Dimensions: []string{"a"}, Metrics: []string{"hits"}, Start: spanStart, End: spanEnd}
			got, err := collect(f.Client.Stats.TrafficShapingTopK(webdelivery.TrafficShapingByCountry).All(f.Context(), q))
			assert.Len(f, got, tt.rows)
			assert.Equal(f, []string{"1", "1000"}, limitsOf(f))
			if !tt.incomplete {
				require.NoError(f, err, "%+v", tt)
				return
			}
			var incomplete *webdelivery.IncompleteError
			require.ErrorAs(f, err, &incomplete)
			assert.Equal(f, webdelivery.IncompleteError{Got: int64(tt.rows), Total: int64(tt.total)}, *incomplete)
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

// A top-K has at most K rows (section 8). Further groups are not missing, but if some of the K rows are, it is an
// error.
func TestTopKIsComplete(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rows, total int
		incomplete  bool
	}{{20, 5000, false}, {19, 5000, true}, {7, 7, false}} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			rows := make([]string, tt.rows)
			for i := range rows {
				rows[i] = "[1]"
			}
			body := resultOf([]string{"a"}, rows...)
			f.Srv.Fail(faultFor("", body[:len(body)-len(fmt.Sprint(tt.rows))-1]+fmt.Sprint(tt.total)+"}"))
			q := webdelivery.WAFTopKQuery{Dimensions: []string{"a"}, Metrics: []string{"hits"}, Start: spanStart, End: spanEnd}
			family := f.Client.Stats.WAFTopK(webdelivery.WAFByBrowser)
			_, err1 := family.Query(f.Context(), q)
			got, err2 := collect(family.All(f.Context(), q))
			assert.Len(f, got, tt.rows)
			for _, err := range []error{err1, err2} {
				var incomplete *webdelivery.IncompleteError
				if tt.incomplete {
					require.ErrorAs(f, err, &incomplete)
					assert.Equal(f, webdelivery.IncompleteError{Got: int64(tt.rows), Total: int64(tt.total)}, *incomplete)
				} else {
					require.NoError(f, err)
				}
			}
		})
	}
}

// The finest granularity that the service has for a time range (section 8, open point 13).
func TestGranularityFor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	tests := []struct {
		start, end time.Time
		want       webdelivery.Granularity
	}{
		{now.Add(-time.Hour), now, webdelivery.Granularity5Minute},
		{now.Add(-7 * day), now, webdelivery.Granularity5Minute},
		{now.Add(-7*day - time.Second), now, webdelivery.GranularityHour},
		{now.AddDate(0, -1, 0), now, webdelivery.GranularityHour},
		{now.AddDate(0, -1, 0).Add(-time.Second), now, webdelivery.GranularityDay},
		{now.AddDate(-1, 0, 0), now.AddDate(-1, 0, 1), webdelivery.GranularityDay},
		{now, now.AddDate(-1, 0, 0), webdelivery.GranularityDay},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, webdelivery.GranularityFor(tt.start, tt.end, now), "%v", tt.start)
	}
	// In the week in which summer time ends, seven days of Berlin have 169 hours. The service counts in UTC.
	summer, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now = time.Date(2026, 10, 26, 12, 0, 0, 0, summer)
	assert.Equal(t, webdelivery.GranularityHour, webdelivery.GranularityFor(now.Add(-168*time.Hour-30*time.Minute), now, now))
	assert.Equal(t, webdelivery.Granularity5Minute, webdelivery.GranularityFor(now.Add(-168*time.Hour), now, now))
}

// Raw events exist for the previous three days plus the elapsed part of the current day, in UTC (section 6).
func TestEventsRetention(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 11, 17, 0, 0, 0, 0, time.UTC)
	assert.Equal(t, want, webdelivery.EventsRetention(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)))
	assert.Equal(t, want, webdelivery.EventsRetention(time.Date(2026, 11, 20, 23, 59, 59, 0, time.UTC)))
	assert.Equal(t, want, webdelivery.EventsRetention(time.Date(2026, 11, 21, 0, 30, 0, 0, berlin)))
}

// The dialect determines the name of the start parameter (open point 10).
func TestStartTimeParam(t *testing.T) {
	t.Parallel()
	other := webdelivery.WithDialect(webdelivery.Dialect{StartTimeParam: "startime"})
	fixture.InFakeTime(t, fixture.Setup{Options: []webdelivery.Option{other}}, func(f *fixture.Fixture) {
		answers(f, resultOf([]string{"a"}))
		_, err := f.Client.Stats.Events.Query(f.Context(), fixture.ADay)
		require.NoError(f, err)
		values, err := url.ParseQuery(f.Srv.Requests()[0].RawQuery)
		require.NoError(f, err)
		assert.Equal(f, "1999-12-31T00:00:00", values.Get("startime"))
		assert.NotContains(f, values, "starttime")
	})
}
