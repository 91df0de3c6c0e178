package lists

import (
	"fmt"
	"slices"
)

// Changes are the changes of a list.
type Changes struct {
	Held   []Entry // the entries of the list; it may hold a meaning several times
	Add    []Entry // entries to add; their meanings differ
	Remove []int   // indexes of Held, ascending
}

// Size returns how many entries the list holds after the changes.
func (c *Changes) Size() int { return c.Kept() + len(c.Add) }

// Kept returns how many entries stay.
func (c *Changes) Kept() int { return len(c.Held) - len(c.Remove) }

// Split returns the entries that stay and those that are removed.
func (c *Changes) Split() (kept, removed []Entry) {
	kept, removed = make([]Entry, 0, c.Kept()), make([]Entry, 0, len(c.Remove))
	for i, e := range c.Held {
		if n := len(removed); n < len(c.Remove) && c.Remove[n] == i {
			removed = append(removed, e)
		} else {
			kept = append(kept, e)
		}
	}
	return kept, removed
}

// Compare finds the changes that make a list equal to the desired entries. Of entries with the same meaning, all stay
// or all go.
func (d *Desired) Compare(held []Entry) *Changes {
	c := &Changes{Held: held}
	there, lacking := make([]bool, len(d.Entries)), len(d.Entries)
	for i, e := range held {
		at, stays := d.Find(e.Meaning)
		if !stays {
			c.Remove = append(c.Remove, i)
		} else if !there[at] {
			there[at] = true
			lacking--
		}
	}
	c.Add = make([]Entry, 0, lacking)
	for i, e := range d.Entries {
		if !there[i] {
			c.Add = append(c.Add, e)
		}
	}
	return c
}

// Misfit says which field of a stored plan does not fit the list.
type Misfit struct{ Field, Reason string }

// Stored returns the changes of a stored plan, which somebody may have edited, or why [Desired.Compare] cannot have made
// them for a list with these entries. Of the entries to remove it reads ID and Text.
func Stored(held, add, remove []Entry) (*Changes, *Misfit) {
	c := &Changes{Held: held, Add: add}
	wanted := make(map[string]int, len(remove))
	for i, e := range remove {
		if _, twice := wanted[e.ID]; twice {
			return nil, &Misfit{fmt.Sprintf("remove[%d]", i), "comes twice"}
		}
		wanted[e.ID] = i
	}
	for i, e := range held {
		if n, ok := wanted[e.ID]; ok && remove[n].Text == e.Text {
			c.Remove = append(c.Remove, i)
			delete(wanted, e.ID)
		}
	}
	for i, e := range remove {
		if _, left := wanted[e.ID]; left {
			return nil, &Misfit{fmt.Sprintf("remove[%d]", i), "is not in the list"}
		}
	}
	return c, c.contradiction()
}

// contradiction says which entry to add is in the list, or added twice.
func (c *Changes) contradiction() *Misfit {
	entries, gone := c.Split()
	kept, removed, added := SetOf(entries), SetOf(gone), NewSet(len(c.Add))
	for i, e := range c.Add {
		reason := ""
		switch {
		case kept.Has(e.Meaning):
			reason = "is in the list already, and stays"
		case removed.Has(e.Meaning):
			reason = "is also removed"
		case !added.Add(e):
			reason = "comes twice"
		default:
			continue
		}
		return &Misfit{fmt.Sprintf("add[%d]", i), fmt.Sprintf("%q %s", e.Text, reason)}
	}
	return nil
}

// Difference says how a list differs from what the changes should have made of it.
type Difference struct {
	Missing, Unexpected int
	Others              bool // entries differ that the changes do not touch
}

// Check compares the list after the changes with the expected one.
func (c *Changes) Check(after []Entry) Difference {
	is := SetOf(after)
	kept, removed := c.Split()
	keptMissing, expected := is.Lacking(kept), SetOf(slices.Concat(kept, c.Add))
	unexpected := expected.Lacking(is.Entries)
	return Difference{
		Missing: len(keptMissing) + len(is.Lacking(c.Add)), Unexpected: len(unexpected),
		Others: len(keptMissing) > 0 || len(SetOf(removed).Lacking(unexpected)) > 0,
	}
}
