package observe_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// Each attempt is a span within the caller's, is named by its method, and says which attempt it is. The metrics count each
// operation separately. Neither has a query.
func TestObserved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		list := srv.AddNetworkList(webdeliverytest.NetworkListSpec{Name: "blocked"})
		srv.Fail(webdeliverytest.FaultRule{Path: "/config/networklists", Count: 1, Status: http.StatusServiceUnavailable})
		spans, reader := tracetest.NewInMemoryExporter(), metric.NewManualReader()
		tracers := trace.NewTracerProvider(trace.WithSyncer(spans))
		meters := metric.NewMeterProvider(metric.WithReader(reader))
		client := srv.ClientAs(t, webdelivery.SessionAuth(srv.Username, srv.Password),
			observed(otelhttp.WithTracerProvider(tracers), otelhttp.WithMeterProvider(meters)))

		ctx, caller := tracers.Tracer("test").Start(t.Context(), "caller")
		_, err := client.NetworkLists.List(ctx, webdelivery.NetworkListOptions{Count: 5})
		require.NoError(t, err)
		_, err = client.NetworkLists.AddEntries(ctx, list, []string{"192.0.2.1"})
		require.NoError(t, err)

		var attempts []string // as operation, status, and how often it was sent before
		for _, span := range spans.GetSpans() {
			attributes := attribute.NewSet(span.Attributes...)
			status, _ := attributes.Value("http.response.status_code")
			resent, _ := attributes.Value("http.request.resend_count")
			attempts = append(attempts, fmt.Sprint(span.Name, " ", status.AsInt64(), " ", resent.AsInt64()))
			assert.Equal(t, caller.SpanContext().SpanID(), span.Parent.SpanID(), "%s", span.Name)
			address, _ := attributes.Value("url.full")
			assert.Contains(t, address.AsString(), srv.URL)
			assert.NotContains(t, address.AsString(), "?")
		}
		assert.Equal(t, []string{
			"Sessions.Create 201 0", "NetworkLists.List 503 0", "NetworkLists.List 200 1", "NetworkLists.AddEntries 200 0",
		}, attempts)

		counts := map[string]uint64{}
		for _, point := range durations(t, reader) {
			operation, _ := point.Attributes.Value("webdelivery.operation")
			status, _ := point.Attributes.Value("http.response.status_code")
			counts[fmt.Sprint(operation.AsString(), " ", status.AsInt64())] += point.Count
		}
		assert.Equal(t, map[string]uint64{
			"Sessions.Create 201": 1, "NetworkLists.List 503": 1, "NetworkLists.List 200": 1, "NetworkLists.AddEntries 200": 1,
		}, counts)
	})
}

// durations returns what otelhttp has counted.
func durations(t *testing.T, reader metric.Reader) []metricdata.HistogramDataPoint[float64] {
	t.Helper()
	var collected metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &collected))
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			if histogram, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "http.client.request.duration" {
				return histogram.DataPoints
			}
		}
	}
	require.Fail(t, "there is no http.client.request.duration")
	return nil
}
