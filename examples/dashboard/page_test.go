package main

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/dashboard/report"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// inMemory runs a test on a fake service in memory, in fake time, which begins at 12:34:56 on 2000-01-01.
func inMemory(t *testing.T, test func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12*time.Hour + 34*time.Minute + 56*time.Second)
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		test(t, srv, srv.Client(t, webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1})).Stats)
	})
}

func get(stats *webdelivery.StatsService, query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler(stats).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/?"+query, nil))
	return w
}

var (
	noon  = time.Date(2000, 1, 1, 12, 34, 56, 0, time.UTC)
	block = webdeliverytest.Event{
		Time: noon.Add(-10 * time.Minute), Type: webdeliverytest.EventTypeWAF, Action: "BLOCK", Severity: "CRITICAL", RuleID: "942100",
		ClientIP: netip.MustParseAddr("192.0.2.7"), CountryCode: "CN", Browser: "curl", RequestPath: "/login",
	}
	warn = webdeliverytest.Event{
		Time: noon.Add(-20 * time.Minute), Type: webdeliverytest.EventTypeCustom, Action: "WARN", Severity: "NOTICE", RuleID: "custom",
		ClientIP: netip.MustParseAddr("2001:db8::7"), CountryCode: "DE",
	}
	limited = webdeliverytest.Event{
		Time: noon.Add(-5 * time.Hour), Type: webdeliverytest.EventTypeRateLimitIP, Action: "BLOCK",
		ClientIP: netip.MustParseAddr("198.51.100.7"), CountryCode: "CN",
	}
)

// Every part shows what there is of its family in the span.
func TestPageShowsWhatHappened(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
		srv.AddEvents(block, block, warn, limited)
		p := newPage(t.Context(), stats, url.Values{"since": {"6h"}})
		require.Zero(t, p.Failed.Load())
		assert.EqualValues(t, 16, p.Asked.Load())
		totals, largest := map[string]int64{}, map[string]string{}
		for family, panels := range map[string][]*report.Panel{"": p.Trends, "WAF ": p.WAF, "shaping ": p.Shaping} {
			for _, panel := range panels {
				totals[family+panel.Title] = panel.Total
				if panel.Total > 0 {
					largest[family+panel.Title] = panel.Groups[0].Name
				}
			}
		}
		assert.Equal(t, map[string]int64{
			"Requests": 4, "Web application firewall": 3, "Traffic shaping": 1,
			"WAF Rules": 3, "WAF Clients": 3, "WAF Countries": 3, "WAF Paths": 3, "WAF Severities": 3, "WAF Browsers": 3,
			"shaping Clients": 1, "shaping Rate-limited clients": 1, "shaping Countries": 1, "shaping Rate-limited countries": 0,
			"shaping Paths": 1, "shaping Browsers": 1,
		}, totals)
		assert.Equal(t, map[string]string{
			"Requests": "BLOCK", "Web application firewall": "CRITICAL", "Traffic shaping": "RATE_LIMIT_IP",
			"WAF Rules": "942100", "WAF Clients": "192.0.2.7", "WAF Countries": "CN", "WAF Paths": "/login", "WAF Severities": "CRITICAL",
			"WAF Browsers": "curl", "shaping Clients": "198.51.100.7", "shaping Rate-limited clients": "198.51.100.7",
			"shaping Countries": "CN", "shaping Paths": "none", "shaping Browsers": "none",
		}, largest)

		body := get(stats, "since=6h").Body.String()
		assert.Regexp(t, `Requests</h2>\s+<p class="big">4</p>\s+<p class="note">in 6 hours</p>`, body)
		assert.Regexp(t, `Top action</h2>\s+<p class="big">BLOCK</p>\s+<p class="note">75.0 % of requests</p>`, body)
		assert.Regexp(t, `Firewall hits</h2>\s+<p class="big">3</p>\s+<p class="note">2 CRITICAL</p>`, body)
		assert.Regexp(t, `Top country</h2>\s+<p class="big">CN</p>\s+<p class="note">66.7 % of firewall hits</p>`, body)
		assert.Equal(t, 4+1, strings.Count(body, "<tr>"), "events, and their heading")
		assert.Regexp(t, `<td>1 Jan 12:24:56</td>\s+<td><strong data-tone="grave">BLOCK</strong></td>\s+<td>WAF</td>\s+<td>CRITICAL</td>\s+`+
			`<td>942100</td>\s+<td>192.0.2.7</td>\s+<td>CN</td>\s+<td></td>`, body)
	})
}

