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
	gone    bool // removed
}

// entrySet holds the entries of a network list, in order of addition and without duplicates. A removed entry is only
// marked, and swept out later, so only reading a changed list takes time in proportion to its size.
type entrySet struct {
	ordered []*listEntry // including removed entries
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
	e.gone = true
	delete(s.byID, e.id)
	delete(s.byKey, e.key)
	if len(s.ordered) > 2*len(s.byID)+64 { // without reads, removed entries would pile up
		s.sweep()
	}
}

// all returns the entries in order. The slice is valid until the next change.
func (s *entrySet) all() []*listEntry {
	if len(s.ordered) > len(s.byID) {
		s.sweep()
	}
	return s.ordered
}

func (s *entrySet) sweep() {
	s.ordered = slices.DeleteFunc(s.ordered, func(e *listEntry) bool { return e.gone })
}

func (s *entrySet) texts() []string {
	texts := make([]string, 0, len(s.byID))
	for _, e := range s.all() {
		texts = append(texts, e.text)
	}
	return texts
}
