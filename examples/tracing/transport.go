package main

import (
	"context"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// transport makes a span of every attempt. The SDK repeats a call above it, so each attempt passes it by itself, logins
// included; the span is a child of the one in the caller's context.
func transport(base http.RoundTripper, provider trace.TracerProvider) http.RoundTripper {
	return otelhttp.NewTransport(withoutQuery{base}, otelhttp.WithTracerProvider(provider))
}

// withoutQuery takes the query out of the span's address. It holds no credential, but what somebody was looking for: a
// filter names addresses of people.
type withoutQuery struct{ next http.RoundTripper }

func (t withoutQuery) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.RawQuery != "" {
		shown := *req.URL
		shown.RawQuery = ""
		trace.SpanFromContext(req.Context()).SetAttributes(semconv.URLFull(shown.String()))
	}
	return t.next.RoundTrip(req)
}

// spanned runs something in a span of its own. An error of the SDK may stand in it, as it holds no credential.
func spanned(ctx context.Context, tracer trace.Tracer, name string, run func(context.Context) error) error {
	ctx, span := tracer.Start(ctx, name)
	defer span.End()
	err := run(ctx)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	return err
}
