package paging

import "hash/maphash"

// itemSet recognizes items of one collection by their ids, because the other members of a task change while it runs. It
// keeps a 64-bit hash per id, so 50,000 entries take about a megabyte.
type itemSet struct {
	seed   maphash.Seed
	hashes map[uint64]bool // true: a page begins with this item
	size   int             // items on the first page that was not empty
	page   []uint64        // hashes of the page that compare got last
}

// compare reports whether no item of a page is new, and whether the page begins like an earlier one. It does not add
// the items to the set.
func compare[T any](s *itemSet, items []T, identity func(*T) string) (known, begins bool) {
	if s.hashes == nil {
		s.seed, s.hashes = maphash.MakeSeed(), make(map[uint64]bool, len(items))
	}
	s.page = s.page[:0]
	known = true
	for i := range items {
		hash := maphash.String(s.seed, identity(&items[i]))
		began, seen := s.hashes[hash]
		known = known && seen
		begins = begins || began && i == 0
		s.page = append(s.page, hash)
	}
	return known, begins
}

// add adds the items of the page that compare got last.
func (s *itemSet) add() {
	if s.size == 0 {
		s.size = len(s.page)
	}
	for i, hash := range s.page {
		s.hashes[hash] = s.hashes[hash] || i == 0
	}
}
