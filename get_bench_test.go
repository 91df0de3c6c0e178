package webdelivery_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/webdelivery/webdelivery-go"
)

const taskBody = `{"id":"task-1","uri":"/tasks/task-1","operation":"deploy","status":"COMPLETE","complete":true,"progress":100,"begin_time":"2026-11-20T08:30:00.000Z","end_time":"2026-11-20T08:31:00.000Z","last_updated":"2026-11-20T08:31:00.000Z","user":{"id":"u","uri":"/users/u"}}`

func BenchmarkGet(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, taskBody)
	}))
	defer srv.Close()
	client, err := webdelivery.NewClient(srv.URL, customer, webdelivery.BasicAuth(username, password))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sdk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.Tasks.Get(b.Context(), "task-1"); err != nil {
				b.Fatal(err)
			}
		}
	})
	raw := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	b.Run("raw", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, srv.URL+"/acme/v1/tasks/task-1", nil)
			if err != nil {
				b.Fatal(err)
			}
			req.Header.Set("Accept", "application/json")
			req.Header.Set("User-Agent", "x")
			req.SetBasicAuth(username, password)
			resp, err := raw.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				b.Fatal(err)
			}
			_ = resp.Body.Close()
			var t webdelivery.Task
			if err := json.Unmarshal(body, &t); err != nil {
				b.Fatal(err)
			}
		}
	})
}
