package table_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// The lines were written by hand from the reference of the Elastic Common Schema.
func TestECS(t *testing.T) {
	t.Parallel()
	srv := service(t,
		webdeliverytest.Event{
			Time: noon.Add(1234 * time.Millisecond), Severity: "CRITICAL", Type: "CUSTOM", Action: "BLOCK", WAFAction: "ALERT",
			ConnectionRemoteIP: netip.MustParseAddr("192.0.2.9"), ClientIP: netip.MustParseAddr("2001:db8::1"), Browser: "<Chrome>",
			CountryCode: "CN", ASN: 64496, RuleID: "942100", Domain: "www.example.com", Property: "shop", RequestPath: "/a?b",
		},
		webdeliverytest.Event{Time: noon.Add(2 * time.Second), Severity: "3", ASN: 1<<53 + 1},
		webdeliverytest.Event{Time: noon.Add(3 * time.Second)},
	)
	names := strings.Split("event_timestamp_ms,event_type,event_action,event_severity,rule_id,waf_action,client_ip,"+
		"client_connection_remote_ip,client_country_code,client_asn,client_browser,domain,property,request_path", ",")
	text, err := write(t, srv, "ecs", names)
	require.NoError(t, err)
	const common = `"category":["web"],"dataset":"webdelivery.events","kind":"event"`
	assert.Equal(t, `{"@timestamp":"2026-11-20T12:00:01.234Z","ecs":{"version":"8.17.0"},"event":{"action":"BLOCK",`+common+`},`+
		`"rule":{"id":"942100"},"source":{"as":{"number":64496},"geo":{"country_iso_code":"CN"},"ip":"2001:db8::1"},`+
		`"url":{"domain":"www.example.com","path":"/a?b"},"user_agent":{"name":"<Chrome>"},`+
		`"webdelivery":{"client_connection_remote_ip":"192.0.2.9","event_severity":"CRITICAL","event_type":"CUSTOM",`+
		`"property":"shop","waf_action":"ALERT"}}`+"\n"+
		`{"@timestamp":"2026-11-20T12:00:02.000Z","ecs":{"version":"8.17.0"},"event":{`+common+`,"severity":3},`+
		`"source":{"as":{"number":9007199254740993}}}`+"\n"+
		`{"@timestamp":"2026-11-20T12:00:03.000Z","ecs":{"version":"8.17.0"},"event":{`+common+`}}`+"\n", string(text))
}
