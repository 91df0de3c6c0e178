package main

import (
	"context"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// TestBrowser tests what only a browser shows: scripts, widths, colours, paper. PICTURES=folder keeps a picture of each
// state. SCREENSHOT=../../docs/dashboard.png writes the picture of the README, which is the upper half of the page.
func TestBrowser(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithEvents(0.1, 7, time.Time{}))
	addHostile(srv)
	shown := site{Stats: srv.Client(t).Stats, Customer: "acme", Host: "api.example.com", Fake: true}
	web := httptest.NewServer(handler(shown))
	defer web.Close()
	b := openTab(t)

	// Nothing that the service sends becomes an element or a script, and a value that is followed is a filter.
	b.open(t, web.URL+"/?since=6h", 1400)
	light := b.drawn(t)
	assert.Len(t, light, 3)
	assert.Zero(t, eval[int](t, b, `document.querySelectorAll("main img, main script:not([type='application/json'])").length`))
	assert.Empty(t, eval[[]string](t, b, `[...document.querySelectorAll(".legend li")].filter((li) =>
		li.querySelector("b").getBoundingClientRect().left < li.querySelector("bdi").getBoundingClientRect().right).map((li) => li.textContent)`),
		"a value from right to left does not move its count")
	b.keep(t, "light")
	_, err := chromedp.RunResponse(b.ctx, chromedp.Click(chromedp.CSS(`.top a[href*="country=client_country_code%3D%3DUS"]`)))
	require.NoError(t, err)
	few := b.drawn(t)
	assert.NotEqual(t, light[0], few[0])
	assert.Equal(t, "client_country_code==US", eval[string](t, b, `document.querySelector("[name=country]").value`))
	assert.Equal(t, "US", eval[string](t, b, `[...new Set([...document.querySelectorAll("td:nth-child(7)")].map((td) => td.textContent))].join()`))
	b.keep(t, "filter")

	// The charts are drawn for white paper, and then for the screen again. The page names its filter.
	b.emulate(t, "", dark)
	screen := b.drawn(t)
	for i := range few {
		assert.NotEqual(t, few[i], screen[i], "chart %d has the colours of the theme", i)
	}
	b.keep(t, "filter-dark")
	eval[any](t, b, `addEventListener("beforeprint", () => { globalThis.printed = [...document.querySelectorAll(".chart canvas")].map((e) => e.clientWidth); }), null`)
	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF())
	require.NoError(t, err)
	keep(t, "print.pdf", pdf)
	widths := eval[[]int](t, b, `globalThis.printed`)
	assert.Len(t, widths, 3)
	for _, width := range widths {
		assert.InDelta(t, 650, width, 50, "A4 and Letter have more than 700 pixels between their margins")
	}
	assert.Equal(t, screen, b.drawn(t))
	b.emulate(t, "print")
	b.resize(t, 718)
	b.fits(t)
	b.keep(t, "print")
	assert.Equal(t, "Filter client_country_code==US", eval[string](t, b, `document.querySelector(".picked").innerText`))
	assert.Equal(t, "none", eval[string](t, b, `getComputedStyle(document.querySelector("form")).display`))

	// A phone shows all without scrolling to the side, in both themes and with long names.
	b.emulate(t, "")
	for _, width := range []int64{420, 360} {
		b.open(t, web.URL+"/?since=6h", width)
		b.drawn(t)
		b.fits(t)
		b.keep(t, "phone")
	}
	b.emulate(t, "", dark)
	b.resize(t, 420)
	b.keep(t, "phone-dark")
	b.resize(t, 1400)
	b.keep(t, "dark")
	b.emulate(t, "")

	// A file shows the same.
	name := filepath.Join(t.TempDir(), "report.html")
	require.NoError(t, write(t.Context(), name, newPage(t.Context(), shown, url.Values{"since": {"1h"}}), program.Streams{}))
	b.open(t, "file://"+name, 1400)
	assert.Len(t, b.drawn(t), 3)
	b.mu.Lock()
	assert.Empty(t, b.problems, "no exception, and nothing that the policy forbids")
	b.mu.Unlock()

	srv.Fail(webdeliverytest.FaultRule{Path: "/**", Status: 503})
	for _, width := range []int64{420, 1400} {
		b.open(t, web.URL+"/?since=1h", width)
		b.fits(t)
		b.keep(t, "down")
	}
}

