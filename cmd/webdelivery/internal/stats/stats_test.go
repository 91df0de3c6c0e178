package stats_test

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/stats"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// atNoon passes a service at noon of 20 November, and runs command lines. The service has an event of the firewall for
// each quarter of the last days, one of them without a country, and three that traffic shaping blocked an hour ago.
func atNoon(t *testing.T, test func(srv *webdeliverytest.Server, run func(args string) clitest.Result)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		time.Sleep(time.Until(noon)) // takes no time
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		for i, country := range []string{"CN", "DE", "FR", "", "FR", "CN", "FR"} {
			srv.AddEvents(webdeliverytest.Event{
				Time: noon.Add(-time.Duration(i)*6*time.Hour - 1500*time.Millisecond), Type: webdeliverytest.EventTypeWAF,
				RuleID: "942100", Severity: "ERROR", Action: "BLOCK", CountryCode: country, ASN: 4294967295, Browser: "a,\"b\" <c>\x1b",
			})
		}
		for _, address := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.2"} {
			srv.AddEvents(webdeliverytest.Event{
				Time: noon.Add(-time.Hour), Type: webdeliverytest.EventTypeRateLimitIP, ClientIP: netip.MustParseAddr(address), Action: "WARN",
			})
		}
		test(srv, func(args string) clitest.Result {
			return clitest.Run(t, srv, stats.Command, "", append([]string{"stats"}, strings.Fields(args)...)...)
		})
	})
}

// The rows that a user expects first come first: the most hits, the latest events, the earliest buckets. In JSON, the
// members have the order of the columns, a number has all its digits, and null stays null. A table has whole seconds.
func TestRows(t *testing.T) {
	t.Parallel()
	const browser = "events --limit 1 --by event_timestamp_ms,client_asn,client_ip,client_browser -o "
	atNoon(t, func(_ *webdeliverytest.Server, run func(string) clitest.Result) {
		for _, tt := range []struct{ args, want string }{
			{"top country --since 2d --filter= -o csv", "client_country_code,hits\nFR,3\nCN,2\n,1\nDE,1\n"},
			{"top country --since yesterday --until today -o csv", "client_country_code,hits\nFR,2\n,1\nCN,1\n"},
			{"top country --since 2d --limit 1 --filter client_country_code!=FR -o csv", "client_country_code,hits\nCN,2\n"},
			{"top ruleid --by rule_id,event_action -o csv", "rule_id,event_action,hits\n942100,BLOCK,4\n"},
			{"top clientip --shaping -o csv", "client_ip,hits\n192.0.2.2,2\n192.0.2.1,1\n"},
			{"top ratelimitclientip --shaping --limit 1 -o csv", "client_ip,hits\n192.0.2.2,2\n"},
			{"events --by client_ip --until 10m --limit 2 -o csv", "client_ip\n192.0.2.1\n192.0.2.2\n"},
			{"waf --per day --since 2026-11-19 --limit 1 -o csv", "event_timestamp_ms,event_severity,hits\n2026-11-19T00:00:00.000Z,ERROR,4\n"},
			{"waf --per total --since 2d --by client_country_code --limit 2 -o csv", "client_country_code,hits\nFR,3\nCN,2\n"},
			{"requests --per 5minute --since 2026-11-20T12:00:00+02:00 -o csv", "event_timestamp_ms,event_action,hits\n2026-11-20T11:00:00.000Z,WARN,3\n2026-11-20T11:55:00.000Z,BLOCK,1\n"},
			{"shaping --by event_action,event_timestamp_ms -o csv", "event_action,event_timestamp_ms,hits\nWARN,2026-11-20T11:00:00.000Z,3\n"},
			{"shaping --until 3h -o csv", "event_timestamp_ms,event_type,hits\n"},
			{browser + "table", "EVENT_TIMESTAMP_MS    CLIENT_ASN  CLIENT_IP  CLIENT_BROWSER\n2026-11-20T11:59:58Z  4294967295             a,\"b\" <c>\\x1b\n"},
			{browser + "csv", "event_timestamp_ms,client_asn,client_ip,client_browser\n2026-11-20T11:59:58.500Z,4294967295,,\"a,\"\"b\"\" <c>\x1b\"\n"},
			{browser + "ndjson", `{"event_timestamp_ms":"2026-11-20T11:59:58.500Z","client_asn":4294967295,"client_ip":null,"client_browser":"a,\"b\" <c>\u001b"}` + "\n"},
		} {
			assert.Equal(t, clitest.Result{Stdout: tt.want}, run(tt.args), tt.args)
		}
	})
}

