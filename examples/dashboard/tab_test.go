package main

import (
	"context"
	"fmt"
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
)

// chromium starts a browser without a window that reaches no other computer. If Chromium is not installed, the test
// is skipped, unless REQUIRE_CHROMIUM is 1.
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

// tab is a page of the browser. It records problems and requests.
type tab struct {
	ctx context.Context

	mu       sync.Mutex
	problems []string
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
			b.problems = append(b.problems, fmt.Sprintf("console.%s", e.Type))
		case *runtime.EventExceptionThrown:
			b.problems = append(b.problems, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			b.problems = append(b.problems, e.Entry.Text)
		case *network.EventLoadingFailed:
			b.problems = append(b.problems, e.ErrorText)
		case *cdppage.EventJavascriptDialogOpening:
			b.problems = append(b.problems, "dialog: "+e.Message)
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

// follow does steps that lead to another page, and returns when it is there.
func (b *tab) follow(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	_, err := chromedp.RunResponse(b.ctx, steps...)
	require.NoError(t, err)
}

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

// quiet checks that there were no problems, and that all requests were for pages below an address.
func (b *tab) quiet(t *testing.T, address string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(t, b.problems)
	require.NotEmpty(t, b.requests)
	for _, request := range b.requests {
		assert.True(t, strings.HasPrefix(request, address) || strings.HasPrefix(request, "data:"), request)
	}
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

// keep writes a picture of the whole page to the folder that PICTURES names, for the eyes of a person.
func (b *tab) keep(t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv("PICTURES")
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600))
}

// fits checks that the page is not wider than the window, and that no text is cut off.
func (b *tab) fits(t *testing.T) {
	t.Helper()
	assert.Equal(t, eval[int](t, b, `innerWidth`), eval[int](t, b, `document.documentElement.scrollWidth`))
	assert.Empty(t, eval[[]string](t, b, `[...document.querySelectorAll("h1, h2, h3, p, li, li span, pre, .card:not(.events), .chart, .chart canvas")]
		.filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== "inline" ||
			e.getBoundingClientRect().right > innerWidth)
		.map((e) => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 60))`))
}