// The picture of the README.
func TestScreenshot(t *testing.T) {
	t.Parallel()
	name := os.Getenv("SCREENSHOT")
	if name == "" {
		t.Skip("SCREENSHOT names no file")
	}
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithEvents(0.5, 7, time.Time{}))
	web := httptest.NewServer(handler(site{Stats: srv.Client(t).Stats, Customer: "acme", Host: host(srv.URL), Fake: true}))
	defer web.Close()
	b := openTab(t)
	b.open(t, web.URL, 1280)
	b.drawn(t)
	height := eval[float64](t, b, `Math.ceil(document.querySelector(".tops").getBoundingClientRect().bottom) + 24`)
	png, err := chromedp.Call(b.ctx, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{
		CaptureBeyondViewport: new(true), Clip: &cdppage.Viewport{Width: 1280, Height: height, Scale: 1},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, png.Data, 0o600))
}

// tab is a page of a browser. It records problems.
type tab struct {
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// openTab starts a browser without a window that reaches no other computer. If Chromium is not installed, the test is
// skipped, unless REQUIRE_CHROMIUM is 1.
func openTab(t *testing.T) *tab {
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
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			b.problems = append(b.problems, "console."+string(e.Type))
		case *runtime.EventExceptionThrown:
			b.problems = append(b.problems, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			b.problems = append(b.problems, e.Entry.Text)
		case *cdppage.EventJavascriptDialogOpening:
			b.problems = append(b.problems, "dialog: "+e.Message)
		case *network.EventRequestWillBeSent:
			if at, _ := url.Parse(e.Request.URL); at.Scheme == "https" || at.Scheme == "http" && !strings.HasPrefix(at.Host, "127.0.0.1:") {
				b.problems = append(b.problems, "requests "+e.Request.URL)
			}
		}
	}))
	require.NoError(t, chromedp.Do(ctx))
	return b
}

func (b *tab) open(t *testing.T, address string, width int64) {
	t.Helper()
	b.resize(t, width)
	require.NoError(t, chromedp.Do(b.ctx, chromedp.Navigate(address)))
}

func (b *tab) resize(t *testing.T, width int64) {
	t.Helper()
	require.NoError(t, chromedp.Do(b.ctx, chromedp.EmulateViewport(width, 1000)))
	b.paint(t)
}

// paint waits until the browser has painted again.
func (b *tab) paint(t *testing.T) {
	t.Helper()
	eval[any](t, b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
}

// emulate sets a media type and features.
func (b *tab) emulate(t *testing.T, media string, features ...*emulation.MediaFeature) {
	t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: media, Features: features})
	require.NoError(t, err)
	b.paint(t)
}

var dark = &emulation.MediaFeature{Name: "prefers-color-scheme", Value: "dark"}

// eval returns the value of a JavaScript expression, or of its promise.
func eval[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return value
}

// drawn waits until each chart has something on its canvas, and returns the pictures.
func (b *tab) drawn(t *testing.T) []string {
	t.Helper()
	return eval[[]string](t, b, `(async () => {
		const empty = (canvas) => {
			const blank = document.createElement("canvas");
			[blank.width, blank.height] = [canvas.width, canvas.height];
			return blank.toDataURL() === canvas.toDataURL();
		};
		for (;;) {
			const charts = [...document.querySelectorAll(".chart")].map((chart) => chart.querySelector("canvas"));
			if (charts.every((canvas) => canvas && !empty(canvas))) {
				return charts.map((canvas) => canvas.toDataURL());
			}
			await new Promise(requestAnimationFrame);
		}
	})()`)
}

// keep writes a picture of the whole page, for the eyes of a person.
func (b *tab) keep(t *testing.T, name string) {
	t.Helper()
	if os.Getenv("PICTURES") == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	keep(t, name+"-"+eval[string](t, b, `"" + innerWidth`)+".png", png)
}

// keep writes a file to the folder that PICTURES names.
func keep(t *testing.T, name string, content []byte) {
	t.Helper()
	if folder := os.Getenv("PICTURES"); folder != "" {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), content, 0o600))
	}
}

// fits checks that the page is not wider than the window, and that no text is cut off.
func (b *tab) fits(t *testing.T) {
	t.Helper()
	assert.Equal(t, eval[int](t, b, `innerWidth`), eval[int](t, b, `document.documentElement.scrollWidth`))
	assert.Empty(t, eval[[]string](t, b, `[...document.querySelectorAll("h1, h2, h3, p, li, li bdi, pre, td, .card, .chart, .chart canvas")]
		.filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== "inline" ||
			e.getBoundingClientRect().right > innerWidth)
		.map((e) => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 60))`))
}
