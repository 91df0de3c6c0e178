package webdelivery

import (
	"context"
	"fmt"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/lists"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// A list is read in pages, and others may change it between two pages. An entry that moves to an earlier page is
// missed, one that moves to a later page comes twice. A plan made from that would be wrong, and nothing would show
// it. So the pages must pass two checks: all have the same total, which is the number of their entries, and no id comes
// twice.

// readEntries returns the entries with their meanings.
func readEntries(entries []NetworkListEntry) []lists.Entry {
	all := make([]lists.Entry, len(entries))
	for i, e := range entries {
		all[i] = lists.Entry{ID: e.ID, Text: e.Entry, Meaning: lists.Read(e.Entry)}
	}
	return all
}

// snapshot reads all entries of a list, 1,000 per page, and prefetches 4 pages.
//
// Each entry has an id of its own. The document does not say that a list holds a text only once (open point 26
// assumes it of additions). So a text with two ids is two entries. If an id comes twice with the same text, the entry
// moved while the list was read. If it comes twice with different texts, it is not an id.
func (s *NetworkListsService) snapshot(ctx context.Context, id string) ([]NetworkListEntry, []lists.Entry, error) {
	cl, err := EntryOptions{Count: pageOfEntries}.call(id)
	if err != nil {
		return nil, nil, err
	}
	entries, seen := []NetworkListEntry(nil), map[string]int{}
	for e, err := range eachItem[NetworkListEntry](ctx, s.funnel, cl, 0, bulkConcurrency) {
		if err != nil {
			return nil, nil, err
		}
		at, twice := seen[e.ID]
		switch {
		case !address.Fits(e.ID), twice && entries[at].Entry != e.Entry:
			return nil, nil, s.unusable("the entry %q has no id of its own", s.funnel.secrets.Excerpt([]byte(e.Entry), maxShown))
		case twice:
			return nil, nil, s.changed(id, len(entries), fmt.Sprintf("the entry %s comes twice", redact.Line(s.funnel.secrets.Text(e.Entry))))
		}
		seen[e.ID] = len(entries)
		entries = append(entries, e)
	}
	return entries, readEntries(entries), nil
}

const (
	bulkConcurrency = 4     // concurrent calls when the SDK sends many (open point 32)
	pageOfEntries   = 1_000 // entries per page when the SDK reads all
)

// unusable returns the error for a list that Plan cannot use. Nothing was changed.
func (s *NetworkListsService) unusable(format string, args ...any) error {
	return &changeError{fmt.Errorf("%w: %s", ErrBadReply, s.funnel.secrets.Text(fmt.Sprintf(format, args...))), OutcomeNotApplied}
}

// changed returns the error for a list that changed while it was read.
func (s *NetworkListsService) changed(id string, entries int, reason string) error {
	path, err := expand(entriesPath, id)
	if err != nil {
		return err
	}
	reason = s.funnel.secrets.Text("the list changed while it was read: " + reason)
	return &PaginationError{Path: s.funnel.secrets.Text(s.funnel.base.Path(path)), Page: (entries + pageOfEntries - 1) / pageOfEntries, Reason: reason}
}
