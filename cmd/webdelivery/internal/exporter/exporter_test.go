package exporter

import (
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

// Hits are those of the last 5 minutes that ended 5 minutes ago. At 00:22 these are 00:10 to 00:15. A family that cannot
// be read has no hits, and the others do; a minute later it is read again. If the service refuses it one dimension, it is
// up without that metric; this is told once, and the dimension is not asked for again.
func TestMetrics(t *testing.T) {
	t.Parallel()
	const shaping = "/stats/security/trafficshaping/**"
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(22 * time.Minute) // the clock of a bubble begins at midnight
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		app, _, stderr := clitest.App(srv, "")
		exporter := handler(newCollector(srv.Client(t), 5*time.Minute, app.Tell))
		scrape := func() string { // those of request are read like those of waf
			w := httptest.NewRecorder()
			exporter.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			return strings.Join(find(w.Body.String(), `webdelivery_.*"(waf|traffic_shaping)".*\n`), "")
		}
		add := func(second int, kind, action, severity string) {
			at := time.Date(2000, 1, 1, 0, 0, second, 0, time.UTC)
			srv.AddEvents(webdeliverytest.Event{Time: at, Type: kind, Action: action, Severity: severity, RuleID: "1"})
		}
		add(599, "WAF", "BEFORE", "HIGH")
		add(600, "WAF", "BLOCK", "HIGH")
		add(720, "CUSTOM", "ALERT", "HIGH")
		add(840, "WAF", "BLOCK", "")
		add(900, "WAF", "AFTER", "HIGH")
		add(840, "BLOCK_IP", "BLOCK", "HIGH")
		srv.Fail(webdeliverytest.FaultRule{Path: shaping, Status: http.StatusBadRequest, Count: 3, Body: `{"message": "\u202e"}`})
		const want = `webdelivery_bucket_timestamp_seconds{family="waf"} 9.466854e+08
webdelivery_hits_by_severity{family="waf",severity=""} 1
webdelivery_hits_by_severity{family="waf",severity="HIGH"} 2
webdelivery_hits_by_type{family="waf",type="CUSTOM"} 1
webdelivery_hits_by_type{family="waf",type="WAF"} 2
webdelivery_hits{action="ALERT",family="waf"} 1
webdelivery_hits{action="BLOCK",family="waf"} 2
webdelivery_scrape_errors_total{family="traffic_shaping"} 1
webdelivery_scrape_errors_total{family="waf"} 0
webdelivery_up{family="traffic_shaping"} 0
webdelivery_up{family="waf"} 1
`
		assert.Equal(t, want, scrape())
		assert.Regexp(t, `^webdelivery: traffic_shaping: GET \S+: 400 Bad Request: "\\u202e" `, stderr)
		time.Sleep(59 * time.Second)
		assert.Equal(t, want, scrape())
		assert.Equal(t, 9, srv.Count("", ""), "3 for each family")

		for _, told := range []string{"^webdelivery: traffic_shaping: no hits by event_severity until the exporter is restarted: ", "^$"} {
			stderr.Reset()
			time.Sleep(time.Minute)
			lines := scrape()
			assert.Regexp(t, told, stderr)
			assert.Contains(t, lines, `up{family="traffic_shaping"} 1`)
			assert.Contains(t, lines, `hits_by_type{family="traffic_shaping",type="BLOCK_IP"} 1`)
			assert.NotContains(t, lines, `hits_by_severity{family="traffic_shaping"`)
		}
		assert.Equal(t, 3+3+2, srv.Count("GET", shaping))

		srv.Fail(webdeliverytest.FaultRule{Path: shaping, Status: http.StatusForbidden})
		time.Sleep(10 * time.Minute)
		lines := scrape()
		assert.Contains(t, lines, `bucket_timestamp_seconds{family="waf"} 9.46686e+08`) // 00:20
		assert.Contains(t, lines, `bucket_timestamp_seconds{family="traffic_shaping"} 9.466854e+08`, "the age of its last hits is seen")
	})
}

// The command serves until it is interrupted. A label has the 100 values with the most hits, whatever the service has.
func TestServe(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t)
	for i := range 250 {
		action := fmt.Sprint("ACTION", i%150)
		srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(-10 * time.Minute), Type: "BLOCK_IP", Action: action})
	}
	app, _, _ := clitest.App(srv, "")
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
	actions := find(string(text), `hits\{action=.*"traffic_shaping"\} \d\n`)
	assert.Len(t, actions, 100)
	assert.NotContains(t, strings.Join(actions, ""), "} 1\n")
	interrupt()
	assert.Equal(t, cli.Done, <-ended)
}

// find returns the parts of a text that match, once each and sorted.
func find(text, expression string) []string {
	return slices.Compact(slices.Sorted(slices.Values(regexp.MustCompile(expression).FindAllString(text, -1))))
}

// The dashboard and the help have every metric. The image is that of this version. Promtool accepts the rules, the
// queries of the dashboard and the configuration, and the alerts pass their tests. If it is not installed, it is skipped,
// unless REQUIRE_PROMTOOL is 1.
func TestOps(t *testing.T) {
	t.Parallel()
	dashboard, err := os.ReadFile("ops/dashboard.json")
	require.NoError(t, err)
	compose, err := os.ReadFile("ops/compose.yml")
	require.NoError(t, err)
	const metric = `\bwebdelivery_\w+`
	assert.Equal(t, find(long, metric), find(string(dashboard), metric))
	assert.Contains(t, string(compose), "ghcr.io/webdelivery/webdelivery:${WEBDELIVERY_VERSION:-"+webdelivery.Version+"}")
	if _, err := exec.LookPath("promtool"); err != nil && os.Getenv("REQUIRE_PROMTOOL") != "1" {
		t.Skip(err)
	}
	queries := "groups:\n- name: dashboard\n  rules:\n"
	for _, query := range find(string(dashboard), `"expr": ".*"`) {
		queries += "  - {record: dashboard, " + query + "}\n"
	}
	name := filepath.Join(t.TempDir(), "queries.yml")
	require.NoError(t, os.WriteFile(name, []byte(queries), 0o600))
	for _, args := range []string{
		"check rules alerts.yml", "check rules " + name, "check config prometheus.yml", "test rules alerts_test.yml",
	} {
		cmd := exec.CommandContext(t.Context(), "promtool", strings.Fields(args)...)
		cmd.Dir = "ops"
		told, err := cmd.CombinedOutput()
		assert.NoError(t, err, "promtool %s: %s", args, told)
	}
}
