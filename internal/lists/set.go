package lists

import "net/netip"

// Set is a set of entries with different meanings. Create it with [NewSet].
type Set struct {
	Entries []Entry // in order of addition

	ranges map[rangeKey]int32 // indexes of the entries with addresses
	names  map[string]int32   // indexes of the others
}

// rangeKey identifies a prefix. It has no pointers, so the garbage collector does not scan the map.
type rangeKey struct {
	addr [16]byte
	bits uint8
	is4  bool
}

func keyOf(p netip.Prefix) rangeKey {
	return rangeKey{p.Addr().As16(), uint8(p.Bits()), p.Addr().Is4()} //nolint:gosec // at most 128
}

// NewSet returns an empty set with capacity for n entries.
func NewSet(n int) *Set {
	return &Set{Entries: make([]Entry, 0, n), ranges: make(map[rangeKey]int32, n), names: map[string]int32{}}
}

// SetOf returns a set of the entries. Of entries with the same meaning it keeps the first.
func SetOf(entries []Entry) *Set {
	s := NewSet(len(entries))
	for _, e := range entries {
		s.Add(e)
	}
	return s
}

// Add adds an entry unless the set has one with the same meaning.
func (s *Set) Add(e Entry) {
	at := int32(len(s.Entries)) //nolint:gosec // limited by memory
	switch {
	case s.Has(e.Meaning):
		return
	case e.Prefix.IsValid():
		s.ranges[keyOf(e.Prefix)] = at
	default:
		s.names[e.Name] = at
	}
	s.Entries = append(s.Entries, e)
}

// Find returns the index of the entry with this meaning.
func (s *Set) Find(m Meaning) (at int, found bool) {
	var n int32
	if m.Prefix.IsValid() {
		n, found = s.ranges[keyOf(m.Prefix)]
	} else {
		n, found = s.names[m.Name]
	}
	return int(n), found
}

// Has reports whether the set has an entry with this meaning.
func (s *Set) Has(m Meaning) bool {
	_, found := s.Find(m)
	return found
}

// Lacking returns the entries whose meanings are not in the set.
func (s *Set) Lacking(entries []Entry) (missing []Entry) {
	for _, e := range entries {
		if !s.Has(e.Meaning) {
			missing = append(missing, e)
		}
	}
	return missing
}
