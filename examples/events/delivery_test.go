package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const aSecret = "a-secret-of-the-collector"

// fault answers a request in place of the collector, or leaves it to that. It counts requests from 0.
type fault func(n int, w http.ResponseWriter, r *http.Request, rules []string) (answered bool)

// first is a fault of the first requests.
func first(most int, answer func(w http.ResponseWriter, r *http.Request)) fault {
	return func(n int, w http.ResponseWriter, r *http.Request, _ []string) bool {
		if n < most {
			answer(w, r)
		}
		return n < most
	}
}

// with is a fault of each request with such rules.
func with(bad func(rules []string) bool, answer func(w http.ResponseWriter, r *http.Request)) fault {
	return func(_ int, w http.ResponseWriter, r *http.Request, rules []string) bool {
		if bad(rules) {
			answer(w, r)
		}
		return bad(rules)
	}
}

// aCollector takes events and counts them.
type aCollector struct {
	t     *testing.T
	srv   *webdeliverytest.Server
	fault fault // nil for none

	cursor string   // the file
	to     []string // the flags of the protocol

	mu       sync.Mutex
	body     string                    // of the last request
	requests []int                     // number of events in each
	times    []time.Time               // of them
	taken    map[string]map[string]int // how often the collector has taken each key of a rule
	cut      int                       // how many requests to take without an answer
}

func newACollector(t *testing.T) *aCollector {
	t.Helper()
	c := &aCollector{
		t: t, srv: webdeliverytest.NewServer(t, webdeliverytest.InMemory()), taken: map[string]map[string]int{},
		cursor: filepath.Join(t.TempDir(), "cursor"),
	}
	c.srv.Fail(webdeliverytest.FaultRule{Handler: c.serve})
	return c
}

// serve is the collector of both protocols.
func (c *aCollector) serve(w http.ResponseWriter, r *http.Request) {
	packed, err := gzip.NewReader(r.Body)
	if !assert.NoError(c.t, err) {
		return
	}
	body, err := io.ReadAll(packed)
	assert.NoError(c.t, err)
	assert.Equal(c.t, "application/json", r.Header.Get("Content-Type"))
	var rules, keys []string
	switch r.URL.Path {
	case "/services/collector/event":
		assert.Equal(c.t, "Splunk "+aSecret, r.Header.Get("Authorization"))
		for lines := json.NewDecoder(bytes.NewReader(body)); lines.More(); {
			var e struct {
				Event map[string]any `json:"event"`
			}
			assert.NoError(c.t, lines.Decode(&e))
			rules, keys = append(rules, e.Event["rule_id"].(string)), append(keys, e.Event["key"].(string))
		}
	case "/v1/logs":
		assert.Equal(c.t, aSecret+", really", r.Header.Get("Api-Key"))
		var logs struct {
			ResourceLogs []struct {
				ScopeLogs []struct {
					LogRecords []otlpRecord `json:"logRecords"`
				} `json:"scopeLogs"`
			} `json:"resourceLogs"`
		}
		assert.NoError(c.t, json.Unmarshal(body, &logs))
		for _, record := range logs.ResourceLogs[0].ScopeLogs[0].LogRecords {
			for _, a := range record.Attributes {
				switch a.Key {
				case "event.key":
					keys = append(keys, *a.Value.Text)
				case "webdelivery.rule_id":
					rules = append(rules, *a.Value.Text)
				}
			}
		}
	default:
		c.t.Errorf("a request for %s", r.URL.Path)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.requests)
	c.body = string(body)
	c.requests, c.times = append(c.requests, len(rules)), append(c.times, time.Now())
	if c.fault != nil && c.fault(n, w, r, rules) {
		return
	}
	for i, rule := range rules {
		if c.taken[rule] == nil {
			c.taken[rule] = map[string]int{}
		}
		c.taken[rule][keys[i]]++
	}
	if c.cut--; c.cut >= 0 {
		panic(http.ErrAbortHandler) // closes the connection
	}
	if r.URL.Path == "/v1/logs" {
		_, _ = io.WriteString(w, `{"partialSuccess":{}}`)
	} else {
		_, _ = io.WriteString(w, `{"text":"Success","code":0}`)
	}
}

