package testserver_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

const everything = "event_severity,event_type,event_action,client_connection_remote_ip,client_ip,client_browser," +
	"client_country_code,client_asn,rule_id,domain,property,waf_action,request_path"

// rowsOf returns the rows of a query of raw events, as received.
func (f fake) rowsOf(start, end string) []string {
	f.t.Helper()
	var rows []json.RawMessage
	got := f.result(events, "starttime", start, "endtime", end, "dimensions", everything, "limit", "100000000")
	require.NoError(f.t, json.Unmarshal(got.Rows, &rows))
	require.Len(f.t, rows, got.Total)
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = string(row)
	}
	return out
}

// times returns the beginnings of rows, up to the end of their first value.
func times(rows []string) []string {
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = row[:len(`["2026-11-20T11:00:00.000"`)]
	}
	return out
}

// Generated events depend only on the seed, the rate and their time, not on the server, the range or the time of the
// query.
func TestGeneratorIsDeterministic(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.003, 0.7, 1, 33.3, 120} {
		cfg := testserver.Config{EventsPerSecond: rate, EventSeed: 7}
		f := start(t, cfg)
		whole := f.rowsOf("2026-11-20T09:58:20", "2026-11-20T10:00:00")
		assert.InDelta(t, rate*100, len(whole), 1.01)
		assert.True(t, slices.IsSorted(times(whole)))
		assert.True(t, slices.Equal(whole, f.rowsOf("2026-11-20T09:58:20", "2026-11-20T10:00:00")), "asked again")

		var parts []string
		cuts := []string{"2026-11-20T09:58:20", "2026-11-20T09:58:21", "2026-11-20T09:59:07", "2026-11-20T09:59:59", "2026-11-20T10:00:00"}
		for i := range cuts[1:] {
			parts = append(parts, f.rowsOf(cuts[i], cuts[i+1])...)
		}
		assert.True(t, slices.Equal(whole, parts), "in parts")

		cfg.Clock = testserver.NewClock(func() time.Time { return noon.Add(50 * time.Hour) })
		assert.True(t, slices.Equal(whole, start(t, cfg).rowsOf("2026-11-20T09:58:20", "2026-11-20T10:00:00")), "two days later")
		cfg.EventSeed = 8
		if rate > 0.5 {
			assert.False(t, slices.Equal(whole, start(t, cfg).rowsOf("2026-11-20T09:58:20", "2026-11-20T10:00:00")), "another seed")
		}
	}
}

// EventCount returns the total_results of a query of raw events, exact to the millisecond.
func TestEventCount(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{EventsPerSecond: 10})
	f.AddEvents(testserver.Event{Time: noon.Add(-time.Minute)}, testserver.Event{Time: noon.Add(time.Minute)})
	from := noon.Add(-time.Hour)
	got := f.result(events, "starttime", "2026-11-20T11:00:00", "endtime", "2026-11-20T12:00:00")
	assert.Equal(t, got.Total, f.EventCount(from, noon))
	assert.InDelta(t, 36001, got.Total, 1.01)
	sum := 0
	for _, cut := range []time.Duration{time.Nanosecond, time.Millisecond, 1234567 * time.Microsecond, time.Hour - time.Nanosecond, time.Hour} {
		sum += f.EventCount(from, noon.Add(-time.Hour+cut))
		from = noon.Add(-time.Hour + cut)
	}
	assert.Equal(t, got.Total, sum)
	f, from = start(t, testserver.Config{}), noon.Add(-time.Hour)
	f.AddEvents(testserver.Event{Time: from})
	assert.Equal(t, 1, f.EventCount(from.Add(-1), from.Add(1)))
	assert.Equal(t, 1, f.EventCount(from, noon))
	assert.Zero(t, f.EventCount(from.Add(1), noon))
	assert.Zero(t, f.EventCount(from.Add(-time.Hour), from))
	assert.Zero(t, f.EventCount(noon, noon))
	assert.Zero(t, f.EventCount(noon, noon.Add(-time.Hour)))
}

