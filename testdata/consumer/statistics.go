package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
)

// event is a struct of the user's.
type event struct {
	Time time.Time  `stats:"event_timestamp_ms"`
	IP   netip.Addr `stats:"client_ip"`
}

func statistics(ctx context.Context, client *webdelivery.Client) error {
	var stats *webdelivery.StatsService = client.Stats
	var events *webdelivery.StatsFamily[webdelivery.EventsQuery] = stats.Events
	now := time.Now()
	start, end := webdelivery.EventsRetention(now).Add(time.Minute), now
	q := webdelivery.EventsQuery{
		Dimensions: []string{
			webdelivery.DimEventTimestamp, webdelivery.DimEventSeverity, webdelivery.DimEventType, webdelivery.DimEventAction,
			webdelivery.DimClientConnectionRemoteIP, webdelivery.DimClientIP, webdelivery.DimClientBrowser,
			webdelivery.DimClientCountryCode, webdelivery.DimClientASN, webdelivery.DimRuleID, webdelivery.DimDomain,
			webdelivery.DimProperty, webdelivery.DimWAFAction,
		},
		Start: start, End: end,
		Filter: filters.And(filters.Eq("client_country_code", "CN"), filters.Ne("event_action", "WARN")),
		SortBy: []webdelivery.Sort{webdelivery.Desc("event_timestamp_ms"), webdelivery.Asc("client_ip")}, Limit: 500,
	}
	var result *webdelivery.Result
	result, err := events.Query(ctx, q)
	if err != nil {
		return err
	}
	var echo webdelivery.QueryEcho = result.Query
	fmt.Println(echo.Dimensions, echo.StartTime, echo.EndTime, echo.Filters, echo.Start, echo.Limit)
	fmt.Println(result.Columns, result.Rows, result.TotalResults, result.ReplacedTexts, result.Truncated(), result.Warnings)
	kept, err := webdelivery.Collect(webdelivery.Scan[event](result.All()))
	if err != nil {
		return err
	}
	fmt.Println(len(kept))
	var streamed webdelivery.StreamOption = webdelivery.OnSummary(func(s webdelivery.StreamSummary) {
		fmt.Println(s.Rows, s.TotalResults, s.ReplacedTexts, s.Warnings)
	})
	for row, err := range events.Rows(ctx, q, streamed) {
		if err != nil {
			return err
		}
		var kept webdelivery.Row = row.Clone()
		object, err := kept.MarshalJSON()
		fmt.Println(kept.Len(), kept.Columns(), kept.At(0), kept.String(), string(object), err)
		v, ok := kept.Get("client_ip")
		fmt.Println(ok, values(v))
	}
	q.Dimensions = webdelivery.DimensionsOf[event]()
	for ev, err := range webdelivery.Scan[event](events.All(ctx, q, streamed)) {
		if err != nil {
			return err
		}
		fmt.Println(ev.Time, ev.IP)
	}
	if err := export(ctx, stats, start, end); err != nil {
		return err
	}
	var dims *webdelivery.NameList
	if dims, err = events.Dimensions(ctx); err != nil {
		return err
	}
	var names []string = dims.Names
	var raw json.RawMessage = dims.Raw
	var hdr http.Header
	hdr, err = events.Head(ctx)
	fmt.Println(names, len(raw), hdr, err)
	if err := trends(ctx, stats, end); err != nil {
		return err
	}
	return topK(ctx, stats, end)
}

// export goes on from a cursor that was stored.
func export(ctx context.Context, stats *webdelivery.StatsService, start, end time.Time) error {
	q := webdelivery.EventsQuery{Dimensions: webdelivery.DimensionsOf[event](), Start: start, End: end}
	var e *webdelivery.Export = stats.NewExport(q, webdelivery.Cursor{})
	fmt.Println(e.Warnings())
	for range e.Rows(ctx) {
		break
	}
	stored, err := e.Cursor().MarshalJSON()
	if err != nil {
		return err
	}
	var cursor webdelivery.Cursor
	if err := cursor.UnmarshalJSON(stored); err != nil {
		return err
	}
	fmt.Println(cursor.Rows(), cursor.Time())
	for ev, err := range webdelivery.Scan[event](stats.NewExport(q, cursor).Rows(ctx)) {
		if err != nil {
			return err
		}
		fmt.Println(ev.Time, ev.IP)
	}
	return nil
}

