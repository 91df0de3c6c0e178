package webdelivery_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

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
			q.SortBy = []string{"hits", webdelivery.Desc("client,ip")}
		}, "sortby[1]"},
		{"sorted by two directions", func(q *webdelivery.TrendsQuery) { q.SortBy = []string{"--hits"} }, "sortby[0]"},
		{"sorted by nothing", func(q *webdelivery.TrendsQuery) { q.SortBy = []string{""} }, "sortby[0]"},
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

// Each family has its path and sends only the parameters that it supports (section 4.3), with times in UTC without a
// designator (section 4.2).
func TestWhatAQuerySends(t *testing.T) {
	t.Parallel()
	and := filters.And(filters.Eq("client_country_code", "CN"), filters.Ne("client_browser", "a,b"))
	full := trends()
	full.Filter, full.Limit = and, 500
	full.SortBy = []string{webdelivery.Desc("hits"), "client_country_code"}
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
				SortBy: []string{webdelivery.Desc("event_timestamp_ms")}, Limit: 1,
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
				SortBy: []string{"hits"}, Limit: 7,
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
