package testserver_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

func decodeRows(t *testing.T, r result) [][]any {
	t.Helper()
	var rows [][]any
	dec := json.NewDecoder(strings.NewReader(string(r.Rows)))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&rows))
	return rows
}

// second returns the second column in JSON, which is the first requested dimension of raw events.
func second(t *testing.T, r result) string {
	t.Helper()
	var column []string
	for _, row := range decodeRows(t, r) {
		column = append(column, marshal(t, row[1]))
	}
	return strings.Join(column, " ")
}

// Section 4.3: which events belong to which family, and how they are counted.
func TestSection43Families(t *testing.T) {
	t.Parallel()
	f := startWithSample(t)
	for _, tc := range []struct{ family, dimensions, rows string }{
		{waf, "event_severity", `[["CRITICAL",1],["ERROR",1],["WARNING",1]]`},
		{waf, "event_timestamp_ms,waf_action", `[["2026-11-19T00:00:00.000","WARN",1],["2026-11-20T00:00:00.000","BLOCK",1],["2026-11-20T00:00:00.000","WARN",1]]`},
		{waf, "client_asn,client_country_code", `[[64496,"CN",1],[64498,"US",2]]`},
		{requests, "event_action", `[[null,1],["ALLOW",1],["BLOCK",2],["WARN",3]]`},
		{requests, "client_asn", `[[null,2],[64496,2],[64498,2],[9007199254740993,1]]`},
		{shaping, "event_type", `[["BLOCK_COUNTRY",1],["RATE_LIMIT_IP",1]]`},
		{shaping, "event_timestamp_ms", `[["2026-11-20T00:00:00.000",2]]`},
		{wafTop + "browser", "client_browser", `[["Chrome",1],["Firefox",1],["Safari",1]]`},
		{wafTop + "clientip", "client_ip", `[["203.0.113.1",2],["203.0.113.2",1]]`},
		{wafTop + "country", "client_country_code", `[["US",2],["CN",1]]`},
		{wafTop + "requestpath", "request_path", `[["/",1],["/a,b;c",1],["/login",1]]`},
		{wafTop + "ruleid", "rule_id,event_type", `[["c1","CUSTOM",1],["r1","WAF",1],["r2","WAF",1]]`},
		{wafTop + "severity", "event_severity", `[["CRITICAL",1],["ERROR",1],["WARNING",1]]`},
		{shapeTop + "browser", "client_browser", `[[null,1],["Chrome",1]]`},
		{shapeTop + "clientip", "client_ip", `[["203.0.113.2",1],["203.0.113.30",1]]`},
		{shapeTop + "country", "client_country_code", `[["CN",1],["RU",1]]`},
		{shapeTop + "ratelimitclientip", "client_ip", `[["203.0.113.2",1]]`},
		{shapeTop + "ratelimitcountry", "client_country_code", `[]`},
		{shapeTop + "requestpath", "domain,request_path", `[["www.example.com","/",1],["www.example.com","/login",1]]`},
	} {
		got := f.result(tc.family, "dimensions", tc.dimensions)
		assert.Equal(t, tc.rows, string(got.Rows), "%s %s", tc.family, tc.dimensions)
		assert.Equal(t, tc.dimensions+",hits", got.columns())
		assert.Len(t, decodeRows(t, got), got.Total)
	}
}

