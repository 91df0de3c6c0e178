package events_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// answer is how a collector answers a request. The zero value takes the events.
type answer struct {
	status int
	body   string
	header http.Header
	after  time.Duration
}

// aCollector takes events and counts them.
type aCollector struct {
	t      *testing.T
	cursor string
	to     []string // the flags

	mu       sync.Mutex
	fault    func(rules []string) answer
	requests []int    // number of events in each
	body     string   // of the last one
	taken    []string // the rule and the key of each event
}

// collectors is a transport that reaches each aCollector in the same process.
type collectors struct{ others http.RoundTripper }

var hosts sync.Map // host name to aCollector

func (c collectors) RoundTrip(r *http.Request) (*http.Response, error) {
	if found, ok := hosts.Load(r.URL.Hostname()); ok {
		return found.(*aCollector).serve(r)
	}
	return c.others.RoundTrip(r)
}

func newCollector(t *testing.T, protocol string) *aCollector {
	c := &aCollector{t: t, cursor: filepath.Join(t.TempDir(), "cursor")}
	host := fmt.Sprintf("c%p.example.com", c)
	hosts.Store(host, c)
	c.answers(answer{})
	c.to = []string{"follow", "--" + protocol, "https://" + host, "--cursor", c.cursor, "--columns", "rule_id,client_asn"}
	return c
}

// inProtocols runs a test with a collector of each protocol, and a service as inBubble does.
func inProtocols(t *testing.T, rules []string, test func(t *testing.T, c *aCollector, srv *webdeliverytest.Server)) {
	for _, protocol := range []string{"hec", "otlp"} {
		inBubble(t, rules, func(t *testing.T, srv *webdeliverytest.Server) { test(t, newCollector(t, protocol), srv) })
	}
}

// answers says how the collector answers from now on. It takes requests without such rules; without rules here, none.
func (c *aCollector) answers(reply answer, bad ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = func(rules []string) answer {
		if len(bad) > 0 && !slices.ContainsFunc(rules, func(rule string) bool { return slices.Contains(bad, rule) }) {
			return answer{}
		}
		return reply
	}
}

// follow follows events for some time.
func (c *aCollector) follow(d time.Duration, srv *webdeliverytest.Server, want int, args ...string) (told string) {
	c.t.Helper()
	_, end := start(c.t, srv, append(slices.Clone(c.to), args...)...)
	time.Sleep(d)
	code, told := end()
	assert.Equal(c.t, want, code, told)
	assert.NotContains(c.t, told, aSecret)
	return told
}

// got returns the rules of the events that were taken, each as often as it came with another key.
func (c *aCollector) got() (rules []string) {
	for _, event := range slices.Compact(slices.Sorted(slices.Values(c.taken))) {
		rules = append(rules, strings.Split(event, "\n")[0])
	}
	return rules
}

