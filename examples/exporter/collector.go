package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/webdelivery/webdelivery-go"
)

const (
	keep   = time.Minute     // how long to reuse what was read, so that many scrapes do not become many requests
	within = 8 * time.Second // a scrape has 10 s, unless Prometheus is configured otherwise
)

// collector reads the hits when Prometheus asks for them.
type collector struct {
	client *webdelivery.Client
	delay  time.Duration
	stderr io.Writer

	mu      sync.Mutex // also held while the service is queried: other scrapes wait, and get the same
	read    time.Time
	metrics []prometheus.Metric
	failed  map[string]float64
}

func newCollector(client *webdelivery.Client, delay time.Duration, stderr io.Writer) *collector {
	return &collector{client: client, delay: delay, stderr: stderr, failed: map[string]float64{}}
}

// describe creates the description of a metric.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("webdelivery_"+name, help, append([]string{"family"}, labels...), nil)
}

var (
	hitsDesc   = describe("hits", "Hits in the last complete 5 minutes.", "action")
	bucketDesc = describe("bucket_timestamp_seconds", "When these 5 minutes began.")
	upDesc     = describe("up", "Whether the hits could be read.")
	errorsDesc = describe("scrape_errors_total", "Reads that failed.")
)

// Describe sends the descriptions of all metrics.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{hitsDesc, bucketDesc, upDesc, errorsDesc} {
		ch <- d
	}
}

// Collect sends the metrics. They are read again if they are older than a minute.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.read) >= keep {
		c.read, c.metrics = now, nil
		c.readAll(now.Add(-c.delay).UTC().Truncate(5 * time.Minute))
	}
	for _, m := range c.metrics {
		ch <- m
	}
}

// readAll reads all families at a time.
func (c *collector) readAll(end time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	families := []struct {
		name string
		from *trends
		hits map[string]float64
		err  error
	}{
		{name: "waf", from: c.client.Stats.WAFTrends},
		{name: "request", from: c.client.Stats.RequestTrends},
		{name: "traffic_shaping", from: c.client.Stats.TrafficShapingTrends},
	}
	begin := end.Add(-5 * time.Minute)
	var all sync.WaitGroup
	for i := range families {
		f := &families[i]
		all.Go(func() { f.hits, f.err = hits(ctx, f.from, begin, end) })
	}
	all.Wait()
	for _, f := range families {
		add := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, action ...string) {
			c.metrics = append(c.metrics, prometheus.MustNewConstMetric(desc, kind, value, append([]string{f.name}, action...)...))
		}
		up := 1.0
		if f.err != nil {
			fmt.Fprintf(c.stderr, "exporter: %s: %v\n", f.name, f.err)
			c.failed[f.name]++
			up = 0
		} else {
			add(bucketDesc, prometheus.GaugeValue, float64(begin.Unix()))
		}
		add(upDesc, prometheus.GaugeValue, up)
		add(errorsDesc, prometheus.CounterValue, c.failed[f.name])
		for action, hits := range f.hits {
			add(hitsDesc, prometheus.GaugeValue, hits, action)
		}
	}
}

type trends = webdelivery.StatsFamily[webdelivery.TrendsQuery]

// hits reads the hits of each action in a time range. (Service document, section 4.3.)
func hits(ctx context.Context, from *trends, begin, end time.Time) (map[string]float64, error) {
	type row struct {
		Action *string `stats:"event_action"` // nil for hits without an action
		Hits   float64 `stats:"hits"`
	}
	found := map[string]float64{}
	for r, err := range webdelivery.Scan[row](from.All(ctx, webdelivery.TrendsQuery{
		Dimensions: []string{webdelivery.DimEventAction}, Metrics: []string{webdelivery.MetricHits},
		Granularity: webdelivery.Granularity5Minute, Start: begin, End: end,
	})) {
		if err != nil {
			return nil, err
		}
		action := ""
		if r.Action != nil {
			action = *r.Action
		}
		found[action] += r.Hits
	}
	return found, nil
}
