package events_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// Whatever the collector does, it gets each event at least once, and those that it has already with the same key. A
// failure is said once, and its end, too.
func TestDelivery(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault    answer
		times    int // as the answer to the first requests
		tells    string
		requests []int
		takes    time.Duration // at least
	}{
		{answer{}, 0, "", []int{4}, 0},
		{answer{after: 20 * time.Second}, 2, "", []int{4}, 0},
		{answer{after: time.Hour}, 2, "deadline exceeded", []int{4, 4, 4}, time.Minute},
		{answer{lost: true}, 2, "unexpected EOF", []int{4, 4, 4}, 0},
		{answer{status: http.StatusServiceUnavailable, header: http.Header{"Retry-After": {"60"}}}, 2, "503", []int{4, 4, 4}, 2 * time.Minute},
		{answer{status: http.StatusOK, body: "<html>"}, 2, "200 OK, which does not come from a collector", []int{4, 4, 4}, 0},
		{answer{status: http.StatusRequestEntityTooLarge}, 2, "", []int{4, 2, 1, 1, 2}, 0},
		{answer{status: http.StatusBadRequest}, 5, "", []int{4, 2, 1, 1, 2, 1, 1, 1, 2}, 0}, // no event is bad
	} {
		inProtocols(t, []string{"a", "b", "c", "d"}, func(t *testing.T, c *aCollector, srv *webdeliverytest.Server) {
			n, began := 0, time.Now()
			c.fault = func([]string) answer {
				if n++; n > tt.times {
					return answer{}
				}
				return tt.fault
			}
			told := c.follow(4*time.Minute, srv, cli.Done)
			assert.Equal(t, tt.requests, c.requests)
			assert.GreaterOrEqual(t, c.last.Sub(began), tt.takes)
			assert.Equal(t, []string{"a", "b", "c", "d"}, c.got())
			assert.Equal(t, min(1, len(tt.tells)), strings.Count(told, "; trying until it does\n"))
			assert.Equal(t, min(1, len(tt.tells)), strings.Count(told, "takes events again\n"))
			assert.Contains(t, told, tt.tells)
			assert.Contains(t, told, "webdelivery: 4 events delivered; the same command continues\n")
			assert.NoFileExists(t, c.cursor+".rejected")
			assert.Contains(t, c.follow(4*time.Minute, srv, cli.Done), "webdelivery: 0 events delivered;")
		})
	}
}

// refusals are how collectors refuse events for their content.
var refusals = map[string][]answer{
	"--hec": {{status: http.StatusBadRequest}, {status: http.StatusRequestEntityTooLarge}},
	"--otlp": {
		{status: http.StatusInternalServerError},
		{status: http.StatusBadRequest},
		{status: http.StatusOK, body: `{"partialSuccess":{"rejectedLogRecords":"1"}}`},
	},
}

// An event that is refused alone is put aside, if the collector takes another one right after. The others arrive. If a new
// process meets only bad events, those that follow show that the collector works.
func TestPoisonedEvents(t *testing.T) {
	t.Parallel()
	inProtocols(t, []string{"bad 1"}, func(t *testing.T, c *aCollector, srv *webdeliverytest.Server) {
		c.answers(refusals[c.to[1]][0], "bad 1", "bad 2", "bad 3")
		c.follow(time.Hour, srv, cli.Done)
		assert.NoFileExists(t, c.cursor+".rejected")
		_, end := start(t, srv, c.to...)
		happens(srv, 0, "a", "b", "bad 2", "c")
		time.Sleep(12 * time.Minute)
		happens(srv, 0, "bad 3") // alone in its request
		time.Sleep(12 * time.Minute)
		synctest.Wait()
		text, err := os.ReadFile(c.cursor + ".rejected")
		require.NoError(t, err)
		assert.Regexp(t, `^(\{"reason":"[45]00 [BI].*","event":\{.*"bad [123]".*\}\}\n){3}$`, string(text))
		assert.True(t, json.Valid(text[:bytes.IndexByte(text, '\n')]))
		happens(srv, 0, "d")
		time.Sleep(12 * time.Minute)
		_, told := end()
		assert.Equal(t, []string{"a", "b", "c", "d"}, c.got())
		assert.Regexp(t, `\.example\.com rejects 1 events \([45]00 .*\), which are now in `+c.cursor+".rejected\n", told)
	})
}

