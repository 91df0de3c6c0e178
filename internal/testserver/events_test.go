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
	var out []string
	for _, row := range rows {
		out = append(out, string(row))
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
		assert.True(t, slices.IsSortedFunc(whole, func(a, b string) int {
			end := len(`["2026-11-20T11:00:00.000"`)
			return strings.Compare(a[:end], b[:end])
		}))
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

// The stream has events of every family and category, a skewed distribution, and values that are hard to handle.
func TestGeneratedTraffic(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{EventsPerSecond: 0.5})
	for family := range families {
		assert.NotEmpty(t, decodeRows(t, f.result(family)), family)
	}
	for dimension, values := range map[string]int{
		"event_type": 6, "event_action": 2, "event_severity": 4, "client_browser": 7, "client_country_code": 12, "client_asn": 14,
		"domain": 4, "property": 3,
	} {
		rows := decodeRows(t, f.result(requests, "dimensions", dimension, "sortby", "-hits", "limit", "100"))
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
	ips := map[any]bool{}
	for _, row := range decodeRows(t, f.result(wafTop+"clientip")) {
		assert.True(t, netip.MustParseAddr(row[0].(string)).IsValid())
		ips[row[0]] = true
	}
	assert.Len(t, ips, 20)
}
