package report

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
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

// add adds events of 10 minutes ago that have a text everywhere.
func add(srv *webdeliverytest.Server, text string, hits int) {
	for range hits {
		srv.AddEvents(webdeliverytest.Event{
			Time: srv.Clock.Now().Add(-10 * time.Minute), Type: "WAF", Action: text, Severity: text, RuleID: text,
			Browser: text, Domain: text, RequestPath: text, CountryCode: text,
		})
	}
}

// atNoon runs a test with a fake service at 12:34:56 on 2000-01-01. Its get returns the status and the body of a served
// page, without the scripts at its end.
func atNoon(t *testing.T, test func(t *testing.T, srv *webdeliverytest.Server, get func(query string) (int, string))) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12*time.Hour + 34*time.Minute + 56*time.Second)
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		test(t, srv, func(query string) (int, string) {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/?"+query, nil)
			handler(siteOf(srv.Client(t), false), "24h", "").ServeHTTP(w, r)
			_, page, _ := strings.Cut(w.Body.String(), "<body>")
			page, own, _ := strings.Cut(page, "<script>")
			assert.Equal(t, 1, strings.Count(own, "<script>"), "the page has two scripts")
			return w.Code, page
		})
	})
}

// part returns what is between two texts of a page.
func part(page, from, to string) string {
	_, page, _ = strings.Cut(page, from)
	page, _, _ = strings.Cut(page, to)
	return page
}

// text returns what a reader sees between two texts of a page, with single spaces.
func text(page, from, to string) string {
	seen := regexp.MustCompile(`(?s)<script.*?</script>|<[^>]*>`).ReplaceAllString(part(page, from, to), " ")
	return html.UnescapeString(strings.Join(strings.Fields(seen), " "))
}

// Each part shows the events of its family in the time range.
func TestPageShowsWhatHappened(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
		srv.AddEvents(block, block, warn, limited)
		_, page := get("since=6h")
		assert.Equal(t, "Security statistics Customer acme at "+siteOf(srv.Client(t), false).Host+
			" 1 Jan 06:30 – 1 Jan 2000 12:34 UTC, by 5 minutes", text(page, "<header>", "</header>"))
		seen := text(page, "<main>", "</main>")
		for _, want := range []string{
			"Requests 4 since 1 Jan 06:30 UTC Top action BLOCK 75.0 % of requests Firewall events 3 2 CRITICAL ",
			" Top country CN 66.7 % of firewall events Requests BLOCK 3 WARN 1 Hits per 5 minutes, until 1 Jan 12:30 Times in UTC ",
			" Rules 942100 2 custom 1 Clients 192.0.2.7 2 none 1 Countries CN 2 DE 1 Paths /login 2 none 1 ",
			" Severities CRITICAL 2 NOTICE 1 Browsers curl 2 none 1 Traffic shaping Events by type RATE_LIMIT_IP 1 ",
			" Clients none 1 Rate-limited clients none 1 Countries CN 1 Rate-limited countries No events Paths none 1 Browsers none 1 ",
			" Domain 1 Jan 12:24:56 BLOCK WAF CRITICAL 942100 192.0.2.7 CN 1 Jan 12:24:56 BLOCK WAF CRITICAL 942100 192.0.2.7 CN " +
				"1 Jan 12:14:56 WARN CUSTOM NOTICE custom DE 1 Jan 07:34:56 BLOCK RATE_LIMIT_IP CN",
		} {
			assert.Contains(t, seen, want)
		}
	})
}

// A line has a point for each bucket of the time range: 5 minutes, hours or days. A last bucket that is not over is
// left out: the line would fall. The tile has all hits.
func TestLines(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
		last, now := block, block
		last.Time, now.Time = noon.Add(-6*time.Minute), noon.Add(-time.Second)
		srv.AddEvents(block, block, limited, last, now)
		for since, want := range map[string]string{ // the points with hits, of how many; the tile; the times
			"30m":   "map[4:2 5:1] 6 4 12:00 12:25 5 minutes, until 1 Jan 12:30\n",
			"6h":    "map[12:1 70:2 71:1] 72 5 06:30 12:25 5 minutes, until 1 Jan 12:30\n",
			"today": "map[7:1] 12 5 00:00 11:00 hour, until 1 Jan 12:00\n",
			"7d":    "map[163:1] 168 5 25 Dec 12:00 1 Jan 11:00 hour, until 1 Jan 12:00\n",
			"30d":   "map[] 30 5 2 Dec 31 Dec day, until 1 Jan 00:00\n",
		} {
			_, page := get("since=" + since)
			var c chart
			require.NoError(t, json.Unmarshal([]byte(part(page, `<script type="application/json">`, "</script>")), &c))
			hits := map[int]int64{}
			for i, n := range c.Lines[0].Values {
				hits[i] = n
			}
			maps.DeleteFunc(hits, func(_ int, n int64) bool { return n == 0 })
			tile, first, last := text(page, `<p class="big">`, "</p>"), c.Times[0], c.Times[len(c.Times)-1]
			assert.Equal(t, want, fmt.Sprintln(hits, len(c.Times), tile, first, last, text(page, "Hits per", "</span>")), since)
		}
	})
}

