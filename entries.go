package webdelivery

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// listTypeOf returns the type of list that an entry belongs to.
func listTypeOf(e ipset.Entry) ListType {
	if e.HasAddresses() {
		return ListTypeIP
	}
	return ListTypeGEO
}

// parseEntries reads entries for a list of one type; of any when want is "", and then the first decides. Everything that
// is wrong is in one error, each with its place, up to maxProblems.
func parseEntries(field string, want ListType, texts []string) ([]ipset.Entry, error) {
	var bad problems
	parsed := make([]ipset.Entry, 0, len(texts))
	for i, text := range texts {
		if bad.full(len(texts) - i) {
			break
		}
		e, err := ipset.Parse(text)
		if err == nil {
			want = cmp.Or(want, listTypeOf(e))
			if listTypeOf(e) != want {
				err = fmt.Errorf("%q does not belong to a list of type %s", text, want)
			}
		}
		if err != nil {
			bad.add(fmt.Sprintf("%s[%d]", field, i), "%v", err)
			continue
		}
		parsed = append(parsed, e)
	}
	return parsed, bad.err()
}

// desiredEntries are what a list shall hold.
type desiredEntries struct {
	texts   []string      // as they came
	entries []ipset.Entry // those that can be read, all of one type; like the others without duplicates
	strange []ipset.Entry // the others: only a list that holds them already may keep them
}

// readDesired refuses what no list can hold, before the list is read. What means the same is kept once, the first.
func readDesired(ctx context.Context, texts []string, merge bool) (*desiredEntries, error) {
	d := &desiredEntries{texts: texts, entries: make([]ipset.Entry, 0, min(len(texts), maxListEntries))}
	seen := make(ipset.Meanings, cap(d.entries))
	for i, text := range texts {
		if i%1024 == 1023 && ctx.Err() != nil { // millions take seconds
			return nil, &changeError{fmt.Errorf("webdelivery: plan: %w", ctx.Err()), NotApplied}
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
			return nil, d.problems(listTypeOf(d.entries[0]), func(ipset.Meaning) bool { return true })
		case len(d.strange) > maxListEntries: // a list can hold them only if it holds them already
			return nil, d.problems(d.likelyType(), func(ipset.Meaning) bool { return false })
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
func (d *desiredEntries) likelyType() ListType {
	if len(d.entries) == 0 {
		return ListTypeIP
	}
	return listTypeOf(d.entries[0])
}

// check refuses entries that do not belong to a list of this type, and new ones that cannot be read. has is what the
// list holds.
func (d *desiredEntries) check(listType ListType, has ipset.Meanings) error {
	fits := len(d.entries) == 0 || listTypeOf(d.entries[0]) == listType
	if fits && len(d.strange) == 0 {
		return nil
	}
	return d.problems(listType, func(m ipset.Meaning) bool { return has[m] })
}

// problems are what is wrong with the desired entries, each with its place, up to maxProblems.
func (d *desiredEntries) problems(listType ListType, has func(ipset.Meaning) bool) error {
	var bad problems
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

// PartialError is a change of many entries that stopped on its way ([NetworkListsService.AddEntries]). Each entry that
// was to be sent is in one of its lists, in order. Its outcome is [NotApplied] when none was or may have been taken,
// else [Unknown].
type PartialError struct {
	Accepted    []string // the service has taken these
	NotAccepted []string // the service has not taken these
	Unknown     []string // the service may have taken these, or not
	Err         error    // what went wrong; Unwrap gives it
}

// newPartialError sorts entries of which those before at were accepted, and count from there failed with err.
func newPartialError(entries []string, at, count int, err error) *PartialError {
	e := &PartialError{Accepted: entries[:at], NotAccepted: entries[at:], Err: err}
	if OutcomeOf(err) != NotApplied {
		e.Unknown, e.NotAccepted = entries[at:at+count], entries[at+count:]
	}
	return e
}

// Error gives how many entries are in each list, and what went wrong.
func (e *PartialError) Error() string {
	return fmt.Sprintf("webdelivery: %d entries accepted, %d not, %d unknown: %v",
		len(e.Accepted), len(e.NotAccepted), len(e.Unknown), e.Err)
}

// Unwrap gives what went wrong.
func (e *PartialError) Unwrap() error { return e.Err }

// LogValue gives the numbers and what went wrong.
func (e *PartialError) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("accepted", len(e.Accepted)), slog.Int("not_accepted", len(e.NotAccepted)),
		slog.Int("unknown", len(e.Unknown)), slog.Any("error", e.Err))
}

// A change of which a part is done is neither applied nor not.
func (e *PartialError) outcomeOfWrite() Outcome {
	if len(e.Accepted)+len(e.Unknown) == 0 {
		return NotApplied
	}
	return Unknown
}

// EntriesLeftError means that a network list still has entries after [NetworkListsService.ClearEntries]. The service
// accepted the deletion, and some entries may be gone, so the outcome is [Unknown]. Repeat the call as long as Left
// becomes smaller. (Service-interface sections 2.6 and 8, open point 24.)
type EntriesLeftError struct {
	ListID string // UUID of the list
	Left   int64  // entries that were read afterwards, at least 1; 1 when the service gives no total
}

// Error gives the list and the number of entries.
func (e *EntriesLeftError) Error() string {
	return fmt.Sprintf("webdelivery: network list %s still has %d entries after the batch deletion; repeat it",
		printable(e.ListID), e.Left)
}

// LogValue gives the list and the number of entries.
func (e *EntriesLeftError) LogValue() slog.Value {
	return slog.GroupValue(slog.String("networklist", printable(e.ListID)), slog.Int64("left", e.Left))
}

func (e *EntriesLeftError) outcomeOfWrite() Outcome { return Unknown }