// The page depends on no word of the service: whatever they are, every part shows its events, and each line has a colour of
// its own. Words of the same meaning look the same in either vocabulary.
func TestVocabularies(t *testing.T) {
	t.Parallel()
	type words struct{ waf, shaping, block, warn, high, low string }
	for name, tc := range map[string]struct {
		words
		tones   [2]string
		actions []string
	}{
		"document": {words{"WAF", webdeliverytest.EventTypeBlockIP, "BLOCK", "WARN", "CRITICAL", "NOTICE"}, [2]string{"grave", "warning"}, []string{"--c3", "--c2"}},
		"portal":   {words{"WAF", "Rate Limit", "Block", "Warn", "High", "Info"}, [2]string{"grave", "warning"}, []string{"--c3", "--c2"}},
		"unknown":  {words{"Bots", "Rate Limit", "Tarpit", "<b>Challenge", "P1", "__f__"}, [2]string{"other", "other"}, []string{"--c1", "--c4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
				high, low, shaped := block, warn, limited
				high.Type, high.Action, high.Severity = tc.waf, tc.block, tc.high
				low.Type, low.Action, low.Severity = tc.waf, tc.warn, tc.low
				shaped.Type, shaped.Action, shaped.Severity = tc.shaping, tc.block, tc.low
				srv.AddEvents(high, high, low, shaped)
				p := newPage(t.Context(), stats, url.Values{"since": {"6h"}})
				require.Zero(t, p.Failed.Load())
				var totals []int64
				for _, trend := range p.Trends {
					totals = append(totals, trend.Total)
				}
				assert.Equal(t, []int64{4, 3, 1}, totals)
				assert.Equal(t, tc.actions, p.Trends[0].Chart["colours"])
				assert.Equal(t, tc.block, p.Trends[0].Groups[0].Name)

				body := get(stats, "since=6h").Body.String()
				assert.Equal(t, 4+1, strings.Count(body, "<tr>"), "events, and their heading")
				assert.Contains(t, body, `<strong data-tone="`+tc.tones[0]+`">`+html.EscapeString(tc.block)+`</strong>`)
				assert.Contains(t, body, `<strong data-tone="`+tc.tones[1]+`">`+html.EscapeString(tc.warn)+`</strong>`)
				assert.Regexp(t, `Top action</h2>\s+<p class="big">`+tc.block+`</p>\s+<p class="note">75.0 % of requests</p>`, body)
			})
		})
	}
}

// A line has a point for each full bucket of the span: of 5 minutes, hours or days, as fine as the service still has them.
func TestLines(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
		srv.AddEvents(block, block, warn, limited)
		for _, tc := range []struct {
			since, first, last string
			points             int
			blocked            map[int]int // the hits at a point
		}{
			{"1h", "11:30", "12:25", 12, map[int]int{10: 2}},
			{"6h", "06:30", "12:25", 72, map[int]int{12: 1, 70: 2}},
			{"1d", "12:00", "11:00", 24, map[int]int{19: 1}},
			{"3d", "29 Dec 12:00", "1 Jan 11:00", 72, map[int]int{67: 1}},
			{"7d", "25 Dec 12:00", "1 Jan 11:00", 168, map[int]int{163: 1}},
			{"30d", "2 Dec", "31 Dec", 30, map[int]int{}},
		} {
			body := get(stats, "since="+tc.since).Body.String()
			var chart struct {
				XAxis []struct {
					Data []string `json:"data"`
				} `json:"xAxis"`
				Series []struct {
					Name string `json:"name"`
					Data []struct {
						Value int `json:"value"`
					} `json:"data"`
				} `json:"series"`
			}
			require.NoError(t, json.Unmarshal([]byte(data.FindStringSubmatch(body)[1]), &chart))
			times := chart.XAxis[0].Data
			require.Len(t, times, tc.points, tc.since)
			assert.Equal(t, []string{tc.first, tc.last}, []string{times[0], times[tc.points-1]})
			assert.Equal(t, "BLOCK", chart.Series[0].Name)
			require.Len(t, chart.Series[0].Data, tc.points)
			for i, point := range chart.Series[0].Data {
				assert.Equal(t, tc.blocked[i], point.Value, "%s, point %d", tc.since, i)
			}
		}
	})
}

