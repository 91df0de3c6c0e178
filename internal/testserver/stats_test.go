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
	"unicode/utf8"

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

func startWithSample(t *testing.T, cfg testserver.Config) fake {
	t.Helper()
	f := start(t, cfg)
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

// groupings returns the grouping sets of a family.
func (f fake) groupings(family string) [][]string {
	f.t.Helper()
	var sets [][]string
	require.NoError(f.t, json.Unmarshal([]byte(f.get(family+"/groupings").body), &sets))
	return sets
}

// Section 2.4: the whole response.
func TestSection24Result(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{Customer: "a,b;c"})
	query := url.Values{
		"dimensions": {"client_asn,client_ip,client_browser"}, "starttime": {"2026-11-20T11:05:00"}, "endtime": {"2026-11-20T24:00:00"},
		"filters": {"event_action==WARN,event_action==ALLOW"}, "limit": {"2"}, "sortby": {"-client_asn"},
	}
	r := f.get(f.URL() + "/a%2Cb%3Bc/v1" + events + "/data?" + query.Encode())
	assert.Equal(t, `{"query":{"starttime":"2026-11-20T11:05:00","endtime":"2026-11-20T24:00:00","start":0,"limit":2,`+
		`"dimensions":["client_asn","client_ip","client_browser"],`+
		`"filters":"event_action==WARN,event_action==ALLOW;customer==a\\,b\\;c"},`+
		`"columns":[{"name":"event_timestamp_ms"},{"name":"client_asn"},{"name":"client_ip"},{"name":"client_browser"}],`+
		`"rows":[["2026-11-20T11:59:59.999",9007199254740993,"203.0.113.30","Chrome"],`+
		`["2026-11-20T11:05:00.000",null,"2001:db8::1","\"odd\" & <b>"]],"total_results":2}`+"\n", r.body)
}

