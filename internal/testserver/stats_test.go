package testserver_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

const (
	events   = "/stats/security/events"
	waf      = "/stats/security/waf/trends"
	requests = "/stats/security/request/trends"
	shaping  = "/stats/security/trafficshaping/trends"
	wafTop   = "/stats/security/waf/topk/"
	shapeTop = "/stats/security/trafficshaping/topk/"
)

// Section 4.3: the families, each with a dimension that it has.
var families = map[string]string{
	events: "event_type", waf: "event_severity", requests: "event_type", shaping: "event_type",
	wafTop + "browser": "client_browser", wafTop + "clientip": "client_ip", wafTop + "country": "client_country_code",
	wafTop + "requestpath": "request_path", wafTop + "ruleid": "rule_id", wafTop + "severity": "event_severity",
	shapeTop + "browser": "client_browser", shapeTop + "clientip": "client_ip", shapeTop + "country": "client_country_code",
	shapeTop + "ratelimitclientip": "client_ip", shapeTop + "ratelimitcountry": "client_country_code",
	shapeTop + "requestpath": "request_path",
}

func at(clock string) time.Time {
	t, err := time.Parse("2006-01-02T15:04:05.999999999", clock)
	if err != nil {
		panic(err)
	}
	return t
}

// sample is a day of events, not in order of time. The expected values of the tables below were computed from it by
// hand.
func sample() []testserver.Event {
	one, two, three := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("203.0.113.30")
	return []testserver.Event{
		{
			Time: at("2026-11-20T11:04:59.999999"), Severity: "WARNING", Type: "CUSTOM", Action: "WARN", ConnectionRemoteIP: one,
			ClientIP: two, Browser: "Firefox", CountryCode: "CN", ASN: 64496, RuleID: "c1", Domain: "api.example.com",
			Property: "shop", WAFAction: "WARN", RequestPath: "/a,b;c",
		},
		{
			Time: at("2026-11-20T11:00:00.123"), Severity: "CRITICAL", Type: "WAF", Action: "BLOCK", ConnectionRemoteIP: one,
			ClientIP: one, Browser: "Chrome", CountryCode: "US", ASN: 64498, RuleID: "r1", Domain: "www.example.com",
			Property: "shop", WAFAction: "BLOCK", RequestPath: "/login",
		},
		{
			Time: at("2026-11-20T11:05:00"), Severity: "NOTICE", Type: "RATE_LIMIT_IP", Action: "BLOCK", ClientIP: two,
			CountryCode: "CN", ASN: 64496, RuleID: "limit-1", Domain: "www.example.com", Property: "shop", RequestPath: "/login",
		},
		{
			Time: at("2026-11-20T11:05:00"), Type: "OTHER", Action: "ALLOW", ClientIP: netip.MustParseAddr("2001:db8::1"),
			Browser: `"odd" & <b>`, Domain: "www.example.com", Property: "shop", RequestPath: `/\é`,
		},
		{
			Time: at("2026-11-20T11:59:59.999"), Severity: "NOTICE", Type: "BLOCK_COUNTRY", Action: "WARN", ClientIP: three,
			Browser: "Chrome", CountryCode: "RU", ASN: 9007199254740993, Domain: "www.example.com", Property: "shop", RequestPath: "/",
		},
		{
			Time: at("2026-11-19T23:59:59.999"), Severity: "ERROR", Type: "WAF", Action: "WARN", ClientIP: one, Browser: "Safari",
			CountryCode: "US", ASN: 64498, RuleID: "r2", Domain: "www.example.com", Property: "shop", WAFAction: "WARN", RequestPath: "/",
		},
		{Time: at("2026-11-20T12:00:00"), Type: "LATEST"},
		{Time: at("2026-11-20T12:00:00.001"), Type: "FUTURE"},
	}
}

func startWithSample(t *testing.T) fake {
	t.Helper()
	f := start(t, testserver.Config{})
	f.AddEvents(sample()...)
	return f
}

