package events_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
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
	app, stdout, stderr := clitest.App(srv, "")
	app.ErrTerminal = true // so that progress is shown
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
	return clitest.Run(t, srv, events.Command, "", append([]string{"events"}, args...)...)
}

// inBubble runs a test with a service that has an event a second for each rule, from half an hour ago on.
func inBubble(t *testing.T, rules []string, test func(t *testing.T, srv *webdeliverytest.Server)) {
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

// Standard output has the header and the asked columns, in this order.
func TestExport(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"a", "b", "c"}, func(t *testing.T, srv *webdeliverytest.Server) {
		for _, tt := range []struct {
			args []string
			want string
		}{
			{[]string{"--columns", "rule_id"}, "rule_id\na\nb\nc\n"},
			{[]string{"--columns", "rule_id, domain", "--limit", "2"}, "rule_id,domain\na,\nb,\n"},
			{[]string{"--columns", "rule_id", "--filter", "rule_id==b", "--limit", "0"}, "rule_id\nb\n"},
			{[]string{"--columns", "rule_id", "--until", "1999-12-31T23:30:01Z"}, "rule_id\na\n"},
		} {
			r := run(t, srv, append([]string{"export"}, tt.args...)...)
			assert.Equal(t, clitest.Result{Code: cli.Done, Stdout: tt.want}, r)
		}
		assert.Contains(t, run(t, srv, "export", "--since", "9d").Stderr, "earlier ones are missing\n")
	})
}

// Texts and numbers that are easily damaged are not. What has not the type of a field of ECS is below webdelivery; the lines
// of ECS were written by hand from its reference.
func TestFormats(t *testing.T) {
	t.Parallel()
	const text = "rule_id,client_asn,client_browser"
	const ecs = "client_ip,client_connection_remote_ip,event_severity,event_action,event_type,client_country_code,client_asn," +
		"client_browser,domain,request_path,rule_id"
	for _, tt := range []struct{ format, columns, row, want string }{
		{"csv", text, `"=1+1",9007199254740993,"He \"said\", and\r\nleft"`, "=1+1,9007199254740993,\"He \"\"said\"\", and\r\nleft\",TIME\n"},
		{"csv", text, "\"日本/\xff\\ud800\",1e3,null", "日本/\ufffd\ufffd,1e3,,TIME\n"}, // not UTF-8, and half of a surrogate pair
		{"ndjson", text, `9007199254740993 , 1e3, null`, `{"rule_id":9007199254740993,"client_asn":1e3,"client_browser":null,` +
			`"event_timestamp_ms":"TIME"}` + "\n"},
		{"ndjson", "rule_id", "\"日本/\xff\\ud800\"", "{\"rule_id\":\"日本/\ufffd\ufffd\","},
		{
			"ecs", ecs, `"2001:db8::1","192.0.2.9",3,"BLOCK","CUSTOM","CN",9007199254740993,"<Chrome>","www.example.com","/a?b","942100"`,
			`{"@timestamp":"TIME","ecs":{"version":"8.17.0"},"event":{"action":"BLOCK","category":["web"],` +
				`"dataset":"webdelivery.events","kind":"event","severity":3},"rule":{"id":"942100"},` +
				`"source":{"as":{"number":9007199254740993},"geo":{"country_iso_code":"CN"},"ip":"2001:db8::1"},` +
				`"url":{"domain":"www.example.com","path":"/a?b"},"user_agent":{"name":"<Chrome>"},` +
				`"webdelivery":{"client_connection_remote_ip":"192.0.2.9","event_type":"CUSTOM"}}` + "\n",
		},
		{"ecs", ecs, `"unknown",null,"CRITICAL","","","",1e3,"","","",7`, `"kind":"event"},"rule":{"id":"7"},` +
			`"webdelivery":{"client_asn":1e3,"client_ip":"unknown","event_severity":"CRITICAL"}}` + "\n"},
	} {
		inBubble(t, nil, func(t *testing.T, srv *webdeliverytest.Server) {
			columns := tt.columns + ",event_timestamp_ms"
			srv.Fail(webdeliverytest.FaultRule{Body: `{"columns":[{"name":"` + strings.ReplaceAll(columns, ",", `"},{"name":"`) +
				`"}],"rows":[[` + tt.row + `,"1999-12-31T23:30:01.123456789"]],"total_results":1}`})
			text := run(t, srv, "export", "-o", tt.format, "--columns", columns).Stdout
			assert.Contains(t, text, strings.ReplaceAll(tt.want, "TIME", "1999-12-31T23:30:01.123456789Z"))
		})
	}
}