// A row is valid JSON, whatever its values.
func TestSection24AwkwardText(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	texts := []any{"\x00", "\n", "\x7f", "\u2028", "\U0001f600", `\`, `"`, "</script>&", "{}[]", "\ufffd"}
	for _, text := range texts {
		f.AddEvents(testserver.Event{Time: noon, Browser: text.(string)})
	}
	r := f.data(events, "dimensions", "client_browser")
	assert.True(t, utf8.ValidString(r.body))
	for i, row := range decodeRows(t, f.result(events, "dimensions", "client_browser")) {
		assert.Equal(t, texts[i], row[1])
	}
}

// Invalid UTF-8 appears in rows unchanged, except that half of a surrogate pair becomes an escape.
func TestSection24BrokenText(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	for text, want := range map[string]string{
		"a\xff\xc3\"": "\"a\xff\xc3\\\"\"", "\xed\xa0\x80ü": `"\ud800ü"`, "\xed\xbf\xbf\xed": "\"\\udfff\xed\"", "\xed\x9f\xbf\xed\xa0": "\"\ud7ff\xed\xa0\"",
	} {
		f.AddEvents(testserver.Event{Time: noon, Browser: text})
		assert.Contains(t, f.data(events, "dimensions", "client_browser", "limit", "100").body, ","+want+"]")
	}
}

// Section 2.4: query.filters is the supplied expression with the filter on the customer.
func TestSection24EchoOfFilters(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{})
	for supplied, want := range map[string]string{
		"":                        "customer==acme",
		"domain==x":               "domain==x;customer==acme",
		"domain==x;property!=y":   "domain==x;property!=y;customer==acme",
		"domain==x,property!=y":   "domain==x,property!=y;customer==acme",
		`request_path==/a\,b\;c`:  `request_path==/a\,b\;c;customer==acme`,
		`request_path==/\a\`:      `request_path==/\a\;customer==acme`,
		"domain==ü&%+ ,domain==ü": "domain==ü&%+ ,domain==ü;customer==acme",
	} {
		assert.Equal(t, want, f.result(events, "filters", supplied).Query.Filters)
	}
}

// Sections 2.4 and 2.5: every dimension of every event; absent values are null.
func TestSection25Dimensions(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{})
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

// Section 2.4: the time is the first column of raw events if the query does not name it. Otherwise it stays in its
// place.
func TestSection24TimeColumn(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{})
	for asked, columns := range map[string]string{
		"rule_id":                         "event_timestamp_ms,rule_id",
		"event_timestamp_ms":              "event_timestamp_ms",
		"event_timestamp_ms,rule_id":      "event_timestamp_ms,rule_id",
		"rule_id,event_timestamp_ms":      "rule_id,event_timestamp_ms",
		"rule_id,client_asn,event_action": "event_timestamp_ms,rule_id,client_asn,event_action",
	} {
		got := f.result(events, "dimensions", asked)
		assert.Equal(t, columns, got.columns())
		assert.Equal(t, strings.Split(asked, ","), got.Query.Dimensions, "as sent")
	}
	assert.Equal(t, "event_type,hits", f.result(requests).columns())
	assert.Equal(t, "event_type,event_timestamp_ms,hits",
		f.result(requests, "dimensions", "event_type,event_timestamp_ms", "granularity", "day").columns())
}

// Section 4.3: every method of every family exists, for all users. An unlisted category does not.
func TestSection43Methods(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	for _, family := range allFamilies() {
		paths := []string{"/data?" + parameters(family).Encode(), "/dimensions"}
		if family != events {
			paths = append(paths, "/groupings", "/metrics")
		}
		for _, path := range paths {
			r := f.get(family + path)
			assert.Equal(t, 200, r.status, "%s%s: %s", family, path, r.body)
			assert.Equal(t, 401, f.get(family+path, anonymous).status)
			for _, method := range []string{http.MethodHead, http.MethodPost} {
				r = f.do(method, family+path, "")
				assert.Equal(t, 405, r.status, family+path)
				assert.Equal(t, "GET", r.header.Get("Allow"))
			}
		}
		r := f.get(family)
		assert.Equal(t, 405, r.status)
		assert.Equal(t, "HEAD", r.header.Get("Allow"))
		assert.Equal(t, 401, f.do(http.MethodHead, family, "", anonymous).status)
		assert.Equal(t, 406, f.get(family+"/dimensions", header("Accept", "text/html")).status)
		assert.Equal(t, 400, f.get(family+"/dimensions?limit=1").status, "takes no parameter")
	}
	for _, path := range []string{
		wafTop + "ratelimitclientip", wafTop + "ratelimitcountry", wafTop + "Browser", wafTop + "asn", shapeTop + "ruleid",
		shapeTop + "severity", "/stats/security/request/topk/browser", "/stats/security", "/stats/security/waf",
	} {
		for _, method := range []string{"/data", "/dimensions", "/groupings", "/metrics", ""} {
			assert.Equal(t, 404, f.get(path+method, anonymous).status, path+method)
		}
	}
	assert.Equal(t, 404, f.get(events+"/groupings").status, "raw events are not grouped")
	assert.Equal(t, 404, f.get(events+"/metrics").status)
}

// Section 4.3: HEAD is identical to GET, but returns only the headers.
func TestSection43Head(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{})
	for _, family := range allFamilies() {
		for query, status := range map[string]int{
			"":                                200,
			"?" + parameters(family).Encode(): 200,
			"?dimensions=event_type":          400,
			"?" + "filters=nonsense":          400,
			"?" + "unknown=1":                 400,
			"?starttime=2026-11-19T00:00:00":  400,
			"?" + parameters(family, "endtime", "2026-11-20T00:00:00Z").Encode(): 400,
		} {
			r := f.do(http.MethodHead, family+query, "")
			assert.Equal(t, status, r.status, family+query)
			assert.Equal(t, "application/json", r.header.Get("Content-Type"))
			assert.NotEmpty(t, r.header.Get("Date"))
			assert.Equal(t, status == 200, r.header.Get("Content-Length") == "", "the length of a stream is not known")
			assert.Empty(t, r.body)
		}
	}
}

// Section 4.3: the parameters of each data method, and the required ones among them.
func TestSection43Parameters(t *testing.T) {
	t.Parallel()
	const takes, needs, refuses = 200, -200, 400
	f := start(t, testserver.Config{})
	rows := map[string]map[string]int{
		events:   {"metrics": refuses, "granularity": refuses, "sortby": takes, "limit": takes},
		waf:      {"metrics": needs, "granularity": needs, "sortby": takes, "limit": takes},
		requests: {"metrics": needs, "granularity": takes, "sortby": takes, "limit": takes},
		shaping:  {"metrics": needs, "granularity": needs, "sortby": takes, "limit": takes},
	}
	for _, family := range allFamilies() {
		if strings.HasPrefix(family, wafTop) {
			rows[family] = map[string]int{"metrics": needs, "granularity": refuses, "sortby": refuses, "limit": refuses}
		}
		if strings.HasPrefix(family, shapeTop) {
			rows[family] = map[string]int{"metrics": needs, "granularity": refuses, "sortby": takes, "limit": takes}
		}
	}
	for family, rules := range rows {
		rules["dimensions"], rules["starttime"], rules["endtime"], rules["filters"] = needs, needs, needs, takes
		good := map[string]string{
			"metrics": "hits", "granularity": "day", "limit": "1", "filters": "domain==x",
			"sortby": parameters(family).Get("dimensions"),
		}
		for name, rule := range rules {
			value := parameters(family).Get(name)
			if value == "" {
				value = good[name]
			}
			with := f.data(family, name, value)
			without := f.data(family, name, "")
			empty := parameters(family)
			empty.Set(name, "")
			assert.Equal(t, max(rule, -rule), with.status, "%s with %s: %s", family, name, with.body)
			if rule == needs {
				assert.Equal(t, 400, without.status, "%s without %s", family, name)
				assert.Contains(t, without.body, `\"`+name+`\" is missing`)
			} else {
				assert.Equal(t, 200, without.status, "%s without %s: %s", family, name, without.body)
			}
			assert.Equal(t, 400, f.get(family+"/data?"+empty.Encode()).status, "%s with %s empty", family, name)
		}
		assert.Equal(t, 400, f.data(family, "start", "0").status)
		assert.Equal(t, 400, f.data(family, "startime", "2026-11-19T00:00:00").status)
	}
}

