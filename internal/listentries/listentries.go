// Package listentries reads the texts that a network list is to hold. It finds those that the list cannot hold: texts
// that are no entry, and entries of the other type.
//
// It knows entries and the two types of lists. It must not know requests, plans, the SDK's types, or the form of an
// error. It passes each problem to a function of its caller.
//
// Entry points: [Read], [Desire] and [TypeOf].
package listentries

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// The types of lists. (Service document, section 2.6.)
const (
	IP  = "IP"
	GEO = "GEO"
)

// TypeOf returns the type of the lists that an entry belongs to.
func TypeOf(e ipset.Entry) string {
	if e.HasAddresses() {
		return IP
	}
	return GEO
}

// Wrong takes the problem of the i-th text. If it returns false, no further problem is searched for.
type Wrong func(i int, problem error) bool

// Read reads texts for a list of this type, and passes each problem to wrong. If listType is "", the first readable
// text decides. Read returns the readable entries of the type.
func Read(listType string, texts []string, wrong Wrong) []ipset.Entry {
	entries := make([]ipset.Entry, 0, len(texts))
	for i, text := range texts {
		e, err := ipset.Parse(text)
		if err == nil {
			listType = cmp.Or(listType, TypeOf(e))
			err = misplaced(e, text, listType)
		}
		if err == nil {
			entries = append(entries, e)
		} else if !wrong(i, err) {
			break
		}
	}
	return entries
}

// misplaced returns an error if the entry does not belong to a list of this type.
func misplaced(e ipset.Entry, text, listType string) error {
	if TypeOf(e) == listType {
		return nil
	}
	return fmt.Errorf("%q does not belong to a list of type %s", text, listType)
}

// Desired are the entries that a list is to hold.
type Desired struct {
	texts    []string        // as the caller wrote them
	entries  *ipset.Distinct // first the readable ones, all of one type; then the others, which a list may only keep
	readable int             // number of readable entries
}

// checkEvery is how many texts Desire reads between two checks of the context: millions of texts take seconds.
const checkEvery = 1024

// Desire reads the texts before the list is known. It keeps the first of several entries with the same meaning. It
// passes the problems of texts that no list can hold together to wrong: entries of both types, or more than most
// unreadable texts. Then the result is of no use. The error is that of the context.
func Desire(ctx context.Context, texts []string, most int, wrong Wrong) (*Desired, error) {
	d := &Desired{texts: texts, entries: ipset.NewDistinct(min(len(texts), most))}
	strange := ipset.NewDistinct(0)
	for i, text := range texts {
		if i%checkEvery == checkEvery-1 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		e, err := ipset.Parse(text)
		if err != nil {
			if strange.Add(ipset.Opaque(text)) && len(strange.Entries) > most { // a list can only keep them, so they must fit into it
				d.problems(d.likelyType(), func(ipset.Meaning) bool { return false }, wrong)
				return d, nil
			}
			continue
		}
		if d.entries.Add(e) {
			d.readable++
		}
		if TypeOf(e) != d.likelyType() {
			d.problems(d.likelyType(), func(ipset.Meaning) bool { return true }, wrong)
			return d, nil
		}
	}
	for _, e := range strange.Entries {
		d.entries.Add(e)
	}
	return d, nil
}

// Aggregate merges addresses and ranges into the fewest ranges that cover exactly the same addresses.
func (d *Desired) Aggregate() {
	if d.likelyType() == IP {
		merged := ipset.Aggregate(d.entries.Entries[:d.readable])
		entries := ipset.NewDistinct(len(merged))
		for _, e := range slices.Concat(merged, d.entries.Entries[d.readable:]) {
			entries.Add(e)
		}
		d.entries, d.readable = entries, len(merged)
	}
}

// Size returns the number of entries.
func (d *Desired) Size() int { return len(d.entries.Entries) }

// Entries returns the entries: first the readable ones, then the others.
func (d *Desired) Entries() *ipset.Distinct { return d.entries }

// Check passes the problems of entries that this list cannot hold to wrong: entries of the other type, and unreadable
// ones that are new. has returns the meanings in the list. Check calls it only if it needs them.
func (d *Desired) Check(listType string, has func() ipset.Meanings, wrong Wrong) {
	fits := d.readable == 0 || d.likelyType() == listType
	if !fits || d.readable < d.Size() { // otherwise there is no need to read the texts again
		held := has()
		d.problems(listType, func(m ipset.Meaning) bool { return held[m] }, wrong)
	}
}

// likelyType returns the type of a list that may hold the entries.
func (d *Desired) likelyType() string {
	if d.readable == 0 {
		return IP
	}
	return TypeOf(d.entries.Entries[0])
}

// problems passes the problem of each text to wrong. An unreadable text is none if the list has it.
func (d *Desired) problems(listType string, has func(ipset.Meaning) bool, wrong Wrong) {
	for i, text := range d.texts {
		e, err := ipset.Parse(text)
		switch {
		case err == nil:
			err = misplaced(e, text, listType)
		case has(ipset.Opaque(text).Meaning):
			err = nil
		}
		if err != nil && !wrong(i, err) {
			return
		}
	}
}