// A list and a chart have the 8 largest values. The chart has a line for the others, too, which is no value to filter by.
// Severities and actions have one colour in all parts.
func TestLargestValues(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
		values := []string{"High", "none", "Medium", "low", "A", "B", "C", "D", "E", "F"}
		for i, value := range values {
			add(srv, value, 20-i)
		}
		_, page := get("since=1h")
		assert.Equal(t, "High 20 none 19 Medium 18 low 17 A 16 B 15 C 14 D 13 other (2) 23", text(page, `<ul class="legend">`, "</ul>"))
		assert.Equal(t, "High 20 none 19 Medium 18 low 17 A 16 B 15 C 14 D 13", text(page, "<h3>Severities</h3>", "</ol>"))
		assert.Regexp(t, `^{"times":.*"lines":\[{"values":\[[0,]*20[0,]*\]},.*,{"values":\[[0,]*23[0,]*\]}\]}$`,
			part(page, `<script type="application/json">`, "</script>"))
		assert.NotContains(t, page, "%3D%3Dother")
		for i, colour := range []string{"c3", "c6", "c2", "c1"} {
			assert.Regexp(t, `class="key" data-colour="`+colour+`".*\s*<bdi>(<a[^>]*>)?`+values[i]+`<`, page)
			assert.Regexp(t, `>`+values[i]+`(</a>)?</bdi> <b>\d+</b><svg class="bar" data-colour="`+colour, page)
		}
		assert.Contains(t, page, `<td><i data-colour="c3"></i>`)
	})
}

// The query has what is picked, and the form keeps it. The page says in words what cannot be, and asks nothing.
func TestPicked(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
		srv.AddEvents(block, block, warn, limited)
		const wrong = "The time range or the filter cannot be read "
		for query, want := range map[string]string{
			"since=1h&filter=event_type==WAF;event_action==BLOCK": "Requests 2 since 1 Jan 11:30 UTC",
			"since=6h&filter=event_type==WAF,event_action==WARN":  "Requests 3 ",
			"filter=a==1;b": wrong + `filters: at byte 5: no == or != in "b"`,
			"since=1m":      wrong + `since "1m": want a time from 5 minutes to 366 days ago`,
			"since=400d":    wrong + `since "400d": want a time from 5 minutes to 366 days ago`,
		} {
			asked := len(srv.Requests())
			status, page := get(query)
			assert.True(t, strings.HasPrefix(text(page, "<main>", "</main>"), want), text(page, "<main>", "</main>"))
			assert.Equal(t, status == http.StatusBadRequest, asked == len(srv.Requests()), query)
		}
		_, page := get("since=2h&filter=client_country_code==FR;event_action!=b")
		assert.Regexp(t, `(?s)value="2h" aria-current="true">2h<.*name="filter" value="client_country_code==FR;event_action!=b"`, page)
		assert.Contains(t, text(page, "<main>", "</main>"), "No events since 1 Jan 10:30 UTC that match the selection.")
	})
}

// A value is a link that adds it to the filter, or that replaces one with an OR. A long value is shown without its
// middle, and one that no filter or address can have is no link.
func TestValues(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, get func(string) (int, string)) {
		for _, path := range []string{"/login", "", `\`, "/" + strings.Repeat("é", 80) + "middle/z", strings.Repeat("a", 2000)} {
			event := block
			event.RequestPath = path
			srv.AddEvents(event)
		}
		for typed, want := range map[string]string{
			"":                          "rule_id==942100",
			"event_type==WAF;domain!=b": "event_type==WAF;domain!=b;rule_id==942100",
			"rule_id==942100;domain!=b": "domain!=b;rule_id==942100",
			"rule_id==942100,domain==b": "rule_id==942100",
		} {
			_, page := get("since=1h&filter=" + typed)
			link := url.Values{"since": {"1h"}, "filter": {want}}
			assert.Contains(t, html.UnescapeString(page), `<a href="/?`+link.Encode()+`">942100</a>`)
		}
		_, page := get("since=1h")
		paths := part(page, "<h3>Paths</h3>", "</section>")
		assert.Equal(t, 2, strings.Count(paths, "<a href="), paths)
		assert.Regexp(t, `<bdi title="/é{80}middle/z"><a href="[^"]*">/é{39}…é{31}middle/z</a>`, paths)
		assert.Regexp(t, `<bdi title="a{400}">a{40}…a{39}</bdi>`, paths)
	})
}

