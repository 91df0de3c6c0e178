package webdelivery_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// The finest granularity that the service has for a time range (section 8, open point 13). A month before a day is the same
// day of the month before. If that month is shorter, it is its last day. The day of UTC counts.
func TestGranularityFor(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return parsed
	}
	for _, tt := range []struct{ now, week, month string }{
		{"2026-11-20T12:00:00Z", "2026-11-13T12:00:00Z", "2026-10-20T12:00:00Z"},
		{"2026-03-31T12:00:00Z", "2026-03-24T12:00:00Z", "2026-02-28T12:00:00Z"},
		{"2026-03-29T00:00:00Z", "2026-03-22T00:00:00Z", "2026-02-28T00:00:00Z"},
		{"2026-03-28T12:00:00Z", "2026-03-21T12:00:00Z", "2026-02-28T12:00:00Z"},
		{"2024-03-30T12:00:00Z", "2024-03-23T12:00:00Z", "2024-02-29T12:00:00Z"},
		{"2100-03-29T12:00:00Z", "2100-03-22T12:00:00Z", "2100-02-28T12:00:00Z"}, // no leap year
		{"2026-12-31T12:00:00Z", "2026-12-24T12:00:00Z", "2026-11-30T12:00:00Z"},
		{"2026-01-31T12:00:00Z", "2026-01-24T12:00:00Z", "2025-12-31T12:00:00Z"},
		{"2026-04-01T00:30:00+02:00", "2026-03-24T22:30:00Z", "2026-02-28T22:30:00Z"}, // 31 March
		{"2026-03-31T23:30:00-02:00", "2026-03-25T01:30:00Z", "2026-03-01T01:30:00Z"}, // 1 April
	} {
		now := at(tt.now)
		for start, want := range map[time.Time]webdelivery.Granularity{
			now.Add(-time.Hour):   webdelivery.Granularity5Minute,
			at(tt.week):           webdelivery.Granularity5Minute,
			at(tt.week).Add(-1):   webdelivery.GranularityHour,
			at(tt.month):          webdelivery.GranularityHour,
			at(tt.month).Add(-1):  webdelivery.GranularityDay,
			now.AddDate(-1, 0, 0): webdelivery.GranularityDay,
		} {
			assert.Equal(t, want, webdelivery.GranularityFor(start, now, now), "%v of %v", start, now)
			assert.Equal(t, want, webdelivery.GranularityFor(now, start, now), "the other way round")
		}
	}
	// In the week in which summer time ends, seven days of Berlin have 169 hours. The service counts in UTC.
	summer, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now := time.Date(2026, 10, 26, 12, 0, 0, 0, summer)
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
	type query = webdelivery.TrendsQuery
	west, east := time.FixedZone("", -2*3600), time.FixedZone("", 3600)
	stats := fixture.Answered(t, func(r *http.Request) *http.Response {
		t.Error("sent: ", r.URL)
		return fixture.Response(http.StatusOK, nil)
	}).Stats
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
		q := trends()
		tt.change(&q)
		_, err := stats.WAFTrends.Query(t.Context(), q)
		refusedAs(t, tt.field, err, "Query")
		_, err = collect(stats.TrafficShapingTrends.All(t.Context(), q))
		refusedAs(t, tt.field, err, "All")
		_, err = stats.WAFTrends.Head(t.Context(), q)
		refusedAs(t, tt.field, err, "Head")
	}
	// A WAF top-K has neither limit nor sortby, and raw events have no metrics and no groupings (section 4.3).
	_, err := stats.WAFTopK(webdelivery.WAFByCountry).Query(t.Context(), webdelivery.TopKQuery{Start: spanStart, End: spanEnd, SortBy: []string{"hits"}, Limit: 1})
	assert.Equal(t, []string{"sortby", "limit"}, invalidFields(err))
	_, err = stats.Events.Metrics(t.Context())
	refusedAs(t, "metrics", err, "Metrics")
	_, err = stats.Events.Groupings(t.Context())
	refusedAs(t, "groupings", err, "Groupings")
}

// The caller may change the slices of a query once it was passed, also before the loop over All.
func TestAllKeepsItsQuery(t *testing.T) {
	t.Parallel()
	var sent []string
	client := fixture.Answered(t, func(r *http.Request) *http.Response {
		sent = append(sent, r.URL.Query().Get("dimensions")+" "+r.URL.Query().Get("sortby"))
		return fixture.Response(http.StatusOK, []byte(resultOf([]string{"a"}, "[1]")))
	})
	query := trends()
	query.Dimensions, query.SortBy = []string{"a"}, []string{"hits"}
	rows := client.Stats.WAFTrends.All(t.Context(), query)
	query.Dimensions[0], query.SortBy[0] = "changed", "changed"
	_, err := collect(rows)
	require.NoError(t, err)
	assert.Equal(t, []string{"a hits", "a hits"}, sent)
}

// Each family has its path and sends only the parameters that it supports (section 4.3), with times in UTC without a
// designator (section 4.2).
func TestWhatAQuerySends(t *testing.T) {
	t.Parallel()
	fixture.InFakeTime(t, fixture.Setup{}, func(f *fixture.Fixture) {
		f.AddFault(testserver.Fault{Status: 200, Body: resultOf([]string{"a"})})
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
