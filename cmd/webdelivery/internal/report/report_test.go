package report

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

var (
	noon  = time.Date(2000, 1, 1, 12, 34, 56, 0, time.UTC)
	block = webdeliverytest.Event{
		Time: noon.Add(-10 * time.Minute), Type: "WAF", Action: "BLOCK", Severity: "CRITICAL", RuleID: "942100",
		ClientIP: netip.MustParseAddr("192.0.2.7"), CountryCode: "CN", Browser: "curl", RequestPath: "/login",
	}
	warn = webdeliverytest.Event{
		Time: noon.Add(-20 * time.Minute), Type: "CUSTOM", Action: "WARN", Severity: "NOTICE", RuleID: "custom", CountryCode: "DE",
	}
	limited = webdeliverytest.Event{Time: noon.Add(-5 * time.Hour), Type: "RATE_LIMIT_IP", Action: "BLOCK", CountryCode: "CN"}
)

// atNoon runs a test with a fake service at 12:34:56 on 2000-01-01. Its get returns the status and the text of a served
// page, without the scripts at its end.
func atNoon(t *testing.T, test func(t *testing.T, srv *webdeliverytest.Server, get func(query string) (int, string))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12*time.Hour + 34*time.Minute + 56*time.Second)
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		test(t, srv, func(query string) (int, string) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/?"+query, nil)
			handler(siteOf(srv.Client(t), false)).ServeHTTP(w, r)
			page, own, _ := strings.Cut(w.Body.String(), "<script>")
			assert.Equal(t, 1, strings.Count(own, "<script>"), "the page has two scripts")
			return w.Code, page
		})
	})
}

// text returns what a reader sees between two texts of a page, with single spaces.
func text(page, from, to string) string {
	_, page, _ = strings.Cut(page, from)
	page, _, _ = strings.Cut(page, to)
	return html.UnescapeString(strings.Join(strings.Fields(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")), " "))
}

// chartOf returns a chart of a page, from 0.
func chartOf(t *testing.T, page string, i int) (c chart) {
	t.Helper()
	all := regexp.MustCompile(`(?s)<script type="application/json">(.*?)</script>`).FindAllStringSubmatch(page, -1)
	require.Greater(t, len(all), i)
	require.NoError(t, json.Unmarshal([]byte(all[i][1]), &c))
	return c
}

// Each part shows the events of its family in the time range.
func TestPageShowsWhatHappened(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
		srv.AddEvents(block, block, warn, limited)
		_, page := get("since=6h")
		assert.Equal(t, "Security statistics Customer acme at "+siteOf(srv.Client(t), false).Host+" 1 Jan 06:30 – 1 Jan 2000 12:34 UTC, by 5 minutes",
			text(page, "<header>", "</header>"))
		assert.Equal(t, "Requests 4 since 1 Jan 06:30 UTC Top action BLOCK 75.0 % of requests Firewall events 3 2 CRITICAL "+
			"Top country CN 66.7 % of firewall events", text(page, `<div class="tiles">`, `<section`))
		assert.Equal(t, "BLOCK 3 WARN 1", text(page, `<ul class="legend">`, "</ul>"))
		assert.Equal(t, "Rules 942100 2 custom 1 Clients 192.0.2.7 2 none 1 Countries CN 2 DE 1 Paths /login 2 none 1 "+
			"Severities CRITICAL 2 NOTICE 1 Browsers curl 2 none 1", text(page, `<div class="grid tops">`, "</div>"))
		_, shaping, _ := strings.Cut(page, "<h2>Traffic shaping")
		assert.Equal(t, "Clients none 1 Rate-limited clients none 1 Countries CN 1 Rate-limited countries No events "+
			"Paths none 1 Browsers none 1", text(shaping, `<div class="grid tops">`, "</div>"))
		assert.Equal(t, "BLOCK WAF CRITICAL 942100 192.0.2.7 CN", text(page, "<td>1 Jan 12:24:56</td>", "</tr>"))
		assert.Equal(t, 4+1, strings.Count(page, "<tr>"), "events, and their heading")
	})
}

// A line has a point for each bucket of the time range: 5 minutes, hours or days. A last bucket that is not over is
// left out: the line would fall. The tile has all hits.
func TestLines(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
		now := block
		now.Time = noon.Add(-time.Second)
		srv.AddEvents(block, block, limited, now)
		for since, want := range map[string]string{ // the points with hits, of how many; the tile; the times
			"30m":   "map[4:2] 6 3 12:00 12:25 5 minutes",
			"6h":    "map[12:1 70:2] 72 4 06:30 12:25 5 minutes",
			"today": "map[7:1] 12 4 00:00 11:00 hour",
			"24h":   "map[19:1] 24 4 12:00 11:00 hour",
			"7d":    "map[163:1] 168 4 25 Dec 12:00 1 Jan 11:00 hour",
			"30d":   "map[] 30 4 2 Dec 31 Dec day",
		} {
			_, page := get("since=" + since)
			c, hits := chartOf(t, page, 0), map[int]int64{}
			for i, n := range c.Lines[0].Values {
				if n > 0 {
					hits[i] = n
				}
			}
			assert.Equal(t, want, fmt.Sprint(hits, " ", len(c.Times), " ", text(page, `<p class="big">`, "</p>"), " ", c.Times[0], " ",
				c.Times[len(c.Times)-1], " ", text(page, "requests per", ", until 1 Jan ")), since)
		}
		time.Sleep(3*time.Second + 500*time.Millisecond) // 12:34:59.5: the last bucket is over
		_, page := get("since=1h")
		assert.Contains(t, page, "requests per 5 minutes</span>")
	})
}

