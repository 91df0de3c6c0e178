package exporter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const shaping = "/stats/security/trafficshaping/**"

// inFakeTime runs a test at 2000-01-01 00:22. Its scrape returns the metrics of two families, sorted;
// those of request are read like those of waf.
func inFakeTime(t *testing.T, test func(t *testing.T, srv *webdeliverytest.Server, scrape func() string, stderr *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(22 * time.Minute) // the clock of a bubble begins at midnight
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		app, _, stderr := clitest.App(srv, "")
		exporter := handler(newCollector(srv.Client(t), 5*time.Minute, app.Tell))
		test(t, srv, func() string {
			w := httptest.NewRecorder()
			exporter.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			return strings.Join(find(w.Body.String(), `webdelivery_.*"(waf|traffic_shaping)".*\n`), "")
		}, stderr)
	})
}

// Hits are those of the last 5 minutes that ended 5 minutes ago. At 00:22 these are 00:10 to 00:15. A family that cannot
// be read has no hits, and the others do; a minute later it is read again.
func TestMetrics(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, srv *webdeliverytest.Server, scrape func() string, stderr *bytes.Buffer) {
		add := func(second int, kind, action, severity string) {
			at := time.Date(2000, 1, 1, 0, 0, second, 0, time.UTC)
			srv.AddEvents(webdeliverytest.Event{Time: at, Type: kind, Action: action, Severity: severity, RuleID: "1"})
		}
		add(599, "WAF", "BEFORE", "HIGH")
		add(600, "WAF", "BLOCK", "HIGH")
		add(720, "CUSTOM", "ALERT", "HIGH")
		add(840, "WAF", "BLOCK", "")
		add(900, "WAF", "AFTER", "HIGH")
		srv.Fail(webdeliverytest.FaultRule{Path: shaping, Status: http.StatusForbidden, Count: 3, Body: "\x1b[2J"})
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/**", Delay: 2 * time.Second, Skip: 1, Count: 1})
		const want = `webdelivery_bucket_timestamp_seconds{family="waf"} 9.466854e+08
webdelivery_hits_by_severity{family="waf",severity=""} 1
webdelivery_hits_by_severity{family="waf",severity="HIGH"} 2
webdelivery_hits_by_type{family="waf",type="CUSTOM"} 1
webdelivery_hits_by_type{family="waf",type="WAF"} 2
webdelivery_hits{action="ALERT",family="waf"} 1
webdelivery_hits{action="BLOCK",family="waf"} 2
webdelivery_scrape_duration_seconds{family="traffic_shaping"} 0
webdelivery_scrape_duration_seconds{family="waf"} 2
webdelivery_scrape_errors_total{family="traffic_shaping"} 1
webdelivery_scrape_errors_total{family="waf"} 0
webdelivery_up{family="traffic_shaping"} 0
webdelivery_up{family="waf"} 1
`
		assert.Equal(t, want, scrape())
		assert.Regexp(t, `^webdelivery: traffic_shaping: webdelivery: GET \S+: 403 Forbidden[^\x1b]*\n$`, stderr.String())
		time.Sleep(57 * time.Second) // 2 s have passed
		assert.Equal(t, want, scrape())
		assert.Equal(t, 9, srv.Count("", ""), "3 for each family")

		time.Sleep(time.Second)
		lines := scrape()
		assert.Contains(t, lines, `up{family="traffic_shaping"} 1`)
		assert.Contains(t, lines, `scrape_errors_total{family="traffic_shaping"} 1`)

		srv.Fail(webdeliverytest.FaultRule{Path: shaping, Status: http.StatusForbidden})
		time.Sleep(10 * time.Minute)
		lines = scrape()
		assert.Contains(t, lines, `bucket_timestamp_seconds{family="waf"} 9.46686e+08`) // 00:20
		assert.Contains(t, lines, `bucket_timestamp_seconds{family="traffic_shaping"} 9.466854e+08`, "the age of its last hits is seen")
	})
}

// If the service refuses every query, it is not the dimension. If it refuses one dimension, the family is up without that
// metric; this is told once, and the dimension is not asked for again.
func TestDimensionsThatAFamilyLacks(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, srv *webdeliverytest.Server, scrape func() string, stderr *bytes.Buffer) {
		srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(-10 * time.Minute), Type: "BLOCK_IP", Action: "BLOCK", Severity: "HIGH"})
		srv.Fail(webdeliverytest.FaultRule{Path: shaping, Status: http.StatusBadRequest, Count: 3})
		for _, want := range []struct {
			requests int
			up, told string
		}{
			{3, "0", "webdelivery: traffic_shaping: webdelivery: GET "},
			{6, "1", "webdelivery: traffic_shaping: no hits by event_severity until the exporter is restarted: "},
			{8, "1", ""},
		} {
			stderr.Reset()
			lines := scrape()
			assert.Equal(t, want.requests, srv.Count("GET", shaping))
			assert.Contains(t, lines, `up{family="traffic_shaping"} `+want.up)
			assert.Equal(t, want.up == "1", strings.Contains(lines, `hits_by_type{family="traffic_shaping",type="BLOCK_IP"} 1`))
			assert.NotContains(t, lines, `hits_by_severity{family="traffic_shaping"`)
			assert.Equal(t, want.told != "", strings.HasPrefix(stderr.String(), want.told) && stderr.Len() > 0, stderr.String())
			time.Sleep(time.Minute)
		}
	})
}

// A label has the 100 values with the most hits, whatever the service has.
func TestValuesOfALabel(t *testing.T) {
	t.Parallel()
	inFakeTime(t, func(t *testing.T, srv *webdeliverytest.Server, scrape func() string, _ *bytes.Buffer) {
		for i := range 250 {
			srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(-10 * time.Minute), Type: "BLOCK_IP", Action: fmt.Sprint("ACTION", i%150)})
		}
		assert.Len(t, find(scrape(), `hits\{action=.* 2\n`), 100)
	})
}

// The command serves until it is interrupted.
func TestServe(t *testing.T) {
	t.Parallel()
	app, _, _ := clitest.App(webdeliverytest.NewServer(t), "")
	out, in := io.Pipe()
	app.Out = in
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() { ended <- app.Run(ctx, []string{"exporter", "--listen", "127.0.0.1:0"}, Command) }()
	var url string
	fmt.Fscanf(out, "Metrics are at %s until you press ^C.\n", &url)
	reply, err := http.Get(url)
	require.NoError(t, err)
	text, _ := io.ReadAll(reply.Body)
	assert.Contains(t, string(text), `webdelivery_up{family="waf"} 1`)
	interrupt()
	assert.Equal(t, cli.Done, <-ended)
}

func ops(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("ops", name))
	require.NoError(t, err)
	return string(text)
}

// find returns the parts of a text that match, once each and sorted.
func find(text, expression string) []string {
	return slices.Compact(slices.Sorted(slices.Values(regexp.MustCompile(expression).FindAllString(text, -1))))
}

// The dashboard shows every metric, and neither it nor the alerts know others. The help names each with its labels. Every
// alert says what to do, and is tried.
func TestOps(t *testing.T) {
	t.Parallel()
	const name, selector = `\bwebdelivery_\w+`, `\bwebdelivery_\w+\{[^}]*\}`
	dashboard := strings.ReplaceAll(ops(t, "dashboard.json"), `\"`, `"`)
	assert.Equal(t, find(long, name), find(dashboard, name))
	for _, text := range []string{dashboard, ops(t, "alerts.yml"), ops(t, "alerts_test.yml")} {
		assert.Subset(t, find(long, name), find(text, name))
		for _, found := range find(text, selector) {
			labels := find(long, find(found, name)[0]+`\{.*?\}`)[0]
			for _, label := range find(found, `\w+\s*(=~|!~|!=|=)`) {
				assert.Contains(t, labels+" job instance", strings.TrimRight(label, " =~!"), found)
			}
		}
	}
	for _, alert := range strings.Split(ops(t, "alerts.yml"), "- alert: ")[1:] {
		assert.Regexp(t, `(?s) summary: .* description: `, alert)
		assert.Contains(t, ops(t, "alerts_test.yml"), `{alertname="`+strings.Fields(alert)[0]+`"`, "no test lets it fire")
	}
}

// The files that the others name exist, and the image is that of this version.
func TestFilesOfOps(t *testing.T) {
	t.Parallel()
	compose := ops(t, "compose.yml")
	assert.Contains(t, compose, "context: ../../../../..\n      dockerfile: cmd/webdelivery/internal/exporter/ops/Dockerfile\n")
	assert.Contains(t, compose, "image: ghcr.io/webdelivery/webdelivery:${WEBDELIVERY_VERSION:-"+webdelivery.Version+"}")
	for _, file := range find(compose, `- \./[\w./-]+`) {
		assert.FileExists(t, filepath.Join("ops", file[2:]))
	}
}

// Promtool accepts the rules, the queries of the dashboard and the configuration, and the alerts pass their tests. If it
// is not installed, the test is skipped, unless REQUIRE_PROMTOOL is 1.
func TestPromtool(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("promtool"); err != nil && os.Getenv("REQUIRE_PROMTOOL") != "1" {
		t.Skip(err)
	}
	queries := "groups:\n- name: dashboard\n  rules:\n"
	for _, query := range find(ops(t, "dashboard.json"), `"expr": ".*"`) {
		queries += "  - {record: dashboard, " + query + "}\n"
	}
	name := filepath.Join(t.TempDir(), "queries.yml")
	require.NoError(t, os.WriteFile(name, []byte(queries), 0o600))
	for _, args := range [][]string{
		{"check", "rules", "alerts.yml"}, {"check", "rules", name}, {"check", "config", "prometheus.yml"}, {"test", "rules", "alerts_test.yml"},
	} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = "ops"
		told, err := cmd.CombinedOutput()
		assert.NoError(t, err, "promtool %v: %s", args, told)
	}
}
