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

// The rows that a user expects first come first: the most hits, the latest events, the earliest buckets.
func TestRows(t *testing.T) {
	t.Parallel()
	atNoon(t, func(_ *webdeliverytest.Server, run func(string) clitest.Result) {
		for _, tt := range []struct{ args, want string }{
			{"top country --since 2d", "client_country_code,hits\nFR,3\nCN,2\n,1\nDE,1\n"},
			{"top country --since yesterday --until today", "client_country_code,hits\nFR,2\n,1\nCN,1\n"},
			{"top country --since 2d --limit 1 --filter client_country_code!=FR", "client_country_code,hits\nCN,2\n"},
			{"top ruleid --by rule_id,event_action", "rule_id,event_action,hits\n942100,BLOCK,4\n"},
			{"top clientip --shaping", "client_ip,hits\n192.0.2.2,2\n192.0.2.1,1\n"},
			{"top ratelimitclientip --shaping --limit 1", "client_ip,hits\n192.0.2.2,2\n"},
			{"events --limit 1", "event_timestamp_ms,client_ip,event_action,rule_id\n2026-11-20T11:59:58.500Z,,BLOCK,942100\n"},
			{"events --by client_ip --until 10m --limit 2", "client_ip\n192.0.2.1\n192.0.2.2\n"},
			{"events --by client_asn --limit 0 --filter client_country_code==CN --since 2d", "client_asn\n4294967295\n4294967295\n"},
			{"waf --until 6h", "event_timestamp_ms,event_severity,hits\n2026-11-19T17:00:00.000Z,ERROR,1\n2026-11-19T23:00:00.000Z,ERROR,1\n2026-11-20T05:00:00.000Z,ERROR,1\n"},
			{"waf --per day --since 2026-11-19 --limit 1", "event_timestamp_ms,event_severity,hits\n2026-11-19T00:00:00.000Z,ERROR,4\n"},
			{"waf --per total --since 2d --by client_country_code --limit 2", "client_country_code,hits\nFR,3\nCN,2\n"},
			{"requests --per 5minute --since 2h", "event_timestamp_ms,event_action,hits\n2026-11-20T11:00:00.000Z,WARN,3\n2026-11-20T11:55:00.000Z,BLOCK,1\n"},
			{"shaping --by event_timestamp_ms,event_action", "event_timestamp_ms,event_action,hits\n2026-11-20T11:00:00.000Z,WARN,3\n"},
			{"shaping --until 3h", "event_timestamp_ms,event_type,hits\n"},
		} {
			assert.Equal(t, clitest.Result{Stdout: tt.want}, run(tt.args+" -o csv"), tt.args)
		}
	})
}

// In JSON, the members have the order of the columns, a number has all its digits, and null stays null. A table shows
// whole seconds, and nothing that a terminal would obey.
func TestFormats(t *testing.T) {
	t.Parallel()
	atNoon(t, func(_ *webdeliverytest.Server, run func(string) clitest.Result) {
		for format, want := range map[string]string{
			"table":  "EVENT_TIMESTAMP_MS    CLIENT_ASN  CLIENT_IP  CLIENT_BROWSER\n2026-11-20T11:59:58Z  4294967295             a,\"b\" <c>\\x1b\n",
			"csv":    "event_timestamp_ms,client_asn,client_ip,client_browser\n2026-11-20T11:59:58.500Z,4294967295,,\"a,\"\"b\"\" <c>\x1b\"\n",
			"ndjson": `{"event_timestamp_ms":"2026-11-20T11:59:58.500Z","client_asn":4294967295,"client_ip":null,"client_browser":"a,\"b\" <c>\u001b"}` + "\n",
			"json": "[\n  {\n    \"event_timestamp_ms\": \"2026-11-20T11:59:58.500Z\",\n    \"client_asn\": 4294967295,\n" +
				"    \"client_ip\": null,\n    \"client_browser\": \"a,\\\"b\\\" <c>\\u001b\"\n  }\n]\n",
		} {
			r := run("events --limit 1 --by event_timestamp_ms,client_asn,client_ip,client_browser -o " + format)
			assert.Equal(t, clitest.Result{Stdout: want}, r)
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

// The service may no longer have the beginning of a range. Standard error says so.
func TestWarnings(t *testing.T) {
	t.Parallel()
	atNoon(t, func(_ *webdeliverytest.Server, run func(string) clitest.Result) {
		for args, want := range map[string]string{
			"events --since 5d":            "raw events are kept for three days and today",
			"waf --since 60d":              "so use granularity day",
			"waf --since 60d --per total":  "",
			"shaping --since 7d --per day": "does not begin and end with a day",
		} {
			r := run(args)
			assert.Equal(t, cli.Done, r.Code, args)
			assert.Contains(t, r.Stderr, want, args)
			assert.Equal(t, want == "", r.Stderr == "", args)
		}
	})
}

// An error names what to change, and nothing is printed, so that no program takes it for an empty result.
func TestErrors(t *testing.T) {
	t.Parallel()
	atNoon(t, func(_ *webdeliverytest.Server, run func(string) clitest.Result) {
		for _, tt := range []struct {
			args string
			code int
			want string
		}{
			{"waf --by colour", cli.Failed, "unknown dimension \"colour\" [request request-1]\nwebdelivery: check --by and --filter"},
			{"waf --by domain,rule_id", cli.Failed, "not a valid grouping set"},
			{"events --filter colour==red", cli.Failed, "check --by and --filter"},
			{"top severity --by domain,domain", cli.Misuse, `"domain" is given twice; see webdelivery stats top --help`},
			{"top", cli.Misuse, "see webdelivery stats top --help"},
			{"top planet", cli.Misuse, `invalid argument "planet"`},
			{"top ruleid --shaping", cli.Misuse, `"ruleid" is not a category`},
			{"top ratelimitcountry", cli.Misuse, `"ratelimitcountry" is not a category`},
			{"top country --limit -1", cli.Misuse, `invalid argument "-1" for "--limit"`},
			{"waf --per week", cli.Misuse, "want 5minute, hour, day, total"},
			{"waf --since today --until yesterday", cli.Misuse, "is not before --until"},
			{"events --filter colour", cli.Misuse, `"--filter" flag`},
			{"dimensions lists", cli.Misuse, `invalid argument "lists"`},
		} {
			r := run(tt.args + " -o json")
			assert.Equal(t, tt.code, r.Code, tt.args)
			assert.Contains(t, r.Stderr, tt.want, tt.args)
			assert.Empty(t, r.Stdout, tt.args)
		}
	})
}

// Of raw events there are only dimensions, which are not grouped. What was read before an error is printed.
func TestDimensions(t *testing.T) {
	t.Parallel()
	atNoon(t, func(srv *webdeliverytest.Server, run func(string) clitest.Result) {
		events := run("dimensions events -o csv")
		assert.Contains(t, events.Stdout, "kind,names\ndimension,event_timestamp_ms\ndimension,event_severity\n")
		assert.NotContains(t, events.Stdout, "grouping")
		for _, family := range []string{"requests", "waf", "shaping"} {
			r := run("dimensions " + family + " -o ndjson")
			assert.Contains(t, r.Stdout, `{"kind":"dimension","names":["client_asn"]}`)
			assert.Contains(t, r.Stdout, `{"kind":"grouping","names":["event_timestamp_ms","client_country_code","client_asn"]}`)
		}
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/trends/groupings", Status: 404})
		r := run("dimensions waf")
		assert.Equal(t, cli.Failed, r.Code)
		assert.Contains(t, r.Stdout, "dimension  rule_id\n")
	})
}
