package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// scrape returns the metrics without their comments.
func scrape(t *testing.T, exporter http.Handler) (lines []string) {
	t.Helper()
	w := httptest.NewRecorder()
	exporter.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Hits are those of the last 5 minutes that ended 5 minutes ago. At 00:22 these are 00:10 to 00:15. A family that cannot
// be read has no hits, and the others do; a minute later it is read again.
func TestMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(22 * time.Minute) // the clock of a bubble begins at midnight
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		for ago, action := range map[time.Duration]string{
			12*time.Minute + time.Second: "BEFORE", 12 * time.Minute: "BLOCK", 8 * time.Minute: "BLOCK", 10 * time.Minute: "ALERT", 7 * time.Minute: "AFTER",
		} {
			srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(-ago), Type: "WAF", Action: action, RuleID: "1"})
		}
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/trafficshaping/**", Status: http.StatusForbidden, Count: 1})
		var told bytes.Buffer
		exporter := handler(newCollector(srv.Client(t), 5*time.Minute, &told))

		want := []string{
			`webdelivery_bucket_timestamp_seconds{family="request"} 9.466854e+08`, // 2000-01-01 00:10
			`webdelivery_bucket_timestamp_seconds{family="waf"} 9.466854e+08`,
			`webdelivery_hits{action="ALERT",family="request"} 1`,
			`webdelivery_hits{action="ALERT",family="waf"} 1`,
			`webdelivery_hits{action="BLOCK",family="request"} 2`,
			`webdelivery_hits{action="BLOCK",family="waf"} 2`,
			`webdelivery_scrape_errors_total{family="request"} 0`,
			`webdelivery_scrape_errors_total{family="traffic_shaping"} 1`,
			`webdelivery_scrape_errors_total{family="waf"} 0`,
			`webdelivery_up{family="request"} 1`,
			`webdelivery_up{family="traffic_shaping"} 0`,
			`webdelivery_up{family="waf"} 1`,
		}
		assert.ElementsMatch(t, want, scrape(t, exporter))
		assert.Contains(t, told.String(), "exporter: traffic_shaping: webdelivery: GET ")
		requests := srv.Count("", "")
		assert.ElementsMatch(t, want, scrape(t, exporter))
		assert.Equal(t, requests, srv.Count("", ""))

		time.Sleep(time.Minute)
		lines := scrape(t, exporter)
		assert.Contains(t, lines, `webdelivery_up{family="traffic_shaping"} 1`)
		assert.Contains(t, lines, `webdelivery_scrape_errors_total{family="traffic_shaping"} 1`)
	})
}

// The program serves until it is interrupted.
func TestRun(t *testing.T) { //nolint:paralleltest // NoService changes the environment
	programtest.NoService(t)
	out, in := io.Pipe()
	ended := make(chan error, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		ended <- run(ctx, []string{"-listen", "127.0.0.1:0"}, program.Streams{Out: in, Err: io.Discard})
	}()
	line := make([]byte, 200)
	n, err := out.Read(line)
	require.NoError(t, err)
	reply, err := http.Get(strings.Fields(string(line[:n]))[3])
	require.NoError(t, err)
	text, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	assert.Contains(t, string(text), `webdelivery_up{family="waf"} 1`)
	interrupt()
	require.NoError(t, <-ended)
}