// The query has what is picked, and the form keeps it. The page says in words what cannot be, and asks nothing.
func TestPicked(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
		srv.AddEvents(block, block, warn, limited)
		for query, want := range map[string]string{
			"since=1h&country=CN&action=BLOCK":                   "Requests 2 ",
			"since=6h&country=CN&filter=event_type!%3DWAF":       "Requests 1 ",
			"since=6h&filter=event_type==WAF;event_action==WARN": "No events The service has no events since 1 Jan 06:30 UTC that match the selection.",
			"since=6h&filter=event_type==WAF,event_action==WARN": "Requests 3 ",
			"filter=é==1;b":               "The filter cannot be read é==1;b At character 6: ",
			"filter=a==1,b==2&country=CN": "Country cannot be combined with a filter that has OR",
			"country=a%5C":                "Country cannot be used as a filter",
			"since=1m":                    `The time range cannot be read since "1m": want a time from 5 minutes to 366 days ago`,
			"since=400d":                  `The time range cannot be read since "400d": want a time from 5 minutes to 366 days ago`,
		} {
			asked := len(srv.Requests())
			status, page := get(query)
			assert.True(t, strings.HasPrefix(text(page, "<main>", "</main>"), want), text(page, "<main>", "</main>"))
			assert.Equal(t, status == http.StatusBadRequest, asked == len(srv.Requests()), query)
		}
		_, page := get("since=2h&country=CN&action=ALLOW&filter=a!=b")
		assert.Regexp(t, `(?s)value="2h" aria-current="true">2h<.*value="CN" selected>CN<.*value="ALLOW" selected>ALLOW<.*name="filter" value="a!=b"`, page)
	})
}

// A value is a link that adds it to what is picked; if the filter has an OR, the value replaces it. A long value is shown
// without its middle, and one that no filter or address can have is no link.
func TestValues(t *testing.T) {
	t.Parallel()
	p := &page{statistics: blank(webdeliverytest.NewServer(t).Client(t).Stats, query{})}
	for typed, want := range map[string]string{
		"": "rule_id==1", "a==1;b!=2": "a==1;b!=2;rule_id==1", "rule_id==1": "rule_id==1", "a==1;rule_id==1": "a==1;rule_id==1",
		"a==1,b==2": "rule_id==1",
	} {
		p.Picked = url.Values{"filter": {typed}}
		assert.Equal(t, "/?"+url.Values{"filter": {want}}.Encode(), p.Word("rule_id", "1", 9).Link)
		assert.Equal(t, strings.Contains(typed, ","), !strings.Contains(p.Word("client_country_code", "DE", 9).Link, url.QueryEscape(typed)))
		assert.Contains(t, p.Word("client_country_code", "DE", 9).Link, "country=DE")
	}
	p.Picked = url.Values{}
	assert.Equal(t, word{Text: "/a/…/z", Title: "/a/long/path/z", Link: "/?filter=rule_id%3D%3D%2Fa%2Flong%2Fpath%2Fz"}, p.Word("rule_id", "/a/long/path/z", 6))
	for _, value := range []string{"none", "", `\`, strings.Repeat("a", 2000)} {
		assert.Empty(t, p.Word("rule_id", value, 9).Link)
	}
}

// A severity and an action have one colour in all parts, and a legend has the most severe first.
func TestColours(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
		for i, severity := range []string{"High", "Critical", "none", "Medium", "Strange", "low"} {
			add(srv, "WAF", severity, i+1)
		}
		_, page := get("since=1h")
		var legend []string
		for _, line := range chartOf(t, page, 1).Lines {
			legend = append(legend, line.Short+" "+line.Style.Colour)
			assert.Regexp(t, `>`+line.Short+`(</a>)?</bdi> <b>\d</b><svg class="bar" data-colour="`+line.Style.Colour, page)
		}
		assert.Equal(t, []string{"Critical c3", "High c3", "Medium c2", "low c1", "none c6", "Strange c4"}, legend)
	})
}

