package webdelivery_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

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
		Metrics:    []string{webdelivery.MetricHits}, Granularity: webdelivery.GranularityHour,
		Start: noon.Add(-2 * time.Hour), End: noon,
		SortBy: []webdelivery.Sort{webdelivery.Asc(webdelivery.DimEventTimestamp), webdelivery.Asc(webdelivery.DimClientCountryCode)},
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
		Metrics:    []string{webdelivery.MetricHits}, Granularity: webdelivery.GranularityHour,
		Start: noon.Add(-2 * time.Hour), End: noon,
		SortBy: []webdelivery.Sort{webdelivery.Desc(webdelivery.MetricHits)},
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
