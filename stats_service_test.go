package webdelivery_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

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
		SortBy: []webdelivery.Sort{webdelivery.Asc(webdelivery.DimEventTimestamp)},
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
