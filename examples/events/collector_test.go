package main

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A URL or a secret that cannot be used is refused, and never shown.
func TestWrongCollectors(t *testing.T) { //nolint:paralleltest // changes the environment
	for _, tt := range []struct{ address, token, headers, hec, otlp string }{
		{"https://collector.example.com", aSecret, "a=" + aSecret, "", ""},
		{"http://localhost:8088/x", aSecret, "a=" + aSecret, "", ""},
		{"http://[::1]:8088", aSecret, "", "", ""},
		{"http://collector.example.com", aSecret, "", "use https", ""},
		{"http://192.0.2.1", aSecret, "a=" + aSecret, "use https", "use https"},
		{"collector.example.com", aSecret, "", "want a URL such as", "want a URL such as"},
		{"https://u:" + aSecret + "@[", aSecret, "", "want a URL such as", "want a URL such as"},
		{"https://u:" + aSecret + "@collector.example.com", aSecret, "", "must have no login", "must have no login"},
		{"https://collector.example.com?token=" + aSecret, aSecret, "", "must have no login", "must have no login"},
		{"https://collector.example.com", "", aSecret, "SPLUNK_HEC_TOKEN, which", "OTEL_EXPORTER_OTLP_HEADERS, which"},
		{"https://collector.example.com", aSecret + "\nx", "a=%zz" + aSecret, "SPLUNK_HEC_TOKEN, which", "OTEL_EXPORTER_OTLP_HEADERS, which"},
	} {
		t.Setenv("SPLUNK_HEC_TOKEN", tt.token)
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", tt.headers)
		for want, p := range map[string]protocol{"hec " + tt.hec: hec, "otlp " + tt.otlp: otlp} {
			_, err := newCollector(p, tt.address, io.Discard)
			if want == p.flag+" " {
				require.NoError(t, err, tt.address)
				continue
			}
			require.ErrorContains(t, err, want[len(p.flag)+1:])
			assert.NotContains(t, err.Error(), aSecret)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "soon": 0, "-1": 0, "4000000000": time.Hour,
		"Fri, 20 Nov 2026 12:00:09 GMT": 0,
	} {
		got := retryAfter(http.Header{"Retry-After": {text}})
		assert.Equal(t, want, got, text)
	}
}
