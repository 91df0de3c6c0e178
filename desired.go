package webdelivery

import (
	"context"
	"fmt"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// desiredEntries are the entries that a list is to hold.
type desiredEntries struct {
	texts   []string      // as the caller wrote them
	entries []ipset.Entry // readable entries, all of one type, without duplicates
	strange []ipset.Entry // unreadable entries without duplicates; a list may only keep them
}

// readDesired reads the entries before the list is read, and refuses entries that no list can hold. Of entries with
// the same meaning it keeps the first.
func readDesired(ctx context.Context, texts []string, merge bool) (*desiredEntries, error) {
	d := &desiredEntries{texts: texts, entries: make([]ipset.Entry, 0, min(len(texts), maxListEntries))}
	seen := make(ipset.Meanings, cap(d.entries))
	for i, text := range texts {
		if i%1024 == 1023 && ctx.Err() != nil { // millions of entries take seconds
			return nil, &changeError{fmt.Errorf("plan: %w", ctx.Err()), OutcomeNotApplied}
		}
		e, err := ipset.Parse(text)
		if err != nil {
			e = ipset.Opaque(text)
		}
		if seen[e.Meaning] {
			continue
		}
		seen[e.Meaning] = true
		switch {
		case err != nil:
			d.strange = append(d.strange, e)
		default:
			d.entries = append(d.entries, e)
		}
		switch {
		case len(d.entries) > 0 && listTypeOf(d.entries[len(d.entries)-1]) != listTypeOf(d.entries[0]):
			return nil, d.problems(listTypeOf(d.entries[0]), func(ipset.Meaning) bool { return true }, nil)
		case len(d.strange) > maxListEntries: // a list can only keep them, so they must fit into it
			return nil, d.problems(d.likelyType(), func(ipset.Meaning) bool { return false }, nil)
		}
	}
	if merge && len(d.entries) > 0 && listTypeOf(d.entries[0]) == ListTypeIP {
		d.entries = ipset.Aggregate(d.entries)
	}
	if n := len(d.entries) + len(d.strange); n > maxListEntries {
		return nil, invalid("desired", "%d entries are more than the %d that a list can hold", n, maxListEntries)
	}
	return d, nil
}

// likelyType is the type of a list that may hold the entries.
func (d *desiredEntries) likelyType() NetworkListType {
	if len(d.entries) == 0 {
		return ListTypeIP
	}
	return listTypeOf(d.entries[0])
}

// check refuses entries that do not belong to a list of this type, and new entries that cannot be read. has holds the
// meanings of the entries of the list; as creates the errors.
func (d *desiredEntries) check(listType NetworkListType, has ipset.Meanings, as func(*ValidationError) error) error {
	fits := len(d.entries) == 0 || listTypeOf(d.entries[0]) == listType
	if fits && len(d.strange) == 0 {
		return nil
	}
	return d.problems(listType, func(m ipset.Meaning) bool { return has[m] }, as)
}

// problems are what is wrong with the desired entries, each with its place, up to maxProblems.
func (d *desiredEntries) problems(listType NetworkListType, has func(ipset.Meaning) bool, as func(*ValidationError) error) error {
	bad := problems{as: as}
	for i, text := range d.texts {
		if bad.full(len(d.texts) - i) {
			break
		}
		e, err := ipset.Parse(text)
		switch {
		case err != nil && has(ipset.Opaque(text).Meaning):
			continue
		case err == nil && listTypeOf(e) != listType:
			err = fmt.Errorf("%q does not belong to a list of type %s", text, listType)
		}
		if err != nil {
			bad.add(fmt.Sprintf("desired[%d]", i), "%v", err)
		}
	}
	return bad.err()
}