// While the collector refuses everything, nothing is put aside, and it gets the events again; from the start on, and later,
// too. It is said once.
func TestACollectorThatRefusesEverything(t *testing.T) {
	t.Parallel()
	for i := range 3 {
		inProtocols(t, []string{"a", "b"}, func(t *testing.T, c *aCollector, srv *webdeliverytest.Server) {
			refusal := refusals[c.to[1]][min(i, len(refusals[c.to[1]])-1)]
			c.answers(refusal)
			_, end := start(t, srv, c.to...)
			time.Sleep(2 * time.Hour)
			c.answers(answer{})
			assert.Less(t, len(c.requests), 3*2*60/5+9, "with each round")
			time.Sleep(6 * time.Minute)
			c.answers(refusal)
			assert.Len(t, c.got(), 2)
			happens(srv, 0, "c", "d", "e")
			time.Sleep(2 * time.Hour)
			c.answers(answer{})
			time.Sleep(6 * time.Minute)
			_, told := end()
			assert.Len(t, c.got(), 5)
			assert.NoFileExists(t, c.cursor+".rejected")
			assert.Equal(t, 2, strings.Count(told, "; nothing is put aside, trying until it takes one\n"))
			assert.Equal(t, 2, strings.Count(told, " takes events again\n"))
			assert.Contains(t, told, " behind, which is more than twice --delay\n")
		})
	}
}

// A collector that takes nothing from this program ends it at the start, and later is waited for.
func TestHopelessCollectors(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTemporaryRedirect} {
		inProtocols(t, []string{"a"}, func(t *testing.T, c *aCollector, srv *webdeliverytest.Server) {
			no := answer{status: status, header: http.Header{"Location": {"https://elsewhere.example.com"}}, body: aSecret}
			if status == http.StatusNotFound && c.to[1] == "--hec" {
				no = answer{status: http.StatusBadRequest, body: `{"text":"Incorrect index","code":7}`}
			}
			c.answers(no)
			told := c.follow(time.Hour, srv, cli.Failed)
			assert.Contains(t, told, fmt.Sprintf(" refuses all events: %d ", no.status))
			variable := map[string]string{"--hec": "SPLUNK_HEC_TOKEN", "--otlp": "OTEL_EXPORTER_OTLP_HEADERS"}[c.to[1]]
			assert.Contains(t, told, "webdelivery: check "+variable+", and the URL of "+c.to[1]+"\n")
			assert.Len(t, c.requests, 1)
			c.answers(answer{})
			time.AfterFunc(time.Minute, func() { c.answers(no); happens(srv, 10*time.Minute, "b") })
			time.AfterFunc(time.Hour, func() { c.answers(answer{}) })
			assert.Contains(t, c.follow(2*time.Hour, srv, cli.Done), fmt.Sprintf(" takes no events: %d ", no.status))
			assert.Equal(t, []string{"a", "b"}, c.got())
		})
	}
}

// A request has at most 500 events and a megabyte. Late events are delivered, too.
func TestBatches(t *testing.T) {
	t.Parallel()
	inProtocols(t, strings.Split(strings.Repeat("a", 1100), ""), func(t *testing.T, c *aCollector, srv *webdeliverytest.Server) {
		time.AfterFunc(time.Minute, func() { happens(srv, 10*time.Minute, large(50)...) })
		c.follow(6*time.Minute, srv, cli.Done)
		late := map[string]int{"--hec": 49, "--otlp": 24}[c.to[1]] // the body has the rule again
		assert.Equal(t, []int{500, 500, 100, late}, c.requests[:4])
		assert.Len(t, c.got(), 1150)
	})
}

