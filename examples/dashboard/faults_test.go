package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const alert = `role="alert"`

// beforeScripts returns the page without its scripts.
func beforeScripts(body string) string {
	page, _, _ := strings.Cut(body, "<script>")
	return page
}

// With a wrong password, a page costs one refused request. The page says only that.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
		srv.AddEvents(block)
		shown.Stats = srv.ClientAs(t, webdelivery.BasicAuth(srv.Username, "wrong")).Stats
		w := get(shown, "")
		assert.Equal(t, http.StatusBadGateway, w.Code)
		assert.Len(t, srv.Requests(), 1)
		body := beforeScripts(w.Body.String())
		assert.Equal(t, 1, strings.Count(body, alert))
		assert.Equal(t, 1, strings.Count(body, "The service rejects the user name or the password"))
		assert.NotContains(t, body, "Not available", "one message is enough")
	})
}

// The page says in words what is wrong with the service, once, and its status says whose fault it is.
func TestFaultsInWords(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rule    webdeliverytest.FaultRule
		query   string
		status  int
		summary string
	}{
		"down":               {webdeliverytest.FaultRule{Status: 503}, "", 502, "The service is down: it responds with 503 Service Unavailable"},
		"unreachable":        {webdeliverytest.FaultRule{Cut: webdeliverytest.CutAfterExecute}, "", 502, "The service is unreachable"},
		"forbidden":          {webdeliverytest.FaultRule{Status: 403}, "", 502, "The user has no right to read these statistics"},
		"customer":           {webdeliverytest.FaultRule{Status: 404}, "", 502, "The service does not have these statistics"},
		"no JSON":            {webdeliverytest.FaultRule{Body: "<html>"}, "", 502, "The dashboard cannot read the response of the service"},
		"hanging":            {webdeliverytest.FaultRule{Delay: time.Hour}, "", 502, "The service did not respond within 15 seconds"},
		"refused filter":     {webdeliverytest.FaultRule{Status: 400}, "filter=nothing%3D%3D1", 400, "The service rejects the query"},
		"refused query":      {webdeliverytest.FaultRule{Status: 400}, "", 502, "The service rejects the query"},
		"some other trouble": {webdeliverytest.FaultRule{Status: 418}, "", 502, "The service responds with 418 I&#39;m a teapot"},
	} {
		inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
			tc.rule.Path = "/stats/**"
			srv.Fail(tc.rule)
			w := get(shown, tc.query)
			body := beforeScripts(w.Body.String())
			assert.Equal(t, tc.status, w.Code, name)
			assert.Equal(t, 1, strings.Count(body, alert), name)
			assert.Equal(t, 1, strings.Count(body, "<h2>"+tc.summary+"</h2>"), name)
			assert.NotContains(t, body, "Not available", name)
			assert.NotContains(t, body, "Missing:", "%s: all parts are", name)
		})
	}
}

// If some parts are missing, the page names them at the top, and shows the others.
func TestSomePartsAreMissing(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
		srv.AddEvents(block)
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/trends/data", Delay: time.Hour})
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/topk/ruleid/data", Status: 400, Body: `{"message":"<b>rules</b> & co"}`})
		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/waf/topk/browser/data", Status: 400})
		began := time.Now()
		w := get(shown, "since=1h")
		assert.Equal(t, 15*time.Second, time.Since(began))
		assert.Equal(t, http.StatusOK, w.Code)
		body := beforeScripts(w.Body.String())
		assert.Contains(t, body, "3 of 16 parts could not be read")
		assert.Equal(t, 1, strings.Count(body, alert))
		assert.Contains(t, body, "<p>Missing: Web application firewall: Events by severity.</p>")
		assert.Contains(t, body, "<p>Missing: Web application firewall: Rules, Web application firewall: Browsers.</p>")
		assert.Contains(t, body, "&lt;b&gt;rules&lt;/b&gt; &amp; co")
		assert.Equal(t, 3, strings.Count(body, "Not available"))
		assert.Contains(t, body, "/login")
	})
}

// If nothing happened, the page has one message. If a section is empty, it has one message, too.
func TestNoEvents(t *testing.T) {
	t.Parallel()
	inMemory(t, func(t *testing.T, srv *webdeliverytest.Server, shown site) {
		w := get(shown, "since=1h")
		assert.Equal(t, http.StatusOK, w.Code)
		body := beforeScripts(w.Body.String())
		assert.Equal(t, 1, strings.Count(body, `class="card `), "one message")
		assert.Contains(t, body, "The service has no events since 1 Jan 11:30 UTC.</p>")
		assert.NotContains(t, body, `class="chart"`)

		srv.AddEvents(block)
		body = beforeScripts(get(shown, "since=1h").Body.String())
		assert.Equal(t, 1, strings.Count(strings.ToLower(body), "no events"), "of traffic shaping")
		assert.Contains(t, body, "No events since 1 Jan 11:30 UTC.</p>")

		body = beforeScripts(get(shown, "since=1h&filter=client_country_code==XX").Body.String())
		assert.Contains(t, body, "The service has no events since 1 Jan 11:30 UTC that match the selection.</p>")

		srv.Fail(webdeliverytest.FaultRule{Path: "/stats/security/trafficshaping/topk/country/data", Status: 503})
		body = beforeScripts(get(shown, "since=1h").Body.String())
		assert.Contains(t, body, "Missing: Traffic shaping: Countries.")
		assert.Equal(t, 6, strings.Count(body, `<p class="instead">No events</p>`), "it is not known that the section is empty")
	})
}
