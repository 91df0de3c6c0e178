package observe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

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

func Example_observed() {
	srv, err := webdeliverytest.Start()
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	srv.Fail(webdeliverytest.FaultRule{Path: "/tasks", Count: 1, Status: http.StatusServiceUnavailable})
	spans := tracetest.NewInMemoryExporter()
	tracer := otelhttp.WithTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	client, err := srv.NewClient(webdelivery.BasicAuth(srv.Username, srv.Password), observed(tracer))
	if err != nil {
		panic(err)
	}
	for _, err := range client.Tasks.All(context.Background(), webdelivery.TaskListOptions{Since: time.Now().Add(-time.Hour)}) {
		fmt.Println(err)
	}
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name, span.Status.Code)
	}
	// Output:
	// Tasks.List Error
	// Tasks.List Unset
}
