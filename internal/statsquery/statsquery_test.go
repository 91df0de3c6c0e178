package statsquery_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/statsquery"
)

// filter is a filter expression; "bad" is invalid.
type filter string

func (f filter) Validate() error {
	if f == "bad" {
		return errors.New("cannot be said")
	}
	return nil
}

func (f filter) String() string {
	if f == "bad" {
		panic("written although it is invalid")
	}
	return string(f)
}

var (
	start = time.Date(2026, 11, 20, 9, 30, 0, 999, time.FixedZone("", 3600))
	end   = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
)

// aQuery is valid in every family that takes metrics.
func aQuery() statsquery.Query {
	return statsquery.Query{Dimensions: []string{"a"}, Metrics: []string{"hits"}, Start: start, End: end, Granularity: "hour"}
}

// encode returns the query string and the reported problems.
func encode(f statsquery.Family, q statsquery.Query) (text string, wrong []string) {
	text = f.Encode(&q, "starttime", func(field, format string, args ...any) {
		wrong = append(wrong, field+": "+fmt.Sprintf(format, args...))
	})
	return text, wrong
}

func topK(t *testing.T, of func(string) (statsquery.Family, bool), category string) statsquery.Family {
	t.Helper()
	f, known := of(category)
	require.True(t, known)
	return f
}

// Sections 4.2 and 4.3: names are separated by commas, times are in UTC without a designator, a minus is descending.
func TestEncode(t *testing.T) {
	t.Parallel()
	const span = "&endtime=2026-11-21T00%3A00%3A00"
	const from = "&starttime=2026-11-20T08%3A30%3A00"
	for name, tt := range map[string]struct {
		family statsquery.Family
		query  statsquery.Query
		want   string
	}{
		"least": {statsquery.Events, statsquery.Query{Dimensions: []string{"a"}, Start: start, End: end}, "dimensions=a" + span + from},
		"most": {statsquery.WAFTrends, statsquery.Query{
			Dimensions: []string{"a", "b"}, Metrics: []string{"hits"}, Start: start, End: end, Granularity: "5minute", Filter: filter("a==1;b!=2"),
			SortBy: []statsquery.Sort{{Name: "hits", Descending: true}, {Name: "b"}}, Limit: 7,
		}, "dimensions=a%2Cb" + span + "&filters=a%3D%3D1%3Bb%21%3D2&granularity=5minute&limit=7&metrics=hits&sortby=-hits%2Cb" + from},
		"an empty filter":      {statsquery.Events, statsquery.Query{Dimensions: []string{"a"}, Start: start, End: end, Filter: filter("")}, "dimensions=a" + span + "&filters=" + from},
		"a day":                {statsquery.RequestTrends, statsquery.Query{Dimensions: []string{"a"}, Metrics: []string{"hits"}, Start: start, End: end, Granularity: "day"}, "dimensions=a" + span + "&granularity=day&metrics=hits" + from},
		"defaults of a top-K":  {topK(t, statsquery.ShapingTopK, "country"), statsquery.Query{Start: start, End: end}, "dimensions=client_country_code" + span + "&metrics=hits" + from},
		"a top-K without them": {topK(t, statsquery.ShapingTopK, "country"), statsquery.Query{Dimensions: []string{"x"}, Metrics: []string{"hits"}, Start: start, End: end}, "dimensions=x" + span + "&metrics=hits" + from},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, wrong := encode(tt.family, tt.query)
			assert.Empty(t, wrong)
			assert.Equal(t, tt.want, got)
		})
	}
}

// The dialect chooses the parameter name of the start. After Encode, the query holds the times as they are sent.
func TestEncodeChangesTheQuery(t *testing.T) {
	t.Parallel()
	q := statsquery.Query{Dimensions: []string{"a"}, Start: start, End: end.Add(time.Second - 1)}
	assert.Equal(t, "dimensions=a&endtime=2026-11-21T00%3A00%3A00&startime=2026-11-20T08%3A30%3A00", statsquery.Events.Encode(&q, "startime", nil))
	assert.Equal(t, time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC), q.Start)
	assert.Equal(t, end, q.End)
}

