package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/lists"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// readEntries returns the entries with their meanings.
func readEntries(entries []NetworkListEntry) []lists.Entry {
	all := make([]lists.Entry, len(entries))
	for i, e := range entries {
		all[i] = lists.Entry{ID: e.ID, Text: e.Entry, Meaning: lists.Read(e.Entry)}
	}
	return all
}

const (
	bulkConcurrency = 4     // concurrent calls when the SDK sends many (open point 32)
	pageOfEntries   = 1_000 // entries per page when the SDK reads all
)

// largePages returns the items of all pages, 1,000 per page. The document names no largest count (open point 49), so a
// service may refuse that one with 400. Then the pages have the size that the service chooses.
func largePages[T any, P resourceOf[T]](ctx context.Context, f *conn, pagesOf func(count int) call, ahead int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		// read yields all items, unless the first page is refused. refused is the error of the large one.
		read := func(count int, refused error) error {
			first := true
			for item, err := range eachItem[T, P](ctx, f, pagesOf(count), ahead) {
				if e, ok := errors.AsType[*Error](err); first && refused == nil && ok && e.StatusCode == http.StatusBadRequest {
					return err
				}
				if first && err != nil {
					err = cmp.Or(refused, err)
				}
				if first = false; !yield(item, err) {
					break
				}
			}
			return nil
		}
		if refused := read(pageOfEntries, nil); refused != nil {
			_ = read(0, refused)
		}
	}
}

// snapshot reads all entries of a list in large pages, and prefetches 4 of them.
//
// Others may change the list between two pages. An entry that moves to an earlier page is missed, one that moves to a
// later page appears twice, and a plan made from that would be wrong. So all pages must have the same total, which is
// the number of their entries, and no id may appear twice. The document does not say that a list holds a text only once
// (open point 26 assumes it of additions), so a text with two ids is two entries. An id with two texts is not an id.
func (s *NetworkListsService) snapshot(ctx context.Context, id string) (entries []NetworkListEntry, held []lists.Entry, err error) {
	pagesOf := func(count int) call { return EntryOptions{Count: count}.call(id) }
	for e, err := range largePages[NetworkListEntry](ctx, s.conn, pagesOf, bulkConcurrency) {
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, e)
	}
	secrets, seen := s.conn.secrets, make(map[string]int, len(entries))
	for i, e := range entries {
		at, twice := seen[e.ID]
		switch {
		case !address.Fits(e.ID), twice && entries[at].Entry != e.Entry:
			return nil, nil, s.unusable("the entry %q has no id of its own", secrets.Excerpt([]byte(e.Entry), maxShown))
		case twice:
			reason := fmt.Sprintf("the list changed while it was read: the entry %s appears twice", redact.Line(secrets.Text(e.Entry)))
			return nil, nil, &IncompleteError{Path: secrets.Text(s.conn.base.Path(pagesOf(0).Path)), Page: (i + pageOfEntries - 1) / pageOfEntries, Reason: reason}
		}
		seen[e.ID] = i
	}
	return entries, readEntries(entries), nil
}

// unusable returns the error for a list that cannot be used. Nothing was changed.
func (s *NetworkListsService) unusable(format string, args ...any) error {
	return &changeError{fmt.Errorf("%w: %s", ErrBadResponse, s.conn.secrets.Text(fmt.Sprintf(format, args...))), OutcomeNotApplied}
}