// Flags that cannot be used are refused with exit code 2, and nothing is written.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t)
	hec := []string{"follow", "--hec", "https://collector.example.com", "--cursor", filepath.Join(t.TempDir(), "cursor")}
	for want, args := range map[string][]string{
		`dimensions[1]: "" is not a valid name`:          {"export", "--columns", "rule_id,"},
		"want an age up to 1d such as 10m, or a size":    {"export", "--rotate", "2d", "--dir", "x"},
		"--dir is missing or empty":                      {"export", "--rotate", "1h"},
		"--delay must be 1s or more":                     {"follow", "--delay", "0"},
		"--hec and --otlp need --cursor":                 {"export", "--otlp", "https://collector.example.com"},
		"give one of --dir, --hec and --otlp":            append([]string{"follow", "--dir", "x"}, hec[1:]...),
		"leave out --output":                             append(hec, "-o", "ecs"),
		"; secrets belong into SPLUNK_HEC_TOKEN":         append(hec, "--hec", "https://u:"+aSecret+"@collector.example.com"),
		"--hec: the network could read SPLUNK_HEC_TOKEN": append(hec, "--hec", "http://192.0.2.1"),
		"--metrics: address nowhere":                     {"follow", "--metrics", "nowhere"},
	} {
		r := run(t, srv, args...)
		assert.Equal(t, cli.Misuse, r.Code, args)
		assert.Contains(t, r.Stderr, want)
		assert.NotContains(t, r.Stderr, aSecret)
		assert.Empty(t, r.Stdout, args)
	}
	assert.NoDirExists(t, "x")
}

// A secret that cannot be sent is refused, and not printed.
func TestMalformedSecrets(t *testing.T) { //nolint:paralleltest // it sets variables of the process
	for _, tt := range [][2]string{
		{"--hec", " "},
		{"--hec", aSecret + "\n" + aSecret},
		{"--otlp", aSecret},
		{"--otlp", "Authorization: Basic " + aSecret + "=="},
	} {
		t.Setenv("SPLUNK_HEC_TOKEN", tt[1])
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", tt[1])
		r := run(t, webdeliverytest.NewServer(t), "export", tt[0], "https://collector.example.com", "--cursor", t.TempDir())
		assert.Equal(t, cli.Misuse, r.Code)
		assert.Contains(t, r.Stderr, ", which is not set or malformed\n")
		assert.NotContains(t, r.Stderr, aSecret)
	}
}

// An export that ends early ends with a whole row and exit code 1; one with events missing at the end has exit code 3.
func TestEarlyEnds(t *testing.T) {
	t.Parallel()
	type fault = webdeliverytest.FaultRule
	for _, tt := range []struct {
		fault fault // of the requests after the first, which counts the events
		code  int
		told  string
	}{
		{fault{Status: http.StatusForbidden}, cli.Failed, "403 Forbidden"},
		{fault{Body: `{"columns":[{"name":"event_timestamp_ms"}],"rows":[["1999-12-31T23:30:00"]],"total_results":1}`}, cli.Failed, "no column"},
		{fault{Body: `{"columns":[],"rows":[],"total_results":0}`}, cli.Partly, "webdelivery: to get what is recorded by now, export again, "},
		{fault{Count: 1, Stall: time.Minute, CutAfter: 900_000, Cut: webdeliverytest.CutChunked}, cli.Partly, "; a longer --lookback finds"},
	} {
		inBubble(t, large(60), func(t *testing.T, srv *webdeliverytest.Server) {
			tt.fault.Path, tt.fault.Skip = dataPath, 1
			srv.Fail(tt.fault)
			stdout, end := start(t, srv, "export", "--columns", "rule_id")
			happens(srv, 40*time.Minute, "late")
			time.Sleep(2 * time.Minute)
			code, told := end()
			assert.Equal(t, tt.code, code)
			assert.Contains(t, told, tt.told)
			assert.Regexp(t, `^(rule_id\n(\d+\n)*)?$`, stdout.String())
		})
	}
}

// Each event is written once, 5 minutes after it happened or when it is recorded late, also after rounds without the
// service. What is recorded too late is said.
func TestFollow(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"a"}, func(t *testing.T, srv *webdeliverytest.Server) {
		happens(srv, time.Minute, "b")
		stdout, end := start(t, srv, "follow", "--columns", "rule_id")
		after := func(d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			assert.Equal(t, "rule_id\n"+strings.Join(want, "\n")+"\n", stdout.String())
		}
		after(time.Second, "a")
		happens(srv, 0, "c")
		after(5*time.Minute, "a", "b")
		happens(srv, 9*time.Minute, "l")
		happens(srv, 29*time.Minute, "too late")
		works := srv.Fail(webdeliverytest.FaultRule{Path: dataPath, Status: http.StatusServiceUnavailable})
		after(2*time.Hour, "a", "b")
		works()
		after(5*time.Minute, "a", "b", "l", "c")
		code, told := end()
		assert.Equal(t, cli.Done, code)
		assert.Contains(t, told, "503")
		assert.Contains(t, told, " recorded too late to be exported; a longer --lookback finds such events\n")
	})
}

// An outage of the service is told at its start, every ten minutes, and at its end.
func TestAnOutageOfTheService(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, srv *webdeliverytest.Server) {
		_, end := start(t, srv, "follow", "--delay", "1s")
		time.Sleep(time.Minute)
		works := srv.Fail(webdeliverytest.FaultRule{Path: dataPath, Status: http.StatusServiceUnavailable})
		time.Sleep(35 * time.Minute)
		works()
		time.Sleep(10 * time.Minute)
		code, told := end()
		assert.Equal(t, cli.Done, code)
		assert.Equal(t, 4, strings.Count(told, "503 Service Unavailable"), told)
		assert.Equal(t, 1, strings.Count(told, "the service can be read again\n"), told)
	})
}
