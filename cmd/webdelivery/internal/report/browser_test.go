package report

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// TestBrowser tests what only a browser shows: scripts, widths, paper. The browser reaches no other computer. If Chromium
// is not installed, the test is skipped, unless REQUIRE_CHROMIUM is 1.
func TestBrowser(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("chromium"); err != nil && os.Getenv("REQUIRE_CHROMIUM") != "1" {
		t.Skip(err)
	}
	srv := webdeliverytest.NewServer(t, webdeliverytest.WithEvents(0.1, 7, time.Time{}))
	for i, text := range hostile {
		add(srv, "WAF", text, len(hostile)-i)
	}
	web := httptest.NewServer(handler(siteOf(srv.Client(t), true)))
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

	// Nothing that the service sends becomes an element or a script, or moves its count. A value that is followed is a filter.
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(1400, 1000), chromedp.Navigate(web.URL+"/?since=6h")))
	assert.Len(t, eval(pictures), 3)
	assert.EqualValues(t, 0, eval(`document.querySelectorAll("main img, main script:not([type='application/json'])").length`))
	assert.Empty(t, eval(`[...document.querySelectorAll(".legend li")].filter((li) =>
		li.querySelector("b").getBoundingClientRect().left < li.querySelector("bdi").getBoundingClientRect().right).map((li) => li.textContent)`))
	_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(`.top a[href*="country=US"]`)))
	require.NoError(t, err)
	assert.Equal(t, "US", eval(`[...new Set([...document.querySelectorAll("td:nth-child(7)")].map((td) => td.textContent))].join()`))

	// The charts are drawn for paper, and then for the screen again.
	screen := eval(pictures)
	eval(`addEventListener("beforeprint", () => { globalThis.printed = document.querySelector(".chart canvas").clientWidth; })`)
	_, err = chromedp.Run(ctx, chromedp.PrintToPDF())
	require.NoError(t, err)
	assert.InDelta(t, 650, eval(`globalThis.printed`), 50, "A4 and Letter have more than 700 pixels between their margins")
	assert.Equal(t, screen, eval(pictures))

	// A phone shows all without scrolling to the side, and cuts off no text. A file shows the same.
	name := filepath.Join(t.TempDir(), "report.html")
	assert.Zero(t, clitest.Run(t, srv, Command, "", "report", "--save", name, "--since", "6h"))
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(360, 1000), chromedp.Navigate("file://"+name)))
	assert.Len(t, eval(pictures), 3)
	assert.Empty(t, eval(`[...document.querySelectorAll("h1, h2, h3, p, li, li bdi, pre, td, .card, .chart, .chart canvas")]
		.filter((e) => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== "inline" ||
			e.getBoundingClientRect().right > innerWidth).map((e) => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 60))`))
	assert.Empty(t, problems)
}
