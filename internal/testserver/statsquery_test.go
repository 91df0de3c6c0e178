package testserver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// Section 4.2: times have the pattern yyyy-MM-ddTHH:mm:ss in UTC, without any time zone designator.
func TestSection42Times(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{})
	for name, tc := range map[string]struct {
		start, end string
		total      int // -1: refused
	}{
		"whole days":          {"2026-11-19T00:00:00", "2026-11-21T00:00:00", 7},
		"start is in":         {"2026-11-20T11:05:00", "2026-11-20T11:06:00", 2},
		"end is out":          {"2026-11-20T11:04:00", "2026-11-20T11:05:00", 1},
		"up to the last ms":   {"2026-11-20T11:59:59", "2026-11-20T12:00:00", 1},
		"one second":          {"2026-11-20T11:00:00", "2026-11-20T11:00:01", 1},
		"nothing there":       {"2026-11-20T10:00:00", "2026-11-20T10:00:01", 0},
		"hour 24 as end":      {"2026-11-19T00:00:00", "2026-11-19T24:00:00", 1},
		"hour 24 as start":    {"2026-11-19T24:00:00", "2026-11-20T11:01:00", 1},
		"hour 24 of a month":  {"2026-10-31T24:00:00", "2026-11-20T00:00:00", 1},
		"same instant twice":  {"2026-11-19T24:00:00", "2026-11-20T00:00:00", -1},
		"24:00:01":            {"2026-11-19T00:00:00", "2026-11-19T24:00:01", -1},
		"24:01:00":            {"2026-11-19T00:00:00", "2026-11-19T24:01:00", -1},
		"hour 25":             {"2026-11-19T00:00:00", "2026-11-19T25:00:00", -1},
		"end before start":    {"2026-11-20T00:00:00", "2026-11-19T00:00:00", -1},
		"end is start":        {"2026-11-20T00:00:00", "2026-11-20T00:00:00", -1},
		"start with Z":        {"2026-11-19T00:00:00Z", "2026-11-21T00:00:00", -1},
		"end with Z":          {"2026-11-19T00:00:00", "2026-11-21T00:00:00Z", -1},
		"with +00:00":         {"2026-11-19T00:00:00", "2026-11-21T00:00:00+00:00", -1},
		"with +0000":          {"2026-11-19T00:00:00+0000", "2026-11-21T00:00:00", -1},
		"with UTC":            {"2026-11-19T00:00:00 UTC", "2026-11-21T00:00:00", -1},
		"24 with Z":           {"2026-11-19T00:00:00", "2026-11-19T24:00:00Z", -1},
		"fraction":            {"2026-11-19T00:00:00.000", "2026-11-21T00:00:00", -1},
		"fraction of the end": {"2026-11-19T00:00:00", "2026-11-21T00:00:00.5", -1},
		"blank for T":         {"2026-11-19 00:00:00", "2026-11-21T00:00:00", -1},
		"small t":             {"2026-11-19t00:00:00", "2026-11-21T00:00:00", -1},
		"date only":           {"2026-11-19", "2026-11-21", -1},
		"without seconds":     {"2026-11-19T00:00", "2026-11-21T00:00:00", -1},
		"one digit":           {"2026-11-19T0:00:00", "2026-11-21T00:00:00", -1},
		"no such day":         {"2026-02-29T00:00:00", "2026-11-21T00:00:00", -1},
		"no such month":       {"2026-13-01T00:00:00", "2027-11-21T00:00:00", -1},
		"second 60":           {"2026-11-19T00:00:60", "2026-11-21T00:00:00", -1},
		"long ago to far":     {"0001-01-01T00:00:00", "9999-12-31T24:00:00", 7},
		"epoch":               {"1763596800", "1763683200", -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, family := range []string{events, requests} {
				if tc.total < 0 {
					assert.Equal(t, 400, f.data(family, "starttime", tc.start, "endtime", tc.end).status)
					continue
				}
				got := f.result(family, "starttime", tc.start, "endtime", tc.end, "limit", "100")
				if family == events {
					assert.Equal(t, tc.total, got.Total)
				}
				assert.Equal(t, tc.start, got.Query.StartTime, "as sent")
				assert.Equal(t, tc.end, got.Query.EndTime)
			}
		})
	}
}

