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
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/dashboard/report"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// inMemory runs a test on a fake service in memory. Its fake time begins at 12:34:56 on 2000-01-01.
func inMemory(t *testing.T, test func(t *testing.T, srv *webdeliverytest.Server, shown site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12*time.Hour + 34*time.Minute + 56*time.Second)
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		client := srv.Client(t, webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
		test(t, srv, site{Stats: client.Stats, Customer: "acme", Host: "api.example.com"})
	})
}

func get(shown site, query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler(shown).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/?"+query, nil))
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

// Each part shows the events of its family in the time range.
func TestPageShowsWhatHappened(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
		srv.AddEvents(block, block, warn, limited)
		p := newPage(t.Context(), shown, url.Values{"since": {"6h"}})
		require.Zero(t, p.Missing)
		assert.Equal(t, 16, p.Parts)
		totals, largest := map[string]int64{}, map[string]string{}
		for family, panels := range map[string][]*report.Panel{
			"": {p.Requests}, "WAF ": append(p.Sections[0].Tops, p.Sections[0].Trend), "shaping ": append(p.Sections[1].Tops, p.Sections[1].Trend),
		} {
			for _, panel := range panels {
				totals[family+panel.Title] = panel.Total
				if panel.Total > 0 {
					largest[family+panel.Title] = panel.Groups[0].Name
				}
			}
		}
		assert.Equal(t, map[string]int64{
			"Requests": 4, "WAF Events by severity": 3, "shaping Events by type": 1,
			"WAF Rules": 3, "WAF Clients": 3, "WAF Countries": 3, "WAF Paths": 3, "WAF Severities": 3, "WAF Browsers": 3,
			"shaping Clients": 1, "shaping Rate-limited clients": 1, "shaping Countries": 1, "shaping Rate-limited countries": 0,
			"shaping Paths": 1, "shaping Browsers": 1,
		}, totals)
		assert.Equal(t, map[string]string{
			"Requests": "BLOCK", "WAF Events by severity": "CRITICAL", "shaping Events by type": "RATE_LIMIT_IP",
			"WAF Rules": "942100", "WAF Clients": "192.0.2.7", "WAF Countries": "CN", "WAF Paths": "/login", "WAF Severities": "CRITICAL",
			"WAF Browsers": "curl", "shaping Clients": "198.51.100.7", "shaping Rate-limited clients": "198.51.100.7",
			"shaping Countries": "CN", "shaping Paths": "none", "shaping Browsers": "none",
		}, largest)

		body := get(shown, "since=6h").Body.String()
		assert.Regexp(t, `Requests</h2>\s+<p class="big">4</p>\s+<p class="note">since 1 Jan 06:30 UTC</p>`, body)
		assert.Regexp(t, `Top action</h2>\s+<p class="big"><bdi>BLOCK</bdi></p>\s+<p class="note">75.0 % of requests</p>`, body)
		assert.Regexp(t, `Firewall events</h2>\s+<p class="big">3</p>\s+<p class="note">2 <bdi>CRITICAL</bdi></p>`, body)
		assert.Regexp(t, `Top country</h2>\s+<p class="big"><bdi>CN</bdi></p>\s+<p class="note">66.7 % of firewall events</p>`, body)
		assert.Contains(t, body, `<h2>Web application firewall</h2>`)
		assert.Contains(t, body, `<h2>Traffic shaping</h2>`)
		assert.Equal(t, 4+1, strings.Count(body, "<tr>"), "events, and their heading")
		_, row, _ := strings.Cut(body, "<td>1 Jan 12:24:56</td>")
		row, _, _ = strings.Cut(row, "</tr>")
		assert.Equal(t, []string{"BLOCK", "WAF", "CRITICAL", "942100", "192.0.2.7", "CN"},
			strings.Fields(regexp.MustCompile("<[^>]*>").ReplaceAllString(row, " ")))
		assert.Regexp(t, `Customer <b>acme</b> at <b>api.example.com</b></p>`, body)
		shown.Fake = true
		assert.Contains(t, get(shown, "since=6h").Body.String(), `<b>api.example.com</b> <span class="badge">fake service</span></p>`)
	})
}