// What is picked is asked for, and the form keeps it.
func TestPicked(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
		srv.AddEvents(block, block, warn, limited)
		for query, want := range map[string]int64{
			"since=1h": 3,
			"since=1h&country=client_country_code%3D%3DCN&action=event_action%3D%3DBLOCK": 2,
			"since=6h&country=client_country_code%3D%3DCN&filter=event_type!%3DWAF":       1,
			"since=1h&action=event_action%3D%3DWARN":                                      1,
			"since=6h&filter=event_type==WAF,event_action==WARN":                          3,
			"since=6h&filter=event_type==WAF;event_action==WARN":                          0,
		} {
			picked, _ := url.ParseQuery(strings.ReplaceAll(query, ";", "%3B"))
			assert.Equal(t, want, newPage(t.Context(), stats, picked).Trends[0].Total, query)
			w := get(stats, query)
			assert.Equal(t, http.StatusOK, w.Code)
			assert.Contains(t, w.Body.String(), fmt.Sprintf(`<p class="big">%d</p>`, want), query)
		}
		body := get(stats, "since=6h&country=client_country_code%3D%3DCN&action=event_action==ALLOW&filter=a!=b").Body.String()
		assert.Contains(t, body, `value="6h" aria-current="true"`)
		assert.Contains(t, body, `<option selected>event_action==ALLOW</option>`, "there is none, and it was picked")
		assert.Contains(t, body, `name="filter" value="a!=b"`)
		assert.Contains(t, get(stats, "country=client_country_code%3D%3DCN").Body.String(),
			`<option value="client_country_code==CN" selected>CN</option>`)
	})
}

// The share of the top country is of all hits, not of those of the 20 countries that the service gives at most. Without
// the sum there is none.
func TestShareOfTopCountry(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
		srv.AddEvents(block)
		for i := range 24 {
			event := block
			event.CountryCode = fmt.Sprintf("X%c", 'A'+i)
			srv.AddEvents(event)
		}
		srv.AddEvents(block, block, block, block, block)
		body := get(stats, "since=1h").Body.String()
		assert.Regexp(t, `Top country</h2>\s+<p class="big">CN</p>\s+<p class="note">20.0 % of firewall hits</p>`, body, "6 of 30")

		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/trends/data", Status: 404})
		body = get(stats, "since=1h").Body.String()
		assert.Regexp(t, `Top country</h2>\s+<p class="big">CN</p>\s+<p class="note"></p>`, body)
	})
}

// options are what a picker offers.
func options(body, picker string) (names []string) {
	_, rest, _ := strings.Cut(body, `<select name="`+picker+`">`)
	own, _, _ := strings.Cut(rest, "</select>")
	for _, option := range regexp.MustCompile(`<option[^>]*>([^<]*)`).FindAllStringSubmatch(own, -1) {
		names = append(names, option[1])
	}
	return names
}

// What can be picked is the same whatever is picked; when it cannot be read, it is at least what is picked.
func TestPickers(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
		srv.AddEvents(block, block, warn)
		for _, query := range []string{
			"", "&country=client_country_code%3D%3DDE", "&action=event_action%3D%3DWARN", "&filter=domain==www.example.com",
			"&country=client_country_code%3D%3DCN&action=event_action%3D%3DBLOCK",
		} {
			body := get(stats, "since=1h"+query).Body.String()
			assert.Equal(t, []string{"any", "CN", "DE"}, options(body, "country"), query)
			assert.Equal(t, []string{"any", "BLOCK", "WARN"}, options(body, "action"), query)
		}

		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/topk/country/data", Status: 404})
		body := get(stats, "since=1h&country=client_country_code%3D%3DDE").Body.String()
		assert.Equal(t, []string{"any", "client_country_code==DE"}, options(body, "country"))
		assert.Contains(t, body, "<option selected>client_country_code==DE</option>")
		assert.Contains(t, body, "1 of 16 parts could not be read", "the options are no part of the page")
		assert.Equal(t, []string{"any"}, options(get(stats, "since=1h").Body.String(), "country"))
	})
}

