package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/webdelivery/webdelivery-go"
)

// meters say how far an export with -follow has come.
type meters struct {
	export              *webdelivery.Export
	reached             atomic.Int64 // everything before was delivered; in nanoseconds since 1970
	delivered, rejected atomic.Int64
	told                time.Time
}

// reach records that everything before a time was delivered.
func (m *meters) reach(at time.Time) {
	if ns := at.UnixNano(); !at.IsZero() && ns > m.reached.Load() {
		m.reached.Store(ns)
	}
}

func (m *meters) lag() time.Duration { return time.Since(time.Unix(0, m.reached.Load())) }

// tell says at most once a minute that the export is far behind.
func (m *meters) tell(stderr io.Writer, delay time.Duration) {
	if lag := m.lag(); lag > 2*delay && time.Since(m.told) >= time.Minute {
		m.told = time.Now()
		fmt.Fprintf(stderr, "events: %v behind, which is more than twice the delay of %v\n", lag.Round(time.Second), delay)
	}
}

func (m *meters) handler() http.Handler {
	count := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "webdelivery_export_lag_seconds", Help: "Now minus the time up to which everything was delivered.",
		}, func() float64 { return m.lag().Seconds() }),
		count("webdelivery_export_events_total", "Delivered events.", m.delivered.Load),
		count("webdelivery_export_late_events_total", "Events that were recorded too late and are missing.", m.export.Late),
		count("webdelivery_export_rejected_events_total", "Events that the collector has rejected.", m.rejected.Load))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// serve serves the metrics until ctx ends.
func (m *meters) serve(ctx context.Context, address string, stderr io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: m.handler(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(stderr, "events: -metrics:", err)
		}
	}()
	fmt.Fprintf(stderr, "events: metrics are at http://%s/metrics\n", listener.Addr())
	return nil
}