// Section 8: a WAF top-K returns the top 20, a traffic shaping top-K the top 1,000, most hits first.
func TestSection8TopK(t *testing.T) {
	t.Parallel()
	const clients = 1100
	for total, want := range map[string][2]int{"": {20, 1000}, "rows": {20, 1000}, "groups": {clients, clients}} {
		f := start(t, testserver.Config{Dialect: testserver.Dialect{TopKTotal: total}})
		var all []testserver.Event
		for i := range clients {
			ip := netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
			for range 1 + i%3 {
				all = append(all,
					testserver.Event{Time: noon.Add(-time.Hour), Type: testserver.TypeWAF, RuleID: "r", ClientIP: ip},
					testserver.Event{Time: noon.Add(-time.Hour), Type: testserver.TypeRateLimitIP, RuleID: "r", ClientIP: ip})
			}
		}
		f.AddEvents(all...)

		got := f.result(wafTop+"clientip", "dimensions", "client_ip")
		assert.Len(t, decodeRows(t, got), 20)
		assert.True(t, strings.HasPrefix(string(got.Rows), `[["10.0.0.101",3],["10.0.0.104",3],["10.0.0.107",3]`), "ties by address")
		assert.Equal(t, 20, *got.Query.Limit)
		assert.Equal(t, want[0], got.Total)

		for _, category := range []string{"clientip", "ratelimitclientip"} {
			path := shapeTop + category
			got = f.result(path, "dimensions", "client_ip")
			assert.Len(t, decodeRows(t, got), 10, "the default limit holds")
			assert.Equal(t, want[1], got.Total)
			got = f.result(path, "dimensions", "client_ip", "limit", "5000")
			assert.Equal(t, want[1], got.Total)
			rows := decodeRows(t, got)
			require.Len(t, rows, 1000)
			for i, row := range rows { // 366 clients have three hits, 367 two; 367 have one, 267 of which are in
				assert.Equal(t, json.Number(fmt.Sprint([]int{3, 2, 1}[min(i/366, 1)+min(i/733, 1)])), row[1], i)
			}
			// sortby orders the top k; it does not change which groups are among them.
			got = f.result(path, "dimensions", "client_ip", "limit", "1", "sortby", "hits,-client_ip")
			assert.Equal(t, `[[`+marshal(t, rows[999][0])+`,1]]`, string(got.Rows))
		}
	}
}

// Config.RecordingDelay: in every family, an event appears so long after its time, and keeps its time.
func TestRecordingDelay(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{RecordingDelay: 5 * time.Second, EventsPerSecond: 10})
	f.AddEvents(testserver.Event{Time: noon, Type: "WAF", RuleID: "r", Domain: "added.example"})
	span := []string{"starttime", "2026-11-20T11:59:50", "endtime", "2026-11-20T12:00:10", "filters", "domain==added.example"}
	assert.InDelta(t, 50, f.EventCount(noon.Add(-10*time.Second), noon.Add(10*time.Second)), 2)
	f.Clock().Advance(5*time.Second - time.Millisecond)
	assert.Equal(t, 0, f.result(events, span...).Total)
	assert.Equal(t, `[]`, string(f.result(requests, span...).Rows))
	f.Clock().Advance(time.Millisecond)
	assert.Equal(t, 1, f.result(events, span...).Total)
	assert.Equal(t, `[["WAF",1]]`, string(f.result(requests, span...).Rows))
	assert.InDelta(t, 100, f.EventCount(noon.Add(-10*time.Second), noon.Add(10*time.Second)), 2)
}

// Section 8: hourly data is kept for a month. A month before 31 March is the last day of February.
func TestAMonthAfterAShortOne(t *testing.T) {
	t.Parallel()
	for now, first := range map[string]string{
		"2026-03-31T12:00:00": "2026-02-28T12:00:00", "2028-03-30T12:00:00": "2028-02-29T12:00:00", "2026-05-31T12:00:00": "2026-04-30T12:00:00",
		"2026-03-28T12:00:00": "2026-02-28T12:00:00", "2026-01-31T12:00:00": "2025-12-31T12:00:00",
	} {
		f := start(t, testserver.Config{Clock: testserver.NewClock(func() time.Time { return at(now) })})
		f.AddEvents(testserver.Event{Time: at(first), Type: "WAF", RuleID: "r", Severity: "s"}, testserver.Event{Time: at(first).Add(-time.Second), Type: "WAF", RuleID: "r", Severity: "s"})
		rows := string(f.result(waf, "granularity", "hour", "starttime", "2000-01-01T00:00:00", "endtime", now).Rows)
		assert.Equal(t, `[["s",1]]`, rows, now)
	}
}