func (c *aCollector) serve(r *http.Request) (*http.Response, error) {
	packed, _ := gzip.NewReader(r.Body)
	body, _ := io.ReadAll(packed)
	secret := map[string]string{"/services/collector/event": "Splunk " + aSecret, "/v1/logs": aSecret + ", really"}[r.URL.Path]
	assert.Equal(c.t, secret, r.Header.Get("Authorization")+r.Header.Get("Api-Key"))
	var rules, events []string
	keys := regexp.MustCompile("[0-9a-f]{32}").FindAllString(string(body), -1)
	for i, match := range regexp.MustCompile(`rule_id"(?:,"value":\{"stringValue")?:"([^"]*)"`).FindAllStringSubmatch(string(body), -1) {
		rules, events = append(rules, match[1]), append(events, match[1]+"\n"+keys[i])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, c.body = append(c.requests, len(rules)), string(body)
	reply := c.fault(rules)
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(reply.after):
	}
	if reply.status == 0 {
		c.taken = append(c.taken, events...)
		reply.status, reply.body = http.StatusOK, map[string]string{"--hec": `{"code":0}`, "--otlp": ""}[c.to[1]]
	}
	return &http.Response{StatusCode: reply.status, Header: reply.header, Body: io.NopCloser(strings.NewReader(reply.body))}, nil
}

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
		{answer{status: http.StatusServiceUnavailable, header: http.Header{"Retry-After": {"60"}}}, 2, "503", []int{4, 4, 4}, 2 * time.Minute},
		{answer{status: http.StatusOK, body: "<html>"}, 2, "200 OK, which does not come from a collector", []int{4, 4, 4}, 0},
		{answer{status: http.StatusRequestEntityTooLarge}, 2, "", []int{4, 2, 1, 1, 2}, 0},
		{answer{status: http.StatusBadRequest}, 5, "", []int{4, 2, 1, 1, 2, 1, 1, 1, 2}, 0}, // no event is bad
	} {
		inProtocols(t, []string{"a", "b", "c", "d"}, func(t *testing.T, c *aCollector, srv *webdeliverytest.Server) {
			n, began, took := 0, time.Now(), time.Duration(0)
			c.fault = func([]string) answer {
				took = time.Since(began)
				if n++; n > tt.times {
					return answer{}
				}
				return tt.fault
			}
			told := c.follow(4*time.Minute, srv, cli.Done)
			assert.Equal(t, tt.requests, c.requests)
			assert.GreaterOrEqual(t, took, tt.takes)
			assert.Equal(t, []string{"a", "b", "c", "d"}, c.got())
			assert.Equal(t, min(1, len(tt.tells)), strings.Count(told, "; trying until it does\n"))
			assert.Equal(t, min(1, len(tt.tells)), strings.Count(told, "takes events again\n"))
			assert.Contains(t, told, tt.tells)
			assert.Contains(t, told, "webdelivery: 4 events delivered; the same command continues\n")
			assert.NoFileExists(t, c.cursor+".rejected")
			assert.Contains(t, c.follow(4*time.Minute, srv, cli.Done), "webdelivery: 0 events delivered;")
		})
	}
	for after, requests := range map[time.Duration][]int{ // ^C comes in the second request, which gets 5 more seconds
		3 * time.Second:  {500, 500, 500, 100},
		10 * time.Second: {500, 500, 500, 500, 100},
	} {
		inProtocols(t, strings.Split(strings.Repeat("a", 1100), ""), func(t *testing.T, c *aCollector, srv *webdeliverytest.Server) {
			c.answers(answer{after: after})
			c.follow(3*after/2, srv, cli.Done)
			c.follow(time.Minute, srv, cli.Done)
			assert.Equal(t, requests, c.requests)
		})
	}
}

// An event that is refused alone is put aside, if the collector takes another one right before and after. The others arrive.
// While the collector takes nothing, nothing is put aside, and it gets the events again. That is said once.
func TestRefusedEvents(t *testing.T) {
	t.Parallel()
	for _, refusal := range []answer{
		{status: http.StatusBadRequest, body: "odd\x07"},
		{status: http.StatusRequestEntityTooLarge, body: "you sent " + aSecret + ", really"},
		{status: http.StatusInternalServerError}, // in OTLP
		{status: http.StatusOK, body: `{"partialSuccess":{"rejectedLogRecords":"1"}}`},
	} {
		inProtocols(t, []string{"bad 1"}, func(t *testing.T, c *aCollector, srv *webdeliverytest.Server) {
			if c.to[1] == "--hec" && refusal.status != http.StatusBadRequest && refusal.status != http.StatusRequestEntityTooLarge {
				return
			}
			c.answers(refusal, "bad 1", "bad 2", "bad 3")
			c.follow(time.Hour, srv, cli.Done)
			assert.NoFileExists(t, c.cursor+".rejected")
			_, end := start(t, srv, c.to...)
			for _, rules := range [][]string{{"a", "b", "bad 2", "c"}, {"bad 3"}, {"d"}} { // one is alone in its request
				happens(srv, 0, rules...)
				time.Sleep(12 * time.Minute)
			}
			c.answers(refusal)
			happens(srv, 0, "e", "f")
			time.Sleep(2 * time.Hour)
			c.answers(answer{})
			time.Sleep(6 * time.Minute)
			_, told := end()
			assert.Less(t, len(c.requests), 4*(60+36+120)/5, "some in each round")
			assert.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, c.got())
			assert.Equal(t, 2, strings.Count(told, "; nothing is put aside, trying until it takes one\n"), told)
			assert.Equal(t, 2, strings.Count(told, " takes events again\n"), told)
			assert.Equal(t, refusal.status == http.StatusBadRequest, strings.Contains(told, ` (400 Bad Request: odd\a), which`), told)
			assert.NotContains(t, told, aSecret)
			assert.Regexp(t, `\.example\.com rejects 1 events \(\d{3} .*\), which are now in `+c.cursor+".rejected\n", told)
			text, _ := os.ReadFile(c.cursor + ".rejected")
			assert.Regexp(t, `^(\{"reason":"\d{3} .*","event":\{.*"bad [123]".*\}\}\n){3}$`, string(text))
		})
	}
}

