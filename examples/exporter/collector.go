package main

import (
	"cmp"
	"context"
	"errors"
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
	most   = 100             // values of a label: the service has a handful, and this bounds one that has more
)

// describe creates the description of a metric.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("webdelivery_"+name, help, append([]string{"family"}, labels...), nil)
}

// dimension is something that hits are counted by.
type dimension struct {
	name string // at the service
	desc *prometheus.Desc
}

// dimensions are all dimensions that become a label, each in a metric of its own. Every family has the first one.
var dimensions = []dimension{
	{webdelivery.DimEventAction, describe("hits", "Hits in the last complete 5 minutes, by action.", "action")},
	{webdelivery.DimEventSeverity, describe("hits_by_severity", "The same hits, by severity.", "severity")},
	{webdelivery.DimEventType, describe("hits_by_type", "The same hits, by type of the event.", "type")},
}

var (
	bucketDesc   = describe("bucket_timestamp_seconds", "When the last 5 minutes that could be read began.")
	upDesc       = describe("up", "Whether the last read succeeded.")
	errorsDesc   = describe("scrape_errors_total", "Reads that failed.")
	durationDesc = describe("scrape_duration_seconds", "How long the last read took.")
)

// collector reads the hits when Prometheus asks for them.
type collector struct {
	families []*family
	delay    time.Duration
	stderr   io.Writer

	mu   sync.Mutex // also held while the service is queried: other scrapes wait, and get the same
	read time.Time
}

func newCollector(client *webdelivery.Client, delay time.Duration, stderr io.Writer) *collector {
	return &collector{delay: delay, stderr: stderr, families: []*family{
		{name: "waf", from: client.Stats.WAFTrends, lacks: map[string]bool{}},
		{name: "request", from: client.Stats.RequestTrends, lacks: map[string]bool{}},
		{name: "traffic_shaping", from: client.Stats.TrafficShapingTrends, lacks: map[string]bool{}},
	}}
}

// Describe sends the descriptions of all metrics.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range dimensions {
		ch <- d.desc
	}
	for _, desc := range []*prometheus.Desc{bucketDesc, upDesc, errorsDesc, durationDesc} {
		ch <- desc
	}
}

// Collect sends the metrics. They are read again if they are older than a minute.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.read) >= keep {
		c.read = now
		c.readAll(now.Add(-c.delay).UTC().Truncate(5 * time.Minute))
	}
	for _, f := range c.families {
		for _, m := range f.metrics {
			ch <- m
		}
	}
}

// readAll reads all families at a time.
func (c *collector) readAll(end time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var all sync.WaitGroup
	for _, f := range c.families {
		all.Go(func() { f.read(ctx, end.Add(-5*time.Minute), end) })
	}
	all.Wait()
	for _, f := range c.families {
		for _, problem := range f.problems {
			fmt.Fprintf(c.stderr, "exporter: %s: %v\n", f.name, problem)
		}
	}
}

type trends = webdelivery.StatsFamily[webdelivery.TrendsQuery]

// family is a family of statistics, with what its last read found.
type family struct {
	name string
	from *trends

	lacks    map[string]bool // dimensions that the service has refused
	bucket   time.Time       // beginning of the last 5 minutes that could be read
	failed   float64         // reads that failed
	metrics  []prometheus.Metric
	problems []error
}

// read reads the hits by all dimensions at a time. If one of them fails, the family has no hits, so that its metrics never
// contradict each other.
func (f *family) read(ctx context.Context, begin, end time.Time) {
	f.metrics, f.problems = nil, nil
	found, errs := make([]map[string]int64, len(dimensions)), make([]error, len(dimensions))
	start := time.Now()
	var all sync.WaitGroup
	for i, d := range dimensions {
		if !f.lacks[d.name] {
			all.Go(func() { found[i], errs[i] = hits(ctx, f.from, d.name, begin, end) })
		}
	}
	all.Wait()
	f.add(durationDesc, prometheus.GaugeValue, time.Since(start).Seconds())

	var failure error
	for i, d := range dimensions {
		if errs[0] == nil && errors.Is(errs[i], webdelivery.ErrBadRequest) { // it accepts the query, but not this dimension
			f.lacks[d.name] = true
			f.problems = append(f.problems, fmt.Errorf("no hits by %s until the exporter is restarted: %w", d.name, errs[i]))
		} else {
			failure = cmp.Or(failure, errs[i])
		}
	}
	up := 1.0
	if failure != nil {
		f.problems = append(f.problems, failure)
		f.failed++
		up = 0
	} else {
		f.bucket = begin
		for i, d := range dimensions {
			for value, hits := range found[i] {
				f.add(d.desc, prometheus.GaugeValue, float64(hits), value)
			}
		}
	}
	f.add(upDesc, prometheus.GaugeValue, up)
	f.add(errorsDesc, prometheus.CounterValue, f.failed)
	if !f.bucket.IsZero() {
		f.add(bucketDesc, prometheus.GaugeValue, float64(f.bucket.Unix()))
	}
}

func (f *family) add(desc *prometheus.Desc, kind prometheus.ValueType, value float64, label ...string) {
	f.metrics = append(f.metrics, prometheus.MustNewConstMetric(desc, kind, value, append([]string{f.name}, label...)...))
}

// hits reads the hits of each value of a dimension in a time range; "" is that of hits without one. (Service document,
// section 4.3.)
func hits(ctx context.Context, from *trends, dimension string, begin, end time.Time) (map[string]int64, error) {
	found := map[string]int64{}
	for row, err := range from.All(ctx, webdelivery.TrendsQuery{
		Dimensions: []string{dimension}, Granularity: webdelivery.Granularity5Minute, Start: begin, End: end,
		SortBy: []string{webdelivery.Desc(webdelivery.MetricHits)}, Limit: most,
	}) {
		if err != nil {
			return nil, err
		}
		value, ok := row.Get(dimension)
		if !ok {
			return nil, fmt.Errorf("the response has no column %s", dimension)
		}
		counted, _ := row.Get(webdelivery.MetricHits) // without it, the value is null
		count, err := counted.Int64()
		if err != nil {
			return nil, fmt.Errorf("hits of %s: %w", dimension, err)
		}
		found[value.String()] += count
	}
	return found, nil
}