// The stream has events of every family and category, a skewed distribution, and values that are hard to handle.
func TestGeneratedTraffic(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{EventsPerSecond: 0.5})
	for _, family := range allFamilies() {
		got := f.result(family)
		assert.NotEmpty(t, decodeRows(t, got), family)
	}
	for dimension, values := range map[string]int{
		"event_type": 6, "event_action": 2, "event_severity": 4, "client_browser": 7, "client_country_code": 12, "client_asn": 14,
		"domain": 4, "property": 3,
	} {
		got := f.result(requests, "dimensions", dimension, "sortby", "-hits", "limit", "100")
		rows := decodeRows(t, got)
		assert.Len(t, rows, values, dimension)
		most, _ := rows[0][1].(json.Number).Int64()
		least, _ := rows[len(rows)-1][1].(json.Number).Int64()
		assert.Greater(t, 4*most, 5*least, dimension)
	}
	rows := strings.Join(f.rowsOf("2026-11-20T11:00:00", "2026-11-20T12:00:00"), "\n")
	for _, awkward := range []string{`"/report;v=2,final"`, `"2001:db8:`, `null`, `"Opera, mini; \"old\""`, `4200000017`, `/café/menü`, `\\etc`} {
		assert.Contains(t, rows, awkward)
	}
	for _, network := range decodeRows(t, f.result(requests, "dimensions", "client_country_code,client_asn", "limit", "100")) {
		assert.Equal(t, network[0] == nil, network[1] == nil)
	}
	var ips []string
	for _, row := range decodeRows(t, f.result(wafTop+"clientip")) {
		ip, _ := row[0].(string)
		assert.True(t, netip.MustParseAddr(ip).IsValid())
		ips = append(ips, ip)
	}
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(ips))), 20)
}

// In both vocabularies, generated events differ only in their words, and belong to the same families.
func TestVocabularies(t *testing.T) {
	t.Parallel()
	words := map[string]string{
		`"WAF"`: `"WAF"`, `"CUSTOM"`: `"Custom"`, `"BLOCK_IP"`: `"Rate Limit"`, `"BLOCK_COUNTRY"`: `"Rate Limit"`,
		`"RATE_LIMIT_IP"`: `"Rate Limit"`, `"RATE_LIMIT_COUNTRY"`: `"Rate Limit"`,
		`"CRITICAL"`: `"High"`, `"ERROR"`: `"Medium"`, `"WARNING"`: `"Low"`, `"NOTICE"`: `"Info"`, `"BLOCK"`: `"Block"`, `"WARN"`: `"Warn"`,
	}
	var pairs []string
	for from, to := range words {
		pairs = append(pairs, from, to)
	}
	cfg := testserver.Config{EventsPerSecond: 0.5, EventSeed: 7}
	document := start(t, cfg)
	cfg.Dialect.Vocabulary = "portal"
	portal := start(t, cfg)
	const from, to = "2026-11-20T10:00:00", "2026-11-20T12:00:00"
	rows := document.rowsOf(from, to)
	for i, row := range rows {
		rows[i] = strings.NewReplacer(pairs...).Replace(row)
	}
	assert.Equal(t, rows, portal.rowsOf(from, to))
	for _, family := range allFamilies() {
		metrics := []string{"filters", "event_action!=x"}
		assert.Equal(t, hitsOf(t, document.result(family, metrics...)), hitsOf(t, portal.result(family, metrics...)), family)
	}
	for dimension, want := range map[string]string{
		"event_type": `[["Custom"],["Rate Limit"],["WAF"]]`, "event_action": `[["Block"],["Warn"]]`,
		"event_severity": `[["High"],["Info"],["Low"],["Medium"]]`,
	} {
		var values [][]any
		for _, row := range decodeRows(t, portal.result(requests, "dimensions", dimension)) {
			values = append(values, row[:1])
		}
		assert.JSONEq(t, want, marshal(t, values), dimension)
	}
	assert.Equal(t, portal.result(shaping, "filters", "event_type==Rate Limit").Total, portal.result(shaping).Total)
}

// hitsOf returns the sum of all hits, or the number of raw events.
func hitsOf(t *testing.T, got result) (sum int64) {
	t.Helper()
	if !strings.HasSuffix(got.columns(), ",hits") {
		return int64(got.Total)
	}
	for _, row := range decodeRows(t, got) {
		hits, _ := row[len(row)-1].(json.Number).Int64()
		sum += hits
	}
	return sum
}