// values reads one in every way.
func values(v webdelivery.Value) string {
	n, err := v.Int64()
	f, err2 := v.Float64()
	at, err3 := v.Time()
	addr, err4 := v.Addr()
	text, err5 := v.MarshalJSON()
	return fmt.Sprint(v.String(), v.IsNull(), v.Raw(), n, f, at, addr, text, err, err2, err3, err4, err5)
}

// first is a function of the user's for all statistics.
func first[Q webdelivery.StatsQuery](ctx context.Context, family *webdelivery.StatsFamily[Q], q Q) (row webdelivery.Row, err error) {
	for row, err = range family.Rows(ctx, q) {
		break
	}
	return row, err
}

func trends(ctx context.Context, stats *webdelivery.StatsService, end time.Time) error {
	start := end.Add(-6 * time.Hour)
	var granularity webdelivery.Granularity = webdelivery.GranularityFor(start, end, end)
	switch granularity {
	case webdelivery.Granularity5Minute, webdelivery.GranularityHour, webdelivery.GranularityDay:
	}
	q := webdelivery.TrendsQuery{
		Dimensions: []string{webdelivery.DimClientCountryCode}, Metrics: []string{webdelivery.MetricHits},
		Start: start, End: end, Filter: filters.Eq("client_country_code", "CN"), Granularity: granularity,
		SortBy: []webdelivery.Sort{{Name: webdelivery.MetricHits, Descending: true}}, Limit: 10,
	}
	for _, family := range []*webdelivery.AggregatedFamily[webdelivery.TrendsQuery]{
		stats.WAFTrends, stats.RequestTrends, stats.TrafficShapingTrends,
	} {
		dimensions, err := family.Dimensions(ctx)
		if err != nil {
			return err
		}
		metrics, err := family.Metrics(ctx)
		if err != nil {
			return err
		}
		var groupings *webdelivery.Groupings
		if groupings, err = family.Groupings(ctx); err != nil {
			return err
		}
		header, err := family.Head(ctx)
		fmt.Println(dimensions.Names, metrics.Names, groupings.Groupings, len(groupings.Raw), header, err)
		if _, err := family.Query(ctx, q); err != nil {
			return err
		}
		for row, err := range family.All(ctx, q) {
			fmt.Println(row, err)
		}
		for row, err := range family.Rows(ctx, q) {
			fmt.Println(row, err)
		}
		if _, err := first(ctx, &family.StatsFamily, q); err != nil {
			return err
		}
	}
	return nil
}

func topK(ctx context.Context, stats *webdelivery.StatsService, end time.Time) error {
	start := end.Add(-6 * time.Hour)
	for _, category := range []webdelivery.WAFCategory{
		webdelivery.WAFByBrowser, webdelivery.WAFByClientIP, webdelivery.WAFByCountry, webdelivery.WAFByRequestPath,
		webdelivery.WAFByRuleID, webdelivery.WAFBySeverity,
	} {
		family := stats.WAFTopK(category)
		groupings, err := family.Groupings(ctx)
		if err != nil {
			return err
		}
		_, err = family.Query(ctx, webdelivery.WAFTopKQuery{
			Dimensions: groupings.Groupings[0], Metrics: []string{webdelivery.MetricHits},
			Start: start, End: end, Filter: filters.Eq("client_country_code", "CN"),
		})
		if err != nil {
			return err
		}
	}
	for _, category := range []webdelivery.ShapingCategory{
		webdelivery.ShapingByBrowser, webdelivery.ShapingByClientIP, webdelivery.ShapingByCountry,
		webdelivery.ShapingByRateLimitClientIP, webdelivery.ShapingByRateLimitCountry, webdelivery.ShapingByRequestPath,
	} {
		family := stats.TrafficShapingTopK(category)
		groupings, err := family.Groupings(ctx)
		if err != nil {
			return err
		}
		_, err = family.Query(ctx, webdelivery.ShapingTopKQuery{
			Dimensions: groupings.Groupings[0], Metrics: []string{webdelivery.MetricHits},
			Start: start, End: end, Filter: filters.Eq("client_country_code", "CN"),
			SortBy: []webdelivery.Sort{webdelivery.Desc(webdelivery.MetricHits)}, Limit: 7,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