// Section 4.2: dimensions and metrics are known names, each once.
func TestSection42Columns(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{})
	for _, tc := range []struct {
		family, dimensions string
		status             int
	}{
		{events, "rule_id", 200},
		{events, "rule_id,rule_id", 400},
		{events, "event_timestamp_ms,event_timestamp_ms", 400},
		{events, "rule_id,", 400},
		{events, ",rule_id", 400},
		{events, "rule_id, domain", 400},
		{events, "rule_id;domain", 400},
		{events, "Rule_id", 400},
		{events, "hits", 400},
		{events, "customer", 400},
		{requests, "event_type,event_type", 400},
		{requests, "event_timestamp_ms", 400}, // there is no bucket without a granularity
		{requests, "rule_id", 400},
		{waf, "event_timestamp_ms", 200},
		{waf, "client_ip", 400},
		{waf, "rule_id,domain", 400}, // no grouping set
		{wafTop + "ruleid", "rule_id,domain", 200},
		{wafTop + "ruleid", "domain", 400},
		{wafTop + "ruleid", "event_timestamp_ms", 400},
		{wafTop + "ruleid", "rule_id,domain,property", 400},
	} {
		assert.Equal(t, tc.status, f.data(tc.family, "dimensions", tc.dimensions).status, "%s %s", tc.family, tc.dimensions)
	}
	for _, family := range allFamilies()[1:] {
		for _, metrics := range []string{"Hits", "hits,hits", "hits,", "rule_id", "bytes"} {
			assert.Equal(t, 400, f.data(family, "metrics", metrics).status)
		}
	}
}

// Section 4.2: granularity is day, hour or 5minute.
func TestSection42Granularity(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{})
	for granularity, rows := range map[string]string{
		"day":     `[["2026-11-19T00:00:00.000",1],["2026-11-20T00:00:00.000",6]]`,
		"hour":    `[["2026-11-19T23:00:00.000",1],["2026-11-20T11:00:00.000",5],["2026-11-20T12:00:00.000",1]]`,
		"5minute": `[["2026-11-19T23:55:00.000",1],["2026-11-20T11:00:00.000",2],["2026-11-20T11:05:00.000",2],["2026-11-20T11:55:00.000",1],["2026-11-20T12:00:00.000",1]]`,
	} {
		got := f.result(requests, "dimensions", "event_timestamp_ms", "granularity", granularity)
		assert.Equal(t, rows, string(got.Rows))
	}
	// The range begins within a bucket, whose start may lie before the range.
	got := f.result(requests, "dimensions", "event_timestamp_ms", "granularity", "day", "starttime", "2026-11-20T11:05:00")
	assert.Equal(t, `[["2026-11-20T00:00:00.000",4]]`, string(got.Rows))
	got = f.result(requests, "dimensions", "event_timestamp_ms", "granularity", "day", "filters", "event_timestamp_ms!=2026-11-20T00:00:00.000")
	assert.Equal(t, `[["2026-11-19T00:00:00.000",1]]`, string(got.Rows), "a filter sees the bucket")
	for _, bad := range []string{"Day", "minute", "5minutes", "1", "hour,day"} {
		for _, family := range []string{waf, requests, shaping} {
			assert.Equal(t, 400, f.data(family, "granularity", bad).status)
		}
	}
}