// A collector that takes nothing from this program ends it at the start, and later is waited for.
func TestHopelessCollectors(t *testing.T) {
	t.Parallel()
	for _, no := range []answer{
		{status: http.StatusUnauthorized, body: aSecret},
		{status: http.StatusNotFound},
		{status: http.StatusTemporaryRedirect, header: http.Header{"Location": {"https://elsewhere.example.com"}}},
		{status: http.StatusBadRequest, body: `{"text":"Incorrect index","code":7}`}, // for Splunk
	} {
		inProtocols(t, []string{"a"}, func(t *testing.T, c *aCollector, srv *webdeliverytest.Server) {
			if no.status == http.StatusBadRequest && c.to[1] == "--otlp" {
				return
			}
			c.answers(no)
			told := c.follow(time.Hour, srv, cli.Failed)
			assert.Contains(t, told, fmt.Sprintf(" refuses all events: %d ", no.status))
			assert.Regexp(t, "webdelivery: check (SPLUNK_HEC_TOKEN|OTEL_EXPORTER_OTLP_HEADERS), and the URL of "+c.to[1]+"\n$", told)
			assert.Len(t, c.requests, 1)
			c.answers(answer{})
			time.AfterFunc(time.Minute, func() { c.answers(no); happens(srv, 10*time.Minute, "b") })
			time.AfterFunc(time.Hour, func() { c.answers(answer{}) })
			assert.Contains(t, c.follow(2*time.Hour, srv, cli.Done), fmt.Sprintf(" takes no events: %d ", no.status))
			assert.Equal(t, []string{"a", "b"}, c.got())
		})
	}
}

// After a stop or a kill, no event is left out: not those before the first delivery, nor those that happened meanwhile; and
// those that arrive again have the same key. After days, somebody must accept a gap.
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
		export := append([]string{"export", "--since", "1m"}, c.to[1:]...)
		assert.Equal(t, "webdelivery: 3 events delivered\n", run(t, srv, export...).Stderr)
		other := run(t, srv, append(export, "--filter", "rule_id==a")...)
		assert.Equal(t, cli.Misuse, other.Code)
		assert.Contains(t, other.Stderr, "belongs to another export: filter")

		time.Sleep(5 * 24 * time.Hour)
		happens(srv, time.Hour, "d")
		assert.Contains(t, c.follow(time.Minute, srv, cli.Failed), "; --accept-gap goes on without them\n")
		c.follow(time.Minute, srv, cli.Done, "--accept-gap")
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
		want := map[string]string{
			"--hec": `{"time":946684200.007,"host":"www.example.com","source":"webdelivery","sourcetype":"webdelivery:event","event":{` +
				`"event_timestamp_ms":"1999-12-31T23:50:00.007Z","event_severity":"High","rule_id":"</script> ☃\ufffd\n",` +
				`"client_asn":9007199254740993,"client_browser":null,"domain":"www.example.com","key":"KEY"}}`,
			"--otlp": `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"webdelivery"}}]},` +
				`"scopeLogs":[{"scope":{"name":"events"},"logRecords":[{` +
				`"timeUnixNano":"946684200007000000","observedTimeUnixNano":"946684800000000000",` +
				`"severityNumber":17,"severityText":"High","body":{"stringValue":"</script> ☃\ufffd\n"},"attributes":[` +
				`{"key":"event.key","value":{"stringValue":"KEY"}},` +
				`{"key":"webdelivery.event_severity","value":{"stringValue":"High"}},` +
				`{"key":"webdelivery.rule_id","value":{"stringValue":"</script> ☃\ufffd\n"}},` +
				`{"key":"webdelivery.client_asn","value":{"intValue":"9007199254740993"}},` +
				`{"key":"webdelivery.domain","value":{"stringValue":"www.example.com"}}]}]}]}]}`,
		}[c.to[1]]
		assert.JSONEq(t, strings.ReplaceAll(want, "KEY", key), c.body)
		assert.Contains(t, c.body, "9007199254740993", "which JSONEq rounds")
	})
}