// hostile are texts that could end a string, an element or a script, that ECharts could take for markup, or that could
// write what is beside them from right to left.
var hostile = []string{
	`</script><script>alert(1)</script>`, `"><img src=x onerror=alert(2)>`, `__f__alert(3)__f__`, `<!--<script>`, "\u2069\u202efdp.ecilop",
	"\u2028alert(4)", `\";alert(5)//`, `{{alert}}`, `'-alert(6)-'`, `{a|b}`,
}

// add adds events that have a text everywhere.
func add(srv *webdeliverytest.Server, kind, text string, hits int) {
	for range hits {
		srv.AddEvents(webdeliverytest.Event{
			Time: srv.Clock.Now().Add(-time.Minute), Type: kind, Action: text, Severity: text, RuleID: text,
			Browser: text, Domain: text, RequestPath: text, CountryCode: text,
		})
	}
}

// The page shows what the service sends as text. TestBrowser finds no element in it, and the chart and the lists have
// the same text.
func TestNothingBreaksOut(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
		for i, text := range hostile {
			add(srv, "WAF", text, len(hostile)-i)
		}
		_, page := get("since=1h")
		assert.NotRegexp(t, `<img|<!--|alert\(1\)<|alert\(2\)>`, page)
		isolated := regexp.MustCompile(`(?s)<(bdi|option|script|style)\b.*?</(bdi|option|script|style)>|<[^>]*>`)
		assert.NotContains(t, isolated.ReplaceAllString(page, ""), "alert", "each value is isolated from the texts beside it")
		lines := chartOf(t, page, 0).Lines
		assert.Equal(t, []string{"</script><scri…t(1)</script>", hostile[2]}, []string{lines[0].Short, lines[2].Short})
		assert.Equal(t, hostile[0]+" 10", text(page, "<h3>Paths</h3>", "</li>"))
	})
}

// What the service sends does not make the page long: a long value is shown in part, once for each place. The limit has
// room for 271 values in lists and tables, with 5 kB for each, and for charts and options.
func TestThePageIsBounded(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
		for i := range 60 {
			value := fmt.Sprint(i, strings.Repeat([]string{`"`, "é", "a"}[i%3], 1900*(1+i%2*10)))
			add(srv, "WAF", value, 1)
			add(srv, "RATE_LIMIT_IP", value, 1)
		}
		for _, filter := range []string{"", "domain!=" + strings.Repeat("a", 20_000)} {
			_, page := get(url.Values{"since": {"1h"}, "filter": {filter}}.Encode())
			assert.Less(t, len(page), 2_200_000)
			assert.True(t, utf8.ValidString(page))
			assert.Equal(t, 25+1, strings.Count(page, "<tr>"), "events, and their heading")
		}
	})
}

// The page says in words what is wrong with the service, once, and its status says whose fault it is. No file is
// written then. With a wrong password, a page costs one refused request.
func TestFaultsInWords(t *testing.T) {
	t.Parallel()
	for want, rule := range map[string]webdeliverytest.FaultRule{
		"The service rejects the user name or the password Check": {Status: 401},
		"The service responds with 503 Service Unavailable Try":   {Status: 503},
		"The service responds with 418 I'm a teapot ":             {Status: 418},
		"The service is unreachable Check":                        {Cut: webdeliverytest.CutAfterExecute},
		"The user has no right to read these statistics Use":      {Status: 403},
		"The service does not have these statistics Check":        {Status: 404},
		"The response of the service cannot be read Check":        {Body: "<html>"},
		"The service did not respond within 15 seconds Choose":    {Delay: time.Hour},
		"The service rejects the query Check the dimensions":      {Status: 400},
	} {
		atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
			rule.Path = "/stats/**"
			srv.Fail(rule)
			status, page := get("")
			assert.Equal(t, http.StatusBadGateway, status)
			assert.True(t, strings.HasPrefix(text(page, "<main>", "</main>"), want), text(page, "<main>", "</main>"))
			assert.Equal(t, 1, strings.Count(page, "<section"), "one message is enough")
			assert.Equal(t, rule.Status == 401, len(srv.Requests()) == 1)
			status, _ = get("filter=client_country_code==CN")
			assert.Equal(t, rule.Status == 400, status == http.StatusBadRequest, "of the filter")

			result := clitest.Run(t, srv, Command, "", "report", "--save", "-")
			assert.Equal(t, clitest.Result{Code: cli.Failed, Stderr: result.Stderr}, result)
			assert.True(t, strings.HasPrefix(result.Stderr, "webdelivery: 16 of 16 parts are missing. The "), result.Stderr)
		})
	}
}

