package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// metrics returns the labels of each metric that the exporter has.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory(), webdeliverytest.WithEvents(1, 1, time.Time{}))
		registry := prometheus.NewPedanticRegistry()
		require.NoError(t, registry.Register(newCollector(srv.Client(t), 5*time.Minute, t.Output())))
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, label := range f.GetMetric()[0].GetLabel() {
				found[f.GetName()] = append(found[f.GetName()], label.GetName())
			}
		}
	})
	return found
}

func ops(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("ops", name))
	require.NoError(t, err)
	return string(text)
}

// expressions returns the queries of the dashboard.
func expressions(t *testing.T) (found []string) {
	t.Helper()
	var find func(value any)
	find = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for name, member := range value {
				if name == "expr" {
					found = append(found, member.(string))
				}
				find(member)
			}
		case []any:
			for _, item := range value {
				find(item)
			}
		}
	}
	var dashboard any
	require.NoError(t, json.Unmarshal([]byte(ops(t, "dashboard.json")), &dashboard))
	find(dashboard)
	return found
}

var (
	metricName = regexp.MustCompile(`\bwebdelivery_\w+`)
	selector   = regexp.MustCompile(`\b(webdelivery_\w+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	labelList  = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
	shownLabel = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}`)
)

// The dashboard and the alerts know no metric and no label that the exporter does not have, and the dashboard shows every
// metric.
func TestMetricsOfOps(t *testing.T) {
	t.Parallel()
	has := metrics(t)
	labels := []string{"job", "instance"} // of Prometheus
	for _, names := range has {
		labels = append(labels, names...)
	}
	shown := map[string]bool{}
	for _, text := range expressions(t) {
		for _, name := range metricName.FindAllString(text, -1) {
			shown[name] = true
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(has)), slices.Collect(maps.Keys(shown)))

	for _, file := range []string{"dashboard.json", "alerts.yml", "alerts_test.yml"} {
		text := strings.ReplaceAll(ops(t, file), `\"`, `"`)
		names := metricName.FindAllString(text, -1)
		assert.NotEmpty(t, names, file)
		for _, name := range names {
			assert.Contains(t, has, name, file)
		}
		for _, found := range selector.FindAllStringSubmatch(text, -1) {
			for _, label := range matcher.FindAllStringSubmatch(found[2], -1) {
				assert.Contains(t, append([]string{"job", "instance"}, has[found[1]]...), label[1], "%s: %s", file, found[0])
			}
		}
		if file == "alerts_test.yml" {
			continue // it also groups by alertname
		}
		for _, found := range labelList.FindAllStringSubmatch(text, -1) {
			for label := range strings.SplitSeq(found[1], ",") {
				assert.Contains(t, labels, strings.TrimSpace(label), "%s: %s", file, found[0])
			}
		}
		for _, found := range shownLabel.FindAllStringSubmatch(text, -1) {
			assert.Contains(t, labels, found[1], "%s: %s", file, found[0])
		}
	}
}

// Every alert says what to do, is tried, and is in the README.
func TestAlerts(t *testing.T) {
	t.Parallel()
	text, tests, readme := ops(t, "alerts.yml"), ops(t, "alerts_test.yml"), ops(t, "README.md")
	alerts := strings.Split(text, "- alert: ")[1:]
	assert.NotEmpty(t, alerts)
	for _, alert := range alerts {
		name := strings.Fields(alert)[0]
		assert.Contains(t, alert, " summary: ")
		assert.Contains(t, alert, " description: ")
		assert.Contains(t, tests, `{alertname="`+name+`"`, "no test lets %s fire", name)
		assert.Contains(t, readme, "| `"+name+"` |")
	}
}

// The files that the others name exist, and the images are those of this version.
func TestFilesOfOps(t *testing.T) {
	t.Parallel()
	compose := ops(t, "compose.yml")
	files := regexp.MustCompile(`\./[\w./-]+`).FindAllString(strings.ReplaceAll(compose, "../", ""), -1)
	assert.Len(t, files, 6, "five that are mounted, and the password")
	for _, file := range files {
		assert.FileExists(t, filepath.Join("ops", file))
	}
	const root = "../../.." // of ops
	assert.Contains(t, compose, "context: "+root)
	for _, found := range regexp.MustCompile(`dockerfile: (\S+)`).FindAllStringSubmatch(compose, -1) {
		assert.FileExists(t, filepath.Join("ops", root, found[1]))
	}
	for _, found := range regexp.MustCompile(`PROGRAM: (\w+)`).FindAllStringSubmatch(compose, -1) {
		assert.FileExists(t, filepath.Join("ops", root, "examples", found[1], "main.go"))
		assert.Contains(t, compose, "image: ghcr.io/webdelivery/webdelivery-"+found[1]+":${WEBDELIVERY_VERSION:-"+webdelivery.Version+"}")
	}
	for _, mounted := range []string{ // where a file looks for another one
		"/etc/prometheus/alerts.yml:ro", // rule_files, beside prometheus.yml
		"/etc/prometheus/prometheus.yml:ro", "/etc/grafana/provisioning/datasources/", "/etc/grafana/provisioning/dashboards/",
		"/dashboard.json:" + regexp.MustCompile(`path: (\S+)`).FindStringSubmatch(ops(t, "grafana/dashboards.yml"))[1] + "/",
	} {
		assert.Contains(t, compose, mounted)
	}
}

// TestPromtool lets promtool check the rules, the queries of the dashboard and the configuration, and test the alerts. If
// it is not installed, the test is skipped, unless REQUIRE_PROMTOOL is 1.
func TestPromtool(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("REQUIRE_PROMTOOL") == "1" {
		t.Fatalf("REQUIRE_PROMTOOL=1, but %v", err)
	}
	if err != nil {
		t.Skip(err)
	}
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	for _, expr := range expressions(t) {
		quoted, err := json.Marshal(expr)
		require.NoError(t, err)
		rules.WriteString("  - {record: dashboard, expr: " + string(quoted) + "}\n")
	}
	queries := filepath.Join(t.TempDir(), "queries.yml")
	require.NoError(t, os.WriteFile(queries, []byte(rules.String()), 0o600))
	for _, args := range [][]string{
		{"check", "rules", "alerts.yml"}, {"check", "rules", queries}, {"check", "config", "prometheus.yml"}, {"test", "rules", "alerts_test.yml"},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), path, args...)
			cmd.Dir = "ops"
			told, err := cmd.CombinedOutput()
			assert.NoError(t, err, "promtool %v: %s", args, told)
		})
	}
}
