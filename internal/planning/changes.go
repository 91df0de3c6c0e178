package planning

import (
	"fmt"
	"net/netip"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/listentries"
	"github.com/webdelivery/webdelivery-go/internal/listorder"
)

// Changes make a list equal to the wanted entries. Add has indexes of the wanted entries, and Remove has indexes of the
// entries of the list, both in order.
type Changes struct {
	listorder.Order

	Keep int // entries that stay
}

// Compare compares meanings, and returns the changes in the best order. meaning returns that of an entry of the list.
// The error says that the list has no room for what it keeps and adds.
func Compare[T any](current []T, meaning func(*T) ipset.Meaning, wanted *ipset.Distinct, l listorder.Limits) (Changes, error) {
	held, lacking := make([]bool, len(wanted.Entries)), len(wanted.Entries)
	remove, removed := make([]int, 0, len(current)), make([]netip.Prefix, 0, len(current))
	kept := make([]netip.Prefix, 0, len(current))
	for i := range current {
		m := meaning(&current[i])
		at, found := wanted.Find(m)
		if !found {
			remove, removed = append(remove, i), append(removed, m.Prefix)
			continue
		}
		kept = append(kept, m.Prefix)
		if !held[at] { // the list may hold a meaning twice
			held[at] = true
			lacking--
		}
	}
	add, added := make([]int, 0, lacking), make([]netip.Prefix, 0, lacking)
	for i, e := range wanted.Entries {
		if !held[i] {
			add, added = append(add, i), append(added, e.Prefix)
		}
	}
	if n := len(kept) + len(add); n > l.List {
		return Changes{}, fmt.Errorf("the list would hold %d entries, and %d are the most", n, l.List)
	}
	c := Changes{listorder.Best(kept, added, removed, l), len(kept)}
	for at, i := range c.Add {
		c.Add[at] = add[i]
	}
	for at, i := range c.Remove {
		c.Remove[at] = remove[i]
	}
	return c, nil
}

// Entry is an entry of a list, with its id.
type Entry struct {
	ID string
	ipset.Entry
}

// Stored is a plan as it was stored. Somebody may have edited it.
type Stored struct {
	Type    string // of the list: IP, GEO, or a type that this package does not know
	Add     []ipset.Entry
	Remove  int                           // number of removed entries
	Removed func(i int) (id, text string) // of the i-th removed entry
	Keep    int                           // entries that stay
}

// Misfit says which field of a stored plan does not fit the list.
type Misfit struct{ Field, Reason string }

// Steps returns the steps of a stored plan, or why it does not fit the list. of returns an entry of the list.
func Steps[T any](p Stored, current []T, of func(*T) Entry, l listorder.Limits) ([]listorder.Step, *Misfit) {
	there := make(map[string]Entry, len(current))
	for i := range current {
		e := of(&current[i])
		there[e.ID] = e
	}
	added, removed := make([]netip.Prefix, len(p.Add)), make([]netip.Prefix, p.Remove)
	for i, e := range p.Add {
		added[i] = e.Prefix
	}
	for i := range removed {
		id, text := p.Removed(i)
		e, found := there[id]
		if !found || e.Text != text {
			return nil, &Misfit{fmt.Sprintf("remove[%d]", i), "is not in the list, or comes twice"}
		}
		delete(there, id)
		removed[i] = e.Prefix
	}
	if p.Keep != len(there) {
		return nil, &Misfit{"keep", fmt.Sprintf("does not fit the list: keep %d, remove %d, and there are %d entries", p.Keep, p.Remove, len(current))}
	}
	if fitsNone(p.Type, there) {
		return nil, &Misfit{"type", "does not fit the list: none of the entries that stay belongs to a list of type " + p.Type}
	}
	kept := make([]netip.Prefix, 0, len(there))
	for _, e := range there {
		kept = append(kept, e.Prefix)
	}
	return listorder.Steps(kept, added, removed, l), nil
}

// fitsNone reports whether entries of the other type stay and none of this type. Then somebody edited the type of the
// plan: Compare removes every entry of the other type, because no wanted entry has that type. Only the entries that stay
// say so. A list with nothing but entries of the other type is odd, but a plan may empty it.
func fitsNone(listType string, kept map[string]Entry) bool {
	others := false
	for _, e := range kept {
		if e, err := ipset.Parse(e.Text); err == nil {
			if listentries.TypeOf(e) == listType {
				return false
			}
			others = true
		}
	}
	return others && (listType == listentries.IP || listType == listentries.GEO)
}
