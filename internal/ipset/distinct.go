package ipset

import "net/netip"

// Distinct are entries of different meanings. [NewDistinct] creates it.
type Distinct struct {
	Entries []Entry // in the order of Add

	ranges map[rangeKey]int // positions of the entries with addresses
	names  map[string]int   // positions of the others
}

// rangeKey identifies a prefix. It has no pointers, as netip.Prefix has, so the garbage collector does not scan a map
// of them.
type rangeKey struct {
	addr [16]byte
	bits uint8
	is4  bool
}

func keyOf(p netip.Prefix) rangeKey {
	return rangeKey{p.Addr().As16(), uint8(p.Bits()), p.Addr().Is4()} //nolint:gosec // at most 128
}

// NewDistinct returns no entries, with room for n.
func NewDistinct(n int) *Distinct {
	return &Distinct{Entries: make([]Entry, 0, n), ranges: make(map[rangeKey]int, n), names: map[string]int{}}
}

// Add appends an entry unless there is one with the same meaning. It reports whether it did.
func (d *Distinct) Add(e Entry) bool {
	if _, found := d.Find(e.Meaning); found {
		return false
	}
	if at := len(d.Entries); e.HasAddresses() {
		d.ranges[keyOf(e.Prefix)] = at
	} else {
		d.names[e.Name] = at
	}
	d.Entries = append(d.Entries, e)
	return true
}

// Find returns the position of the entry with this meaning.
func (d *Distinct) Find(m Meaning) (at int, found bool) {
	if m.HasAddresses() {
		at, found = d.ranges[keyOf(m.Prefix)]
	} else {
		at, found = d.names[m.Name]
	}
	return at, found
}

// Unique drops each entry with the same meaning as an earlier one.
func Unique(entries []Entry) []Entry {
	kept := NewDistinct(len(entries))
	for _, e := range entries {
		kept.Add(e)
	}
	return kept.Entries
}
