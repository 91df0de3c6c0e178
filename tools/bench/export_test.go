package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// events is a service with n events of the first shape, 1,000 a second.
func events(n int) *webdelivery.Client {
	body, one := shapes[0].body(n), shapes[0].body(1)
	one = bytes.Replace(one, []byte(`"total_results":1}`), fmt.Appendf(nil, `"total_results":%d}`, n), 1)
	return must(inMemoryClient(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("limit") == "1" {
			return response(http.StatusOK, one)
		}
		return response(http.StatusOK, body)
	}, webdelivery.WithMaxResponseBytes(1<<40)))
}

// BenchmarkExport compares an Export, which knows each event again, with All.
func BenchmarkExport(b *testing.B) {
	client, query := events(shapes[0].n), eventsQuery
	query.Limit = 0
	for by, rows := range map[string]func() iter.Seq2[webdelivery.Row, error]{
		"All": func() iter.Seq2[webdelivery.Row, error] { return client.Stats.Events.All(context.Background(), query) },
		"Export": func() iter.Seq2[webdelivery.Row, error] {
			return client.Stats.NewExport(query, webdelivery.Cursor{}, webdelivery.ExportOptions{Lookback: time.Hour}).All(context.Background())
		},
	} {
		b.Run("by="+by, func(b *testing.B) {
			for b.Loop() {
				n := 0
				for _, err := range webdelivery.Scan[event](rows()) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != shapes[0].n {
					b.Fatalf("%d rows", n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(shapes[0].n), "ns/row")
		})
	}
}

// BenchmarkCursor stores and reads the cursor of 1,000 events a second with a Lookback of 30 minutes.
func BenchmarkCursor(b *testing.B) {
	client := events(1_800_000)
	query := eventsQuery
	query.Limit = 0
	export := client.Stats.NewExport(query, webdelivery.Cursor{}, webdelivery.ExportOptions{Lookback: 30 * time.Minute})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, err := range export.All(context.Background()) {
		if err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	text := must(json.Marshal(export.Cursor()))
	b.Run("by=Marshal", func(b *testing.B) {
		for b.Loop() {
			_ = must(json.Marshal(export.Cursor()))
		}
		b.ReportMetric(float64(len(text)), "B")
		b.ReportMetric(float64(after.HeapAlloc)-float64(before.HeapAlloc), "heap-B")
	})
	b.Run("by=Unmarshal", func(b *testing.B) {
		for b.Loop() {
			var cursor webdelivery.Cursor
			if err := json.Unmarshal(text, &cursor); err != nil {
				b.Fatal(err)
			}
		}
	})
}