// A page without anything says so, everywhere.
func TestNothingHappened(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, _ *webdeliverytest.Server, stats *webdelivery.StatsService) {
		w := get(stats, "")
		assert.Equal(t, http.StatusOK, w.Code)
		assert.Equal(t, 16, strings.Count(w.Body.String(), "No events in this span"))
		assert.NotContains(t, w.Body.String(), `class="chart"`)
	})
}

// A family that fails or does not answer takes only its own place.
func TestOneFamilyIsNotThere(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
		srv.AddEvents(block)
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/trends/data", Delay: time.Hour})
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/topk/ruleid/data", Status: 400, Body: `{"message":"<b>rules</b> & co"}`})
		began := time.Now()
		w := get(stats, "since=1h")
		assert.Equal(t, 15*time.Second, time.Since(began))
		assert.Equal(t, http.StatusOK, w.Code)
		body := w.Body.String()
		assert.Contains(t, body, "2 of 16 parts could not be read")
		assert.Contains(t, body, "no answer within 15 seconds")
		assert.Contains(t, body, "&lt;b&gt;rules&lt;/b&gt; &amp; co")
		assert.Contains(t, body, "/login")

		srv.Fail(webdeliverytest.FaultRule{Path: "/**", Status: 503})
		assert.Equal(t, http.StatusBadGateway, get(stats, "").Code)
	})
}

// If a group comes between the two requests for all rows, it is in the page. If it comes later, the page is complete
// without it.
func TestGroupsComeMeanwhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		actions []string // the first comes between the two requests, the next after them
		groups  int
	}{
		"between":           {[]string{"ALLOW"}, 2},
		"between and later": {[]string{"ALLOW", "BLOCK"}, 2},
	} {
		inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
			srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/request/trends/data", Delay: 100 * time.Millisecond})
			srv.AddEvents(webdeliverytest.Event{Time: noon.Add(-time.Second)}) // of no action
			for i, action := range c.actions {
				srv.AddEvents(webdeliverytest.Event{Time: noon.Add(time.Duration(150+200*i) * time.Millisecond), Action: action})
			}
			p := newPage(t.Context(), stats, url.Values{"since": {"1h"}})
			assert.Empty(t, p.Trends[0].Error, name)
			assert.Equal(t, "Requests", p.Trends[0].Title, name)
			assert.EqualValues(t, c.groups, p.Trends[0].Total, name)
			assert.Len(t, p.Options[webdelivery.DimEventAction].Groups, c.groups, name)
			assert.Equal(t, 2*2, srv.Count(http.MethodGet, "/stats/security/request/trends/data"), "%s: for the lines and for the picker", name)
		})
	}
}

