// Observe traces and measures the calls of the SDK with OpenTelemetry: each attempt is a span below that of its caller,
// named by its operation, and the metrics of HTTP are apart for each operation. It prints both; your program takes the
// exporters of its collector. Run it with: go run ./examples/integrations/observe
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/signal"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/webdelivery/webdelivery-go"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	spans, err := stdouttrace.New()
	measurements, failed := stdoutmetric.New()
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	tracers := trace.NewTracerProvider(trace.WithBatcher(spans))
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(measurements)))
	client, err := webdelivery.NewClientFromEnv(
		observed(otelhttp.WithTracerProvider(tracers), otelhttp.WithMeterProvider(meters)))
	if err != nil {
		return err
	}
	caller, span := tracers.Tracer("observe").Start(ctx, "count tasks")
	_, err = client.Tasks.List(caller, webdelivery.TaskListOptions{})
	span.End()
	return errors.Join(err, tracers.Shutdown(context.Background()), meters.Shutdown(context.Background())) // also after ^C
}

// observed makes each attempt a span, and counts it in the metrics.
func observed(options ...otelhttp.Option) webdelivery.Option {
	named := otelhttp.WithSpanNameFormatter(func(_ string, req *http.Request) string {
		operation, _ := webdelivery.OperationFromContext(req.Context())
		return operation
	})
	return webdelivery.WithMiddleware(func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(described{next}, append(options, named)...)
	})
}

// described stands below otelhttp: there, the context of a request holds the span and the labels of its attempt.
type described struct{ next http.RoundTripper }

func (d described) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	operation, attempt := webdelivery.OperationFromContext(ctx)
	withoutQuery := url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path} // a query may name persons
	span := oteltrace.SpanFromContext(ctx)
	span.SetAttributes(attribute.String("url.full", withoutQuery.String()))
	if attempt > 1 {
		span.SetAttributes(attribute.Int("http.request.resend_count", attempt-1))
	}
	labels, _ := otelhttp.ClientLabelerFromContext(ctx)
	labels.Add(attribute.String("webdelivery.operation", operation))
	return d.next.RoundTrip(req)
}