// Open point 10: the dialect has the spelling of the parameter starttime. The echo always has that of section 2.4.
func TestSection42StartTimeParam(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{Dialect: testserver.Dialect{StartTimeParam: "startime"}})
	assert.Equal(t, 400, f.data(events).status)
	got := f.result(events, "starttime", "", "startime", "2026-11-20T00:00:00")
	assert.Equal(t, "2026-11-20T00:00:00", got.Query.StartTime)
	assert.Equal(t, 6, got.Total)
}

// Open point 14: the bodies of dimensions, groupings and metrics.
func TestSection43Names(t *testing.T) {
	t.Parallel()
	const path = shapeTop + "ratelimitcountry"
	const dims = `"client_country_code","event_action","event_type","domain","property"`
	const dimObjects = `{"name":"client_country_code"},{"name":"event_action"},{"name":"event_type"},{"name":"domain"},{"name":"property"}`
	const sets = `["client_country_code"],["client_country_code","event_action"],["client_country_code","event_type"],` +
		`["client_country_code","domain"],["client_country_code","property"]`
	setObjects := strings.NewReplacer(`"client_country_code"`, `{"name":"client_country_code"}`, `"event_action"`, `{"name":"event_action"}`,
		`"event_type"`, `{"name":"event_type"}`, `"domain"`, `{"name":"domain"}`, `"property"`, `{"name":"property"}`).Replace(sets)
	const joined = `"client_country_code","client_country_code,event_action","client_country_code,event_type",` +
		`"client_country_code,domain","client_country_code,property"`
	for _, tc := range []struct{ names, groupings, dimensions, sets, metrics string }{
		{"", "", `[` + dims + `]`, `[` + sets + `]`, `["hits"]`},
		{"strings", "arrays", `[` + dims + `]`, `[` + sets + `]`, `["hits"]`},
		{"objects", "", `[` + dimObjects + `]`, `[` + setObjects + `]`, `[{"name":"hits"}]`},
		{"member", "", `{"dimensions":[` + dims + `]}`, `{"groupings":[` + sets + `]}`, `{"metrics":["hits"]}`},
		{"items", "", `{"items":[` + dimObjects + `]}`, `{"items":[` + setObjects + `]}`, `{"items":[{"name":"hits"}]}`},
		{"strings", "joined", `[` + dims + `]`, `[` + joined + `]`, `["hits"]`},
		{"member", "joined", `{"dimensions":[` + dims + `]}`, `{"groupings":[` + joined + `]}`, `{"metrics":["hits"]}`},
		{
			"objects", "joined", `[` + dimObjects + `]`,
			`[{"name":"client_country_code"},{"name":"client_country_code,event_action"},{"name":"client_country_code,event_type"},` +
				`{"name":"client_country_code,domain"},{"name":"client_country_code,property"}]`, `[{"name":"hits"}]`,
		},
	} {
		f := start(t, testserver.Config{Dialect: testserver.Dialect{Names: tc.names, Groupings: tc.groupings}})
		assert.Equal(t, tc.dimensions+"\n", f.get(path+"/dimensions").body)
		assert.Equal(t, tc.sets+"\n", f.get(path+"/groupings").body)
		assert.Equal(t, tc.metrics+"\n", f.get(path+"/metrics").body)
	}
}