// Section 4.2: filters have the operators == and !=, combined with OR (the comma) or AND (the semicolon), never both.
func TestSection42Filters(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{})
	for filters, total := range map[string]int{ // -1: refused
		"event_action==WARN":                                    3,
		"event_action!=WARN":                                    4,
		"event_action==warn":                                    0,
		"event_action==WARN,event_action==BLOCK":                5,
		"event_action==WARN;event_type==WAF":                    1,
		"event_action==WARN;event_action==BLOCK":                0,
		"event_action!=WARN;event_action!=BLOCK":                2,
		"event_action==WARN,rule_id==r1,client_ip==2001:db8::1": 5,
		"client_ip==203.0.113.1":                                2,
		"client_ip==203.0.113.3":                                0,
		"client_asn==64498":                                     2,
		"client_asn==064498":                                    0,
		"client_asn==abc":                                       0,
		"client_asn==9007199254740993":                          1,
		"client_asn==9007199254740992":                          0,
		"rule_id==":                                             3,
		"rule_id!=":                                             4,
		"client_asn==;client_ip!=":                              1,
		`request_path==/a\,b\;c`:                                1,
		`request_path==/a\,b\;c,rule_id==r1`:                    2,
		`request_path==/a\,b\;c;rule_id==c1`:                    1,
		`request_path==/\é`:                                     1,
		`request_path==/\\é`:                                    0,
		`client_browser=="odd" & <b>`:                           1,
		"request_path==/==/":                                    0,
		"request_path!===":                                      7,
		"event_timestamp_ms==2026-11-20T11:05:00.000":           2,
		"event_timestamp_ms==2026-11-20T11:05:00":               0,
		"event_action==WARN,event_type==WAF;rule_id==r1":        -1,
		"event_action==WARN;event_type==WAF,rule_id==r1":        -1,
		`request_path==/a\,b,rule_id==r1;rule_id==r2`:           -1,
		"event_action":                                          -1,
		"event_action=WARN":                                     -1,
		"event_action<WARN":                                     -1,
		"==WARN":                                                -1,
		"!=WARN":                                                -1,
		" event_action==WARN":                                   -1,
		"event_action ==WARN":                                   -1,
		"event_action==WARN,":                                   -1,
		";event_action==WARN":                                   -1,
		"event_action==WARN,,rule_id==r1":                       -1,
		`event_action\,==WARN`:                                  -1,
		"nothing==1":                                            -1,
		"hits==1":                                               -1,
		"customer==acme":                                        -1,
		"event_action==WARN;customer==acme":                     -1,
		"Event_Action==WARN":                                    -1,
	} {
		if total < 0 {
			assert.Equal(t, 400, f.data(events, "filters", filters).status, filters)
			continue
		}
		assert.Equal(t, total, f.result(events, "filters", filters).Total, filters)
	}
	// In aggregated data, a filter accepts every dimension of the family, also those that are not columns, and no
	// others.
	assert.Equal(t, `[["CUSTOM",1],["RATE_LIMIT_IP",1]]`, string(f.result(requests, "filters", "client_country_code==CN").Rows))
	assert.Equal(t, 400, f.data(requests, "filters", "client_ip==203.0.113.1").status)
	assert.Equal(t, 400, f.data(requests, "filters", "event_timestamp_ms==2026-11-20T00:00:00.000").status)
	assert.Equal(t, 400, f.data(wafTop+"ruleid", "filters", "client_asn==1").status)
}

