package main

import (
	"context"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// transport creates a span for every attempt, logins included: the SDK retries above it. Each span is a child of the
// one in the caller's context.
func transport(base http.RoundTripper, provider trace.TracerProvider) http.RoundTripper {
	return otelhttp.NewTransport(withoutQuery{base}, otelhttp.WithTracerProvider(provider))
}

// withoutQuery removes the query from the span's address. A query holds no credential, but what a user looked for:
// filters name addresses of people.
type withoutQuery struct{ next http.RoundTripper }

func (t withoutQuery) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.RawQuery != "" {
		shown := *req.URL
		shown.RawQuery = ""
		trace.SpanFromContext(req.Context()).SetAttributes(semconv.URLFull(shown.String()))
	}
	return t.next.RoundTrip(req)
}

// spanned calls run in a span of its own. The span may hold an error of the SDK, because these hold no credential.
func spanned(ctx context.Context, tracer trace.Tracer, name string, run func(context.Context) error) error {
	ctx, span := tracer.Start(ctx, name)
	defer span.End()
	err := run(ctx)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}
