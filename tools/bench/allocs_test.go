package bench

import (
	"context"
	"runtime/debug"
	"testing"

	"github.com/webdelivery/webdelivery-go"
)

// Allocations are the same in every run, unlike times. So one more for each call, row or URI fails here, in the change
// that adds it: if it is meant, change the number and say why in the commit.
func TestAllocations(t *testing.T) { //nolint:paralleltest // what other tests allocate would be counted, too
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties pools
	scanning := func(s *shape, n int) func() error {
		client := must(alwaysResponding(s.body(n)))
		return func() error {
			rows, err := s.scan(client)
			return found(err, rows == n)
		}
	}
	calling := func(body string, call func(*webdelivery.Client) error) func() error {
		client := must(alwaysResponding([]byte(body)))
		return func() error { return call(client) }
	}
	submitting := func(n int) func() error {
		client, request := must(inMemoryClient(acceptingPurges)), purgeOf(n)
		return func() error {
			_, err := client.Purge.Submit(context.Background(), request)
			return err
		}
	}
	plan, _ := planning(2_000)
	for _, tt := range []struct { //nolint:paralleltest // as above
		name string
		most float64
		call func() error
	}{
		{"Scan of 1,000 short rows", 286, scanning(shapes[0], 1_000)},
		{"Scan of 10,000 short rows", 298, scanning(shapes[0], 10_000)},
		{"Scan of 10,000 mixed rows", 14_957, scanning(shapes[1], 10_000)},
		{"Scan of 1,000 long rows", 2_221, scanning(shapes[2], 1_000)},
		{"Query of 1,000 rows", 161, calling(string(shapes[0].body(1_000)), func(c *webdelivery.Client) error {
			_, err := queryAll(c)
			return err
		})},
		{"Tasks.Get", 46, calling(taskBody, getTask)},
		{"Submit of 1 URI", 68, submitting(1)},
		{"Submit of 1,000 URIs", 68, submitting(1_000)},
		{"Entries: a page of 100", 487, calling(string(entryPage(addresses(100), 0, 100, 1, 1)), func(c *webdelivery.Client) error {
			_, err := c.NetworkLists.Entries(context.Background(), listID, webdelivery.EntryOptions{Count: 100})
			return err
		})},
		{"Plan of 2,000 against 2,000 entries", 9_500, plan}, // 100 more than usual: pages are read in goroutines
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := testing.AllocsPerRun(10, func() {
				if err := tt.call(); err != nil {
					t.Fatal(err)
				}
			})
			if got > tt.most {
				t.Errorf("%.0f allocations, and at most %.0f are allowed", got, tt.most)
			}
			t.Logf("%.0f of %.0f", got, tt.most)
		})
	}
}
