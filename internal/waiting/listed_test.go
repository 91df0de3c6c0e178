package waiting_test

import (
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/waiting"
)

// element is an element of a list.
type element struct {
	id, item string
	bare     bool // does not say whether it has ended
}

// listOf returns a list that ends with an error. read counts the elements that were read.
func listOf(read *int, elements ...element) iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		for _, e := range elements {
			if *read++; !yield(e, nil) {
				return
			}
		}
		*read++
		yield(element{"a", "of an error", false}, errOutage)
	}
}

// The list is read from the oldest update of the pending items that were read before.
func TestTheOldestUpdate(t *testing.T) {
	t.Parallel()
	day := func(d int) time.Time { return time.Date(2026, 3, d, 0, 0, 0, 0, time.UTC) }
	updates := []time.Time{day(1), day(4), day(3), day(5), {}}
	for _, tt := range []struct {
		pending []int
		want    time.Time
	}{
		{nil, time.Time{}},
		{[]int{1, 2, 3}, day(3)},
		{[]int{0, 1}, day(4)}, // item 0 was never read
		{[]int{0}, time.Time{}},
		{[]int{3}, day(5)},
		{[]int{3, 4}, time.Time{}},
	} {
		x := waiting.NewIndex(tt.pending, func(i int) (string, time.Time, bool) { return "a", updates[i], i > 0 })
		assert.Equal(t, tt.want, x.Oldest, "%v", tt.pending)
	}
}

// Shown finds the pending items by the ids of the service, until it has all of them or the list ends with an error.
func TestPendingItemsInAList(t *testing.T) {
	t.Parallel()
	ids := []string{"a", "b", "b", "", "c"} // by item; item 3 was never read
	for name, tt := range map[string]struct {
		pending []int
		list    []element
		want    map[int]string
		read    int // elements, the error included
	}{
		"an empty list":        {[]int{0}, nil, map[int]string{}, 1},
		"all are shown":        {[]int{0, 4}, []element{{"x", "1", false}, {"c", "2", false}, {"a", "3", false}, {"x", "4", false}}, map[int]string{4: "2", 0: "3"}, 3},
		"one is missing":       {[]int{0, 4}, []element{{"c", "2", false}}, map[int]string{4: "2"}, 2},
		"two with one id":      {[]int{1, 2}, []element{{"b", "1", false}, {"x", "2", false}}, map[int]string{1: "1", 2: "1"}, 1},
		"not pending":          {[]int{0}, []element{{"b", "1", false}}, map[int]string{}, 2},
		"never read":           {[]int{0, 3}, []element{{"", "1", false}, {"a", "2", false}}, map[int]string{0: "2"}, 3},
		"no statement":         {[]int{0, 4}, []element{{"a", "1", true}}, map[int]string{}, 2},
		"no statement, later":  {[]int{0, 4}, []element{{"a", "1", false}, {"a", "2", true}}, map[int]string{0: "1"}, 3},
		"twice, the last wins": {[]int{0, 4}, []element{{"a", "1", false}, {"a", "2", false}}, map[int]string{0: "2"}, 3},
		"twice, ended first":   {[]int{0, 4}, []element{{"a", "ended", false}, {"a", "2", false}}, map[int]string{0: "ended"}, 3},
		"twice, ended later":   {[]int{0, 4}, []element{{"a", "1", false}, {"a", "ended", false}}, map[int]string{0: "ended"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := waiting.NewIndex(tt.pending, func(i int) (string, time.Time, bool) { return ids[i], time.Time{}, i != 3 })
			read := 0
			shown := waiting.Shown(x, listOf(&read, tt.list...), func(e *element) (string, string, bool) { return e.id, e.item, !e.bare },
				func(item string) bool {
					assert.NotEmpty(t, item)
					return item == "ended"
				})
			assert.Equal(t, tt.want, shown)
			assert.Equal(t, tt.read, read)
		})
	}
}