// Section 4.2: sortby lists dimensions and metrics. A minus sorts in descending order. Only columns of the result can
// be sorted.
func TestSection42SortBy(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{})
	for sortby, rows := range map[string]string{
		"":                                   `"ERROR" "CRITICAL" "WARNING" "NOTICE" null "NOTICE" null`,
		"event_timestamp_ms":                 `"ERROR" "CRITICAL" "WARNING" "NOTICE" null "NOTICE" null`,
		"-event_timestamp_ms":                `null "NOTICE" "NOTICE" null "WARNING" "CRITICAL" "ERROR"`,
		"event_timestamp_ms,event_severity":  `"ERROR" "CRITICAL" "WARNING" null "NOTICE" "NOTICE" null`,
		"event_severity":                     `null null "CRITICAL" "ERROR" "NOTICE" "NOTICE" "WARNING"`,
		"-event_severity":                    `"WARNING" "NOTICE" "NOTICE" "ERROR" "CRITICAL" null null`,
		"-event_severity,event_timestamp_ms": `"WARNING" "NOTICE" "NOTICE" "ERROR" "CRITICAL" null null`,
	} {
		got := f.result(events, "dimensions", "event_severity", "sortby", sortby)
		assert.Equal(t, rows, second(t, got), sortby)
	}
	for _, bad := range []string{"client_asn", "hits", "event_severity,", "--event_severity", "+event_severity", "event_severity desc", "-", "nothing"} {
		assert.Equal(t, 400, f.data(events, "dimensions", "event_severity", "sortby", bad).status, bad)
	}
	for sortby, rows := range map[string]string{
		"":                           `[["CUSTOM","WARN",1],["WAF","BLOCK",1],["WAF","WARN",1]]`,
		"-event_type":                `[["WAF","BLOCK",1],["WAF","WARN",1],["CUSTOM","WARN",1]]`,
		"-event_type,-event_action":  `[["WAF","WARN",1],["WAF","BLOCK",1],["CUSTOM","WARN",1]]`,
		"event_action,-event_type":   `[["WAF","BLOCK",1],["WAF","WARN",1],["CUSTOM","WARN",1]]`,
		"-hits,-event_action":        `[["CUSTOM","WARN",1],["WAF","WARN",1],["WAF","BLOCK",1]]`,
		"hits,event_type,event_type": `[["CUSTOM","WARN",1],["WAF","BLOCK",1],["WAF","WARN",1]]`,
	} {
		got := f.result(requests, "dimensions", "event_type,event_action", "filters", "event_type==WAF,event_type==CUSTOM", "sortby", sortby)
		assert.Equal(t, rows, string(got.Rows), sortby)
	}
	assert.Equal(t, 400, f.data(requests, "sortby", "event_timestamp_ms").status, "not asked for")
	assert.Equal(t, 400, f.data(requests, "sortby", "event_action").status)
}

// Numbers sort by size. All other values, also addresses, sort like their strings in rows.
func TestSection42SortOfTypes(t *testing.T) {
	t.Parallel()
	f := startWithSample(t, testserver.Config{})
	got := f.result(events, "dimensions", "client_asn", "sortby", "client_asn")
	assert.Equal(t, `null null 64496 64496 64498 64498 9007199254740993`, second(t, got))
	got = f.result(events, "dimensions", "client_ip", "sortby", "-client_ip")
	assert.Equal(t, `"203.0.113.30" "203.0.113.2" "203.0.113.2" "203.0.113.1" "203.0.113.1" "2001:db8::1" null`, second(t, got))
}

// Sections 4.2 and 8: the limit is an integer, by default 10, without an upper bound. total_results does not depend on
// it.
func TestSection42Limit(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{})
	for i := range 25 {
		f.AddEvents(testserver.Event{Time: noon.Add(-time.Duration(i) * time.Minute), Type: fmt.Sprintf("type-%d", i)})
	}
	for limit, rows := range map[string]int{
		"": 10, "0": 0, "1": 1, "10": 10, "24": 24, "25": 25, "26": 25, "1000000": 25,
		"9223372036854775807": 25, "99999999999999999999999": 25, "007": 7,
	} {
		for _, family := range []string{events, requests} {
			for _, sortby := range []string{"", "-event_type"} {
				got := f.result(family, "limit", limit, "sortby", sortby)
				assert.Len(t, decodeRows(t, got), rows, "limit %q", limit)
				assert.Equal(t, 25, got.Total)
			}
		}
	}
	assert.Equal(t, 10, *f.result(events).Query.Limit)
	assert.Equal(t, 7, *f.result(requests, "limit", "7").Query.Limit)
	for _, bad := range []string{"-1", "+1", "1.0", "1e3", "ten", "0x10", " 1", "1_000"} {
		assert.Equal(t, 400, f.data(events, "limit", bad).status, bad)
		assert.Equal(t, 400, f.data(shapeTop+"browser", "limit", bad).status, bad)
	}
}
