package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// chromium starts a browser without a window, which finds no other machine. The test is skipped where there is none,
// unless REQUIRE_CHROMIUM is 1.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("REQUIRE_CHROMIUM") == "1" {
		t.Fatalf("REQUIRE_CHROMIUM=1, but %v", err)
	}
	if err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

// tab is a page of the browser, with all that went wrong in it and all that it asked for.
type tab struct {
	ctx context.Context

	mu       sync.Mutex
	told     []string
	requests []string
}

func openTab(browser context.Context, t *testing.T, width, height int64) *tab {
	t.Helper()
	b := &tab{}
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b.ctx = ctx
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			b.told = append(b.told, fmt.Sprintf("console.%s", e.Type))
		case *runtime.EventExceptionThrown:
			b.told = append(b.told, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			b.told = append(b.told, e.Entry.Text)
		case *network.EventLoadingFailed:
			b.told = append(b.told, e.ErrorText)
		case *cdppage.EventJavascriptDialogOpening:
			b.told = append(b.told, "dialog: "+e.Message)
		case *network.EventRequestWillBeSent:
			b.requests = append(b.requests, e.Request.URL)
		}
	}))
	b.do(t, chromedp.EmulateViewport(width, height))
	return b
}

func (b *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	require.NoError(t, chromedp.Do(b.ctx, steps...))
}

// follow does what leads to another page.
func (b *tab) follow(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	_, err := chromedp.RunResponse(b.ctx, steps...)
	require.NoError(t, err)
}

// eval gives the value of a JavaScript expression, or of the promise that it is.
func eval[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return value
}

// drawn waits until every chart has something on its canvas, and gives the pictures.
func (b *tab) drawn(t *testing.T) []string {
	t.Helper()
	return eval[[]string](t, b, `(async () => {
		const filled = (canvas) => {
			const copy = document.createElement("canvas");
			[copy.width, copy.height] = [canvas.width, canvas.height];
			const context = copy.getContext("2d", { willReadFrequently: true });
			context.drawImage(canvas, 0, 0);
			return context.getImageData(0, 0, copy.width, copy.height).data.some((byte) => byte > 0);
		};
		for (;;) {
			const charts = [...document.querySelectorAll(".chart")].map((chart) => chart.querySelector("canvas"));
			if (charts.every((canvas) => canvas && filled(canvas))) {
				return charts.map((canvas) => canvas.toDataURL());
			}
			await new Promise(requestAnimationFrame);
		}
	})()`)
}

// quiet tells that nothing went wrong, and that nothing was asked for but pages below an address.
func (b *tab) quiet(t *testing.T, address string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.told)
	require.NotEmpty(t, b.requests)
	for _, request := range b.requests {
		assert.True(t, strings.HasPrefix(request, address) || strings.HasPrefix(request, "data:"), request)
	}
}

const (
	requests  = `Number(document.querySelector(".big").textContent.replaceAll(",", ""))`
	countries = `JSON.parse(document.querySelectorAll(".chart")[5].nextElementSibling.textContent).yAxis[0].data.join()`
	// shown are the different names at the bars of the first chart of a title, but for those that the canvas cuts off.
	shown = `(() => {
		const chart = [...document.querySelectorAll(".tops .card")].find((card) => card.querySelector("h2").textContent === "%s").querySelector(".chart");
		const texts = echarts.getInstanceByDom(chart).getZr().storage.getDisplayList().filter((e) => e.type === "tspan" && isNaN(e.style.text));
		const fit = texts.filter((e) => { const r = e.getBoundingRect(); return r.x >= 0 && r.x + r.width <= chart.clientWidth; });
		return [...new Set(fit.map((e) => e.style.text))];
	})()`
	actions = `[...new Set([...document.querySelectorAll("tbody strong")].map((action) => action.textContent))].join()`
)

