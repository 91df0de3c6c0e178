package webdelivery_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
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
		Dimensions: []string{webdelivery.DimClientCountryCode}, Metrics: []string{webdelivery.MetricHits},
		Start: spanStart, End: spanEnd, Granularity: webdelivery.GranularityHour,
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

// Open point 14: the client reads every shape of the lists. An unknown shape is an error
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

// Properties that hold for every stream of events and every query, checked over random ones. The tests count the raw
// events by hand and compare the counts with the aggregated results.

// record is a raw event; all members except its time and type may be null.
type record struct {
	Time    time.Time `stats:"event_timestamp_ms"`
	Country *string   `stats:"client_country_code"`
	ASN     *int64    `stats:"client_asn"`
	Browser *string   `stats:"client_browser"`
	Type    string    `stats:"event_type"`
	Action  *string   `stats:"event_action"`
	Rule    *string   `stats:"rule_id"`
}

// field returns the text of a dimension as a filter sees it, and false for null.
func (r record) field(dimension string) (string, bool) {
	deref := func(s *string) (string, bool) {
		if s == nil {
			return "", false
		}
		return *s, true
	}
	switch dimension {
	case "client_country_code":
		return deref(r.Country)
	case "client_asn":
		if r.ASN == nil {
			return "", false
		}
		return strconv.FormatInt(*r.ASN, 10), true
	case "client_browser":
		return deref(r.Browser)
	case "event_type":
		return r.Type, true
	case "event_action":
		return deref(r.Action)
	default:
		return deref(r.Rule)
	}
}

// withEvents runs a test with the events that the fake generates: about 2,500.
func withEvents(t *testing.T, seed uint64, test func(f *fixture.Fixture, all []record, r *rand.Rand)) {
	t.Helper()
	fixture.InFakeTime(t, fixture.Setup{Server: testserver.Config{EventsPerSecond: 0.01, EventSeed: seed}}, func(f *fixture.Fixture) {
		all, err := records(f, nil)
		require.NoError(f, err)
		require.Greater(f, len(all), 1000)
		test(f, all, rand.New(rand.NewPCG(seed, seed)))
	})
}

// whole returns the time range in which raw events exist when the bubble's clock is at its start.
func whole() (start, end time.Time) {
	now := time.Now()
	return webdelivery.EventsRetention(now), now
}

func records(f *fixture.Fixture, filter filters.Expr) (all []record, err error) {
	start, end := whole()
	q := webdelivery.EventsQuery{
		Dimensions: webdelivery.DimensionsOf[record](), Start: start, End: end, Filter: filter,
		SortBy: []string{webdelivery.DimEventTimestamp},
	}
	for event, err := range webdelivery.Scan[record](f.Client.Stats.Events.All(f.Context(), q)) {
		if err != nil {
			return all, err
		}
		all = append(all, event)
	}
	return all, nil
}

// condition is a random comparison with a value that occurs, or with one that needs escapes.
func condition(all []record, r *rand.Rand) filters.Filter {
	dimensions := []string{"client_country_code", "client_asn", "client_browser", "event_type", "event_action", "rule_id"}
	dimension := dimensions[r.IntN(len(dimensions))]
	value, ok := all[r.IntN(len(all))].field(dimension)
	if !ok {
		value = "a,b;c"
	}
	if r.IntN(2) == 0 {
		return filters.Eq(dimension, value)
	}
	return filters.Ne(dimension, value)
}

func holds(f filters.Filter, r record) bool {
	value, ok := r.field(f.Dimension)
	equal := ok && value == f.Value
	return equal == (f.Operator == filters.Equal)
}

// A AND B and A OR B match exactly the events for which they are true, each once, in order of time.
func TestFiltersGiveWhatTheySay(t *testing.T) {
	t.Parallel()
	withEvents(t, 1, func(f *fixture.Fixture, all []record, r *rand.Rand) {
		start, end := whole()
		assert.Len(f, all, f.Srv.EventCount(start, end))
		for range 10 {
			conditions := []filters.Filter{condition(all, r), condition(all, r), condition(all, r)}[:1+r.IntN(3)]
			var both, either []record
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
			got, err := records(f, filters.And(conditions...))
			require.NoError(f, err)
			require.Equal(f, both, got, "%v", filters.And(conditions...))
			got, err = records(f, filters.Or(conditions...))
			require.NoError(f, err)
			require.Equal(f, either, got, "%v", filters.Or(conditions...))
		}
	})
}