// keys returns the key of each rule. A rule must have one.
func (c *aCollector) keys() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]string{}
	for rule, keys := range c.taken {
		assert.Len(c.t, keys, 1, rule)
		for key := range keys {
			all[rule] = key
		}
	}
	return all
}

// deliver runs the program for some time with a service that has these events.
func (c *aCollector) deliver(d time.Duration, srv *webdeliverytest.Server, args ...string) (told string, err error) {
	c.t.Helper()
	var out, stderr bytes.Buffer
	args = append([]string{"-follow", "-since", "1h", "-columns", "rule_id,event_timestamp_ms,client_asn", "-cursor", c.cursor}, append(c.to, args...)...)
	set, err := parse(args, program.Streams{Err: &stderr}, time.Now())
	require.NoError(c.t, err)
	set.to.client.Transport = c.srv.HTTPClient().Transport
	ctx, stop := context.WithTimeout(c.t.Context(), d)
	defer stop()
	err = export(ctx, followed(c.t, srv, &stderr), set, program.Streams{Out: &out, Err: &stderr})
	assert.Equal(c.t, err != nil, program.Code("events", &stderr, err) != program.Done)
	assert.Empty(c.t, out.String())
	assert.NotContains(c.t, stderr.String(), aSecret)
	return stderr.String(), err
}

// delivers is a deliver that succeeds.
func (c *aCollector) delivers(d time.Duration, srv *webdeliverytest.Server, args ...string) (told string) {
	c.t.Helper()
	told, err := c.deliver(d, srv, args...)
	require.NoError(c.t, err)
	return told
}

// serviceOf starts a service with an event a second for each rule.
func serviceOf(t *testing.T, rules ...string) *webdeliverytest.Server {
	t.Helper()
	srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
	for i, rule := range rules {
		srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(time.Duration(i)*time.Second - 30*time.Minute), RuleID: rule})
	}
	return srv
}

// inProtocols runs a test with a collector of each protocol.
func inProtocols(t *testing.T, test func(t *testing.T, c *aCollector)) {
	t.Helper()
	t.Setenv("SPLUNK_HEC_TOKEN", aSecret)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key="+aSecret+"%2C%20really, x-tenant=a")
	for _, protocol := range []string{"hec", "otlp"} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newACollector(t)
				c.to = []string{"-" + protocol, c.srv.URL}
				test(t, c)
			})
		})
	}
}

var rules = []string{"a", "b", "c", "d", "e", "f", "g", "h"}

