package webdelivery

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// Compares 50,000 desired entries with 50,000 that a list holds, half of which are the same. The list is not read.
func BenchmarkComparePlan(b *testing.B) {
	list := &NetworkList{ID: "l", Type: ListTypeIP}
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
				wanted, err := parseEntries("desired", ListTypeIP, desired)
				require.NoError(b, err)
				wanted = ipset.Unique(wanted)
				if aggregated {
					wanted = ipset.Aggregate(wanted)
				}
				current := make([]held, len(entries))
				for i, e := range entries {
					current[i] = heldEntry(e)
				}
				_, err = newPlan(list, current, meanings(current), wanted)
				require.NoError(b, err)
			}
		})
	}
}
