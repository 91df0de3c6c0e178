package main

import (
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// difficult is an event whose texts and numbers are easily damaged. A bubble begins with the year 2000.
func difficult() webdeliverytest.Event {
	return webdeliverytest.Event{
		Time: time.Now().Add(-10*time.Minute + 7*time.Millisecond), Type: "WAF", Action: "BLOCK", RuleID: "</script> \"☃\xff\n",
		ClientIP: netip.MustParseAddr("2001:db8::1"), ASN: 1<<53 + 1, Domain: "www.example.com",
	}
}

const difficultColumns = "event_timestamp_ms,event_type,event_action,rule_id,client_ip,client_asn,client_browser,domain"

func TestHECFormat(t *testing.T) {
	t.Setenv("SPLUNK_HEC_TOKEN", aSecret)
	synctest.Test(t, func(t *testing.T) {
		c, srv := newACollector(t), webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		srv.AddEvents(difficult())
		c.delivers(time.Minute, srv, "-hec", c.srv.URL+"/", "-columns", difficultColumns)
		key := c.keys()["</script> \"☃\ufffd\n"]
		assert.Len(t, key, 32)
		assert.JSONEq(t, `{"time":946684200.007,"host":"www.example.com","source":"webdelivery","sourcetype":"webdelivery:event","event":{`+
			`"event_timestamp_ms":"1999-12-31T23:50:00.007Z","event_type":"WAF","event_action":"BLOCK","rule_id":"</script> \"☃\ufffd\n",`+
			`"client_ip":"2001:db8::1","client_asn":9007199254740993,"client_browser":null,"domain":"www.example.com","key":"`+key+`"}}`, c.body)
		assert.Contains(t, c.body, "9007199254740993", "which JSONEq rounds")
	})
}

// An answer of 200 is an acknowledgement only with code 0, and some codes concern all events.
func TestJudgeHEC(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		answer string
		want   verdict
	}{
		{http.StatusOK, `{"text":"Success","code":0}`, taken},
		{http.StatusOK, ``, later},
		{http.StatusOK, `{}`, later},
		{http.StatusOK, `{"code":9}`, later},
		{http.StatusBadRequest, `{"text":"Invalid data format","code":6,"invalid-event-number":3}`, refused},
		{http.StatusBadRequest, `{"text":"Incorrect index","code":7,"invalid-event-number":0}`, never},
		{http.StatusBadRequest, `{"text":"Data channel is missing","code":10}`, never},
		{http.StatusBadRequest, `?`, refused},
		{http.StatusRequestEntityTooLarge, ``, refused},
	} {
		assert.Equal(t, tt.want, judgeHEC(tt.status, []byte(tt.answer)), tt.answer)
	}
}
