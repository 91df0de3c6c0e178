package testserver

import (
	"slices"
	"time"
)

// maxEntries is the maximum number of entries of a list (service document, section 8).
const maxEntries = 50_000

// listEntry is an entry of a network list.
type listEntry struct {
	entryValue

	id      string
	addedBy string
	created time.Time
}

// entrySet holds the entries of a network list, without duplicates.
type entrySet struct {
	ordered []*listEntry // in order of addition; valid until the next change
	byID    map[string]*listEntry
	byKey   map[string]*listEntry
}

func newEntrySet() entrySet {
	return entrySet{byID: map[string]*listEntry{}, byKey: map[string]*listEntry{}}
}

func (s *entrySet) put(e *listEntry) {
	s.ordered = append(s.ordered, e)
	s.byID[e.id], s.byKey[e.key] = e, e
}

func (s *entrySet) remove(e *listEntry) {
	delete(s.byID, e.id)
	delete(s.byKey, e.key)
	i := slices.Index(s.ordered, e)
	s.ordered = slices.Delete(s.ordered, i, i+1)
}

func (s *entrySet) texts() []string {
	texts := make([]string, 0, len(s.byID))
	for _, e := range s.ordered {
		texts = append(texts, e.text)
	}
	return texts
}