// Sections 4.2 and 7: each parameter that the service would reject is reported by name, all of them at once.
func TestWhatIsInvalid(t *testing.T) {
	t.Parallel()
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for name, tt := range map[string]struct {
		family statsquery.Family
		change func(*statsquery.Query)
		want   []string
	}{
		"nothing": {statsquery.Events, func(q *statsquery.Query) { *q = statsquery.Query{} }, []string{
			"dimensions: is empty", "starttime: is not set", "endtime: is not set",
		}},
		"nothing of trends": {statsquery.ShapingTrends, func(q *statsquery.Query) { *q = statsquery.Query{Start: start, End: end} }, []string{
			"dimensions: is empty", "metrics: is empty", "granularity: must be set to 5minute, hour or day",
		}},
		"request trends need no granularity": {statsquery.RequestTrends, func(q *statsquery.Query) { q.Granularity = "" }, nil},
		"WAF trends do":                      {statsquery.WAFTrends, func(q *statsquery.Query) { q.Granularity = "" }, []string{"granularity: must be set to 5minute, hour or day"}},
		"another granularity": {statsquery.RequestTrends, func(q *statsquery.Query) { q.Granularity = "minute" }, []string{
			`granularity: "minute" is not 5minute, hour or day`,
		}},
		"names that are none": {statsquery.WAFTrends, func(q *statsquery.Query) { q.Dimensions = []string{"", "a,b", "a b", "a"} }, []string{
			`dimensions[0]: "" is not a valid name`, `dimensions[1]: "a,b" is not a valid name`, `dimensions[2]: "a b" is not a valid name`,
		}},
		"a name twice": {statsquery.WAFTrends, func(q *statsquery.Query) { q.Dimensions = []string{"a", "b", "a"} }, []string{`dimensions[2]: "a" comes twice`}},
		"metrics": {statsquery.WAFTrends, func(q *statsquery.Query) { q.Metrics = []string{"hits", "bytes", "hits"} }, []string{
			`metrics[2]: "hits" comes twice`, `metrics[1]: "bytes" is not a metric; the only one is hits`,
		}},
		"metrics of trends": {statsquery.RequestTrends, func(q *statsquery.Query) { q.Metrics = nil }, []string{"metrics: is empty"}},
		"metrics of a top-K": {topK(t, statsquery.WAFTopK, "country"), func(q *statsquery.Query) { q.Metrics = []string{"bytes"} }, []string{
			`metrics[0]: "bytes" is not a metric; the only one is hits`,
		}},
		"metrics of another top-K": {topK(t, statsquery.ShapingTopK, "country"), func(q *statsquery.Query) { q.Metrics = []string{"bytes"} }, []string{
			`metrics[0]: "bytes" is not a metric; the only one is hits`,
		}},
		"no start, and an end before the year 1": {statsquery.Events, func(q *statsquery.Query) { q.Start, q.End = time.Time{}, year(0) }, []string{
			"starttime: is not set", "endtime: is in the year 0, which the service's format cannot express",
		}},
		"no end":   {statsquery.WAFTrends, func(q *statsquery.Query) { q.End = time.Time{} }, []string{"endtime: is not set"}},
		"no start": {statsquery.WAFTrends, func(q *statsquery.Query) { q.Start = time.Time{} }, []string{"starttime: is not set"}},
		"no length": {statsquery.WAFTrends, func(q *statsquery.Query) { q.Start = end; q.End = end.Add(time.Second - 1) }, []string{
			"endtime: 2026-11-21T00:00:00 is not after starttime 2026-11-21T00:00:00, in whole seconds",
		}},
		"a second":            {statsquery.WAFTrends, func(q *statsquery.Query) { q.Start = end.Add(-1) }, nil},
		"the year 10000":      {statsquery.WAFTrends, func(q *statsquery.Query) { q.End = year(10_000) }, []string{"endtime: is in the year 10000, which the service's format cannot express"}},
		"the year 0":          {statsquery.WAFTrends, func(q *statsquery.Query) { q.Start = year(0) }, []string{"starttime: is in the year 0, which the service's format cannot express"}},
		"from year 1 to 9999": {statsquery.WAFTrends, func(q *statsquery.Query) { q.Start = year(1).Add(time.Hour); q.End = year(10_000).Add(-time.Second) }, nil},
		"a filter":            {statsquery.WAFTrends, func(q *statsquery.Query) { q.Filter = filter("bad") }, []string{"filters: cannot be said"}},
		"an order": {statsquery.WAFTrends, func(q *statsquery.Query) {
			q.SortBy = []statsquery.Sort{{Name: "hits"}, {Name: "a"}, {Name: "-a"}, {Name: "event_timestamp_ms"}}
		}, []string{
			`sortby[2]: "-a" is not among the requested dimensions and metrics`, `sortby[3]: "event_timestamp_ms" is not among the requested dimensions and metrics`,
		}},
		"an order of events": {statsquery.Events, func(q *statsquery.Query) {
			q.Metrics, q.SortBy = nil, []statsquery.Sort{{Name: "event_timestamp_ms"}, {Name: "hits"}}
		}, []string{
			`sortby[1]: "hits" is not among the requested dimensions and metrics`,
		}},
		"a limit": {statsquery.WAFTrends, func(q *statsquery.Query) { q.Limit = -1 }, []string{"limit: -1 is below 0"}},
		"a top-K whose dimension is not known": {topK(t, statsquery.WAFTopK, "requestpath"), func(q *statsquery.Query) { q.Dimensions, q.Metrics = nil, nil }, []string{
			"dimensions: is empty", "dimensions: must be set: only the categories browser, clientip, country, ruleid and severity have a default",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := aQuery()
			tt.change(&q)
			text, wrong := encode(tt.family, q)
			assert.Equal(t, tt.want, wrong)
			assert.Equal(t, len(wrong) == 0, text != "")
		})
	}
}

