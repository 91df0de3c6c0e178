package lists

import (
	"context"
	"iter"
	"net/netip"
	"slices"

	"go4.org/netipx"
)

// Desired holds the entries that a list should contain.
type Desired struct {
	*Set // readable entries first; the others can only be kept, not added

	LeftOut []string // texts whose ranges overlap others

	texts    []string // as the caller wrote them
	readable int      // number of readable entries
	mixed    error    // the readable entries are of both types
	mixedAt  int      // index of the first text of another type than those before it
}

// NewDesired parses the texts. Of several entries with the same meaning it keeps the first. most is the maximum number
// of entries in a list. If no list can contain all the texts, NewDesired stops, and [Desired.Impossible] reports the
// problems. Entries that overlap a range of leaveOut are left out. The only error is that of the context.
func NewDesired(ctx context.Context, texts []string, leaveOut []netip.Prefix, limit int) (*Desired, error) {
	d := &Desired{Set: NewSet(min(len(texts), limit)), texts: texts}
	strange, out := NewSet(0), rangesOf(leaveOut, inIPv6)
	for i, text := range texts {
		if i%1024 == 1023 && ctx.Err() != nil { // millions of texts take seconds
			return nil, ctx.Err()
		}
		if e, err := Parse(text); err == nil && e.Prefix.IsValid() && out.overlap(inIPv6(e.Prefix)) {
			d.LeftOut = append(d.LeftOut, text)
		} else if err == nil {
			d.Add(e)
			if first := d.Entries[0]; e.Type() != first.Type() {
				d.mixed, d.mixedAt = Mixed(first, e), i
			}
		} else {
			strange.Add(opaque(text))
		}
		if d.mixed != nil || len(strange.Entries) > limit {
			break
		}
	}
	d.readable = len(d.Entries)
	for _, e := range strange.Entries {
		d.Add(e)
	}
	return d, nil
}

// Aggregate merges addresses and ranges into the fewest ranges that cover exactly the same addresses.
func (d *Desired) Aggregate() {
	var b netipx.IPSetBuilder
	for _, e := range d.Entries[:d.readable] {
		b.AddPrefix(e.Prefix)
	}
	ranges, err := b.IPSet()
	if err != nil { // the entries are countries
		return
	}
	prefixes, strange := ranges.Prefixes(), d.Entries[d.readable:]
	d.Set, d.readable = NewSet(len(prefixes)+len(strange)), len(prefixes)
	for _, p := range prefixes {
		text := p.String()
		if p.IsSingleIP() {
			text = p.Addr().String()
		}
		d.Add(Entry{Text: text, Meaning: Meaning{Prefix: p}})
	}
	for _, e := range strange {
		d.Add(e)
	}
}

// Impossible yields the index and problem of each offending text if no list can contain all the texts, because more than
// most are unreadable, or of one text if readable ones are of both types.
func (d *Desired) Impossible(limit int) iter.Seq2[int, error] {
	if d.mixed != nil {
		return func(yield func(int, error) bool) { yield(d.mixedAt, d.mixed) }
	}
	if len(d.Entries)-d.readable <= limit {
		return problems(nil, "", nil)
	}
	return problems(d.texts, "", func(Meaning) bool { return false })
}

// Unfit yields the index and problem of each text that does not fit a list of this type with these entries: texts of
// the other type, and unreadable ones that are not in the list.
func (d *Desired) Unfit(listType string, held []Entry) iter.Seq2[int, error] {
	if d.readable == len(d.Entries) && (d.readable == 0 || d.Entries[0].Type() == listType) {
		return problems(nil, "", nil) // usually, so that the texts need not be parsed again
	}
	return problems(d.texts, listType, SetOf(held).Has)
}

// problems yields the index and problem of each text that does not belong to a list of this type. An unreadable text
// does if has returns true for it.
func problems(texts []string, listType string, has func(Meaning) bool) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i, text := range texts {
			e, err := ParseFor(listType, text)
			keeps := e.Text == "" && has(opaque(text).Meaning) // e.Text is empty if the text is unreadable
			if err != nil && !keeps && !yield(i, err) {
				return
			}
		}
	}
}

// Places returns the index of the first text with each meaning.
func (d *Desired) Places() map[Meaning]int {
	places := make(map[Meaning]int, len(d.texts))
	for i, text := range slices.Backward(d.texts) {
		places[Read(text)] = i
	}
	return places
}
