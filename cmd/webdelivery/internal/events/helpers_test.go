package events_test

import (
	"bytes"
	"compress/gzip"
	"context"
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
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/events"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const (
	aSecret  = "a-secret-of-the-collector"
	dataPath = "/stats/security/events/data"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("SPLUNK_HEC_TOKEN", aSecret)
	_ = os.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key="+aSecret+"%2C%20really, x-tenant=a")
	http.DefaultTransport = collectors{http.DefaultTransport}
	os.Exit(m.Run())
}

// start starts a command line, and returns when it waits for time. Its end stops it if need be.
func start(t *testing.T, srv *webdeliverytest.Server, args ...string) (stdout *bytes.Buffer, end func() (code int, told string)) {
	t.Helper()
	app, stdout, stderr := clitest.App(srv, "")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- app.Run(ctx, append([]string{"events"}, args...), events.Command) }()
	synctest.Wait()
	return stdout, func() (int, string) {
		stop()
		return <-ended, stderr.String()
	}
}

func run(t *testing.T, srv *webdeliverytest.Server, args ...string) clitest.Result {
	t.Helper()
	return clitest.Run(t, srv, events.Command, "", append([]string{"events"}, args...)...)
}

// inBubble runs a test with a service that has an event a second for each rule, from half an hour ago on.
func inBubble(t *testing.T, rules []string, test func(t *testing.T, srv *webdeliverytest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		happens(srv, 30*time.Minute, rules...)
		test(t, srv)
	})
}

// happens adds an event a second for each rule.
func happens(srv *webdeliverytest.Server, ago time.Duration, rules ...string) {
	for i, rule := range rules {
		srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(time.Duration(i)*time.Second - ago), RuleID: rule})
	}
}

// large are the names of n rules, of 20,000 bytes each.
func large(n int) (rules []string) {
	for i := range n {
		rules = append(rules, fmt.Sprintf("%020000d", i))
	}
	return rules
}

// answer is how a collector answers a request. The zero value takes the events.
type answer struct {
	status int
	body   string
	header http.Header
	lost   bool // the collector takes the events, and the answer is lost
	after  time.Duration
}

// aCollector takes events and counts them.
type aCollector struct {
	t      *testing.T
	cursor string
	to     []string // the flags

	mu       sync.Mutex
	fault    func(rules []string) answer
	requests []int     // number of events in each
	last     time.Time // of them
	body     string    // of the last one
	taken    []string  // the rule and the key of each event
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
	t.Helper()
	c := &aCollector{t: t, cursor: filepath.Join(t.TempDir(), "cursor")}
	host := fmt.Sprintf("c%p.example.com", c)
	hosts.Store(host, c)
	c.answers(answer{})
	c.to = []string{"follow", "--" + protocol, "https://" + host, "--cursor", c.cursor, "--columns", "rule_id,event_timestamp_ms,client_asn"}
	return c
}

// inProtocols runs a test with a collector of each protocol, and a service as inBubble does.
func inProtocols(t *testing.T, rules []string, test func(t *testing.T, c *aCollector, srv *webdeliverytest.Server)) {
	t.Helper()
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
	packed, err := gzip.NewReader(r.Body)
	assert.NoError(c.t, err)
	body, err := io.ReadAll(packed)
	assert.NoError(c.t, err)
	pattern, secret := `"rule_id":"(?<rule>[^"]*)".*?"key":"(?<key>[^"]{32})"`, "Splunk "+aSecret
	if r.URL.Path == "/v1/logs" {
		pattern, secret = `"(?<key>[0-9a-f]{32})".*?"webdelivery.rule_id","value":\{"stringValue":"(?<rule>[^"]*)"`, aSecret+", really"
	}
	assert.Equal(c.t, secret, r.Header.Get("Authorization")+r.Header.Get("Api-Key"))
	var rules, events []string
	expression := regexp.MustCompile(pattern)
	for _, match := range expression.FindAllStringSubmatch(string(body), -1) {
		rules = append(rules, match[expression.SubexpIndex("rule")])
		events = append(events, rules[len(rules)-1]+"\n"+match[expression.SubexpIndex("key")])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests, c.last, c.body = append(c.requests, len(rules)), time.Now(), string(body)
	reply := c.fault(rules)
	select {
	case <-r.Context().Done():
		return nil, r.Context().Err()
	case <-time.After(reply.after):
	}
	if reply.status == 0 {
		c.taken = append(c.taken, events...)
		reply.status, reply.body = http.StatusOK, `{"code":0}` // OTLP ignores unknown members
	}
	if reply.lost {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: reply.status, Header: reply.header, Body: io.NopCloser(strings.NewReader(reply.body))}, nil
}
