package testserver_test

import (
	"encoding/json"
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
