package ipset

import (
	"hash/maphash"
	"slices"
)

// Meanings is a set of meanings.
type Meanings map[Meaning]bool

// MeaningsOf returns the meanings of the texts. It reads each one with [Read].
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

// Without counts the meanings that are in this set but not in the other.
func (m Meanings) Without(other Meanings) (n int) {
	for meaning := range m {
		if !other[meaning] {
			n++
		}
	}
	return n
}

// Same reports whether texts and entries have the same meanings, equally often and in any order. entry returns the
// Entry of an element.
func Same[T any](texts []string, entries []T, entry func(*T) Entry) bool {
	if len(texts) != len(entries) {
		return false
	}
	if sameTexts(texts, entries, entry) {
		return true // the usual case, and much faster
	}
	left := make(map[Meaning]int, len(texts)) // counts, because a set would miss an entry that replaced another as a duplicate
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

// sameTexts compares sums of 64-bit hashes, because a sum does not depend on the order.
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