// A line has a point for each bucket of the time range: 5 minutes, hours or days. A last bucket that is not over is
// left out: the line would fall. The tile has all hits.
func TestLines(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
		now := block
		now.Time = noon.Add(-time.Second)
		srv.AddEvents(block, block, warn, limited, now)
		for _, tc := range []struct {
			since, first, last, unit string
			points                   int
			blocked                  map[int]int64 // the hits at a point
			total                    int           // with the event that is not blocked
		}{
			{"30m", "12:00", "12:25", "5 minutes", 6, map[int]int64{4: 2}, 4},
			{"1h", "11:30", "12:25", "5 minutes", 12, map[int]int64{10: 2}, 4},
			{"6h", "06:30", "12:25", "5 minutes", 72, map[int]int64{12: 1, 70: 2}, 5},
			{"12h", "00:00", "11:00", "hour", 12, map[int]int64{7: 1}, 5},
			{"1d", "12:00", "11:00", "hour", 24, map[int]int64{19: 1}, 5},
			{"3d", "29 Dec 12:00", "1 Jan 11:00", "hour", 72, map[int]int64{67: 1}, 5},
			{"7d", "25 Dec 12:00", "1 Jan 11:00", "hour", 168, map[int]int64{163: 1}, 5},
			{"30d", "2 Dec", "31 Dec", "day", 30, map[int]int64{}, 5},
		} {
			body := get(shown, "since="+tc.since).Body.String()
			var chart report.Chart
			require.NoError(t, json.Unmarshal([]byte(data.FindStringSubmatch(body)[1]), &chart))
			require.Len(t, chart.Times, tc.points, tc.since)
			assert.Equal(t, []string{tc.first, tc.last}, []string{chart.Times[0], chart.Times[tc.points-1]})
			assert.Contains(t, body, "requests per "+tc.unit+", until 1 Jan ")
			require.Equal(t, "BLOCK", chart.Lines[0].Short)
			require.Len(t, chart.Lines[0].Values, tc.points)
			for i, value := range chart.Lines[0].Values {
				assert.Equal(t, tc.blocked[i], value, "%s, point %d", tc.since, i)
			}
			assert.Contains(t, body, fmt.Sprintf(`<p class="big">%d</p>`, tc.total), tc.since)
		}
		time.Sleep(3*time.Second + 500*time.Millisecond) // 12:34:59.5: the last bucket is over
		assert.Contains(t, get(shown, "since=1h").Body.String(), "requests per 5 minutes</span>")
	})
}

// The query has what is picked, and the form keeps it.
func TestPicked(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
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
			assert.Equal(t, want, newPage(t.Context(), shown, picked).Requests.Total, query)
			w := get(shown, query)
			assert.Equal(t, http.StatusOK, w.Code)
			if want > 0 {
				assert.Contains(t, w.Body.String(), fmt.Sprintf(`<p class="big">%d</p>`, want), query)
			}
		}
		body := get(shown, "since=6h&country=client_country_code%3D%3DCN&action=event_action==ALLOW&filter=a!=b").Body.String()
		assert.Contains(t, body, `value="6h" aria-current="true"`)
		assert.Contains(t, get(shown, "since=12h").Body.String(), `<button name="since" value="12h" aria-current="true">12h</button>`)
		assert.Contains(t, body, `<option value="event_action==ALLOW" selected>ALLOW</option>`, "the form keeps what is picked, even without events")
		assert.Contains(t, body, `name="filter" value="a!=b"`)
		assert.Contains(t, get(shown, "country=client_country_code%3D%3DCN").Body.String(),
			`<option value="client_country_code==CN" selected>CN</option>`)
	})
}