// What a reader sees in a browser. SCREENSHOT=../../docs/dashboard.png keeps a picture of it.
func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithEvents(0.5, 7, time.Time{}))
	web := httptest.NewServer(handler(srv.Client(t).Stats))
	t.Cleanup(web.Close)

	t.Run("charts and pickers", func(t *testing.T) {
		t.Parallel()
		b := openTab(browser, t, 1280, 1000)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1h"))
		hour := b.drawn(t)
		assert.Len(t, hour, 3+6+6)
		few := eval[int](t, b, requests)
		b.follow(t, chromedp.Click(chromedp.CSS(`button[value="6h"]`)))
		assert.NotEqual(t, hour[0], b.drawn(t)[0])
		assert.Equal(t, "6 hours", eval[string](t, b, `document.querySelector("[aria-current]").textContent`))
		many := eval[int](t, b, requests)
		assert.Greater(t, many, 3*few)
		assert.Contains(t, eval[string](t, b, countries), "DE,")

		b.follow(t, chromedp.SetValue(chromedp.CSS(`select[name="country"]`), "client_country_code==US"), chromedp.Click(chromedp.CSS(`.apply`)))
		b.drawn(t)
		assert.Equal(t, "US", eval[string](t, b, countries))
		assert.Equal(t, "6 hours", eval[string](t, b, `document.querySelector("[aria-current]").textContent`))
		of := eval[int](t, b, requests)
		assert.Less(t, of, many)
		assert.Contains(t, eval[string](t, b, `document.querySelector("[name=country]").textContent`), "DE", "another can be picked")

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
		b.do(t, chromedp.Navigate(web.URL+"/?filter=a"))
		assert.Contains(t, eval[string](t, b, `document.querySelector("[role=alert]").innerText`), "filters: at byte 0")
		b.follow(t, chromedp.SetValue(chromedp.CSS(`input[name="filter"]`), "event_action!=ALLOW"), chromedp.Click(chromedp.CSS(`.apply`)))
		assert.Len(t, b.drawn(t), 3+6+6)
		b.mu.Lock()
		defer b.mu.Unlock()
		assert.Equal(t, []string{"Failed to load resource: the server responded with a status of 400 (Bad Request)"}, b.told)
	})

	t.Run("phone and dark", func(t *testing.T) {
		t.Parallel()
		b := openTab(browser, t, 360, 740)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1h"))
		light := b.drawn(t)
		assert.Equal(t, 360, eval[int](t, b, `document.documentElement.scrollWidth`))
		assert.Equal(t, 1, eval[int](t, b, `new Set([...document.querySelectorAll(".grid .card")].map((c) => c.getBoundingClientRect().left)).size`))
		bright := `(() => { const rgb = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number); return Math.max(...rgb); })()`
		assert.Greater(t, eval[int](t, b, bright), 230)
		_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
		})
		require.NoError(t, err)
		assert.Less(t, eval[int](t, b, bright), 40)
		eval[any](t, b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
		dark := b.drawn(t)
		for i := range dark {
			assert.NotEqual(t, light[i], dark[i], "chart %d is drawn again", i)
		}
		b.quiet(t, web.URL)
	})

	t.Run("long names", func(t *testing.T) {
		t.Parallel()
		srv := webdeliverytest.NewServer(t)
		for i := range 8 {
			srv.AddEvents(webdeliverytest.Event{
				Time: srv.Clock.Now().Add(-time.Minute), Type: webdeliverytest.EventTypeWAF, Action: "BLOCK", RuleID: "942100",
				ClientIP:    netip.MustParseAddr(fmt.Sprintf("2001:db8:1111:2222:3333:4444:5555:%d", 6000+i)),
				RequestPath: fmt.Sprintf("/very/long/path/of/a/shop/with/many/departments/and/shelves/and/products/%d/index.html", i),
				Browser:     fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36", 120+i),
			})
		}
		web := httptest.NewServer(handler(srv.Client(t).Stats))
		defer web.Close()
		b := openTab(browser, t, 1280, 1000)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1h"))
		b.drawn(t)
		for _, width := range []int64{1280, 360} { // a chart that gets narrower shows less of them
			b.do(t, chromedp.EmulateViewport(width, 1000))
			eval[any](t, b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
			for title, end := range map[string]string{"Clients": "55:6007", "Paths": "7/index.html", "Browsers": "127.0.0.0 Safari/537.36"} {
				names := eval[[]string](t, b, fmt.Sprintf(shown, title))
				assert.Len(t, names, 8, "%s can be told apart at %d: %q", title, width, names)
				assert.Contains(t, strings.Join(names, "\n")+"\n", end+"\n")
			}
		}
		b.quiet(t, web.URL)
	})

	t.Run("file", func(t *testing.T) {
		t.Parallel()
		b := openTab(browser, t, 1280, 1000)
		name := filepath.Join(t.TempDir(), "report.html")
		p := newPage(t.Context(), srv.Client(t).Stats, url.Values{"since": {"1h"}, "filter": {"event_action!=ALLOW"}})
		require.NoError(t, write(t.Context(), name, p, program.Streams{}))
		b.do(t, chromedp.Navigate("file://"+name))
		assert.Len(t, b.drawn(t), 3+6+6)
		assert.Equal(t, "event_action!=ALLOW", eval[string](t, b, `document.querySelector(".picked code").textContent`))
		b.quiet(t, "file://"+name)
	})

	t.Run("hostile data", func(t *testing.T) {
		t.Parallel()
		srv := webdeliverytest.NewServer(t)
		addHostile(srv)
		web := httptest.NewServer(handler(srv.Client(t).Stats))
		defer web.Close()
		b := openTab(browser, t, 1280, 1000)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1h"))
		assert.Len(t, b.drawn(t), 2+6)
		assert.Equal(t, 0, eval[int](t, b, `document.querySelectorAll("main img, main script:not([type='application/json'])").length`))
		assert.Equal(t, hostile[1], eval[string](t, b, `document.querySelectorAll("[name=country] option")[2].textContent`))
		b.quiet(t, web.URL)
	})

	t.Run("screenshot", func(t *testing.T) {
		t.Parallel()
		name := os.Getenv("SCREENSHOT")
		if name == "" {
			t.Skip("SCREENSHOT names no file")
		}
		b := openTab(browser, t, 1280, 1000)
		b.do(t, chromedp.Navigate(web.URL+"/?since=1d"))
		// All that there is once: the charts of traffic shaping look like those before them, and the other events like eight.
		eval[any](t, b, `document.querySelectorAll(".tops ~ .part, .tops ~ .tops, tbody tr:nth-child(n+9)").forEach((e) => e.remove())`)
		b.do(t, chromedp.EmulateViewport(1280, eval[int64](t, b, `document.documentElement.scrollHeight`)))
		b.drawn(t)
		png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		assert.Less(t, len(png), 300_000)
		require.NoError(t, os.WriteFile(name, png, 0o600))
	})
}
