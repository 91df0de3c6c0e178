package main

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const (
	requests  = `Number(document.querySelector(".big").textContent.replaceAll(",", ""))`
	countries = `[...[...document.querySelectorAll(".top")].find((e) => e.querySelector("h3").textContent === "Countries")
		.querySelectorAll("li span")].map((e) => e.title).join()`
	actions = `[...new Set([...document.querySelectorAll("tbody strong")].map((action) => action.textContent))].join()`
)

// What a reader sees in a browser. PICTURES=folder keeps a picture of each state. SCREENSHOT=../../docs/dashboard.png
// writes the picture of the README, which is the upper half of the page.
func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithEvents(0.5, 7, time.Time{}))
	serve := func(t *testing.T, srv *webdeliverytest.Server, auth webdelivery.Auth) *httptest.Server {
		t.Helper()
		client := srv.ClientAs(t, auth, webdelivery.WithRetry(webdelivery.RetryPolicy{MaxAttempts: 1}))
		web := httptest.NewServer(handler(site{Stats: client.Stats, Customer: srv.Customer, Host: host(srv.URL), Fake: true}))
		t.Cleanup(web.Close)
		return web
	}
	right := webdelivery.BasicAuth(srv.Username, srv.Password)
	web := serve(t, srv, right)

	t.Run("charts and pickers", func(t *testing.T) {
		t.Parallel()
		b := openTab(browser, t, 1280, 1000)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1h"))
		hour := b.drawn(t)
		assert.Len(t, hour, 3)
		few := eval[int](t, b, requests)
		b.follow(t, chromedp.Click(chromedp.CSS(`.spans button[value="6h"]`)))
		assert.NotEqual(t, hour[0], b.drawn(t)[0])
		assert.Equal(t, "6 hours", eval[string](t, b, `document.querySelector("[aria-current]").textContent`))
		many := eval[int](t, b, requests)
		assert.Greater(t, many, 3*few)
		assert.Contains(t, eval[string](t, b, countries), "DE,")
		b.fits(t)

		b.follow(t, chromedp.SetValue(chromedp.CSS(`select[name="country"]`), "client_country_code==US"), chromedp.Click(chromedp.CSS(`.apply`)))
		b.drawn(t)
		assert.Equal(t, "US", eval[string](t, b, countries))
		assert.Equal(t, "6 hours", eval[string](t, b, `document.querySelector("[aria-current]").textContent`))
		of := eval[int](t, b, requests)
		assert.Less(t, of, many)
		assert.Contains(t, eval[string](t, b, `document.querySelector("[name=country]").textContent`), "DE", "another choice")

		b.follow(t, chromedp.SetValue(chromedp.CSS(`select[name="action"]`), "event_action==WARN"), chromedp.Click(chromedp.CSS(`.apply`)))
		b.drawn(t)
		assert.Equal(t, "WARN", eval[string](t, b, actions))
		assert.Equal(t, "US", eval[string](t, b, countries))
		assert.Less(t, eval[int](t, b, requests), of)
		b.follow(t, chromedp.SetValue(chromedp.CSS(`select[name="action"]`), "event_action==BLOCK"), chromedp.Click(chromedp.CSS(`.apply`)))
		b.drawn(t)
		assert.Equal(t, "BLOCK", eval[string](t, b, actions))
		b.follow(t, chromedp.SetValue(chromedp.CSS(`select[name="action"]`), ""), chromedp.Click(chromedp.CSS(`.apply`)))
		b.drawn(t)

		b.follow(t, chromedp.SendKeys(chromedp.CSS(`input[name="filter"]`), "event_action==BLOCK\r"))
		b.drawn(t)
		assert.Equal(t, "BLOCK", eval[string](t, b, `document.querySelectorAll("tbody strong")[24].textContent`))
		assert.Equal(t, "US", eval[string](t, b, `document.querySelector("[name=country]").selectedOptions[0].textContent`))
		b.quiet(t, web.URL)
	})

	t.Run("wrong filter", func(t *testing.T) {
		t.Parallel()
		b := openTab(browser, t, 1280, 1000)
		b.do(t, chromedp.Navigate(web.URL+"/?filter=domain==www.example.com;client_country_code%3DCN"))
		assert.Equal(t, "client_country_code=CN", eval[string](t, b, `document.querySelector("[role=alert] mark").innerText`))
		b.fits(t)
		b.keep(t, "wrong-filter")
		b.do(t, chromedp.Navigate(web.URL+"/?country=client_country_code%3D%3DCN&filter=domain==a,domain==b"))
		assert.Contains(t, eval[string](t, b, `document.querySelector("[role=alert] h2").innerText`), "Country cannot be combined")
		b.keep(t, "or-filter")
		b.follow(t, chromedp.SetValue(chromedp.CSS(`input[name="filter"]`), "event_action!=ALLOW"), chromedp.SetValue(chromedp.CSS(`select[name="country"]`), ""),
			chromedp.Click(chromedp.CSS(`.apply`)))
		assert.Len(t, b.drawn(t), 3)
		b.mu.Lock()
		defer b.mu.Unlock()
		refused := "Failed to load resource: the server responded with a status of 400 (Bad Request)"
		assert.Equal(t, []string{refused, refused}, b.problems)
	})

	t.Run("faults", func(t *testing.T) {
		t.Parallel()
		for name, tc := range map[string]struct {
			auth  webdelivery.Auth
			rule  webdeliverytest.FaultRule
			title string
			grey  int
		}{
			"wrong-password": {webdelivery.BasicAuth(srv.Username, "wrong"), webdeliverytest.FaultRule{}, "The service rejects the user name or the password", 20},
			"down":           {right, webdeliverytest.FaultRule{Path: "/**", Status: 503}, "The service is down: it responds with 503 Service Unavailable", 20},
			"one-part":       {right, webdeliverytest.FaultRule{Path: "/stats/security/waf/trends/data", Status: 503}, "Missing: Web application firewall: Events by severity.", 2},
		} {
			srv := webdeliverytest.NewServer(t, webdeliverytest.WithEvents(0.5, 7, time.Time{}))
			srv.Fail(tc.rule)
			b := openTab(browser, t, 1280, 1000)
			b.do(t, chromedp.Navigate(serve(t, srv, tc.auth).URL+"/?since=1h"))
			b.drawn(t)
			assert.Equal(t, 1, eval[int](t, b, `document.querySelectorAll("[role=alert]").length`), name)
			assert.Contains(t, eval[string](t, b, `document.querySelector("[role=alert]").innerText`), tc.title)
			assert.Equal(t, tc.grey, eval[int](t, b, `document.querySelectorAll(".missing").length`), name)
			assert.NotEqual(t, "rgb(255, 255, 255)", eval[string](t, b, `getComputedStyle(document.querySelector(".missing")).backgroundColor`))
			b.fits(t)
			b.keep(t, name)
		}
	})

	t.Run("no data", func(t *testing.T) {
		t.Parallel()
		empty := webdeliverytest.NewServer(t)
		b := openTab(browser, t, 1280, 1000)
		b.do(t, chromedp.Navigate(serve(t, empty, right).URL+"/?since=1h"))
		assert.Equal(t, 1, eval[int](t, b, `document.querySelectorAll("main .card").length`))
		assert.Contains(t, eval[string](t, b, `document.querySelector("main").innerText`), "No events")
		b.keep(t, "no-data")
		empty.AddEvents(webdeliverytest.Event{
			Time: time.Now().Add(-10 * time.Minute), Type: webdeliverytest.EventTypeWAF, Action: "BLOCK", RuleID: "942100", CountryCode: "CN",
		})
		b.follow(t, chromedp.Click(chromedp.CSS(`.spans button[value="1h"]`)))
		assert.Len(t, b.drawn(t), 2)
		assert.Equal(t, 1, eval[int](t, b, `document.querySelectorAll(".part .none").length`), "of traffic shaping")
		b.keep(t, "no-shaping")
		b.quiet(t, "http://127.0.0.1")
	})

	t.Run("phone and dark", func(t *testing.T) {
		t.Parallel()
		b := openTab(browser, t, 360, 740)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1h"))
		light := b.drawn(t)
		b.fits(t)
		b.keep(t, "phone")
		assert.Equal(t, 360, eval[int](t, b, `document.documentElement.scrollWidth`))
		assert.Equal(t, 1, eval[int](t, b, `new Set([...document.querySelectorAll(".grid .card")].map((c) => c.getBoundingClientRect().left)).size`))
		bright := `(() => { const rgb = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number); return Math.max(...rgb); })()`
		assert.Greater(t, eval[int](t, b, bright), 230)
		b.emulate(t, "", dark)
		assert.Less(t, eval[int](t, b, bright), 40)
		dark := b.drawn(t)
		for i := range dark {
			assert.NotEqual(t, light[i], dark[i], "chart %d has other colours", i)
		}
		b.keep(t, "phone-dark")
		b.do(t, chromedp.EmulateViewport(1280, 1000))
		b.paint(t)
		b.keep(t, "dark")
		b.quiet(t, web.URL)
	})

	t.Run("print", func(t *testing.T) {
		t.Parallel()
		b := openTab(browser, t, 1600, 1000)
		b.emulate(t, "", dark)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1d"))
		screen := b.drawn(t)
		// The browser calls beforeprint listeners in order, so this one sees what the page has made ready for paper.
		eval[any](t, b, `addEventListener("beforeprint", () => {
			globalThis.printed = [...document.querySelectorAll(".chart canvas")].map((e) => e.getBoundingClientRect().width);
			globalThis.pictures = [...document.querySelectorAll(".chart canvas")].map((e) => e.toDataURL());
			globalThis.ground = getComputedStyle(document.querySelector(".card")).backgroundColor;
		}), null`)
		pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
		require.NoError(t, err)
		if folder := os.Getenv("PICTURES"); folder != "" {
			require.NoError(t, os.WriteFile(filepath.Join(folder, "print.pdf"), pdf, 0o600))
		}
		widths := eval[[]float64](t, b, `globalThis.printed`)
		assert.Len(t, widths, 3)
		for _, width := range widths {
			assert.Less(t, width, 700.0, "A4 and Letter have more than 700 pixels between their margins")
			assert.Greater(t, width, 600.0)
		}
		assert.Equal(t, "rgb(255, 255, 255)", eval[string](t, b, `globalThis.ground`), "ink for light paper")
		b.paint(t)
		assert.Equal(t, screen, b.drawn(t), "the screen is as before")
		printed := eval[[]string](t, b, `globalThis.pictures`)
		eval[any](t, b, `dispatchEvent(new Event("beforeprint")), null`)
		b.paint(t)
		assert.Equal(t, printed, b.drawn(t), "the charts were complete when printing began")
		eval[any](t, b, `dispatchEvent(new Event("afterprint")), null`)

		b.emulate(t, "print") // without beforeprint: the canvas shrinks
		b.do(t, chromedp.EmulateViewport(718, 1000))
		b.paint(t)
		b.fits(t)
		assert.Equal(t, 3, eval[int](t, b, `[...document.querySelectorAll(".chart canvas")].filter((e) => e.clientHeight > 80).length`))
		assert.Zero(t, eval[int](t, b, `[...document.querySelectorAll("td, th")].filter((e) => e.getBoundingClientRect().right > innerWidth).length`))
		assert.Equal(t, "none", eval[string](t, b, `getComputedStyle(document.querySelector("form")).display`))
		b.keep(t, "print")
		b.quiet(t, web.URL)
	})

	t.Run("underscores", func(t *testing.T) {
		t.Parallel()
		b := openTab(browser, t, 1280, 1000)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1h"))
		look := func(text string) []byte {
			b.do(t, chromedp.SetValue(chromedp.CSS(`input[name="filter"]`), text))
			picture, err := chromedp.Run(b.ctx, chromedp.Screenshot(chromedp.CSS(`input[name="filter"]`)))
			require.NoError(t, err)
			return picture
		}
		for _, scale := range []float64{1, 1.25, 1.5, 2} {
			b.do(t, chromedp.EmulateViewport(1280, 1000, chromedp.EmulateScale(scale)))
			assert.False(t, bytes.Equal(look("a b"), look("a_b")), "an underscore is visible at scale %v", scale)
		}
	})

	t.Run("long names and many lines", func(t *testing.T) {
		t.Parallel()
		srv := webdeliverytest.NewServer(t)
		for i := range 12 {
			for range 12 - i {
				srv.AddEvents(webdeliverytest.Event{
					Time: srv.Clock.Now().Add(-time.Duration(i+1) * time.Minute), Type: webdeliverytest.EventTypeWAF, RuleID: "942100",
					Action: fmt.Sprintf("CHALLENGE_%d", i), Severity: fmt.Sprintf("a_very_long_word_for_a_severity_that_nobody_expected_%d", i),
					ClientIP:    netip.MustParseAddr(fmt.Sprintf("2001:db8:1111:2222:3333:4444:5555:%d", 6000+i)),
					RequestPath: fmt.Sprintf("/very/long/path/of/a/shop/with/many/departments/and/shelves/and/products/%d/index.html", i),
					Browser:     fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36", 120+i),
					Domain:      strings.Repeat("very-long-label.", 8) + "example.com",
				})
			}
		}
		b := openTab(browser, t, 1280, 1000)
		web := serve(t, srv, right)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1h"))
		b.drawn(t)
		for _, width := range []int64{1280, 360} {
			b.do(t, chromedp.EmulateViewport(width, 1000))
			b.paint(t)
			b.fits(t)
			b.keep(t, fmt.Sprintf("long-%d", width))
		}
		b.emulate(t, "print")
		b.do(t, chromedp.EmulateViewport(718, 1000))
		b.paint(t)
		b.fits(t)
		assert.Zero(t, eval[int](t, b, `[...document.querySelectorAll("td, th")].filter((e) => e.getBoundingClientRect().right > innerWidth).length`))
		b.keep(t, "long-print")
		b.emulate(t, "")
		for title, ends := range map[string][2]string{
			"Clients": {"5555:6007", "5555:6007"}, "Paths": {"7/index.html", "products/7/index.html"}, "Browsers": {"127.0.0.0 Safari/537.36", "Chrome/127.0.0.0 Safari/537.36"},
		} {
			last := eval[[]string](t, b, fmt.Sprintf(`(() => {
				const names = [...document.querySelectorAll(".top")].find((e) => e.querySelector("h3").textContent === %q).querySelectorAll("li span");
				return [names.length + "", names[7].textContent, names[7].title];
			})()`, title))
			assert.Equal(t, "8", last[0])
			assert.True(t, strings.HasSuffix(last[1], ends[0]), last[1])
			assert.True(t, strings.HasSuffix(last[2], ends[1]), last[2])
			assert.NotContains(t, last[2], "…")
		}
		assert.Equal(t, "other (4)", eval[string](t, b, `document.querySelector(".legend li:last-child").title`))
		assert.Equal(t, 9, eval[int](t, b, `echarts.getInstanceByDom(document.querySelector(".chart")).getOption().series.length`))
		assert.Equal(t, 9, eval[int](t, b, `new Set([...document.querySelector(".legend").querySelectorAll(".key")].map((e) => e.innerHTML)).size`))
		b.quiet(t, web.URL)
	})

	t.Run("lines", func(t *testing.T) {
		t.Parallel()
		b := openTab(browser, t, 1280, 1000)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1h"))
		b.drawn(t)
		for _, series := range eval[[]struct {
			Smooth    any `json:"smooth"`
			LineStyle struct {
				Type any `json:"type"`
			} `json:"lineStyle"`
			MarkArea any `json:"markArea"`
		}](t, b, `echarts.getInstanceByDom(document.querySelector(".chart")).getOption().series.slice(0, 1)`) {
			assert.True(t, series.Smooth == nil || series.Smooth == false, "straight lines")
			assert.NotNil(t, series.MarkArea, "the partial bucket is marked")
		}
		eval[any](t, b, `echarts.getInstanceByDom(document.querySelector(".chart")).dispatchAction({ type: "showTip", seriesIndex: 0, dataIndex: 12 }), null`)
		b.paint(t)
		b.keep(t, "tooltip")
		b.quiet(t, web.URL)
	})

	t.Run("file", func(t *testing.T) {
		t.Parallel()
		b := openTab(browser, t, 1280, 1000)
		name := filepath.Join(t.TempDir(), "report.html")
		shown := site{Stats: srv.Client(t).Stats, Customer: "acme", Host: "api.example.com"}
		p := newPage(t.Context(), shown, url.Values{"since": {"1h"}, "filter": {"event_action!=ALLOW"}})
		require.NoError(t, write(t.Context(), name, p, program.Streams{}))
		b.do(t, chromedp.Navigate("file://"+name))
		assert.Len(t, b.drawn(t), 3)
		assert.Equal(t, "event_action!=ALLOW", eval[string](t, b, `document.querySelector(".picked code").textContent`))
		b.keep(t, "file")
		b.quiet(t, "file://"+name)
	})

	t.Run("hostile data", func(t *testing.T) {
		t.Parallel()
		srv := webdeliverytest.NewServer(t)
		addHostile(srv)
		b := openTab(browser, t, 1280, 1000)
		web := serve(t, srv, right)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1h"))
		assert.Len(t, b.drawn(t), 2)
		assert.Equal(t, 0, eval[int](t, b, `document.querySelectorAll("main img, main script:not([type='application/json'])").length`))
		assert.Equal(t, hostile[1], eval[string](t, b, `document.querySelectorAll("[name=country] option")[2].textContent`))
		assert.Equal(t, hostile[0], eval[string](t, b, `document.querySelector(".legend li").title`))
		b.quiet(t, web.URL)
	})

	t.Run("screenshot", func(t *testing.T) {
		t.Parallel()
		b := openTab(browser, t, 1280, 1000)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1d"))
		b.drawn(t)
		b.keep(t, "page")
		name := os.Getenv("SCREENSHOT")
		if name == "" {
			t.Skip("SCREENSHOT names no file")
		}
		// The upper half: the first six cards of the largest values are its end.
		height := eval[float64](t, b, `Math.ceil(document.querySelector(".tops").getBoundingClientRect().bottom) + 24`)
		png, err := chromedp.Call(b.ctx, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{
			CaptureBeyondViewport: new(true), Clip: &cdppage.Viewport{Width: 1280, Height: height, Scale: 1},
		})
		require.NoError(t, err)
		assert.Less(t, len(png.Data), 300_000)
		require.NoError(t, os.WriteFile(name, png.Data, 0o600))
	})
}
