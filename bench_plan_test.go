package webdelivery_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
)

// pagesOfAList responds with a list from memory, so that a benchmark measures the SDK and not a server.
type pagesOfAList struct {
	summary, whole string
	pages          []string
}

const entriesOfABenchmark = 50_000

func newPagesOfAList(b *testing.B, texts []string) *pagesOfAList {
	b.Helper()
	marshal := func(v any) string {
		text, err := json.Marshal(v)
		require.NoError(b, err)
		return string(text)
	}
	list := map[string]any{"id": "l", "type": "IP", "name": "bench"}
	p := &pagesOfAList{summary: marshal(list)}
	list["list"] = texts
	p.whole = marshal(list)
	const count = 1_000
	for at := 0; at < len(texts); at += count {
		items := make([]map[string]string, 0, count)
		for i, text := range texts[at:min(at+count, len(texts))] {
			// ids in no order, as UUIDs are
			id := fmt.Sprintf("%08x-0000-4000-8000-%012d", uint32(at+i)*2654435761, at+i)
			items = append(items, map[string]string{
				"uri": "/config/networklists/l/entries/" + id, "id": id, "entry": text, "added_by": "feed",
				"creation_timestamp": "2026-01-02T03:04:05.000Z",
			})
		}
		pages := (len(texts) + count - 1) / count
		p.pages = append(p.pages, marshal(map[string]any{
			"items": items, "total": len(texts), "has_more": at/count+1 < pages, "page_count": pages, "page_index": at/count + 1,
		}))
	}
	return p
}

func (p *pagesOfAList) RoundTrip(r *http.Request) (*http.Response, error) {
	body := p.whole
	switch q := r.URL.Query(); {
	case strings.HasSuffix(r.URL.Path, "/entries"):
		page := 1
		if text := q.Get("page"); text != "" {
			page, _ = strconv.Atoi(text)
		}
		body = p.pages[page-1]
	case q.Get("includelist") == "false":
		body = p.summary
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: int64(len(body)),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// Plan compares 50,000 desired entries with 50,000 that a list holds. The list is full, so in the last case the order
// of the changes matters.
func BenchmarkPlan(b *testing.B) {
	text := func(i, bits int) string {
		text := fmt.Sprintf("198.%d.%d.%d", 18+i>>16, i>>8&255, i&255)
		if bits < 32 {
			text += fmt.Sprintf("/%d", bits)
		}
		return text
	}
	held := make([]string, entriesOfABenchmark)
	half, wider := make([]string, len(held)), make([]string, len(held))
	for i := range held {
		held[i], half[i], wider[i] = text(2*i, 32), text(2*i, 32), text(2*i, 31)
		if i%2 == 1 {
			half[i] = text(2*i+1, 32)
		}
	}
	client, err := webdelivery.NewClient("https://example.com", "acme", webdelivery.BasicAuth("u", "p"),
		webdelivery.WithHTTPClient(&http.Client{Transport: newPagesOfAList(b, held)}))
	require.NoError(b, err)
	for _, c := range []struct {
		name    string
		desired []string
	}{{"equal", held}, {"half", half}, {"wider", wider}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := client.NetworkLists.Plan(b.Context(), "l", c.desired, webdelivery.PlanOptions{MaxRemove: webdelivery.RemoveAll})
				require.NoError(b, err)
			}
		})
	}
}