// Section 4.3: the paths of the families, the categories, and the dimensions that the service document names for them.
func TestFamilies(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "/stats/security/events", statsquery.Events.Path)
	assert.Equal(t, "/stats/security/waf/trends", statsquery.WAFTrends.Path)
	assert.Equal(t, "/stats/security/request/trends", statsquery.RequestTrends.Path)
	assert.Equal(t, "/stats/security/trafficshaping/trends", statsquery.ShapingTrends.Path)
	both := map[string]string{"browser": "client_browser", "clientip": "client_ip", "country": "client_country_code", "requestpath": ""}
	waf := map[string]string{"ruleid": "rule_id", "severity": "event_severity"}
	shaping := map[string]string{"ratelimitclientip": "", "ratelimitcountry": ""}
	for _, kind := range []struct {
		path    string
		of      func(string) (statsquery.Family, bool)
		own     map[string]string
		unknown map[string]string
		noLimit bool
	}{
		{"/stats/security/waf/topk/", statsquery.WAFTopK, waf, shaping, true},
		{"/stats/security/trafficshaping/topk/", statsquery.ShapingTopK, shaping, waf, false},
	} {
		for _, categories := range []map[string]string{both, kind.own} {
			for category, dimension := range categories {
				f := topK(t, kind.of, category)
				assert.Equal(t, kind.path+category, f.Path)
				assert.Equal(t, kind.noLimit, f.NoLimit)
				q := statsquery.Query{Start: start, End: end}
				f.Encode(&q, "starttime", func(string, string, ...any) {})
				assert.Equal(t, []string{"hits"}, q.Metrics)
				if dimension == "" {
					assert.Empty(t, q.Dimensions, category)
				} else {
					assert.Equal(t, []string{dimension}, q.Dimensions)
				}
			}
		}
		for category := range kind.unknown {
			_, known := kind.of(category)
			assert.False(t, known, category)
		}
		_, known := kind.of("")
		assert.False(t, known)
	}
}

