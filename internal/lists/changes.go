package lists

import (
	"fmt"
	"slices"
)

// Changes describes changes to a list.
type Changes struct {
	Held   []Entry // the current entries; several may have the same meaning
	Add    []Entry // entries to add, with different meanings
	Remove []int   // indexes in Held, ascending

	oneKind bool    // of a stored plan that only adds or only removes: others may change the list meanwhile
	gone    []Entry // then: what the list must not hold afterwards
}

// Size returns the number of entries in the list after the changes.
func (c *Changes) Size() int { return len(c.Held) - len(c.Remove) + len(c.Add) }

// Split returns the entries that are kept and those that are removed.
func (c *Changes) Split() (kept, removed []Entry) {
	kept, removed = make([]Entry, 0, len(c.Held)-len(c.Remove)), make([]Entry, 0, len(c.Remove))
	for i, e := range c.Held {
		if n := len(removed); n < len(c.Remove) && c.Remove[n] == i {
			removed = append(removed, e)
		} else {
			kept = append(kept, e)
		}
	}
	return kept, removed
}

// Compare returns the changes that make a list equal to the desired entries, or that only add them, or only remove them.
// Entries with the same meaning are either all kept or all removed.
func (d *Desired) Compare(held []Entry, addOnly, removeOnly bool) *Changes {
	c := &Changes{Held: held}
	there, lacking := make([]bool, len(d.Entries)), len(d.Entries)
	for i, e := range held {
		at, desired := d.Find(e.Meaning)
		if !addOnly && desired == removeOnly {
			c.Remove = append(c.Remove, i)
		} else if desired && !there[at] {
			there[at] = true
			lacking--
		}
	}
	if removeOnly {
		return c
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

// Stored returns the changes of a stored plan. A plan may have been edited, so Stored returns a Misfit if
// [Desired.Compare] cannot have produced these changes for a list with these entries. Of the entries to remove it uses
// only ID and Text.
func Stored(held, add, remove []Entry) (*Changes, *Misfit) {
	c, at := &Changes{Held: held, Add: add}, make(map[string]int, len(held))
	for i, e := range held {
		at[e.ID] = i
	}
	for n, e := range remove {
		i, found := at[e.ID]
		if !found || held[i].Text != e.Text {
			return nil, &Misfit{fmt.Sprintf("remove[%d]", n), "is not in the list, or comes twice"}
		}
		delete(at, e.ID)
		c.Remove = append(c.Remove, i)
	}
	slices.Sort(c.Remove)
	kept, removed := c.Split()
	reasons := make(map[Meaning]string, len(held)+len(add))
	for _, e := range kept {
		reasons[e.Meaning] = "is in the list already, and stays"
	}
	for _, e := range removed {
		reasons[e.Meaning] = "is also removed"
	}
	for i, e := range add {
		if reason := reasons[e.Meaning]; reason != "" {
			return nil, &Misfit{fmt.Sprintf("add[%d]", i), fmt.Sprintf("%q %s", e.Text, reason)}
		}
		reasons[e.Meaning] = "comes twice"
	}
	return c, nil
}

// OneKind returns the changes of a stored plan that only adds or only removes entries: those that are still to be made,
// whatever else has changed. An entry that was added again has another id, and stays: Check tells.
func OneKind(held, add, remove []Entry) *Changes {
	c, texts := &Changes{Held: held, Add: SetOf(held).Lacking(add), oneKind: true, gone: remove}, make(map[string]string, len(remove))
	for _, e := range remove {
		texts[e.ID] = e.Text
	}
	for i, e := range held {
		if text, found := texts[e.ID]; found && text == e.Text {
			c.Remove = append(c.Remove, i)
		}
	}
	return c
}

// Before returns what a list held before these changes, if they were carried out. It returns false if the list does not
// hold each added entry exactly once.
func Before(held, add, remove []Entry) (before []Entry, ok bool) {
	kept := SetOf(add).Lacking(held)
	ok = len(SetOf(held).Lacking(add)) == 0 && len(kept)+len(add) == len(held)
	return append(kept, remove...), ok
}

// Check compares the list after the changes with the expected one. It returns the number of missing and unexpected
// entries. others reports whether there are differences in entries that the changes do not touch.
func (c *Changes) Check(after []Entry) (missing, unexpected int, others bool) {
	is := SetOf(after)
	if c.oneKind {
		return len(is.Lacking(c.Add)), len(c.gone) - len(is.Lacking(c.gone)), false
	}
	kept, removed := c.Split()
	lost, surplus := is.Lacking(kept), SetOf(slices.Concat(kept, c.Add)).Lacking(is.Entries)
	return len(lost) + len(is.Lacking(c.Add)), len(surplus), len(lost)+len(SetOf(removed).Lacking(surplus)) > 0
}
