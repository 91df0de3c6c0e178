package main

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

func TestOTLPFormat(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key="+aSecret+"%2C%20really")
	synctest.Test(t, func(t *testing.T) {
		c, srv := newACollector(t), webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		srv.AddEvents(difficult())
		c.delivers(time.Minute, srv, "-otlp", c.srv.URL+"/v1/logs", "-columns", difficultColumns)
		key := c.keys()["</script> \"☃\ufffd\n"]
		assert.Len(t, key, 32)
		assert.JSONEq(t, `{"resourceLogs":[{
			"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"webdelivery"}}]},
			"scopeLogs":[{"scope":{"name":"events"},"logRecords":[{
				"timeUnixNano":"946684200007000000","observedTimeUnixNano":"946684800000000000",
				"body":{"stringValue":"WAF BLOCK </script> \"☃\ufffd\n"},
				"attributes":[
					{"key":"event.key","value":{"stringValue":"`+key+`"}},
					{"key":"webdelivery.event_type","value":{"stringValue":"WAF"}},
					{"key":"webdelivery.event_action","value":{"stringValue":"BLOCK"}},
					{"key":"webdelivery.rule_id","value":{"stringValue":"</script> \"☃\ufffd\n"}},
					{"key":"webdelivery.client_ip","value":{"stringValue":"2001:db8::1"}},
					{"key":"webdelivery.client_asn","value":{"intValue":"9007199254740993"}},
					{"key":"webdelivery.domain","value":{"stringValue":"www.example.com"}}
				]}]}]}]}`, c.body)
	})
}

// An answer without partial success acknowledges all events, unless it is not that of a collector.
func TestJudgeOTLP(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		answer string
		want   verdict
	}{
		{http.StatusOK, `{}`, taken},
		{http.StatusNoContent, ``, taken},
		{http.StatusOK, `{"partialSuccess":{"rejectedLogRecords":"0","errorMessage":"slow down"}}`, taken},
		{http.StatusOK, `{"partialSuccess":{"rejectedLogRecords":0}}`, taken},
		{http.StatusOK, `{"partialSuccess":{"rejectedLogRecords":"10"}}`, refused},
		{http.StatusOK, `{"partialSuccess":{"rejectedLogRecords":2}}`, refused},
		{http.StatusOK, `<html>`, later},
		{http.StatusBadRequest, `{}`, refused},
		{http.StatusRequestEntityTooLarge, `{}`, refused},
	} {
		assert.Equal(t, tt.want, judgeOTLP(tt.status, []byte(tt.answer)), tt.answer)
	}
}
