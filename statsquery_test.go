package webdelivery_test

import (
	"errors"
	"net/url"
	"strings"
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

// Section 4.3: a WAF top-K has neither limit nor sortby.
func TestAWAFTopKHasNoLimitAndNoOrder(t *testing.T) {
	t.Parallel()
	family := fixture.Always(t, nil).Stats.WAFTopK(webdelivery.WAFByCountry)
	_, err := family.Query(t.Context(), webdelivery.TopKQuery{Start: spanStart, End: spanEnd, SortBy: []string{"hits"}, Limit: 1})
	assert.ErrorIs(t, err, webdelivery.ErrInvalid)
	assert.ErrorContains(t, err, "sortby")
	assert.ErrorContains(t, err, "limit")
}

// Sections 4.2 and 7: the client refuses what the service would reject. The error names the parameter, and nothing is
// sent.
func TestQueriesThatAreRefused(t *testing.T) {
	t.Parallel()
	type query = webdelivery.TrendsQuery
	west, east := time.FixedZone("", -2*3600), time.FixedZone("", 3600)
	for _, tt := range []struct {
		field  string
		change func(*query)
	}{
		{"dimensions", func(q *query) { q.Dimensions = nil }},
		{"dimensions[1]", func(q *query) { q.Dimensions = []string{"client_ip", ""} }},
		{"dimensions[0]", func(q *query) { q.Dimensions = []string{"a,b"} }},
		{"dimensions[2]", func(q *query) { q.Dimensions = []string{"a", "b", "a"} }},
		{"starttime", func(q *query) { q.Start = time.Time{} }},
		{"endtime", func(q *query) { q.End = time.Time{} }},
		{"endtime", func(q *query) { q.End = q.Start.Add(-time.Second) }},
		{"endtime", func(q *query) { q.End = q.Start.In(time.UTC) }},
		{"endtime", func(q *query) { q.End = q.Start.Truncate(time.Second).Add(999 * time.Millisecond) }},
		{"granularity", func(q *query) { q.Granularity = "" }},
		{"granularity", func(q *query) { q.Granularity = "minute" }},
		{"filters", func(q *query) { q.Filter = filters.Eq("a b", "") }},
		{"filters", func(q *query) { q.Filter = filters.And() }},
		{"sortby[1]", func(q *query) { q.SortBy = []string{"hits", webdelivery.Desc("client,ip")} }},
		{"sortby[0]", func(q *query) { q.SortBy = []string{"--hits"} }},
		{"sortby[0]", func(q *query) { q.SortBy = []string{""} }},
		// The years are those of UTC, from 1 to 9999.
		{"starttime", func(q *query) {
			q.Start, q.End = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC)
		}},
		{"endtime", func(q *query) { q.End = time.Date(9999, 12, 31, 23, 0, 0, 0, west) }},
		{"starttime", func(q *query) { q.Start = time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC) }},
		{"starttime", func(q *query) { q.Start = time.Date(1, 1, 1, 0, 30, 0, 0, east) }},
		{"limit", func(q *query) { q.Limit = -1 }},
	} {
		fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
			q := trends()
			tt.change(&q)
			_, err := f.Client.Stats.WAFTrends.Query(f.Context(), q)
			refusedAs(f.T, tt.field, err, "Query")
			_, err = collect(f.Client.Stats.TrafficShapingTrends.All(f.Context(), q))
			refusedAs(f.T, tt.field, err, "All")
			assert.Empty(f, f.Srv.Requests())
		})
	}
}

// Each family has its path and sends only the parameters that it supports (section 4.3), with times in UTC without a
// designator (section 4.2).
func TestWhatAQuerySends(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.Srv.Fail(faultFor("", resultOf([]string{"a"})))
		stats, ctx, country := f.Client.Stats, f.Context(), []string{"client_country_code"}
		_, err1 := stats.Events.Query(ctx, webdelivery.EventsQuery{
			Dimensions: []string{"client_ip", "rule_id"}, Start: spanStart, End: spanEnd, Limit: 1,
			Filter: filters.Or(filters.Eq("a", "1"), filters.Eq("b", "")), SortBy: []string{webdelivery.Desc("event_timestamp_ms")},
		})
		full, open := trends(), trends()
		full.Filter = filters.And(filters.Eq("client_country_code", "CN"), filters.Ne("client_browser", "a,b"))
		full.SortBy, full.Limit = []string{webdelivery.Desc("hits"), "client_country_code"}, 500
		open.Granularity = ""
		_, err2 := stats.WAFTrends.Query(ctx, full)
		_, err3 := stats.RequestTrends.Query(ctx, open)
		_, err4 := stats.TrafficShapingTrends.Query(ctx, trends())
		_, err5 := stats.WAFTopK(webdelivery.WAFByClientIP).Query(ctx, webdelivery.TopKQuery{
			Dimensions: country, Start: spanStart, End: spanEnd, Filter: filters.Eq("a", "1"),
		})
		_, err6 := stats.TrafficShapingTopK(webdelivery.TrafficShapingByRateLimitCountry).Query(ctx, webdelivery.TopKQuery{
			Dimensions: country, Start: spanStart, End: spanEnd, SortBy: []string{"hits"}, Limit: 7,
		})
		require.NoError(f, errors.Join(err1, err2, err3, err4, err5, err6))
		var got []string
		for _, r := range f.Srv.Requests() {
			query, err := url.QueryUnescape(r.RawQuery)
			require.NoError(f, err)
			got = append(got, r.Method+" "+strings.TrimPrefix(r.Path, "/acme/v1/stats/security/")+"?"+query)
		}
		const start, end = "&starttime=2026-11-20T08:30:00", "&endtime=2026-11-21T00:00:00"
		assert.Equal(f, []string{
			"GET events/data?dimensions=client_ip,rule_id" + end + "&filters=a==1,b==&limit=1&sortby=-event_timestamp_ms" + start,
			"GET waf/trends/data?dimensions=client_country_code" + end + `&filters=client_country_code==CN;client_browser!=a\,b` +
				"&granularity=hour&limit=500&metrics=hits&sortby=-hits,client_country_code" + start,
			"GET request/trends/data?dimensions=client_country_code" + end + "&metrics=hits" + start,
			"GET trafficshaping/trends/data?dimensions=client_country_code" + end + "&granularity=hour&metrics=hits" + start,
			"GET waf/topk/clientip/data?dimensions=client_country_code" + end + "&filters=a==1&metrics=hits" + start,
			"GET trafficshaping/topk/ratelimitcountry/data?dimensions=client_country_code" + end + "&limit=7&metrics=hits&sortby=hits" + start,
		}, got)
	})
}