// The service meets a handful of calls at a time.
func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
		_, err := stats.Events.Dimensions(t.Context()) // otherwise all calls would wait for the client's first response
		require.NoError(t, err)
		before := len(srv.Requests())
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/**", Delay: time.Second, Status: 404})
		began := time.Now()
		p := newPage(t.Context(), stats, url.Values{})
		assert.EqualValues(t, 16, p.Failed.Load())
		assert.Equal(t, http.StatusBadGateway, p.Status)
		assert.Equal(t, 3*time.Second, time.Since(began), "16 calls, 6 at a time")
		at := map[time.Duration]int{}
		for _, r := range srv.Requests()[before:] {
			at[r.Time.Sub(began)]++
		}
		assert.Equal(t, map[time.Duration]int{0: 6, time.Second: 6, 2 * time.Second: 6}, at, "and the options of the form")
	})
}

// What cannot be asked for is told in the page, in words, and is not asked for.
func TestWrongSelection(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"filter=client_country_code":                          "filters: at byte 0:",
		"filter=" + url.QueryEscape("a==1;b==2,c==3"):         "AND and OR in one expression",
		"country=a==0&filter=" + url.QueryEscape("a==1,b==2"): "AND and OR in one expression",
		"country=CH": "filters: at byte 0:",
		"since=2w":   `the span &#34;2w&#34; is none of 1h, 6h, 1d`,
		"filter=" + url.QueryEscape(`"><script>alert(1)</script>`): "&lt;script&gt;alert(1)&lt;/script&gt;",
	} {
		inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
			w := get(stats, query)
			assert.Equal(t, http.StatusBadRequest, w.Code, query)
			assert.Contains(t, w.Body.String(), want)
			page, _, _ := strings.Cut(w.Body.String(), "<script>") // its own
			assert.Contains(t, page, "</main>")
			assert.Contains(t, w.Body.String(), "</html>")
			assert.Empty(t, srv.Requests())
		})
	}
}

// hostile are texts that would end a string, an element or a script, and the mark by which go-echarts finds code.
var hostile = []string{
	`</script><script>alert(1)</script>`, `"><img src=x onerror=alert(2)>`, `__f__alert(3)__f__`, `<!--<script>`,
	"\u2028alert(4)", `\";alert(5)//`, `{{alert}}`, `'-alert(6)-'`, `{a|b}`,
}

func addHostile(srv *webdeliverytest.Server) {
	for i, text := range hostile {
		for range len(hostile) - i {
			srv.AddEvents(webdeliverytest.Event{
				Time: srv.Clock.Now().Add(-time.Minute), Type: webdeliverytest.EventTypeWAF, Action: text, Severity: text, RuleID: text,
				Browser: text, Domain: text, RequestPath: text, CountryCode: text,
			})
		}
	}
}

var data = regexp.MustCompile(`(?s)<script type="application/json">(.*?)</script>`)

// What the service sends is text wherever it is shown: a browser finds no element in it, and a chart the very same text.
func TestNothingBreaksOut(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
		addHostile(srv)
		body := get(stats, "since=1h").Body.String()
		page, own, _ := strings.Cut(body, "<script>")
		assert.Equal(t, 1, strings.Count(own, "<script>"), "the page has two scripts")
		for _, tag := range []string{"<img", "<!--", "alert(1)<", "alert(2)>"} {
			assert.NotContains(t, page, tag)
		}
		charts := data.FindAllStringSubmatch(page, -1)
		require.Len(t, charts, 2+6, "requests, WAF, and its tops")
		var paths struct {
			YAxis []struct {
				Data []string `json:"data"`
			} `json:"yAxis"`
		}
		require.NoError(t, json.Unmarshal([]byte(charts[2+3][1]), &paths))
		require.Len(t, paths.YAxis, 1)
		assert.Equal(t, hostile[0], paths.YAxis[0].Data[7], "the largest is on top")
		assert.Equal(t, hostile[2], paths.YAxis[0].Data[5])
	})
}

// A page that shows what a password opens is for this machine alone, and loads nothing from elsewhere.
func TestHostsAndPolicy(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, stats *webdelivery.StatsService) {
		ask := func(host, path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			handler(stats).ServeHTTP(w, r)
			return w
		}
		for _, host := range []string{
			"attacker.example.com", "attacker.example.com:8080", "192.0.2.1:8080", "", "localhost.example.com", "127.0.0.1.example.com",
		} {
			assert.Equal(t, http.StatusMisdirectedRequest, ask(host, "/").Code, host)
		}
		assert.Equal(t, http.StatusNotFound, ask("localhost", "/favicon.ico").Code)
		assert.Empty(t, srv.Requests())
		for _, host := range []string{"127.0.0.1:8080", "localhost", "localhost:1", "[::1]:8080", "[::1]"} {
			assert.Equal(t, http.StatusOK, ask(host, "/").Code, host)
		}
		header := ask("localhost", "/").Header()
		assert.Regexp(t, "^default-src 'none'; base-uri 'none'; form-action 'self'; img-src data:; style-src 'sha256-[^ ]+'; "+
			"script-src 'sha256-[^ ]+' 'sha256-[^ ]+'; frame-ancestors 'none'$", header.Get("Content-Security-Policy"))
		assert.Equal(t, "no-store", header.Get("Cache-Control"))
	})
}