// Open point 30: the members of a result in another order, with the same content.
func TestSection24MemberOrder(t *testing.T) {
	t.Parallel()
	want := startWithSample(t, testserver.Config{}).data(events, "limit", "3").object(t)
	for order, members := range map[string][]string{
		"":            {"query", "columns", "rows", "total_results"},
		"documented":  {"query", "columns", "rows", "total_results"},
		"rows-first":  {"rows", "columns", "total_results", "query"},
		"total-first": {"total_results", "query", "columns", "rows"},
	} {
		f := startWithSample(t, testserver.Config{Dialect: testserver.Dialect{MemberOrder: order}})
		r := f.data(events, "limit", "3")
		assert.Equal(t, want, r.object(t))
		got := slices.Clone(members)
		slices.SortFunc(got, func(a, b string) int {
			return strings.Index(r.body, `"`+a+`":`) - strings.Index(r.body, `"`+b+`":`)
		})
		assert.Equal(t, members, got)
		groups := f.data(requests).object(t)
		assert.Equal(t, json.Number("6"), groups["total_results"])
		assert.Len(t, groups["rows"], 6)
		empty := f.data(events, "filters", "domain==none").object(t)
		assert.Equal(t, json.Number("0"), empty["total_results"])
		assert.Equal(t, []any{}, empty["rows"])
	}
}

// data accepts exactly what GET dimensions and GET groupings return.
func TestSection43GroupingSets(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	for _, family := range allFamilies() {
		var dimensions []string
		require.NoError(t, json.Unmarshal([]byte(f.get(family+"/dimensions").body), &dimensions))
		if family == events {
			assert.Len(t, dimensions, 14)
			assert.Equal(t, 200, f.data(family, "dimensions", strings.Join(dimensions, ",")).status)
			continue
		}
		sets := f.groupings(family)
		for _, set := range sets {
			reversed := slices.Clone(set)
			slices.Reverse(reversed)
			var granularity []string
			if family == requests && slices.Contains(set, "event_timestamp_ms") {
				granularity = []string{"granularity", "hour"}
			}
			for _, order := range [][]string{set, reversed} {
				r := f.data(family, append(granularity, "dimensions", strings.Join(order, ","))...)
				assert.Equal(t, 200, r.status, "%s %v: %s", family, order, r.body)
			}
		}
		in := slices.Concat(sets...)
		for _, d := range dimensions {
			assert.Contains(t, in, d, "%s: every dimension is in a set", family)
		}
		for _, bad := range [][]string{dimensions, {"client_connection_remote_ip"}, {"hits"}, {"customer"}, {sets[0][0], sets[0][0]}} {
			assert.Equal(t, 400, f.data(family, "dimensions", strings.Join(bad, ",")).status, "%s %v", family, bad)
		}
	}
}