// The other methods of every family work. The echoed query has the supplied filter and the customer's in separate
// fields.
func TestEveryMethodOfTheFamilies(t *testing.T) {
	t.Parallel()
	withEvents(t, 6, func(f *fixture.Fixture, _ []record, _ *rand.Rand) {
		stats, ctx := f.Client.Stats, f.Context()
		for _, family := range []*webdelivery.StatsFamily[webdelivery.TrendsQuery]{stats.WAFTrends, stats.RequestTrends, stats.TrafficShapingTrends} {
			metrics, err := family.Metrics(ctx)
			require.NoError(f, err)
			assert.Equal(f, []string{"hits"}, metrics)
			dimensions, err := family.Dimensions(ctx)
			require.NoError(f, err)
			assert.NotEmpty(f, dimensions)
			header, err := family.Head(ctx, trends())
			require.NoError(f, err)
			assert.NotEmpty(f, header)
		}
		dimensions, err := stats.Events.Dimensions(ctx)
		require.NoError(f, err)
		for _, name := range []string{
			webdelivery.DimEventTimestamp, webdelivery.DimEventSeverity, webdelivery.DimEventType, webdelivery.DimEventAction,
			webdelivery.DimClientConnectionRemoteIP, webdelivery.DimClientIP, webdelivery.DimClientBrowser,
			webdelivery.DimClientCountryCode, webdelivery.DimClientASN, webdelivery.DimRuleID, webdelivery.DimDomain,
			webdelivery.DimProperty, webdelivery.DimWAFAction,
		} {
			assert.Contains(f, dimensions, name)
		}
		_, err = stats.Events.Head(ctx, fixture.ADay)
		require.NoError(f, err)

		start, end := whole()
		or := filters.Or(filters.Eq("client_country_code", "CN"), filters.Eq("client_country_code", "DE"))
		result, err := stats.Events.Query(ctx, webdelivery.EventsQuery{
			Dimensions: []string{"client_ip"}, Start: start, End: end, Filter: or, Limit: 3,
		})
		require.NoError(f, err)
		assert.Equal(f, []string{"event_timestamp_ms", "client_ip"}, result.Columns)
		supplied, name, err := filters.ParseEcho(result.Query.Filters)
		require.NoError(f, err)
		assert.Equal(f, filters.Expr(or), supplied)
		assert.Equal(f, fixture.Customer, name)
		assert.Equal(f, int64(3), result.Query.Limit)
		assert.Equal(f, start.Format("2006-01-02T15:04:05"), result.Query.StartTime)
		assert.Equal(f, fmt.Sprint(end.Format("2006-01-02T15:04:05")), result.Query.EndTime)
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
				all, err := records(f, nil)
				require.NoError(f, err)
				assert.Len(f, all, f.Srv.EventCount(start, end))
				exported := 0
				none := webdelivery.EventsQuery{Dimensions: []string{"event_type"}, Start: start, End: end}
				for _, err := range f.Client.Stats.NewExport(none, webdelivery.Cursor{}, webdelivery.ExportOptions{}).All(f.Context()) {
					require.NoError(f, err)
					exported++
				}
				assert.Len(f, all, exported)
				none.Filter = filters.Eq("event_type", "none")
				result, err := f.Client.Stats.Events.Query(f.Context(), none)
				require.NoError(f, err)
				assert.Zero(f, result.TotalResults)
				assert.Empty(f, result.Rows)
				rows, err := webdelivery.Collect(f.Client.Stats.Events.All(f.Context(), none))
				require.NoError(f, err)
				assert.Empty(f, rows)
				for range f.Client.Stats.NewExport(none, webdelivery.Cursor{}, webdelivery.ExportOptions{}).All(f.Context()) {
					assert.Fail(f, "an event, or an error")
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
	const events, hits = "raw events are kept for three days and today", "is kept for a "
	for name, tt := range map[string]struct {
		start       time.Time
		granularity webdelivery.Granularity // of trends; "events" for raw events
		want        string
	}{
		"events of ten days ago":          {now.AddDate(0, 0, -10), "events", events},
		"events of three days ago":        {now.AddDate(0, 0, -3), "events", ""},
		"5-minute trends of a month ago":  {now.AddDate(0, -1, 0), webdelivery.Granularity5Minute, hits + "week; hits before that may be missing, so use granularity hour"},
		"5-minute trends of six days ago": {now.AddDate(0, 0, -6), webdelivery.Granularity5Minute, ""},
		"hourly trends of two months ago": {now.AddDate(0, -2, 0), webdelivery.GranularityHour, hits + "month; hits before that may be missing, so use granularity day"},
		"hourly trends of a week ago":     {now.AddDate(0, 0, -8), webdelivery.GranularityHour, ""},
		"daily trends of a year ago":      {now.AddDate(-1, 0, 0), webdelivery.GranularityDay, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
					assert.Contains(f, warnings[0], "the time range begins at "+tt.start.Format("2006-01-02T15:04:05"), call)
					assert.Contains(f, warnings[0], tt.want, call)
					assert.Equal(f, 1, strings.Count(logged, "webdelivery: statistics"), "%s: %s", call, logged)
					assert.Contains(f, logged, tt.want, call)
					assert.Contains(f, logged, "method=GET path=/acme/v1/stats/security/", call)
				}
				dimensions := []string{webdelivery.DimClientCountryCode}
				if tt.granularity == "events" {
					query := webdelivery.EventsQuery{Dimensions: dimensions, Start: tt.start, End: now}
					warnings := f.Client.Stats.Events.Warnings(query)
					_, err := f.Client.Stats.Events.Query(f.Context(), query)
					check("Query", warnings, err)
					export := f.Client.Stats.NewExport(query, webdelivery.Cursor{}, webdelivery.ExportOptions{})
					for range 2 {
						_, err = collect(export.All(f.Context()))
						require.NoError(f, err)
					}
					check("Export", warnings, err)
					return
				}
				query := webdelivery.TrendsQuery{
					Dimensions: dimensions, Metrics: []string{webdelivery.MetricHits}, Start: tt.start, End: now, Granularity: tt.granularity,
				}
				family := f.Client.Stats.WAFTrends
				_, err := family.Query(f.Context(), query)
				check("Query", family.Warnings(query), err)
				_, err = collect(family.All(f.Context(), query))
				check("All", family.Warnings(query), err)
			})
		})
	}
}
