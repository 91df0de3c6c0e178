package webdelivery_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
	"github.com/webdelivery/webdelivery-go/internal/operations"
)

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

// An export that continues within the retention lacks nothing.
func TestAnExportThatGoesOnHasNoWarning(t *testing.T) {
	t.Parallel()
	inLog(t, func(f *fixture.Fixture, log func() string) {
		query := webdelivery.EventsQuery{
			Dimensions: []string{webdelivery.DimClientIP}, Start: time.Now().AddDate(0, 0, -5), End: time.Now().Add(-time.Hour),
		}
		export := f.Client.Stats.NewExport(query, webdelivery.Cursor{}, webdelivery.ExportOptions{})
		_, err := collect(export.All(f.Context()))
		require.NoError(f, err)
		assert.NotEmpty(f, log())
		rest := f.Client.Stats.NewExport(query, export.Cursor(), webdelivery.ExportOptions{})
		_, err = collect(rest.All(f.Context()))
		require.NoError(f, err)
		assert.Empty(f, log())
	})
}