// parameters returns valid parameters of a family for the last two days, changed by pairs of name and value.
func parameters(family string, pairs ...string) url.Values {
	v := url.Values{
		"dimensions": {families[family]}, "metrics": {"hits"}, "granularity": {"day"},
		"starttime": {"2026-11-19T00:00:00"}, "endtime": {"2026-11-21T00:00:00"},
	}
	if family == events {
		v.Del("metrics")
	}
	if family != waf && family != shaping {
		v.Del("granularity")
	}
	for pair := range slices.Chunk(pairs, 2) {
		v.Set(pair[0], pair[1])
	}
	return v
}

func (f fake) data(family string, pairs ...string) response {
	f.t.Helper()
	return f.get(family + "/data?" + parameters(family, pairs...).Encode())
}

// result is the body of a data query, with rows as received.
type result struct {
	Columns json.RawMessage `json:"columns"`
	Rows    json.RawMessage `json:"rows"`
	Total   int             `json:"total_results"`
}

// columns returns the columns of names that are separated by commas.
func columns(names string) string {
	return `[{"name":"` + strings.ReplaceAll(names, ",", `"},{"name":"`) + `"}]`
}

func (f fake) result(family string, pairs ...string) result {
	f.t.Helper()
	r := f.data(family, pairs...)
	require.Equal(f.t, http.StatusOK, r.status, r.body)
	require.Equal(f.t, "application/json", r.header.Get("Content-Type"))
	var out result
	require.NoError(f.t, json.Unmarshal([]byte(r.body), &out), r.body)
	return out
}

// Sections 2.4 and 2.5: every dimension of every event; absent values are null.
func TestSection25Dimensions(t *testing.T) {
	t.Parallel()
	f := startWithSample(t)
	const names = "event_timestamp_ms," + everything
	got := f.result(events, "dimensions", names)
	assert.Equal(t, columns(names), string(got.Columns))
	assert.Equal(t, 7, got.Total, "what is in the future is not there")
	assert.Equal(t, `[["2026-11-19T23:59:59.999","ERROR","WAF","WARN",null,"203.0.113.1","Safari","US",64498,"r2","www.example.com","shop","WARN","/"],`+
		`["2026-11-20T11:00:00.123","CRITICAL","WAF","BLOCK","203.0.113.1","203.0.113.1","Chrome","US",64498,"r1","www.example.com","shop","BLOCK","/login"],`+
		`["2026-11-20T11:04:59.999","WARNING","CUSTOM","WARN","203.0.113.1","203.0.113.2","Firefox","CN",64496,"c1","api.example.com","shop","WARN","/a,b;c"],`+
		`["2026-11-20T11:05:00.000","NOTICE","RATE_LIMIT_IP","BLOCK",null,"203.0.113.2",null,"CN",64496,"limit-1","www.example.com","shop",null,"/login"],`+
		`["2026-11-20T11:05:00.000",null,"OTHER","ALLOW",null,"2001:db8::1","\"odd\" & <b>",null,null,null,"www.example.com","shop",null,"/\\é"],`+
		`["2026-11-20T11:59:59.999","NOTICE","BLOCK_COUNTRY","WARN",null,"203.0.113.30","Chrome","RU",9007199254740993,null,"www.example.com","shop",null,"/"],`+
		`["2026-11-20T12:00:00.000",null,"LATEST",null,null,null,null,null,null,null,null,null,null,null]]`, string(got.Rows))
	f.Clock().Advance(time.Millisecond)
	assert.Equal(t, 8, f.result(events).Total)
}

