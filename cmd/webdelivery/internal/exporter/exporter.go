// Package exporter has the command that serves security statistics as metrics for Prometheus.
package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

const long = `Serve the hits of the last complete 5 minutes as metrics for Prometheus, until
^C. The families are waf, request and traffic_shaping:

  webdelivery_hits{family,action}                hits; an action without hits
                                                 is missing
  webdelivery_hits_by_severity{family,severity}  the same hits
  webdelivery_hits_by_type{family,type}          the same hits
  webdelivery_bucket_timestamp_seconds{family}   when the last 5 minutes that
                                                 could be read began
  webdelivery_up{family}                         1 if the last read succeeded;
                                                 if not, there are no hits
  webdelivery_scrape_errors_total{family}        reads that failed

A hit may count in several families, so sums over families mean nothing. If the
service refuses the severity or the type to a family, it has no such metric,
and standard error says so once.

A label has at most the 100 values with the most hits. None is an address, a
rule or a host: attackers could send so many that Prometheus runs out of memory.

The service gets at most 9 requests a minute, however many scrapes there are.
While it fails, each is sent up to 4 times.`

// Command returns the command.
func Command(app *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "exporter", Short: "Serve security statistics to Prometheus", Long: long,
		Example: `  webdelivery exporter
  webdelivery exporter --listen :9754 --delay 10m`,
		Args: cobra.NoArgs,
	}
	listen := c.Flags().String("listen", "localhost:9754", "serve on this `address`; without a host, to all computers")
	delay := cli.Duration(5 * time.Minute)
	c.Flags().Var(&delay, "delay", "read hits this `duration` after their 5 minutes, because some are recorded late")
	c.RunE = func(c *cobra.Command, _ []string) error {
		client, err := app.Connect()
		if err != nil {
			return err
		}
		collector := newCollector(client, time.Duration(delay), app.Tell)
		return app.Serve(c.Context(), *listen, handler(collector), "Metrics are at %s/metrics until you press ^C.")
	}
	return c
}

func handler(c prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

const (
	keep   = time.Minute     // how long to reuse what was read, so that many scrapes do not become many requests
	within = 8 * time.Second // a scrape has 10 s, unless Prometheus is configured otherwise
	most   = 100             // values of a label: the service has a handful, and this bounds one that has more
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("webdelivery_"+name, help, append([]string{"family"}, labels...), nil)
}

// dimensions are all that become a label, each in a metric of its own. Every family has the first one.
var dimensions = []struct {
	name string // at the service
	desc *prometheus.Desc
}{
	{webdelivery.DimEventAction, describe("hits", "Hits in the last complete 5 minutes, by action.", "action")},
	{webdelivery.DimEventSeverity, describe("hits_by_severity", "The same hits, by severity.", "severity")},
	{webdelivery.DimEventType, describe("hits_by_type", "The same hits, by type of the event.", "type")},
}

var (
	bucketDesc = describe("bucket_timestamp_seconds", "When the last 5 minutes that could be read began.")
	upDesc     = describe("up", "Whether the last read succeeded.")
	errorsDesc = describe("scrape_errors_total", "Reads that failed.")
)

// collector reads the hits when Prometheus asks for them.
type collector struct {
	families []*family
	delay    time.Duration
	tell     func(format string, args ...any)

	mu   sync.Mutex // also held while the service is queried: other scrapes wait, and get the same
	read time.Time
}

func newCollector(client *webdelivery.Client, delay time.Duration, tell func(string, ...any)) *collector {
	return &collector{delay: delay, tell: tell, families: []*family{
		{name: "waf", from: client.Stats.WAFTrends, lacks: map[string]bool{}},
		{name: "request", from: client.Stats.RequestTrends, lacks: map[string]bool{}},
		{name: "traffic_shaping", from: client.Stats.TrafficShapingTrends, lacks: map[string]bool{}},
	}}
}

// Describe sends nothing: which metrics there are is known after a read.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics. They are read again if they are older than a minute, all families at a time.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.read) >= keep {
		c.read = now
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		var all sync.WaitGroup
		for _, f := range c.families {
			all.Go(func() { f.read(ctx, now.Add(-c.delay).UTC().Truncate(5*time.Minute)) })
		}
		all.Wait()
		for _, f := range c.families {
			for _, problem := range f.problems {
				c.tell("%s: %v", f.name, problem)
			}
		}
	}
	for _, f := range c.families {
		for _, m := range f.metrics {
			ch <- m
		}
	}
}

// family is a family of statistics, with what its last read found.
type family struct {
	name string
	from *webdelivery.StatsFamily[webdelivery.TrendsQuery]

	lacks    map[string]bool // dimensions that the service has refused
	bucket   time.Time       // beginning of the last 5 minutes that could be read
	failed   float64         // reads that failed
	metrics  []prometheus.Metric
	problems []error
}

// read reads the hits of the 5 minutes before end by all dimensions at a time. If one of them fails, the family has no
// hits, so that its metrics never contradict each other.
func (f *family) read(ctx context.Context, end time.Time) {
	f.metrics, f.problems = nil, nil
	found, errs := make([]map[string]int64, len(dimensions)), make([]error, len(dimensions))
	begin := end.Add(-5 * time.Minute)
	var all sync.WaitGroup
	for i, d := range dimensions {
		if !f.lacks[d.name] {
			all.Go(func() { found[i], errs[i] = f.hits(ctx, d.name, begin, end) })
		}
	}
	all.Wait()

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
func (f *family) hits(ctx context.Context, dimension string, begin, end time.Time) (map[string]int64, error) {
	found := map[string]int64{}
	for row, err := range f.from.All(ctx, webdelivery.TrendsQuery{
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
