// Exporter serves the hits of the last complete 5 minutes as metrics for Prometheus.
//
//	exporter                              # http://localhost:9754/metrics
//	exporter -listen :9754 -delay 10m     # for a service that records hits later
//
// Metrics, of the families waf, request and traffic_shaping:
//
//	webdelivery_hits{family,action}                  hits in the last 5 minutes that ended -delay ago; an action without hits is missing
//	webdelivery_hits_by_severity{family,severity}    the same hits by severity
//	webdelivery_hits_by_type{family,type}            the same hits by type of the event
//	webdelivery_bucket_timestamp_seconds{family}     when the last 5 minutes that could be read began
//	webdelivery_up{family}                           1 if the last read succeeded; if not, the family has no hits
//	webdelivery_scrape_errors_total{family}          reads that failed
//	webdelivery_scrape_duration_seconds{family}      how long the last read took
//
// One hit may count in several families, and counts in each of the three metrics of hits, so sums over families or over
// these metrics mean nothing. If the service refuses the severity or the type to a family, standard error says so once,
// and the family has no such metric.
//
// Labels hold actions, severities and types, which are words of the service, and at most the 100 of each with the most
// hits. None holds an address, a rule or a host: attackers could send so many different ones that Prometheus runs out of
// memory.
//
// The service is queried at most once a minute, however many scrapes there are, with one request for each metric of hits
// that a family has: at most 3 for waf, 3 for request and 3 for traffic_shaping. While the service fails, each is sent
// up to 4 times. With WEBDELIVERY_AUTH=session there are logins, too.
//
// SIGINT and SIGTERM stop the exporter.
//
// Exit codes: 0 stopped, 1 could not listen, 2 wrong usage.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

//go:embed main.go
var source string // begins with the help

func main() { program.Main("exporter", nil, run) }

func run(ctx context.Context, args []string, s program.Streams) error {
	flags := program.Flags("exporter", source, s)
	listen := flags.String("listen", "localhost:9754", "`address` to serve on")
	delay := program.Duration(5 * time.Minute)
	flags.Var(&delay, "delay", "read hits this `duration` after their 5 minutes, because some are recorded late")
	if err := program.ParseAlone(flags, args); err != nil {
		return err
	}
	service, err := program.Connect(s.Err, nil, []webdeliverytest.Option{webdeliverytest.WithEvents(1, 1, time.Time{})}, nil)
	if err != nil {
		return err
	}
	defer service.Close()

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(newCollector(service.Client, time.Duration(delay), s.Err)), ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(s.Out, "Metrics are at http://%s/metrics until you press ^C.\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func handler(c prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}
