package waiting

import (
	"iter"
	"time"
)

// Index finds pending items in a list by the ids that the service gives them. Several items may have one id.
type Index struct {
	Oldest time.Time // the oldest update of these items; zero if it is not known

	at      map[string][]int
	pending int
}

// NewIndex indexes the pending items. of returns id and last update of an item; false if it was never read.
func NewIndex(pending []int, of func(i int) (id string, updated time.Time, read bool)) Index {
	x := Index{at: map[string][]int{}, pending: len(pending)}
	for _, i := range pending {
		id, updated, read := of(i)
		if !read {
			continue
		}
		x.at[id] = append(x.at[id], i)
		if x.Oldest.IsZero() || updated.Before(x.Oldest) {
			x.Oldest = updated
		}
	}
	return x
}

// Shown returns the pending items that a list shows, also those before an error of the list. If the list shows an item
// twice, Shown takes the one that has ended. It stops when it has found all. of returns id and item of an element;
// full is false if the element does not say whether it has ended. Shown ignores such an element.
func Shown[L, T any](x Index, list iter.Seq2[L, error], of func(*L) (id string, item T, full bool), ended func(T) bool) map[int]T {
	shown := map[int]T{}
	for element, err := range list {
		if err != nil {
			break
		}
		id, item, full := of(&element)
		for _, i := range x.at[id] {
			if before, found := shown[i]; full && (!found || !ended(before)) {
				shown[i] = item
			}
		}
		if len(shown) == x.pending {
			break
		}
	}
	return shown
}