// Section 4.2: times have whole seconds and no zone. Filters have the operators == and !=, combined with OR (the comma) or
// AND (the semicolon), never both.
func TestSection42Filters(t *testing.T) {
	t.Parallel()
	f := startWithSample(t)
	for total, expressions := range map[int][]string{ // -1: refused
		0: {
			"event_action==warn", "event_action==WARN;event_action==BLOCK", "client_ip==203.0.113.3", "client_asn==064498",
			"client_asn==abc", "client_asn==9007199254740992", `request_path==/\\é`, "request_path==/==/",
			"event_timestamp_ms==2026-11-20T11:05:00",
		},
		1: {
			"event_action==WARN;event_type==WAF", "client_asn==9007199254740993", "client_asn==;client_ip!=",
			`request_path==/a\,b\;c`, `request_path==/a\,b\;c;rule_id==c1`, `request_path==/\é`, `client_browser=="odd" & <b>`,
		},
		2: {
			"event_action!=WARN;event_action!=BLOCK", "client_ip==203.0.113.1", "client_asn==64498",
			`request_path==/a\,b\;c,rule_id==r1`, "event_timestamp_ms==2026-11-20T11:05:00.000",
		},
		3: {"event_action==WARN", "rule_id=="},
		4: {"event_action!=WARN", "rule_id!="},
		5: {"event_action==WARN,event_action==BLOCK", "event_action==WARN,rule_id==r1,client_ip==2001:db8::1"},
		7: {"request_path!==="},
		-1: {
			"event_action==WARN,event_type==WAF;rule_id==r1", "event_action==WARN;event_type==WAF,rule_id==r1",
			`request_path==/a\,b,rule_id==r1;rule_id==r2`, "event_action", "event_action=WARN", "event_action<WARN", "==WARN",
			"!=WARN", " event_action==WARN", "event_action ==WARN", "event_action==WARN,", ";event_action==WARN",
			"event_action==WARN,,rule_id==r1", `event_action\,==WARN`, "nothing==1", "hits==1", "customer==acme",
			"event_action==WARN;customer==acme", "Event_Action==WARN",
		},
	} {
		for _, filters := range expressions {
			if total < 0 {
				assert.Equal(t, 400, f.data(events, "filters", filters).status, filters)
				continue
			}
			assert.Equal(t, total, f.result(events, "filters", filters).Total, filters)
		}
	}
	for _, start := range []string{"2026-11-19T00:00:00.5", "2026-11-19T00:00:00Z", "2026-11-19"} {
		assert.Equal(t, 400, f.data(events, "starttime", start).status, start)
	}
	// In aggregated data, a filter accepts every dimension of the family, also those that are not columns, and no
	// others.
	assert.Equal(t, `[["CUSTOM",1],["RATE_LIMIT_IP",1]]`, string(f.result(requests, "filters", "client_country_code==CN").Rows))
	assert.Equal(t, 400, f.data(requests, "filters", "client_ip==203.0.113.1").status)
	assert.Equal(t, 400, f.data(requests, "filters", "event_timestamp_ms==2026-11-20T00:00:00.000").status)
	for name, value := range map[string]string{"filters": "client_asn==1", "limit": "5", "sortby": "hits"} {
		assert.Equal(t, 400, f.data(wafTop+"ruleid", name, value).status, name)
	}
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
		assert.Equal(t, columns(tc.dimensions+",hits"), string(got.Columns))
	}
}

// Sections 6 and 8: how long events exist, raw and in each granularity.
func TestSection8Retention(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	for _, days := range []int{0, 3, 4, 7, 8, 31, 32, 400} {
		f.AddEvents(testserver.Event{Time: noon.AddDate(0, 0, -days), Type: testserver.TypeBlockIP})
	}
	all := []string{"dimensions", "event_timestamp_ms", "starttime", "2025-01-01T00:00:00"}
	assert.Equal(t, 2, f.result(events, all...).Total)
	for granularity, total := range map[string]int{"5minute": 4, "hour": 6, "day": 8} {
		assert.Equal(t, total, f.result(shaping, append(all, "granularity", granularity)...).Total, granularity)
	}
}
