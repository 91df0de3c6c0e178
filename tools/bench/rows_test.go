package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go"
)

var eventsQuery = webdelivery.EventsQuery{
	Dimensions: []string{"rule_id"}, Limit: 1 << 30, // whatever the query asks for, the response has the columns of its shape
	Start: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
}

// BenchmarkRows reads rows from memory. IsValid of jsontext only checks that they are JSON, which every reader must do.
func BenchmarkRows(b *testing.B) {
	for _, s := range shapes {
		body := s.body(s.n)
		client := must(alwaysResponding(body, webdelivery.WithMaxResponseBytes(1<<40)))
		readers := []struct {
			by   string
			read func() (rows int, err error)
		}{
			{"IsValid", func() (int, error) {
				if !jsontext.Value(body).IsValid() {
					return 0, nil
				}
				return s.n, nil
			}},
			{"Scan", func() (int, error) { return s.scan(client) }},
			{"Query", func() (int, error) { return queryAll(client) }},
			{"Unmarshal", func() (int, error) { return unmarshalAll(body) }},
		}
		for _, r := range readers {
			b.Run(fmt.Sprintf("rows=%s/by=%s", s.name, r.by), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if rows, err := r.read(); err != nil || rows != s.n {
						b.Fatalf("%d rows of %d: %v", rows, s.n, err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.n), "ns/row")
			})
		}
	}
}

func queryAll(client *webdelivery.Client) (rows int, err error) {
	result, err := client.Stats.Events.Query(context.Background(), eventsQuery)
	if err != nil {
		return 0, err
	}
	return len(result.Rows), nil
}

// unmarshalAll reads rows as a user of encoding/json does.
func unmarshalAll(body []byte) (rows int, err error) {
	var response struct {
		Rows [][]any `json:"rows"`
	}
	err = json.Unmarshal(body, &response)
	return len(response.Rows), err
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
