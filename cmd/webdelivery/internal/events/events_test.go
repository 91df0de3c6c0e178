package events_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

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
			{[]string{"--columns", "rule_id,event_timestamp_ms", "--limit", "1"}, "rule_id,event_timestamp_ms\na,1999-12-31T23:30:00.000Z\n"},
			{[]string{"--columns", "rule_id", "--filter", "rule_id==b", "--limit", "0"}, "rule_id\nb\n"},
			{[]string{"--columns", "rule_id", "--until", "1999-12-31T23:30:01Z", "-o", "ndjson"}, `{"rule_id":"a"}` + "\n"},
		} {
			r := run(t, srv, append([]string{"export"}, tt.args...)...)
			assert.Equal(t, cli.Done, r.Code)
			assert.Equal(t, tt.want, r.Stdout)
			assert.Empty(t, r.Stderr)
		}
		assert.Contains(t, run(t, srv, "export", "--since", "9d").Stderr, "earlier ones are missing\n")
	})
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
		"--metrics: listen tcp: address nowhere":         {"follow", "--metrics", "nowhere"},
	} {
		r := run(t, srv, args...)
		assert.Equal(t, cli.Misuse, r.Code, args)
		assert.Contains(t, r.Stderr, want)
		assert.NotContains(t, r.Stderr, aSecret)
		assert.Empty(t, r.Stdout, args)
	}
	assert.NoDirExists(t, "x")
}

// An export that ends early ends with a whole row and exit code 1; one with events missing at the end has exit code 3.
func TestEarlyEnds(t *testing.T) {
	t.Parallel()
	for want, tt := range map[string]struct {
		fault webdeliverytest.FaultRule // of the requests after the first, which counts the events
		code  int
	}{
		"403 Forbidden": {webdeliverytest.FaultRule{Status: http.StatusForbidden}, cli.Failed},
		`the service sends no column "rule_id"`: {webdeliverytest.FaultRule{
			Body: `{"columns":[{"name":"event_timestamp_ms"}],"rows":[["1999-12-31T23:30:00"]],"total_results":1}`,
		}, cli.Failed},
		"webdelivery: to get what is recorded by now, export again, into another --dir if you gave one\n": {webdeliverytest.FaultRule{
			Body: `{"columns":[{"name":"event_timestamp_ms"},{"name":"rule_id"}],"rows":[],"total_results":0}`,
		}, cli.Partly},
		"recorded too late to be exported; a longer --lookback finds such events\n": {
			webdeliverytest.FaultRule{Count: 1, Stall: time.Minute, CutAfter: 900_000, Cut: webdeliverytest.CutChunked}, cli.Partly,
		},
	} {
		inBubble(t, large(60), func(t *testing.T, srv *webdeliverytest.Server) {
			tt.fault.Path, tt.fault.Skip = dataPath, 1
			srv.Fail(tt.fault)
			stdout, end := start(t, srv, "export", "--columns", "rule_id")
			happens(srv, 40*time.Minute, "late")
			time.Sleep(2 * time.Minute)
			code, told := end()
			assert.Equal(t, tt.code, code)
			assert.Contains(t, told, want)
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
		after(6*time.Minute, "a", "b") // with the retries of the SDK
		works()
		after(5*time.Minute, "a", "b", "l", "c")
		_, told := end()
		assert.Contains(t, told, "503")
		assert.Contains(t, told, " recorded too late to be exported; a longer --lookback finds such events\n")
		assert.Regexp(t, `webdelivery: 1[0-6]m\d+s behind, which is more than twice --delay\n`, told)
	})
}

// Files of follow are complete at an age, and when it stops. The same command continues.
func TestFollowIntoFiles(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"a", "b"}, func(t *testing.T, srv *webdeliverytest.Server) {
		dir := t.TempDir()
		args := []string{"follow", "--columns", "rule_id", "--rotate", "20m", "--dir", dir}
		_, end := start(t, srv, args...)
		has := func(after time.Duration, number int, rules ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			assertFiles(t, dir, number, rules...)
		}
		has(19*time.Minute, 1, "")
		happens(srv, 0, "c")
		has(2*time.Minute, 1, "a", "b")
		has(5*time.Minute, 2, "a", "b")
		_, told := end()
		assert.Equal(t, "webdelivery: 3 events written to "+dir+"; the same command continues\n", told)
		has(2*time.Hour, 2, "a", "b", "c") // --since is now behind all events
		happens(srv, time.Hour, "d")
		_, end = start(t, srv, args...)
		end()
		has(0, 3, "a", "b", "c", "d")
	})
}