// The page says in words what is wrong with the service, once. No file is written then. A wrong password is sent once:
// services lock users who repeat it.
func TestFaultsInWords(t *testing.T) {
	t.Parallel()
	for want, rule := range map[string]webdeliverytest.FaultRule{
		"The service rejects the user name or the password Check": {Status: 401},
		"The service has failed Try":                              {Status: 503},
		"The query failed Check WEBDELIVERY_BASE_URL, and":        {Cut: webdeliverytest.CutAfterExecute},
		"The user has no right to read these statistics Use":      {Status: 403},
		"The service does not have these statistics Check":        {Status: 404},
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
			result := clitest.Run(t, srv, Command, "", "report", "--save", "-")
			assert.Equal(t, clitest.Result{Code: cli.Failed, Stderr: result.Stderr}, result)
			assert.Regexp(t, "^webdelivery: 16 of 16 parts are missing. The ", result.Stderr)
		})
	}
}

// If some parts are missing, the page names them at the top, and shows the others. The exit code of a file is 3. A file has
// no form and no links. It refers to nothing else, and its policy forbids that, too.
func TestSomePartsAreMissing(t *testing.T) {
	t.Parallel()
	atNoon(t, func(t *testing.T, srv *webdeliverytest.Server, _ func(string) (int, string)) {
		srv.AddEvents(block)
		const waf = "/stats/security/waf/"
		srv.Fail(webdeliverytest.FaultRule{Path: waf + "trends/data", Delay: time.Hour})
		srv.Fail(webdeliverytest.FaultRule{Path: waf + "topk/ruleid/data", Status: 400, Body: `{"message":"<b>` + "\x1b" + `"}`})
		srv.Fail(webdeliverytest.FaultRule{Path: waf + "topk/browser/data", Status: 400})
		began := time.Now()
		result := clitest.Run(t, srv, Command, "", "report", "--save=-", "--since=1h", "--filter=client_country_code==CN")
		assert.Equal(t, 15*time.Second, time.Since(began))
		assert.Equal(t, cli.Partly, result.Code)
		assert.Regexp(t, `^webdelivery: 1 of 16 parts are missing. The service did not respond within 15 seconds: [^\x1b\n]*
webdelivery: 2 of 16 parts are missing. The service rejects the query: [^\x1b\n]*
webdelivery: Choose a shorter time range, or try again later. Check the dimensions in the filter; .*\n$`, result.Stderr)
		page, _, _ := strings.Cut(result.Stdout, "<script>")
		for _, want := range []string{
			" Filter client_country_code==CN 3 of 16 parts could not be read The service did not respond within 15 seconds ",
			" Missing: Web application firewall: Events by severity. ", " Paths /login 1 ", " Rules Not available ",
			" Missing: Web application firewall: Rules, Web application firewall: Browsers. ", " No events since 1 Jan 11:30 UTC ",
		} {
			assert.Contains(t, text(page, "<body>", "</body>"), want)
		}
		assert.Contains(t, page, "default-src &#39;none&#39;")
		assert.NotRegexp(t, `<form|(src|href|action)="[^d]`, page)
	})
}

