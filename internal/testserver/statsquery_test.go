package testserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Section 4.2: filters have the operators == and !=, combined with OR (the comma) or AND (the semicolon), never both.
func TestSection42Filters(t *testing.T) {
	t.Parallel()
	f := startWithSample(t)
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
	f := startWithSample(t)
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
	f := startWithSample(t)
	got := f.result(events, "dimensions", "client_asn", "sortby", "client_asn")
	assert.Equal(t, `null null 64496 64496 64498 64498 9007199254740993`, second(t, got))
	got = f.result(events, "dimensions", "client_ip", "sortby", "-client_ip")
	assert.Equal(t, `"203.0.113.30" "203.0.113.2" "203.0.113.2" "203.0.113.1" "203.0.113.1" "2001:db8::1" null`, second(t, got))
}
