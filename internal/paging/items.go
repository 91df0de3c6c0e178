package paging

import "hash/maphash"

// itemSet knows the items of one collection again, by their ids: what else a task says changes while it runs. It keeps a
// 64-bit hash of each id, so 50,000 entries take about a megabyte.
type itemSet struct {
	seed   maphash.Seed
	hashes map[uint64]bool // true: a page begins with this item
	size   int             // items of the first page that had some
	page   []uint64        // the page that was compared last
}

// compare tells of a page with items whether none of them is new, and whether it begins like an earlier page. It does
// not add them.
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

// add takes in the page that was compared last.
func (s *itemSet) add() {
	if s.size == 0 {
		s.size = len(s.page)
	}
	for i, hash := range s.page {
		s.hashes[hash] = s.hashes[hash] || i == 0
	}
}
