package webdelivery

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/lists"
)

// Compares 50,000 desired entries with 50,000 that a list holds, half of which are the same. The list is not read.
func BenchmarkComparePlan(b *testing.B) {
	var desired []string
	var entries []NetworkListEntry
	for i := range 75_000 {
		text := fmt.Sprintf("198.%d.%d.%d", 18+i>>16, i>>8&255, i&255)
		if i < 50_000 {
			entries = append(entries, NetworkListEntry{ID: fmt.Sprintf("5e1f0d2c-0000-4000-8000-%012d", i), Entry: text})
		}
		if i >= 25_000 {
			desired = append(desired, text)
		}
	}
	for _, aggregated := range []bool{false, true} {
		b.Run(fmt.Sprintf("aggregate=%t", aggregated), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				wanted, err := readDesired(b.Context(), desired, aggregated, MaxListEntries)
				require.NoError(b, err)
				held := readEntries(entries)
				changes := wanted.Compare(held)
				new(Plan).order(changes, lists.Limits{List: MaxListEntries, Call: MaxUpdateEntries})
				lists.Fingerprint("IP", held)
			}
		})
	}
}
