package webdelivery

import (
	"context"
	"fmt"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/planning"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// A list is read in pages, and others may change it between two pages. An entry that moves to an earlier page is
// missed, one that moves to a later page comes twice. A plan made from that would be wrong, and nothing would show
// it. So the pages must pass three checks. All pages have the same total, which is the number of their entries. No id
// comes twice. If the service also sends all entries in one response, the pages hold the same entries, each as often.

// read returns the text of an entry of a list, and its meaning.
func (e *NetworkListEntry) read() ipset.Entry {
	return ipset.Entry{Text: e.Entry, Meaning: ipset.Read(e.Entry).Meaning}
}

// meanings returns the meanings of entries.
func meanings(entries []NetworkListEntry) ipset.Meanings {
	set := make(ipset.Meanings, len(entries))
	for i := range entries {
		set[entries[i].read().Meaning] = true
	}
	return set
}

// wholeList reads a list with all its entries, for a plan.
func (s *NetworkListsService) wholeList(ctx context.Context, id string) (*NetworkList, []NetworkListEntry, error) {
	list, err := s.Get(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	list.ID = id
	list.Type = NetworkListType(s.funnel.secrets.Text(string(list.Type)))
	if list.Type == "" { // without it, Plan does not know what it may add
		return nil, nil, s.unusable("the list %s has no type", id)
	}
	current, err := s.snapshot(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if list.List != nil && !ipset.Same(list.List, current, (*NetworkListEntry).read) {
		return nil, nil, s.changed(id, len(current), "the list holds other entries than its pages")
	}
	return list, current, nil
}

// snapshot reads all entries of a list, 1,000 per page, and prefetches 4 pages.
//
// Each entry has an id of its own. The document does not say that a list holds a text only once (open point 26
// assumes it of additions). So a text with two ids is two entries. If an id comes twice with the same text, the entry
// moved while the list was read. If it comes twice with different texts, it is not an id.
func (s *NetworkListsService) snapshot(ctx context.Context, id string) ([]NetworkListEntry, error) {
	cl, err := EntryOptions{Count: pageOfEntries}.call(id)
	if err != nil {
		return nil, err
	}
	entries, seen := []NetworkListEntry(nil), map[string]int{}
	for e, err := range eachItem[NetworkListEntry](ctx, s.funnel, cl, 0, bulkConcurrency) {
		if err != nil {
			return nil, err
		}
		at, twice := seen[e.ID]
		switch {
		case !address.Fits(e.ID), twice && entries[at].Entry != e.Entry:
			return nil, s.unusable("the entry %q has no id of its own", s.funnel.secrets.Excerpt([]byte(e.Entry), maxShown))
		case twice:
			return nil, s.changed(id, len(entries), fmt.Sprintf("the entry %s comes twice", redact.Line(s.funnel.secrets.Text(e.Entry))))
		}
		seen[e.ID] = len(entries)
		entries = append(entries, e)
	}
	return entries, nil
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

// fingerprint is the same for the same entries with the same ids.
func fingerprint(entries []NetworkListEntry) string {
	return planning.Fingerprint(entries, func(e *NetworkListEntry) (id, text string) { return e.ID, e.Entry })
}
