package ipset

import (
	"hash/maphash"
	"slices"
)

// Meanings is a set of what entries mean.
type Meanings map[Meaning]bool

// MeaningsOf returns what the texts mean, each read as [Read] does.
func MeaningsOf(texts []string) Meanings {
	set := make(Meanings, len(texts))
	for _, text := range texts {
		set[Read(text).Meaning] = true
	}
	return set
}

// Lacking returns the texts whose meaning is not in the set.
func (m Meanings) Lacking(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return m[Read(text).Meaning] })
}

// Without counts what is in the set and not in another one.
func (m Meanings) Without(other Meanings) (n int) {
	for meaning := range m {
		if !other[meaning] {
			n++
		}
	}
	return n
}

// Unique returns the entries without those that mean the same as an earlier one.
func Unique(entries []Entry) []Entry {
	seen := make(Meanings, len(entries))
	kept := make([]Entry, 0, len(entries))
	for _, e := range entries {
		if !seen[e.Meaning] {
			seen[e.Meaning] = true
			kept = append(kept, e)
		}
	}
	return kept
}

// Same reports whether texts and entries mean the same, in any order, each as often as it comes. entry returns one of
// the entries.
func Same[T any](texts []string, entries []T, entry func(*T) Entry) bool {
	if len(texts) != len(entries) {
		return false
	}
	if sameTexts(texts, entries, entry) {
		return true // almost always, and much faster
	}
	left := make(map[Meaning]int, len(texts)) // a set would not see an entry that came twice in place of another
	for _, text := range texts {
		left[Read(text).Meaning]++
	}
	for i := range entries {
		meaning := entry(&entries[i]).Meaning
		if left[meaning]--; left[meaning] < 0 {
			return false
		}
	}
	return true
}

// sameTexts compares the sums of 64-bit hashes, which do not depend on the order.
func sameTexts[T any](texts []string, entries []T, entry func(*T) Entry) bool {
	seed := maphash.MakeSeed()
	var sum uint64
	for _, text := range texts {
		sum += maphash.String(seed, text)
	}
	for i := range entries {
		sum -= maphash.String(seed, entry(&entries[i]).Text)
	}
	return sum == 0
}
