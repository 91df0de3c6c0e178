package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
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

const shaping = "/stats/security/trafficshaping/**"

// inFakeTime runs a test at 2000-01-01 00:22.
func inFakeTime(t *testing.T, test func(t *testing.T, srv *webdeliverytest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(22 * time.Minute) // the clock of a bubble begins at midnight
		test(t, webdeliverytest.NewServer(t, webdeliverytest.InMemory()))
	})
}

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
	inFakeTime(t, func(t *testing.T, srv *webdeliverytest.Server) {
		for _, e := range []struct {
			ago                    time.Duration
			kind, action, severity string
		}{
			{12*time.Minute + time.Second, "WAF", "BEFORE", "HIGH"},
			{12 * time.Minute, "WAF", "BLOCK", "HIGH"},
			{10 * time.Minute, "CUSTOM", "ALERT", "HIGH"},
			{8 * time.Minute, "WAF", "BLOCK", ""},
			{7 * time.Minute, "WAF", "AFTER", "HIGH"},
		} {
			srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(-e.ago), Type: e.kind, Action: e.action, Severity: e.severity, RuleID: "1"})
		}
		srv.Fail(webdeliverytest.FaultRule{Path: shaping, Status: http.StatusForbidden, Count: 3})
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/**", Delay: 2 * time.Second, Skip: 1, Count: 1})
		var told bytes.Buffer
		exporter := handler(newCollector(srv.Client(t), 5*time.Minute, &told))

		want := []string{
			`webdelivery_bucket_timestamp_seconds{family="request"} 9.466854e+08`, // 2000-01-01 00:10
			`webdelivery_bucket_timestamp_seconds{family="waf"} 9.466854e+08`,
			`webdelivery_hits_by_severity{family="request",severity=""} 1`,
			`webdelivery_hits_by_severity{family="request",severity="HIGH"} 2`,
			`webdelivery_hits_by_severity{family="waf",severity=""} 1`,
			`webdelivery_hits_by_severity{family="waf",severity="HIGH"} 2`,
			`webdelivery_hits_by_type{family="request",type="CUSTOM"} 1`,
			`webdelivery_hits_by_type{family="request",type="WAF"} 2`,
			`webdelivery_hits_by_type{family="waf",type="CUSTOM"} 1`,
			`webdelivery_hits_by_type{family="waf",type="WAF"} 2`,
			`webdelivery_hits{action="ALERT",family="request"} 1`,
			`webdelivery_hits{action="ALERT",family="waf"} 1`,
			`webdelivery_hits{action="BLOCK",family="request"} 2`,
			`webdelivery_hits{action="BLOCK",family="waf"} 2`,
			`webdelivery_scrape_duration_seconds{family="request"} 0`,
			`webdelivery_scrape_duration_seconds{family="traffic_shaping"} 0`,
			`webdelivery_scrape_duration_seconds{family="waf"} 2`,
			`webdelivery_scrape_errors_total{family="request"} 0`,
			`webdelivery_scrape_errors_total{family="traffic_shaping"} 1`,
			`webdelivery_scrape_errors_total{family="waf"} 0`,
			`webdelivery_up{family="request"} 1`,
			`webdelivery_up{family="traffic_shaping"} 0`,
			`webdelivery_up{family="waf"} 1`,
		}
		assert.ElementsMatch(t, want, scrape(t, exporter))
		assert.Contains(t, told.String(), "exporter: traffic_shaping: webdelivery: GET ")
		assert.Equal(t, 9, srv.Count("", ""), "3 for each family")
		time.Sleep(57 * time.Second) // 2 s have passed
		assert.ElementsMatch(t, want, scrape(t, exporter))
		assert.Equal(t, 9, srv.Count("", ""))

		time.Sleep(time.Second)
		lines := scrape(t, exporter)
		assert.Contains(t, lines, `webdelivery_up{family="traffic_shaping"} 1`)
		assert.Contains(t, lines, `webdelivery_scrape_errors_total{family="traffic_shaping"} 1`)
	})
}

// A family that cannot be read any more keeps the time of its last hits, from which their age is seen.
func TestBucketTimestamp(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, srv *webdeliverytest.Server) {
		exporter := handler(newCollector(srv.Client(t), 5*time.Minute, io.Discard))
		scrape(t, exporter)
		srv.Fail(webdeliverytest.FaultRule{Path: shaping, Status: http.StatusForbidden})
		time.Sleep(10 * time.Minute)
		lines := scrape(t, exporter)
		assert.Contains(t, lines, `webdelivery_bucket_timestamp_seconds{family="waf"} 9.46686e+08`) // 00:20
		assert.Contains(t, lines, `webdelivery_bucket_timestamp_seconds{family="traffic_shaping"} 9.466854e+08`)
	})
}

// A family without a dimension has no such metric, and is up. Its first refusal is reported, and the dimension is not
// asked for again. If the service refuses every query, it is not the dimension.
func TestDimensionsThatAFamilyLacks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refused  int // of the first requests, with 400; later ones are answered
		up       string
		lines    string // on stderr
		requests int    // of the second read
	}{
		"traffic shaping has no severity": {0, "1", "exporter: traffic_shaping: no hits by event_severity until the exporter is restarted: ", 2},
		"every query is refused":          {3, "0", "exporter: traffic_shaping: webdelivery: GET ", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, func(t *testing.T, srv *webdeliverytest.Server) {
				srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(-10 * time.Minute), Type: "BLOCK_IP", Action: "BLOCK", Severity: "HIGH"})
				if tt.refused > 0 {
					srv.Fail(webdeliverytest.FaultRule{Path: shaping, Status: http.StatusBadRequest, Count: tt.refused})
				}
				var told bytes.Buffer
				exporter := handler(newCollector(srv.Client(t), 5*time.Minute, &told))

				lines := scrape(t, exporter)
				assert.Contains(t, lines, `webdelivery_up{family="traffic_shaping"} `+tt.up)
				assert.Equal(t, 3, srv.Count("GET", shaping))
				assert.Equal(t, 1, strings.Count(told.String(), "\n"))
				assert.Contains(t, told.String(), tt.lines)

				time.Sleep(time.Minute)
				lines = scrape(t, exporter)
				assert.Contains(t, lines, `webdelivery_up{family="traffic_shaping"} 1`)
				assert.Contains(t, lines, `webdelivery_hits{action="BLOCK",family="traffic_shaping"} 1`)
				assert.Contains(t, lines, `webdelivery_hits_by_type{family="traffic_shaping",type="BLOCK_IP"} 1`)
				assert.NotContains(t, strings.Join(lines, "\n"), `webdelivery_hits_by_severity{family="traffic_shaping"`)
				assert.Equal(t, 3+tt.requests, srv.Count("GET", shaping))
			})
		})
	}
}

// A label has the 100 values with the most hits, whatever the service has.
func TestValuesOfALabel(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, srv *webdeliverytest.Server) {
		for i := range 150 {
			e := webdeliverytest.Event{Time: time.Now().Add(-10 * time.Minute), Type: "REQUEST", Action: fmt.Sprint("ACTION", i)}
			for range 1 + i/50 {
				srv.AddEvents(e)
			}
		}
		lines := slices.DeleteFunc(scrape(t, handler(newCollector(srv.Client(t), 5*time.Minute, io.Discard))), func(line string) bool {
			return !strings.HasPrefix(line, `webdelivery_hits{`)
		})
		assert.Len(t, lines, 100)
		for _, line := range lines {
			assert.NotRegexp(t, ` 1$`, line)
		}
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