// Section 8: a response has all matching rows up to the limit, 10 by default, and up to the size of a top-K. That is 20
// for the WAF, which has no limit parameter, and 1,000 for traffic shaping. To prove all rows, there must be fewer than
// requested.
func TestComplete(t *testing.T) {
	t.Parallel()
	events, waf, shaping := statsquery.Events, topK(t, statsquery.WAFTopK, "browser"), topK(t, statsquery.ShapingTopK, "browser")
	for _, tt := range []struct {
		family            statsquery.Family
		got, total, limit int64
		all               bool
		want              bool
	}{
		{events, 0, 0, 0, false, true},
		{events, 9, 9, 0, false, true},
		{events, 8, 9, 0, false, false},
		{events, 10, 11, 0, false, true},
		{events, 9, 11, 0, false, false},
		{events, 11, 11, 11, false, true},
		{events, 11, 50, 11, false, true},
		{events, 10, 50, 11, false, false},
		{events, 12, 11, 50, false, true},
		{events, 50, 50, 1050, true, true},
		{events, 49, 50, 1050, true, false},
		{events, 51, 50, 1050, true, true},
		{events, 1050, 1050, 1050, true, false}, // more may match
		{events, 1049, 1049, 1050, true, true},
		{events, 11, 50, 11, true, false},
		{events, 1100, 5000, 1050, true, false}, // a service that ignores the limit
		{waf, 20, 500, 0, false, true},
		{waf, 19, 500, 0, false, false},
		{waf, 12, 12, 0, false, true},
		{waf, 11, 12, 0, false, false},
		{shaping, 10, 500, 0, false, true},
		{shaping, 1000, 5000, 3000, false, true},
		{shaping, 999, 5000, 3000, false, false},
		{shaping, 1000, 5000, 1000, true, true}, // no more than a top-K has
		{shaping, 999, 5000, 1000, true, false},
		{shaping, 999, 999, 999, true, false},
	} {
		assert.Equal(t, tt.want, tt.family.Complete(tt.got, tt.total, tt.limit, tt.all), "%+v", tt)
	}
}

// WithHeadroom adds 1,000 rows, or 1 % if that is more.
func TestWithHeadroom(t *testing.T) {
	t.Parallel()
	for total, want := range map[int64]int64{
		1: 1001, 99_999: 100_999, 100_000: 101_000, 100_100: 101_101, 2_000_000: 2_020_000, math.MaxInt64 - 5: math.MaxInt64, math.MaxInt64: math.MaxInt64,
	} {
		assert.Equal(t, want, statsquery.Events.WithHeadroom(total), "%d", total)
	}
	assert.Equal(t, int64(1000), topK(t, statsquery.ShapingTopK, "browser").WithHeadroom(1))
}

// Section 8: 5-minute data is kept for a week, hourly data for a month.
func TestFinest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	week, month := time.Date(2026, 3, 24, 12, 0, 0, 0, time.UTC), time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		start, end time.Time
		want       string
	}{
		{now.Add(-time.Hour), now, "5minute"},
		{week, now, "5minute"},
		{week.Add(-1), now, "hour"},
		{month, now, "hour"},
		{month.Add(-1), now, "day"},
		{now, week.Add(-1), "hour"},
	} {
		assert.Equal(t, tt.want, statsquery.Finest(tt.start, tt.end, now), "%v", tt.start)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now = time.Date(2026, 3, 31, 12, 0, 0, 0, berlin) // two days after the change of the clocks
	assert.Equal(t, "5minute", statsquery.Finest(now.Add(-7*24*time.Hour), now, now))
	assert.Equal(t, "hour", statsquery.Finest(now.Add(-7*24*time.Hour-1), now, now))
}

