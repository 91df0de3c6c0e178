package lists

// Set is a set of entries with different meanings. Create it with [NewSet].
type Set struct {
	Entries []Entry // in order of addition

	at map[Meaning]int // index of each entry
}

// NewSet returns an empty set with capacity for n entries.
func NewSet(n int) *Set {
	return &Set{Entries: make([]Entry, 0, n), at: make(map[Meaning]int, n)}
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
	if s.Has(e.Meaning) {
		return
	}
	s.at[e.Meaning] = len(s.Entries)
	s.Entries = append(s.Entries, e)
}

// Find returns the index of the entry with this meaning.
func (s *Set) Find(m Meaning) (at int, found bool) {
	at, found = s.at[m]
	return at, found
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