// A value is a link that adds it to what is picked. If the filter has an OR, the value replaces it. A file has no
// links.
func TestLinks(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"": "rule_id==1", "a==1;b!=2": "a==1;b!=2;rule_id==1", "rule_id==1": "rule_id==1", "a==1;rule_id==1": "a==1;rule_id==1",
		"a==1,b==2": "rule_id==1",
	} {
		p := &page{Report: report.Blank(report.Query{}), Picked: url.Values{"since": {"6h"}, "filter": {typed}}}
		link, err := url.Parse(p.Word("rule_id", "1", 9).Link)
		require.NoError(t, err)
		assert.Equal(t, url.Values{"since": {"6h"}, "filter": {want}}, link.Query(), typed)
		link, err = url.Parse(p.Word("client_country_code", "DE", 9).Link)
		require.NoError(t, err)
		assert.Equal(t, "client_country_code==DE", link.Query().Get("country"))
		_, wrong := selection(link.Query())
		assert.Nil(t, wrong, typed)
		p.Policy = policy
		assert.Empty(t, p.Word("rule_id", "1", 9).Link)
	}
}

// A severity and an action have one colour in all parts, and a legend has the most severe first.
func TestColours(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
		for hits, severity := range []string{"High", "Critical", "", "Medium", "Strange", "low"} {
			event := block
			for event.Severity = severity; hits >= 0; hits-- {
				srv.AddEvents(event)
			}
		}
		p := newPage(t.Context(), shown, url.Values{"since": {"1h"}})
		var legend []string
		for _, line := range p.Sections[0].Trend.Chart.Lines {
			legend = append(legend, line.Name+" "+line.Style.Colour)
			assert.Equal(t, line.Style.Colour, p.Word(webdelivery.DimEventSeverity, line.Name, 9).Colour)
		}
		assert.Equal(t, []string{"Critical c3", "High c3", "Medium c2", "low c1", "none c6", "Strange c4"}, legend)
		assert.Empty(t, p.Word(webdelivery.DimRuleID, "High", 9).Colour)
	})
}

// hostile are texts that could end a string, an element or a script, that ECharts could take for markup, or that could
// write what is beside them from right to left.
var hostile = []string{
	`</script><script>alert(1)</script>`, `"><img src=x onerror=alert(2)>`, `__f__alert(3)__f__`, `<!--<script>`, "\u2069\u202efdp.ecilop",
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

// The page shows what the service sends as text. A browser finds no element in it, and the chart and the lists have
// the same text.
func TestNothingBreaksOut(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
		addHostile(srv)
		body := get(shown, "since=1h").Body.String()
		page, own, _ := strings.Cut(body, "<script>")
		assert.Equal(t, 1, strings.Count(own, "<script>"), "the page has two scripts")
		for _, tag := range []string{"<img", "<!--", "alert(1)<", "alert(2)>"} {
			assert.NotContains(t, page, tag)
		}
		isolated := regexp.MustCompile(`(?s)<(bdi|option|script|style)\b.*?</(bdi|option|script|style)>|<[^>]*>`)
		assert.NotContains(t, isolated.ReplaceAllString(page, ""), "alert", "each value is isolated from the texts beside it")
		charts := data.FindAllStringSubmatch(page, -1)
		require.Len(t, charts, 2, "requests and WAF")
		var chart report.Chart
		require.NoError(t, json.Unmarshal([]byte(charts[0][1]), &chart))
		assert.Equal(t, "</script><scri…t(1)</script>", chart.Lines[0].Short)
		assert.Equal(t, hostile[2], chart.Lines[2].Short)
		_, paths, _ := strings.Cut(page, "<h3>Paths</h3>")
		_, path, _ := strings.Cut(paths, "<li>")
		path, _, _ = strings.Cut(path, "</a>")
		assert.Equal(t, hostile[0], html.UnescapeString(path[strings.LastIndex(path, ">")+1:]))
	})
}