// After a stop or a kill, no event is left out: not those before the first delivery, nor those that happened meanwhile; and
// those that arrive again have the same key. Two processes cannot share a cursor. After days, somebody must accept a gap.
func TestTheCursorContinues(t *testing.T) {
	t.Parallel()
	inProtocols(t, []string{"a", "b"}, func(t *testing.T, c *aCollector, srv *webdeliverytest.Server) {
		c.answers(answer{status: http.StatusServiceUnavailable})
		c.follow(time.Minute, srv, cli.Done)
		time.Sleep(45 * time.Minute) // --since 1h is now behind all events
		c.answers(answer{})
		old, err := os.ReadFile(c.cursor)
		require.NoError(t, err)
		c.follow(time.Minute, srv, cli.Done)
		assert.Equal(t, []string{"a", "b"}, c.got())
		require.NoError(t, os.WriteFile(c.cursor, old, 0o600)) // as after a kill
		happens(srv, 10*time.Minute, "c")
		held, err := webdelivery.OpenCursorFile(c.cursor)
		require.NoError(t, err)
		assert.Contains(t, c.follow(time.Minute, srv, cli.Failed), "already open")
		require.NoError(t, held.Close())
		r := run(t, srv, append([]string{"export", "--since", "1m"}, c.to[1:]...)...)
		assert.Equal(t, "webdelivery: 3 events delivered\n", r.Stderr)
		assert.Equal(t, []string{"a", "b", "c"}, c.got())

		time.Sleep(5 * 24 * time.Hour)
		happens(srv, time.Hour, "d")
		assert.Contains(t, c.follow(time.Minute, srv, cli.Failed), "; --accept-gap goes on without them\n")
		assert.NotContains(t, c.follow(time.Minute, srv, cli.Done, "--accept-gap"), "behind")
		assert.Equal(t, []string{"a", "b", "c", "d"}, c.got())
	})
}

// Texts and numbers that are easily damaged are not. A bubble begins with the year 2000.
func TestFormatsOfCollectors(t *testing.T) {
	t.Parallel()
	inProtocols(t, nil, func(t *testing.T, c *aCollector, srv *webdeliverytest.Server) {
		at := time.Now().Add(-10*time.Minute + 7*time.Millisecond)
		srv.AddEvents(webdeliverytest.Event{Time: at, Severity: "High", RuleID: "</script> ☃\xff\n", ASN: 1<<53 + 1, Domain: "www.example.com"})
		c.follow(time.Minute, srv, cli.Done, "--columns", "event_timestamp_ms,event_severity,rule_id,client_asn,client_browser,domain")
		key := regexp.MustCompile("[0-9a-f]{32}").FindString(c.body)
		want := `{"time":946684200.007,"host":"www.example.com","source":"webdelivery","sourcetype":"webdelivery:event","event":{` +
			`"event_timestamp_ms":"1999-12-31T23:50:00.007Z","event_severity":"High",` +
			`"rule_id":"</script> ☃\ufffd\n","client_asn":9007199254740993,"client_browser":null,` +
			`"domain":"www.example.com","key":"` + key + `"}}`
		if c.to[1] == "--otlp" {
			want = `{"resourceLogs":[{
				"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"webdelivery"}}]},
				"scopeLogs":[{"scope":{"name":"events"},"logRecords":[{
					"timeUnixNano":"946684200007000000","observedTimeUnixNano":"946684800000000000",
					"severityNumber":17,"severityText":"High","body":{"stringValue":"</script> ☃\ufffd\n"},
					"attributes":[
						{"key":"event.key","value":{"stringValue":"` + key + `"}},
						{"key":"webdelivery.event_severity","value":{"stringValue":"High"}},
						{"key":"webdelivery.rule_id","value":{"stringValue":"</script> ☃\ufffd\n"}},
						{"key":"webdelivery.client_asn","value":{"intValue":"9007199254740993"}},
						{"key":"webdelivery.domain","value":{"stringValue":"www.example.com"}}
					]}]}]}]}`
		}
		assert.JSONEq(t, want, c.body)
		assert.Contains(t, c.body, "9007199254740993", "which JSONEq rounds")
	})
}
