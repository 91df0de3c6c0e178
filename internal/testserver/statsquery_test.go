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
