package webdelivery_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/internal/testserver"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// exampleStatistics starts a fake service at noon of 2026-11-20 with a few security events of that morning.
func exampleStatistics() (client *webdelivery.Client, stop func()) {
	return exampleEvents(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
}

func exampleEvents(noon time.Time) (client *webdelivery.Client, stop func()) {
	service := testserver.New(testserver.Config{Clock: testserver.NewClock(func() time.Time { return noon })})
	url, err := service.ListenTCP()
	if err != nil {
		panic(err)
	}
	for i, country := range []string{"CN", "DE", "CN", "US", "CN"} {
		service.AddEvents(testserver.Event{
			Time: noon.Add(time.Duration(i-5) * time.Minute), Type: testserver.TypeWAF, Action: "BLOCK", RuleID: "942100",
			ClientIP: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), CountryCode: country, ASN: 64500,
		})
	}
	client, err = webdelivery.NewClient(url, "acme", webdelivery.BasicAuth("alice", "correct-horse-battery"))
	if err != nil {
		panic(err)
	}
	return client, func() { _ = service.Close() }
}

// An export that was stopped continues from its cursor, in another process, too.
func ExampleStatsService_NewExport() {
	end := time.Now().Truncate(time.Second) // the service keeps events for three days
	client, stop := exampleEvents(end)
	defer stop()
	ctx := context.Background()
	query := webdelivery.EventsQuery{Dimensions: []string{webdelivery.DimClientIP}, Start: end.Add(-time.Hour), End: end}

	export := client.Stats.NewExport(query, webdelivery.Cursor{}, webdelivery.ExportOptions{})
	for row, err := range export.All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(row.Get(webdelivery.DimClientIP))
		if export.Cursor().Count() == 3 {
			break // for example, because the process has to stop
		}
	}
	stored, err := json.Marshal(export.Cursor()) // save it after the rows are saved
	if err != nil {
		fmt.Println(err)
		return
	}

	var cursor webdelivery.Cursor
	if err := json.Unmarshal(stored, &cursor); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("continue after", cursor.Count(), "events")
	for row, err := range client.Stats.NewExport(query, cursor, webdelivery.ExportOptions{}).All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(row.Get(webdelivery.DimClientIP))
	}
	// Output:
	// 192.0.2.1 true
	// 192.0.2.2 true
	// 192.0.2.3 true
	// continue after 3 events
	// 192.0.2.4 true
	// 192.0.2.5 true
}

