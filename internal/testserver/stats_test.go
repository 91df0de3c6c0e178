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

// Section 4.3: the categories.
var (
	wafCategories     = []string{"browser", "clientip", "country", "requestpath", "ruleid", "severity"}
	shapingCategories = []string{"browser", "clientip", "country", "ratelimitclientip", "ratelimitcountry", "requestpath"}
)

func allFamilies() []string {
	all := []string{events, waf, requests, shaping}
	for _, c := range wafCategories {
		all = append(all, wafTop+c)
	}
	for _, c := range shapingCategories {
		all = append(all, shapeTop+c)
	}
	return all
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
	all := sample()
	f.AddEvents(all[:3]...)
	f.AddEvents(all[3:]...)
	return f
}

// parameters returns valid parameters of a family for the last two days, changed by pairs of name and value. "" removes
// a parameter.
func parameters(family string, pairs ...string) url.Values {
	v := url.Values{
		"dimensions": {"event_type"}, "metrics": {"hits"}, "granularity": {"day"},
		"starttime": {"2026-11-19T00:00:00"}, "endtime": {"2026-11-21T00:00:00"},
	}
	for prefix, key := range map[string]string{
		events: "event_type", waf: "event_severity", shaping: "event_type",
		wafTop + "browser": "client_browser", wafTop + "clientip": "client_ip", wafTop + "country": "client_country_code",
		wafTop + "requestpath": "request_path", wafTop + "ruleid": "rule_id", wafTop + "severity": "event_severity",
		shapeTop + "browser": "client_browser", shapeTop + "clientip": "client_ip", shapeTop + "country": "client_country_code",
		shapeTop + "ratelimitclientip": "client_ip", shapeTop + "ratelimitcountry": "client_country_code",
		shapeTop + "requestpath": "request_path",
	} {
		if family == prefix {
			v.Set("dimensions", key)
		}
	}
	if family == events {
		v.Del("metrics")
	}
	if family != waf && family != shaping {
		v.Del("granularity")
	}
	for pair := range slices.Chunk(pairs, 2) {
		if v.Set(pair[0], pair[1]); pair[1] == "" {
			v.Del(pair[0])
		}
	}
	return v
}

func (f fake) data(family string, pairs ...string) response {
	f.t.Helper()
	return f.get(family + "/data?" + parameters(family, pairs...).Encode())
}

// result is the body of a data query, with rows as received.
type result struct {
	Query struct {
		StartTime  string   `json:"starttime"`
		EndTime    string   `json:"endtime"`
		Start      *int     `json:"start"`
		Limit      *int     `json:"limit"`
		Dimensions []string `json:"dimensions"`
		Filters    string   `json:"filters"`
	} `json:"query"`
	Columns []struct {
		Name string `json:"name"`
	} `json:"columns"`
	Rows  json.RawMessage `json:"rows"`
	Total int             `json:"total_results"`
}

func (r result) columns() string {
	names := make([]string, len(r.Columns))
	for i, c := range r.Columns {
		names[i] = c.Name
	}
	return strings.Join(names, ",")
}

func (f fake) result(family string, pairs ...string) result {
	f.t.Helper()
	r := f.data(family, pairs...)
	require.Equal(f.t, http.StatusOK, r.status, r.body)
	require.Equal(f.t, "application/json", r.header.Get("Content-Type"))
	var out result
	dec := json.NewDecoder(strings.NewReader(r.body))
	dec.DisallowUnknownFields()
	require.NoError(f.t, dec.Decode(&out), r.body)
	return out
}

// Sections 2.4 and 2.5: every dimension of every event; absent values are null.
func TestSection25Dimensions(t *testing.T) {
	t.Parallel()
	f := startWithSample(t)
	names := "event_timestamp_ms,event_severity,event_type,event_action,client_connection_remote_ip,client_ip,client_browser," +
		"client_country_code,client_asn,rule_id,domain,property,waf_action,request_path"
	got := f.result(events, "dimensions", names)
	assert.Equal(t, names, got.columns())
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