// What the service sends does not make the page long. A long value is shown in part, once for each place. The limit has room
// for the scripts, with 0.8 MB, for 271 values in lists and tables, with 5 kB for each, and for charts and options.
func TestThePageIsBounded(t *testing.T) {
	t.Parallel()
	const limit = 3_000_000
	for name, tc := range map[string]struct {
		values int
		long   string // part of each value
		filter string
	}{
		"longer in HTML":         {21, strings.Repeat(`"`, 20_000), ""},
		"longer in a link":       {21, strings.Repeat("é", 10_000), ""},
		"almost without a link":  {21, strings.Repeat("a", 1900), ""},
		"many":                   {300, "", ""},
		"a filter that all take": {21, "", "domain!=" + strings.Repeat("a", 20_000)},
	} {
		inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
			for i := range tc.values {
				value := fmt.Sprint(i, tc.long, i)
				for _, kind := range []string{webdeliverytest.EventTypeWAF, webdeliverytest.EventTypeRateLimitIP} {
					srv.AddEvents(webdeliverytest.Event{
						Time: block.Time, Type: kind, Action: value, Severity: value, RuleID: value,
						Browser: value, Domain: value, RequestPath: value, CountryCode: value,
					})
				}
			}
			w := get(shown, url.Values{"since": {"1h"}, "filter": {tc.filter}}.Encode())
			body := w.Body.String()
			assert.Equal(t, http.StatusOK, w.Code, name)
			assert.NotContains(t, beforeScripts(body), alert, name)
			assert.Less(t, len(body), limit, name)
			assert.True(t, utf8.ValidString(body), name)
			assert.LessOrEqual(t, strings.Count(body, "<option"), 2*(20+1), "%s: as many countries as a top-K has, and any", name)
		})
	}
}

// A service may send more events than the page asks for.
func TestMoreEventsThanAskedFor(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
		srv.AddEvents(block)
		row := `["2000-01-01T12:24:56","BLOCK","WAF","CRITICAL","942100","192.0.2.7","CN","www.example.com"]`
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/events/data", Body: `{"query":{},"columns":[{"name":"event_timestamp_ms"},` +
			`{"name":"event_action"},{"name":"event_type"},{"name":"event_severity"},{"name":"rule_id"},{"name":"client_ip"},` +
			`{"name":"client_country_code"},{"name":"domain"}],"rows":[` + row + strings.Repeat(","+row, 99) + `],"total_results":100}`})
		body := get(shown, "since=1h").Body.String()
		assert.NotContains(t, beforeScripts(body), alert)
		assert.Equal(t, 25+1, strings.Count(body, "<tr>"), "events, and their heading")
	})
}

// A long value is shown without its middle. Its title has more of it. If a link or an option would be too long, it is left out,
// but an option that is picked stays.
func TestLongValues(t *testing.T) {
	t.Parallel()
	p := &page{Report: report.Blank(report.Query{}), Picked: url.Values{}}
	for _, tc := range []struct {
		length      int // in characters of two bytes, which have six in a link
		text, title int
		link        bool
	}{
		{80, 80, 0, true}, {81, 80, 81, true}, {329, 80, 329, true}, {330, 80, 330, false}, {400, 80, 400, false}, {401, 80, 400, false},
	} {
		w := p.Word("rule_id", strings.Repeat("é", tc.length), 80)
		assert.Equal(t, []int{tc.text, tc.title}, []int{utf8.RuneCountInString(w.Text), utf8.RuneCountInString(w.Title)}, tc.length)
		assert.True(t, utf8.ValidString(w.Text+w.Title), tc.length)
		assert.Equal(t, tc.link, w.Link != "", "%d: %d", tc.length, len(w.Link))
	}
	long, picked := strings.Repeat("a", 41), "client_country_code=="+strings.Repeat("b", 3000)
	p.Options[webdelivery.DimClientCountryCode].Groups = []*report.Group{{Name: long}, {Name: strings.Repeat("c", 2000)}, {Name: "none"}, {Name: "DE"}}
	p.Picked.Set("country", picked)
	assert.Equal(t, []option{
		{"client_country_code==" + long, long[:20] + "…" + long[:19], false},
		{"client_country_code==DE", "DE", false},
		{picked, strings.Repeat("b", 20) + "…" + strings.Repeat("b", 19), true},
	}, p.Choices(pickers[0]))
	assert.Equal(t, word{Text: "/a/…/z", Title: "/a/long/path/z"}, short("/a/long/path/z", 6))
}

// The page shows what a password protects, so only this computer gets it. It loads nothing from other hosts.
func TestHostsAndPolicy(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
		ask := func(host, path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			handler(shown).ServeHTTP(w, r)
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