// refuse answers as a collector that rejects an event.
func refuse(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"text":"%s","code":6,"invalid-event-number":1}`, aSecret)
}

// refusePartly does so too, but one of OTLP says that it has taken the others.
func refusePartly(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/logs" {
		refuse(w, r)
		return
	}
	fmt.Fprintf(w, `{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"%s"}}`, aSecret)
}

// Whatever the collector does, it gets each event at least once, and those it has already with the same key. Events that
// it rejects are in FILE.rejected. A failure is said once.
func TestDelivery(t *testing.T) { //nolint:paralleltest // inProtocols changes the environment
	for name, tt := range map[string]struct {
		fault    fault
		rejected []string
		requests []int
		tells    string
		apart    time.Duration // between requests, at least
	}{
		"no fault": {requests: []int{8}},
		"a late answer": {
			fault: func(int, http.ResponseWriter, *http.Request, []string) bool {
				time.Sleep(20 * time.Second)
				return false
			},
			requests: []int{8},
		},
		"no answer": {
			fault:    first(2, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
			requests: []int{8, 8, 8}, tells: "no answer in time",
		},
		"busy": {
			fault: first(3, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "5")
				w.WriteHeader(http.StatusServiceUnavailable)
			}),
			requests: []int{8, 8, 8, 8}, tells: "503 Service Unavailable", apart: 5 * time.Second,
		},
		"a proxy answers": {
			fault:    first(1, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>Welcome</html>") }),
			requests: []int{8, 8}, tells: "200 OK, which does not come from a collector",
		},
		"too large": {
			fault: with(func(rules []string) bool { return len(rules) > 3 }, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}),
			requests: []int{8, 4, 2, 2, 4, 2, 2},
		},
		"a bad event": {
			fault:    with(func(rules []string) bool { return slices.Contains(rules, "c") }, refuse),
			rejected: []string{"c"}, requests: []int{8, 4, 2, 2, 1, 1, 4},
		},
		"a bad event, and the others are taken": {
			fault:    with(func(rules []string) bool { return slices.Contains(rules, "h") }, refusePartly),
			rejected: []string{"h"}, requests: []int{8, 4, 4, 2, 2, 1, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inProtocols(t, func(t *testing.T, c *aCollector) {
				c.fault = tt.fault
				srv := serviceOf(t, rules...)
				told := c.delivers(4*time.Minute, srv)
				assert.Equal(t, tt.requests, c.requests)
				for i, at := range c.times[1:] {
					assert.GreaterOrEqual(t, at.Sub(c.times[i]), tt.apart)
				}
				want := slices.DeleteFunc(slices.Clone(rules), func(rule string) bool { return slices.Contains(tt.rejected, rule) })
				keys := c.keys()
				assert.ElementsMatch(t, want, slices.Collect(maps.Keys(keys)))
				outages := 0
				if tt.tells != "" {
					outages = 1
					assert.Contains(t, told, " takes no events: ")
					assert.Contains(t, told, tt.tells)
				}
				assert.Equal(t, outages, strings.Count(told, "trying until it does\n"))
				assert.Equal(t, outages, strings.Count(told, "answers again\n"))
				assert.Contains(t, told, fmt.Sprintf("events: %d events delivered; the same command continues\n", len(want)))
				assertRejected(t, c.cursor, told, tt.rejected...)

				told = c.delivers(4*time.Minute, srv) // nothing is left
				assert.Len(t, c.requests, len(tt.requests))
				assert.Contains(t, told, "events: 0 events delivered;")
			})
		})
	}
}

// assertRejected checks that the file of rejected events has these, and that they were named.
func assertRejected(t *testing.T, cursor, told string, rules ...string) {
	t.Helper()
	text, err := os.ReadFile(rejectedOf(cursor))
	if len(rules) == 0 {
		require.ErrorIs(t, err, os.ErrNotExist)
		return
	}
	require.NoError(t, err)
	info, err := os.Stat(rejectedOf(cursor))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.Len(t, lines, len(rules))
	for i, line := range lines {
		assert.True(t, json.Valid([]byte(line)))
		assert.Contains(t, line, `"`+rules[i]+`"`)
		_, after, _ := strings.Cut(told, "has rejected event ")
		key, _, _ := strings.Cut(after, " ")
		assert.Contains(t, line, key)
	}
}

// A request that was taken and not answered, and a kill before the cursor is stored, repeat events with the same keys.
func TestDeliveredTwice(t *testing.T) { //nolint:paralleltest // inProtocols changes the environment
	inProtocols(t, func(t *testing.T, c *aCollector) {
		srv := serviceOf(t, "a", "a", "b")
		c.delivers(time.Minute, srv)
		old, err := os.ReadFile(c.cursor)
		require.NoError(t, err)

		for _, rule := range rules {
			srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(-10 * time.Minute), RuleID: "new " + rule})
		}
		c.cut = 2
		told := c.delivers(time.Minute, srv)
		assert.Equal(t, []int{3, 8, 8, 8}, c.requests)
		assert.Contains(t, told, " takes no events: ")
		require.NoError(t, os.WriteFile(c.cursor, old, 0o600))
		c.delivers(time.Minute, srv)
		assert.Equal(t, []int{3, 8, 8, 8, 8}, c.requests)
		delete(c.taken, "a") // two events
		for rule, keys := range c.taken {
			for _, times := range keys {
				assert.Equal(t, map[bool]int{true: 1, false: 4}[rule == "b"], times)
			}
		}
		assert.Len(t, c.keys(), 1+len(rules))
	})
}

// A collector that wants another token, redirects, or lacks what all events need, ends the program, and the cursor stays.
func TestHopelessDelivery(t *testing.T) { //nolint:paralleltest // inProtocols changes the environment
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTemporaryRedirect} {
		inProtocols(t, func(t *testing.T, c *aCollector) {
			c.fault = func(_ int, w http.ResponseWriter, r *http.Request, _ []string) bool {
				w.Header().Set("Location", c.srv.URL+"/elsewhere")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, r.Header.Get("Authorization"))
				return true
			}
			told, err := c.deliver(time.Hour, serviceOf(t, rules...))
			require.ErrorContains(t, err, fmt.Sprintf(" refuses all events: %d ", status))
			assert.Contains(t, told, map[string]string{"-hec": "SPLUNK_HEC_TOKEN", "-otlp": "OTEL_EXPORTER_OTLP_HEADERS"}[c.to[0]])
			assert.Len(t, c.requests, 1)
		})
	}
}

// A request has at most 500 events and a megabyte. Late events are delivered, too.
func TestBatches(t *testing.T) { //nolint:paralleltest // inProtocols changes the environment
	inProtocols(t, func(t *testing.T, c *aCollector) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		for i := range 1100 {
			srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(time.Duration(i)*time.Second - time.Hour), RuleID: fmt.Sprint(i)})
		}
		time.AfterFunc(time.Minute, func() {
			for i := range 100 {
				late := time.Now().Add(-10 * time.Minute)
				srv.AddEvents(webdeliverytest.Event{Time: late, RuleID: fmt.Sprintf("%d%s", i, strings.Repeat("x", 30_000))})
			}
		})
		c.delivers(6*time.Minute, srv)
		late := map[string][]int{"-hec": {33, 33, 33, 1}, "-otlp": {16, 16, 16, 16, 16, 16, 4}}[c.to[0]] // the body has the rule again
		assert.Equal(t, append([]int{500, 500, 100}, late...), c.requests)
		assert.Len(t, c.keys(), 1200)
		told := c.delivers(time.Minute, srv)
		assert.Contains(t, told, "events: 0 events delivered;")
	})
}

// After days without the program, somebody must confirm that events are gone.
func TestGap(t *testing.T) { //nolint:paralleltest // inProtocols changes the environment
	inProtocols(t, func(t *testing.T, c *aCollector) {
		c.delivers(time.Minute, serviceOf(t, "a"))
		time.Sleep(5 * 24 * time.Hour)
		told, err := c.deliver(time.Minute, serviceOf(t, "b"))
		require.Error(t, err)
		assert.Contains(t, told, "; -accept-gap goes on without them\n")
		assert.Len(t, c.keys(), 1)
		told = c.delivers(time.Minute, serviceOf(t, "b", "c"), "-accept-gap")
		assert.NotContains(t, told, "behind")
		assert.Len(t, c.keys(), 3)
	})
}

// Two programs cannot deliver with one cursor.
func TestOneCursorTwice(t *testing.T) { //nolint:paralleltest // inProtocols changes the environment
	inProtocols(t, func(t *testing.T, c *aCollector) {
		held, err := webdelivery.OpenCursorFile(c.cursor)
		require.NoError(t, err)
		defer held.Close()
		_, err = c.deliver(time.Minute, serviceOf(t, "a"))
		require.ErrorIs(t, err, webdelivery.ErrCursorInUse)
		assert.Empty(t, c.requests)
	})
}

// An event that was read and cannot be written is read again: the cursor stays before it.
func TestNotWritten(t *testing.T) { //nolint:paralleltest // inProtocols changes the environment
	inProtocols(t, func(t *testing.T, c *aCollector) {
		srv := serviceOf(t, "a")
		const other = `{"columns":[{"name":"event_timestamp_ms"},{"name":"rule_id"},{"name":"client_asn"}],"rows":[],"total_results":0}`
		srv.Fail(webdeliverytest.FaultRule{Path: dataPath, Body: other, Count: 1})
		_, err := c.deliver(time.Minute, srv)
		require.ErrorContains(t, err, "the columns have changed")
		c.delivers(time.Minute, srv)
		assert.Len(t, c.keys(), 1)
	})
}

// The collector is down when the program starts for the first time. When it starts again, it begins at the same time.
func TestNothingIsDeliveredAtFirst(t *testing.T) { //nolint:paralleltest // inProtocols changes the environment
	inProtocols(t, func(t *testing.T, c *aCollector) {
		srv := serviceOf(t, rules...)
		c.fault = func(_ int, w http.ResponseWriter, _ *http.Request, _ []string) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		c.delivers(time.Minute, srv)
		time.Sleep(45 * time.Minute) // -since 1h is now behind all events
		c.fault = nil
		c.delivers(time.Minute, srv)
		assert.Len(t, c.keys(), len(rules))
	})
}