func ExampleStatsFamily_Query() {
	client, stop := exampleStatistics()
	defer stop()
	ctx := context.Background()
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	result, err := client.Stats.Events.Query(ctx, webdelivery.EventsQuery{
		Dimensions: []string{webdelivery.DimEventTimestamp, webdelivery.DimClientIP},
		Start:      end.Add(-time.Hour), End: end,
		Filter: filters.And(filters.Eq("client_country_code", "CN"), filters.Ne("event_action", "WARN")),
		SortBy: []string{webdelivery.Desc(webdelivery.DimEventTimestamp)}, Limit: 2,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.TotalResults, "match; the latest:")
	for _, row := range result.Rows {
		fmt.Println(row.At(0), row.At(1))
	}
	// Output:
	// 3 match; the latest:
	// 2026-11-20T11:59:00.000 192.0.2.5
	// 2026-11-20T11:57:00.000 192.0.2.3
}

// Without a Limit the service gives 10 rows, even if more match.
func ExampleResult_Truncated() {
	service := testserver.New(testserver.Config{EventsPerSecond: 1})
	url, err := service.ListenTCP()
	if err != nil {
		panic(err)
	}
	defer service.Close()
	client, err := webdelivery.NewClient(url, "acme", webdelivery.BasicAuth("alice", "correct-horse-battery"))
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Now()

	result, err := client.Stats.Events.Query(context.Background(), webdelivery.EventsQuery{
		Dimensions: []string{webdelivery.DimClientIP}, Start: now.Add(-time.Hour), End: now,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(result.Rows), "rows")
	if result.Truncated() {
		fmt.Println("more match: set Limit, or use All")
	}
	// Output:
	// 10 rows
	// more match: set Limit, or use All
}

// The largest countries, as structs. Dimensions may be left out.
func ExampleResult_All() {
	client, stop := exampleStatistics()
	defer stop()
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	type Country struct {
		Code *string `stats:"client_country_code"` // nil if the row has null
		Hits int64   `stats:"hits"`
	}
	result, err := client.Stats.WAFTopK(webdelivery.WAFByCountry).Query(context.Background(), webdelivery.TopKQuery{
		Start: end.Add(-time.Hour), End: end,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for country, err := range webdelivery.Scan[Country](result.All()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if country.Code == nil {
			fmt.Println("unknown", country.Hits)
			continue
		}
		fmt.Println(*country.Code, country.Hits)
	}
	// Output:
	// CN 3
	// DE 1
	// US 1
}

func ExampleCollect() {
	client, stop := exampleStatistics()
	defer stop()
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	type Event struct {
		Time time.Time   `stats:"event_timestamp_ms"`
		IP   *netip.Addr `stats:"client_ip"` // nil if the row has null
	}
	query := webdelivery.EventsQuery{Dimensions: webdelivery.DimensionsOf[Event](), Start: end.Add(-time.Hour), End: end}
	events, err := webdelivery.Collect(webdelivery.Scan[Event](client.Stats.Events.All(context.Background(), query)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(events), "events, the first of", events[0].IP)
	// Output: 5 events, the first of 192.0.2.1
}

func ExampleScan() {
	client, stop := exampleStatistics()
	defer stop()
	ctx := context.Background()
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	type Event struct {
		Time time.Time   `stats:"event_timestamp_ms"`
		IP   *netip.Addr `stats:"client_ip"` // nil if the row has null
	}
	query := webdelivery.EventsQuery{
		Dimensions: webdelivery.DimensionsOf[Event](), Start: webdelivery.EventsRetention(end), End: end,
	}
	for event, err := range webdelivery.Scan[Event](client.Stats.Events.All(ctx, query)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Time.Format(time.TimeOnly), event.IP)
	}
	// Output:
	// 11:55:00 192.0.2.1
	// 11:56:00 192.0.2.2
	// 11:57:00 192.0.2.3
	// 11:58:00 192.0.2.4
	// 11:59:00 192.0.2.5
}

func ExampleStatsService_WAFTopK() {
	client, stop := exampleStatistics()
	defer stop()
	ctx := context.Background()
	end := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

	query := webdelivery.TopKQuery{
		Dimensions: []string{webdelivery.DimClientCountryCode},
		Start:      end.Add(-time.Hour), End: end,
	}
	for row, err := range client.Stats.WAFTopK(webdelivery.WAFByCountry).All(ctx, query) {
		if err != nil {
			fmt.Println(err)
			return
		}
		country, _ := row.Get(webdelivery.DimClientCountryCode)
		hits, _ := row.Get(webdelivery.MetricHits)
		fmt.Println(country, hits)
	}
	// Output:
	// CN 3
	// DE 1
	// US 1
}

// exampleTrends starts a fake service at noon of 2026-11-20. It has three WAF events between 10:00 and 11:00, and three
// between 11:00 and 12:00. The service does not know the country of the last one.
func exampleTrends() (client *webdelivery.Client, noon time.Time, stop func()) {
	noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)
	srv, err := webdeliverytest.Start(webdeliverytest.WithNow(func() time.Time { return noon }))
	if err != nil {
		panic(err)
	}
	for _, event := range []struct{ clock, country string }{
		{"10:05", "CN"}, {"10:50", "CN"}, {"10:59", "DE"}, {"11:10", "CN"}, {"11:30", "DE"}, {"11:40", ""},
	} {
		at, err := time.Parse("2006-01-02 15:04", "2026-11-20 "+event.clock)
		if err != nil {
			panic(err)
		}
		srv.AddEvents(webdeliverytest.Event{Time: at, RuleID: "942100", CountryCode: event.country})
	}
	client, err = srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password))
	if err != nil {
		panic(err)
	}
	return client, noon, srv.Close
}

// Per hour and country: event_timestamp_ms is one of the dimensions.
func ExampleTrendsQuery() {
	client, noon, stop := exampleTrends()
	defer stop()
	ctx := context.Background()

	type Bucket struct {
		Hour    time.Time `stats:"event_timestamp_ms"`  // the beginning of the bucket
		Country *string   `stats:"client_country_code"` // nil if the row has null
		Hits    int64     `stats:"hits"`
	}
	perHour := webdelivery.TrendsQuery{
		Dimensions: []string{webdelivery.DimEventTimestamp, webdelivery.DimClientCountryCode},
		Start:      noon.Add(-2 * time.Hour), End: noon, Granularity: webdelivery.GranularityHour,
		SortBy: []string{webdelivery.DimEventTimestamp, webdelivery.DimClientCountryCode},
	}
	for bucket, err := range webdelivery.Scan[Bucket](client.Stats.WAFTrends.All(ctx, perHour)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		country := "unknown"
		if bucket.Country != nil {
			country = *bucket.Country
		}
		fmt.Println(bucket.Hour.Format("15:04"), country, bucket.Hits)
	}
	// Output:
	// 10:00 CN 2
	// 10:00 DE 1
	// 11:00 unknown 1
	// 11:00 CN 1
	// 11:00 DE 1
}

// In total by country: without event_timestamp_ms each row counts the whole time range.
func ExampleTrendsQuery_total() {
	client, noon, stop := exampleTrends()
	defer stop()
	ctx := context.Background()

	type Country struct {
		Code *string `stats:"client_country_code"`
		Hits int64   `stats:"hits"`
	}
	total := webdelivery.TrendsQuery{
		Dimensions: []string{webdelivery.DimClientCountryCode},
		Start:      noon.Add(-2 * time.Hour), End: noon, Granularity: webdelivery.GranularityHour,
		SortBy: []string{webdelivery.Desc(webdelivery.MetricHits)},
	}
	for country, err := range webdelivery.Scan[Country](client.Stats.WAFTrends.All(ctx, total)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if country.Code == nil {
			fmt.Println("unknown", country.Hits)
			continue
		}
		fmt.Println(*country.Code, country.Hits)
	}
	// Output:
	// CN 3
	// DE 2
	// unknown 1
}

// The sets of dimensions that can be grouped together, of those with the client's network.
func ExampleStatsFamily_Groupings() {
	client, _, stop := exampleTrends()
	defer stop()
	ctx := context.Background()

	known, err := client.Stats.WAFTrends.Groupings(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, set := range known {
		if slices.Contains(set, webdelivery.DimClientASN) {
			fmt.Println(set)
		}
	}
	// Output:
	// [client_asn]
	// [event_timestamp_ms client_asn]
	// [client_country_code client_asn]
	// [event_timestamp_ms client_country_code client_asn]
}