// A month before a day is the same day of the month before. If that month is shorter, it is its last day.
func TestAMonthBefore(t *testing.T) {
	t.Parallel()
	for now, month := range map[string]string{
		"2026-03-31T12:00:00Z": "2026-02-28T12:00:00Z",
		"2026-03-30T23:59:59Z": "2026-02-28T23:59:59Z",
		"2026-03-29T00:00:00Z": "2026-02-28T00:00:00Z",
		"2026-03-28T12:00:00Z": "2026-02-28T12:00:00Z",
		"2024-03-31T12:00:00Z": "2024-02-29T12:00:00Z",
		"2024-03-30T12:00:00Z": "2024-02-29T12:00:00Z",
		"2024-02-29T12:00:00Z": "2024-01-29T12:00:00Z",
		"2100-03-29T12:00:00Z": "2100-02-28T12:00:00Z", // no leap year
		"2026-05-31T12:00:00Z": "2026-04-30T12:00:00Z",
		"2026-12-31T12:00:00Z": "2026-11-30T12:00:00Z",
		"2026-01-31T12:00:00Z": "2025-12-31T12:00:00Z",
		"2026-08-31T12:00:00Z": "2026-07-31T12:00:00Z",
		"2026-11-20T12:00:00Z": "2026-10-20T12:00:00Z",
		// The day of UTC counts: here it is 31 March 22:30 and 1 April 01:30.
		"2026-04-01T00:30:00+02:00": "2026-02-28T22:30:00Z",
		"2026-03-31T23:30:00-02:00": "2026-03-01T01:30:00Z",
	} {
		at, err := time.Parse(time.RFC3339, now)
		require.NoError(t, err)
		start, err := time.Parse(time.RFC3339, month)
		require.NoError(t, err)
		assert.Equal(t, "hour", statsquery.Finest(start, at, at), now)
		assert.Equal(t, "day", statsquery.Finest(start.Add(-1), at, at), now)

		// A warning begins five minutes beyond the month.
		query := &statsquery.Query{Start: start.Add(-5 * time.Minute), End: at, Granularity: "hour"}
		assert.Empty(t, statsquery.WAFTrends.Warnings(query, at), now)
		query.Start = query.Start.Add(-time.Second)
		assert.Len(t, statsquery.WAFTrends.Warnings(query, at), 1, now)
	}
}

// The id of a query depends on everything except its end. Stored cursors hold it, so it must not change.
func TestID(t *testing.T) {
	t.Parallel()
	service := "https://api.example.com"
	id := func(change func(*statsquery.Query)) string {
		q := statsquery.Query{
			Dimensions: []string{"rule_id"}, Start: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), End: end,
			SortBy: []statsquery.Sort{{Name: "event_timestamp_ms"}},
		}
		change(&q)
		return q.ID(service)
	}
	const want = "7c4798e317c804c32ede46fb9663f3de" // sha256sum of service, ? and the query string with the start as endtime
	assert.Equal(t, want, id(func(*statsquery.Query) {}))
	assert.Equal(t, want, id(func(q *statsquery.Query) { q.End = q.End.Add(time.Hour) }))
	assert.NotEqual(t, want, id(func(q *statsquery.Query) { q.Start = q.Start.Add(time.Second) }))
	assert.NotEqual(t, want, id(func(q *statsquery.Query) { q.Filter = filter("a==1") }))
	assert.NotEqual(t, want, id(func(q *statsquery.Query) { q.Dimensions = []string{"domain"} }))
	service = "https://api.example.org"
	assert.NotEqual(t, want, id(func(*statsquery.Query) {}))
}

// A clone shares no memory that the caller may change.
func TestClone(t *testing.T) {
	t.Parallel()
	q := aQuery()
	q.SortBy = []statsquery.Sort{{Name: "a"}}
	clone := q.Clone()
	assert.Equal(t, q, clone)
	q.Dimensions[0], q.Metrics[0], q.SortBy[0].Name = "x", "x", "x"
	assert.False(t, slices.Contains(clone.Dimensions, "x") || slices.Contains(clone.Metrics, "x") || clone.SortBy[0].Name == "x")
}
