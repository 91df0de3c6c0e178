package table_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/events/table"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// written returns the events of the hour after noon in a format.
func written(t *testing.T, srv *webdeliverytest.Server, format string, columns ...string) string {
	t.Helper()
	lines := table.New(format, columns)
	text := []byte(lines.Header)
	for row, err := range srv.Client(t).Stats.Events.All(t.Context(), webdelivery.EventsQuery{Dimensions: columns, Start: noon, End: noon.Add(time.Hour)}) {
		require.NoError(t, err)
		value, _ := row.Get(webdelivery.DimEventTimestamp)
		at, err := value.Time()
		require.NoError(t, err)
		text = lines.Append(text, row, at)
	}
	return string(text)
}

// Texts and numbers that are easily damaged are not.
func TestDifficultValues(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithNow(func() time.Time { return noon.Add(time.Hour) }))
	srv.AddEvents(
		webdeliverytest.Event{Time: noon.Add(1234 * time.Millisecond), RuleID: "=1+1", ASN: 1<<53 + 1, Browser: `He said "hi", then left`},
		webdeliverytest.Event{Time: noon.Add(2 * time.Second), RuleID: "日本 ☃ 𝄞", ASN: 1<<63 - 1, Browser: "one\ntwo\r\nthree\r"},
		webdeliverytest.Event{Time: noon.Add(4 * time.Second), RuleID: "/\xff\xed\xa0\x80"}, // not UTF-8, and half of a surrogate pair
	)
	columns := []string{"rule_id", "event_timestamp_ms", "client_asn", "client_browser"}
	assert.Equal(t, "rule_id,event_timestamp_ms,client_asn,client_browser\n"+
		"=1+1,2026-11-20T12:00:01.234Z,9007199254740993,\"He said \"\"hi\"\", then left\"\n"+
		"日本 ☃ 𝄞,2026-11-20T12:00:02.000Z,9223372036854775807,\"one\ntwo\r\nthree\r\"\n"+
		"/\ufffd\ufffd,2026-11-20T12:00:04.000Z,,\n", written(t, srv, "csv", columns...))
	assert.Equal(t, `{"rule_id":"=1+1","event_timestamp_ms":"2026-11-20T12:00:01.234Z",`+
		`"client_asn":9007199254740993,"client_browser":"He said \"hi\", then left"}`+"\n"+
		`{"rule_id":"日本 ☃ 𝄞","event_timestamp_ms":"2026-11-20T12:00:02.000Z",`+
		`"client_asn":9223372036854775807,"client_browser":"one\ntwo\r\nthree\r"}`+"\n"+
		`{"rule_id":"/`+"\ufffd\ufffd"+`","event_timestamp_ms":"2026-11-20T12:00:04.000Z","client_asn":null,"client_browser":null}`+"\n",
		written(t, srv, "ndjson", columns...))
}

// A service may send values that the fake does not. What has not the type of a field of ECS is below webdelivery.
func TestOddValues(t *testing.T) {
	t.Parallel()
	for row, want := range map[string]map[string]string{
		`["",null]`: {"csv": ",,2026-11-20T12:00:01.123456789Z\n", "ecs": `"kind":"event"}}`},
		`["\u2603" , 18446744073709551616]`: {
			"csv": "☃,18446744073709551616,", "ndjson": `{"client_asn":"\u2603","rule_id":18446744073709551616,`,
			"ecs": `,"rule":{"id":"18446744073709551616"},"webdelivery":{"client_asn":"\u2603"}}`,
		},
		`[1.50,"a\ud800"]`: {"csv": "1.50,a\ufffd,", "ecs": `,"rule":{"id":"a` + "\ufffd" + `"},"webdelivery":{"client_asn":1.50}}`},
	} {
		srv := webdeliverytest.NewServer(t)
		srv.Fail(webdeliverytest.FaultRule{Body: `{"columns":[{"name":"client_asn"},{"name":"rule_id"},{"name":"event_timestamp_ms"}],"rows":[` +
			strings.TrimSuffix(row, "]") + `,"2026-11-20T12:00:01.123456789"]],"total_results":1}`})
		for format, want := range want {
			assert.Contains(t, written(t, srv, format, "client_asn", "rule_id", "event_timestamp_ms"), want)
		}
	}
}

// The lines were written by hand from the reference of the Elastic Common Schema.
func TestECS(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithNow(func() time.Time { return noon.Add(time.Hour) }))
	srv.AddEvents(
		webdeliverytest.Event{
			Time: noon.Add(1234 * time.Millisecond), Severity: "CRITICAL", Type: "CUSTOM", Action: "BLOCK", WAFAction: "ALERT",
			ConnectionRemoteIP: netip.MustParseAddr("192.0.2.9"), ClientIP: netip.MustParseAddr("2001:db8::1"), Browser: "<Chrome>",
			CountryCode: "CN", ASN: 64496, RuleID: "942100", Domain: "www.example.com", Property: "shop", RequestPath: "/a?b",
		},
		webdeliverytest.Event{Time: noon.Add(2 * time.Second), Severity: "3", ASN: 1<<53 + 1},
	)
	const common = `"category":["web"],"dataset":"webdelivery.events","kind":"event"`
	assert.Equal(t, `{"@timestamp":"2026-11-20T12:00:01.234Z","ecs":{"version":"8.17.0"},"event":{"action":"BLOCK",`+common+`},`+
		`"rule":{"id":"942100"},"source":{"as":{"number":64496},"geo":{"country_iso_code":"CN"},"ip":"2001:db8::1"},`+
		`"url":{"domain":"www.example.com","path":"/a?b"},"user_agent":{"name":"<Chrome>"},`+
		`"webdelivery":{"client_connection_remote_ip":"192.0.2.9","event_severity":"CRITICAL","event_type":"CUSTOM",`+
		`"property":"shop","waf_action":"ALERT"}}`+"\n"+
		`{"@timestamp":"2026-11-20T12:00:02.000Z","ecs":{"version":"8.17.0"},"event":{`+common+`,"severity":3},`+
		`"source":{"as":{"number":9007199254740993}}}`+"\n",
		written(t, srv, "ecs", strings.Split("event_type,event_action,event_severity,rule_id,waf_action,client_ip,"+
			"client_connection_remote_ip,client_country_code,client_asn,client_browser,domain,property,request_path", ",")...))
}