// A firewall's top-K has no order, so the rows are sorted here. A column that is missing is no null.
func TestTheServiceDoesNotSort(t *testing.T) {
	t.Parallel()
	atNoon(t, func(srv *webdeliverytest.Server, run func(string) clitest.Result) {
		srv.Fail(webdeliverytest.FaultRule{
			Path: "/stats/security/waf/topk/country/data", Status: 200,
			Body: `{"columns":[{"name":"hits"},{"name":"client_country_code"}],"rows":[[9,"DE"],[1,"FR"],[10,"CN"]],"total_results":3}`,
		})
		assert.Equal(t, "client_country_code,hits\nCN,10\nDE,9\n", run("top country --limit 2 -o csv").Stdout)
		r := run("top country --by domain -o json")
		assert.Equal(t, cli.Failed, r.Code)
		assert.Empty(t, r.Stdout)
		assert.Contains(t, r.Stderr, `no column "domain"`)
	})
}

// An error names what to change, and nothing is printed, so that no program takes it for an empty result. What the
// service no longer has, or counts otherwise, is a warning.
func TestErrors(t *testing.T) {
	t.Parallel()
	atNoon(t, func(_ *webdeliverytest.Server, run func(string) clitest.Result) {
		for _, tt := range []struct {
			args string
			code int
			want string
		}{
			{"events --since 5d", cli.Done, "raw events are kept for three days and today"},
			{"waf --since 60d", cli.Done, "so use granularity day"},
			{"shaping --since 7d --per day", cli.Done, "does not begin and end with a day"},
			{"waf --since 60d --per total", cli.Done, ""},
			{"waf --by colour", cli.Failed, "webdelivery: check --by and --filter; webdelivery stats dimensions lists the names\n"},
			{"top severity --by domain,domain", cli.Misuse, `"domain" is given twice`},
			{"top ruleid --shaping", cli.Misuse, `"ruleid" is not a category`},
			{"top country --limit -1", cli.Misuse, `invalid argument "-1" for "--limit"`},
			{"waf --per week", cli.Misuse, "want 5minute, hour, day, total"},
			{"waf --since 0s", cli.Misuse, "--since, 2026-11-20T12:00:00Z, is not before --until, 2026-11-20T12:00:00Z"},
			{"waf --until 20261129", cli.Misuse, `--until "20261129": want 90m, 24h, 7d, today`},
			{"events --filter colour", cli.Misuse, `"--filter" flag`},
			{"dimensions lists", cli.Misuse, `invalid argument "lists"`},
		} {
			r := run(tt.args + " -o ndjson")
			assert.Equal(t, tt.code, r.Code, tt.args)
			assert.Contains(t, r.Stderr, tt.want, tt.args)
			assert.Equal(t, tt.want == "", r.Stderr == "", tt.args)
			assert.Equal(t, tt.code == cli.Done, r.Stdout != "", tt.args)
		}
	})
}

// Of raw events there are only dimensions, which are not grouped.
func TestDimensions(t *testing.T) {
	t.Parallel()
	atNoon(t, func(_ *webdeliverytest.Server, run func(string) clitest.Result) {
		events := run("dimensions events -o csv")
		assert.Contains(t, events.Stdout, "kind,names\ndimension,event_timestamp_ms\ndimension,event_severity\n")
		assert.NotContains(t, events.Stdout, "grouping")
		waf := run("dimensions waf -o ndjson")
		assert.Contains(t, waf.Stdout, `{"kind":"dimension","names":["client_asn"]}`)
		assert.Contains(t, waf.Stdout, `{"kind":"grouping","names":["event_timestamp_ms","client_country_code","client_asn"]}`)
	})
}
