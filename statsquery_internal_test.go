package webdelivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Section 8: a response has all matching rows up to the limit, 10 by default, and up to the size of a top-K. That is 20
// for the WAF, which has no limit parameter, and 1,000 for traffic shaping. To prove all rows, there must be fewer than
// requested.
func TestCompleteResponses(t *testing.T) {
	t.Parallel()
	events, waf, shaping := eventsRules, statsRules{aggregated: true, noLimit: true, top: 20}, statsRules{aggregated: true, top: 1000}
	for _, tt := range []struct {
		family            statsRules
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
		assert.Equal(t, tt.want, tt.family.complete(tt.got, tt.total, tt.limit, tt.all) == nil, "%+v", tt)
	}
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
		assert.Equal(t, GranularityHour, GranularityFor(start, at, at), now)
		assert.Equal(t, GranularityDay, GranularityFor(start.Add(-1), at, at), now)

		// A warning begins five minutes beyond the month.
		query := &statsParams{Start: start.Add(-5 * time.Minute), End: at, Granularity: "hour"}
		assert.Empty(t, wafTrendsRules.warnings(query, at), now)
		query.Start = query.Start.Add(-time.Second)
		assert.Len(t, wafTrendsRules.warnings(query, at), 1, now)
	}
}