// If some parts are missing, the page names them at the top, and shows the others. The exit code of a file is 3.
func TestSomePartsAreMissing(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, _ func(string) (int, string)) {
		srv.AddEvents(block)
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/trends/data", Delay: time.Hour})
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/topk/ruleid/data", Status: 400, Body: `{"message":"<b>` + "\x1b" + `"}`})
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/topk/browser/data", Status: 400})
		began := time.Now()
		result := clitest.Run(t, srv, Command, "", "report", "--save", "-", "--since", "1h")
		assert.Equal(t, 15*time.Second, time.Since(began))
		assert.Equal(t, cli.Partly, result.Code)
		assert.Regexp(t, `^webdelivery: 1 of 16 parts are missing. The service did not respond within 15 seconds: [^\x1b\n]*
webdelivery: 2 of 16 parts are missing. The service rejects the query: [^\x1b\n]*
webdelivery: Choose a shorter time range, or try again later. Check the dimensions in the filter; some statistics lack some of them.
$`, result.Stderr)
		for _, want := range []string{
			"3 of 16 parts could not be read The service did not respond", "Missing: Web application firewall: Events by severity.",
			"Missing: Web application firewall: Rules, Web application firewall: Browsers.",
			"Paths /login 1", "No events since 1 Jan 11:30 UTC.", "Rules Not available",
		} {
			assert.Contains(t, text(result.Stdout, "<main>", "</main>"), want)
		}
	})
}

// A file is the same page without the form and without links. It refers to nothing else, and its policy forbids that,
// too.
func TestFile(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithEvents(1, 1, time.Time{}))
	result := clitest.Run(t, srv, Command, "", "report", "--save", "-", "--since", "1h", "--filter", "client_country_code==CN")
	assert.Equal(t, clitest.Result{Stdout: result.Stdout}, result)
	page, own, _ := strings.Cut(result.Stdout, "<script>")
	assert.Contains(t, page, "Filter <code>client_country_code==CN</code>")
	assert.Contains(t, page, "default-src &#39;none&#39;")
	assert.Empty(t, regexp.MustCompile(`<form|(src|href|action)="[^d]`).FindString(page))
	assert.Contains(t, own, "</html>")
}

// What cannot be meant is wrong usage, told in one line.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                              "give --save FILE or --serve; see webdelivery report --help",
		"--save=- --listen=127.0.0.1:0": "--listen needs --serve",
		"--serve --listen=:8080":        "--listen :8080: want a loopback address such as 127.0.0.1:8080, because the page asks for no password",
		"--save=- --since=1m":           `--since "1m": want a time from 5 minutes to 366 days ago`,
		"--serve --since=":              `--since "": want 90m, 24h, 7d, today, yesterday, 2026-11-20 or 2026-11-20T08:00:00Z`,
	} {
		result := clitest.Run(t, webdeliverytest.NewServer(t), Command, "", append([]string{"report"}, strings.Fields(args)...)...)
		assert.Equal(t, cli.Misuse, result.Code, args)
		assert.Equal(t, "webdelivery: "+want+"\n", result.Stderr)
	}
}

// The served page shows what a password protects, so only this computer gets it, under a name of its own. It loads
// nothing from other hosts. An interrupt ends the command.
func TestServe(t *testing.T) {
	t.Parallel()
	app, _, _ := clitest.App(webdeliverytest.NewServer(t), "")
	out, in := io.Pipe()
	app.Out = in
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int)
	args := []string{"report", "--serve", "--listen=127.0.0.1:0", "--since=1h", "--filter=domain==50%"}
	go func() { ended <- app.Run(ctx, args, Command) }()
	var address string
	fmt.Fscanf(out, "The report is at %s until you press ^C.\n", &address)
	for host, status := range map[string]int{
		"127.0.0.1:8080": 200, "localhost": 200, "localhost:1": 200, "[::1]:8080": 200, "[::1]": 200,
		"example.com:8080": 421, "192.0.2.1": 421, "localhost.example.com": 421, "127.0.0.1.example.com": 421,
	} {
		r, _ := http.NewRequest(http.MethodGet, address, nil)
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		page, _ := io.ReadAll(resp.Body)
		assert.Equal(t, status, resp.StatusCode, host)
		if status == http.StatusOK {
			assert.Regexp(t, `(?s)aria-current="true">1 hour.*name="filter" value="domain==50%"`, string(page))
			assert.Regexp(t, "^default-src 'none'; base-uri 'none'; form-action 'self'; img-src data:; style-src 'sha256-[^ ]+'; "+
				"script-src 'sha256-[^ ]+' 'sha256-[^ ]+'; frame-ancestors 'none'$", resp.Header.Get("Content-Security-Policy"))
		}
	}
	interrupt()
	assert.Equal(t, cli.Done, <-ended)
}
