package webdelivery

import (
	"context"
	"fmt"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/planning"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// A list is read in pages, and others may change it between two pages: an entry that moves to an earlier page is missed,
// one that moves to a later page comes twice. A plan made of such a reading would be wrong without a sign of it. So all
// pages must give one total, which is the number of their entries; no id may come twice; and where the service also gives
// all entries in one response, the pages must hold the same ones, each as often. Then the pages show the list as it was at one moment.

// held is an entry of the list with its meaning.
type held struct {
	NetworkListEntry
	ipset.Meaning
}

// entry is what is held, without where the service keeps it.
func (h *held) entry() ipset.Entry { return ipset.Entry{Text: h.Entry, Meaning: h.Meaning} }

// heldEntry reads an entry of the list.
func heldEntry(e NetworkListEntry) held { return held{e, ipset.Read(e.Entry).Meaning} }

// meanings returns what entries of a list mean.
func meanings(entries []held) ipset.Meanings {
	set := make(ipset.Meanings, len(entries))
	for i := range entries {
		set[entries[i].Meaning] = true
	}
	return set
}

// wholeList reads a list with all its entries, for a plan.
func (s *NetworkListsService) wholeList(ctx context.Context, id string) (*NetworkList, []held, error) {
	list, err := s.Get(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	list.ID = id
	list.Type = NetworkListType(s.funnel.secrets.Text(string(list.Type)))
	if list.Type == "" { // without it, nobody knows what may be added
		return nil, nil, s.unusable("the list %s has no type", id)
	}
	current, err := s.snapshot(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if list.List != nil && !ipset.Same(list.List, current, (*held).entry) {
		return nil, nil, s.changed(id, len(current), "the list holds other entries than its pages")
	}
	return list, current, nil
}

// snapshot reads a list: all entries, a thousand a call, four calls ahead.
//
// The service document gives each entry an id of its own, and does not say that a list holds a text only once (open point
// 26 assumes so of additions). So a text under two ids is two entries. An id that comes twice with the same text is one
// entry that was moved while the list was read; with another text, it is no id.
func (s *NetworkListsService) snapshot(ctx context.Context, id string) ([]held, error) {
	entries := make([]held, 0, pageOfEntries)
	seen := map[string]int{}
	for e, err := range s.AllEntries(ctx, id, EntryOptions{Count: pageOfEntries}, ReadAhead(bulkConcurrency)) {
		if err != nil {
			return nil, err
		}
		at, twice := seen[e.ID]
		switch {
		case !address.Fits(e.ID), twice && entries[at].Entry != e.Entry:
			return nil, s.unusable("the entry %q has no id of its own", s.funnel.secrets.Excerpt([]byte(e.Entry), maxShown, false))
		case twice:
			return nil, s.changed(id, len(entries), fmt.Sprintf("the entry %s comes twice", redact.Line(s.funnel.secrets.Text(e.Entry))))
		}
		seen[e.ID] = len(entries)
		entries = append(roomFor(entries, 1), heldEntry(e))
	}
	return entries, nil
}

const (
	bulkConcurrency = 4     // calls that run at once where the SDK makes many by itself (open point 32)
	pageOfEntries   = 1_000 // entries that are asked for at once where all are needed
)

// unusable is the error for a list that cannot be planned with. Nothing was changed.
func (s *NetworkListsService) unusable(format string, args ...any) error {
	return &changeError{fmt.Errorf("%w: %s", ErrBadReply, s.funnel.secrets.Text(fmt.Sprintf(format, args...))), OutcomeNotApplied}
}

// changed is the error for a list that changed while so many of its entries were read.
func (s *NetworkListsService) changed(id string, entries int, reason string) error {
	path, err := expand(entriesPath, id)
	if err != nil {
		return err
	}
	reason = s.funnel.secrets.Text("the list changed while it was read: " + reason)
	return &PaginationError{Path: s.funnel.secrets.Text(s.funnel.base.Path(path)), Page: (entries + pageOfEntries - 1) / pageOfEntries, Reason: reason}
}

// fingerprint knows a list again: the same entries under the same ids.
func fingerprint(entries []held) string {
	return planning.Fingerprint(entries, func(e *held) (id, text string) { return e.ID, e.Entry })
}

// roomFor makes room for n more by doubling. If a slice becomes long, append alone copies it more often.
func roomFor[T any](s []T, n int) []T {
	if cap(s)-len(s) < n {
		s = slices.Grow(s, max(n, len(s)))
	}
	return s
}