// What cannot be meant is wrong usage, told in one line.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                              "give --save FILE or --serve; see webdelivery report --help",
		"--save=- --listen=127.0.0.1:0": "--listen needs --serve",
		"--serve --listen=:8080":        "--listen :8080: want a loopback address such as 127.0.0.1:8080, because the page asks for no password",
		"--save=- --since=1m":           `--since "1m": want a time from 5 minutes to 366 days ago`,
	} {
		result := clitest.Run(t, webdeliverytest.NewServer(t), Command, "", append([]string{"report"}, strings.Fields(args)...)...)
		assert.Equal(t, clitest.Result{Code: cli.Misuse, Stderr: "webdelivery: " + want + "\n"}, result, args)
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
		"localhost": 200, "127.0.0.1:8080": 200, "[::1]": 200, "192.0.2.1": 421, "localhost.example.com:8080": 421,
	} {
		r, _ := http.NewRequest(http.MethodGet, address, nil)
		r.Host = host
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		page, _ := io.ReadAll(resp.Body)
		assert.Equal(t, status, resp.StatusCode, host)
		if status == http.StatusOK {
			assert.Regexp(t, `(?s)aria-current="true">1h<.*name="filter" value="domain==50%"`, string(page))
			assert.Regexp(t, "^default-src 'none'; base-uri 'none'; form-action 'self'; img-src data:; style-src 'sha256-[^ ]+'; "+
				"script-src 'sha256-[^ ]+' 'sha256-[^ ]+'; frame-ancestors 'none'$", resp.Header.Get("Content-Security-Policy"))
		}
	}
	interrupt()
	assert.Equal(t, cli.Done, <-ended)
}

// hostile are texts that could end a string, an element or a script, that ECharts could take for markup, or that could
// write what is beside them from right to left.
var hostile = []string{
	`</script><script>alert(1)</script>`, `"><img src=x onerror=alert(2)>`, `__f__alert(3)__f__`, `<!--<script>`, "\u2069\u202efdp.ecilop",
	"\u2028alert(4)", `\";alert(5)//`, `{{alert}}`, `'-alert(6)-'`, `{a|b}`,
}

// TestBrowser tests what only a browser shows: scripts, widths, paper. The browser reaches no other computer. If Chromium
// is not installed, the test is skipped, unless REQUIRE_CHROMIUM is 1.
func TestBrowser(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("chromium"); err != nil && os.Getenv("REQUIRE_CHROMIUM") != "1" {
		t.Skip(err)
	}
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithEvents(0.1, 7, time.Time{}))
	for i, text := range hostile {
		add(srv, text, len(hostile)-i)
	}
	web := httptest.NewServer(handler(siteOf(srv.Client(t), true), "24h", ""))
	defer web.Close()
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	problems := make(chan string, 1000)
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			problems <- e.ExceptionDetails.Text
		case *log.EventEntryAdded: // what the policy forbids, too
			problems <- e.Entry.Text
		}
	}))
	eval := func(expression string) (value any) { // after the browser has painted
		t.Helper()
		value, err := chromedp.Run(ctx, chromedp.Evaluate[any](`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
			.then(() => (`+expression+`))`, chromedp.EvalAwaitPromise))
		require.NoError(t, err)
		return value
	}
	const pictures = `[...new Set([...document.querySelectorAll(".chart canvas")].map((e) => e.toDataURL()))]` // blank ones are equal

	// Nothing that the service sends becomes an element or a script, or moves its count.
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(1400, 1000), chromedp.Navigate(web.URL+"/?since=6h")))
	assert.Len(t, eval(pictures), 3)
	assert.EqualValues(t, 0, eval(`document.querySelectorAll("main img, main script:not([type='application/json'])").length`))
	assert.Empty(t, eval(`[...document.querySelectorAll(".legend li")].filter((li) =>
		li.querySelector("b").getBoundingClientRect().left < li.querySelector("bdi").getBoundingClientRect().right).map((li) => li.textContent)`))

	// The charts are drawn for paper, and then for the screen again.
	screen := eval(pictures)
	eval(`addEventListener("beforeprint", () => { globalThis.printed = document.querySelector(".chart canvas").clientWidth; })`)
	_, err := chromedp.Run(ctx, chromedp.PrintToPDF())
	require.NoError(t, err)
	assert.InDelta(t, 650, eval(`globalThis.printed`), 50, "A4 and Letter have more than 700 pixels between their margins")
	assert.Equal(t, screen, eval(pictures))

	// A phone shows all without scrolling to the side, and cuts off no text. A file shows the same.
	name := filepath.Join(t.TempDir(), "report.html")
	assert.Zero(t, clitest.Run(t, srv, Command, "", "report", "--save", name, "--since", "6h"))
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(360, 1000), chromedp.Navigate("file://"+name)))
	assert.Len(t, eval(pictures), 3)
	assert.Empty(t, eval(`[...document.querySelectorAll("h1, h2, h3, p, li, li bdi, td, .card, .chart, .chart canvas")]
		.filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== "inline" ||
			e.getBoundingClientRect().right > innerWidth).map((e) => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 60))`))
	assert.Empty(t, problems)
}
