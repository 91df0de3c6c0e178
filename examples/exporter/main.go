// Exporter serves the hits of the last complete 5 minutes as metrics for Prometheus.
//
//	exporter                              # http://localhost:9754/metrics
//	exporter -listen :9754 -delay 10m     # for a service that records hits later
//
// Metrics, of the families waf, request and traffic_shaping:
//
//	webdelivery_hits{family,action}                  hits in the last 5 minutes that ended -delay ago; an action without hits is missing
//	webdelivery_bucket_timestamp_seconds{family}     when these 5 minutes began
//	webdelivery_up{family}                           1 if they could be read; if not, the family has no hits
//	webdelivery_scrape_errors_total{family}          reads that failed
//
// The metrics have few labels and none with an address, so attackers cannot flood Prometheus. The service is queried at
// most once a minute, however many scrapes there are. SIGINT and SIGTERM stop the exporter.
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
