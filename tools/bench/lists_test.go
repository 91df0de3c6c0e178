package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// planning returns a function that plans n entries against as many, of which half are equal, and the client whose list
// that is.
func planning(n int) (plan func() error, client *webdelivery.Client) {
	texts := addresses(n + n/2)
	desired := texts[n/2:]
	client = must(inMemoryClient(listInMemory(texts[:n])))
	return func() error {
		p, err := client.NetworkLists.Plan(context.Background(), listID, desired, webdelivery.PlanOptions{MaxRemove: -1})
		return found(err, err == nil && len(p.Add) == n/2 && len(p.Remove) == n/2)
	}, client
}

func readEntries(client *webdelivery.Client, n, ahead int) error {
	entries := 0
	for _, err := range client.NetworkLists.AllEntries(context.Background(), listID, webdelivery.EntryOptions{Count: pageCount, ReadAhead: ahead}) {
		if err != nil {
			return err
		}
		entries++
	}
	return found(nil, entries == n)
}

// BenchmarkPlan plans 50,000 entries against as many. The reference only reads the list, in the same way.
func BenchmarkPlan(b *testing.B) {
	const n, ahead = 50_000, 4
	plan, client := planning(n)
	b.Run("by=AllEntries", func(b *testing.B) {
		b.ReportAllocs()
		repeat(b, func() error { return readEntries(client, n, ahead) })
	})
	b.Run("by=Plan", func(b *testing.B) {
		b.ReportAllocs()
		repeat(b, plan)
	})
}

// BenchmarkNever plans 50,000 additions to a list, with 10,000 ranges that must not be added. It takes at most
// 0.3 s.
func BenchmarkNever(b *testing.B) {
	const n, ranges, most = 50_000, 10_000, 300 * time.Millisecond
	client := must(inMemoryClient(listInMemory(addresses(1))))
	options := webdelivery.PlanOptions{MaxRemove: -1}
	for i := range ranges {
		options.Never = append(options.Never, netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 19, byte(i >> 8), byte(i)}), 32))
	}
	desired := addresses(n + 1)[1:]
	repeat(b, func() error {
		p, err := client.NetworkLists.Plan(context.Background(), listID, desired, options)
		return found(err, err == nil && len(p.Add) == n)
	})
	if each := b.Elapsed() / time.Duration(b.N); each > most {
		b.Fatalf("%v is more than %v", each, most)
	}
}

// BenchmarkReadAhead reads 50,000 entries, with 50 ms for each page.
func BenchmarkReadAhead(b *testing.B) {
	const n = 50_000
	ready := listInMemory(addresses(n))
	client := must(inMemoryClient(func(r *http.Request) (*http.Response, error) {
		time.Sleep(50 * time.Millisecond)
		return ready(r)
	}))
	for _, ahead := range []int{1, 8} {
		b.Run(fmt.Sprintf("by=ReadAhead(%d)", ahead), func(b *testing.B) {
			repeat(b, func() error { return readEntries(client, n, ahead) })
		})
	}
}
