package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/lists"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// parseEntries reads entries for a list of this type, or of one type if listType is "". One error lists everything that is
// wrong with its place, up to maxProblems, but only one entry of another type than the first one.
func parseEntries(field, listType string, texts []string) ([]lists.Entry, error) {
	entries := make([]lists.Entry, 0, len(texts))
	var bad problems
	err := bad.entries(field, len(texts), func(yield func(int, error) bool) {
		mixed := false
		for i, text := range texts {
			e, err := lists.ParseFor(listType, text)
			if err == nil {
				entries = append(entries, e)
				if mixed || e.Type() == entries[0].Type() {
					continue
				}
				mixed, err = true, lists.Mixed(entries[0], e)
			}
			if !yield(i, err) {
				return
			}
		}
	})
	return entries, err
}

// entries adds the problems of some of n entries with their places, and returns all problems as an error.
func (p *problems) entries(field string, n int, wrong iter.Seq2[int, error]) error {
	for i, problem := range wrong {
		p.add(fmt.Sprintf("%s[%d]", field, i), "%v", problem)
		if p.full(n - i - 1) {
			break
		}
	}
	return p.err()
}

// addedEntries is the response to one call that adds entries. The service document does not show it (open point 21).
type addedEntries struct {
	task    *Task              // nil if the response names none
	entries []NetworkListEntry // nil if the response does not list them
	*response
}

// AddEntries adds up to 50,000 entries to a list, 5,000 per call, in order: either IP addresses and CIDR ranges, or
// country codes. An entry that is given twice is sent once, and one that the list already holds stays there once. It
// returns the ids of the tasks in the responses, for [TasksService.WaitAll]; nil if there were none.
//
// If entries are of neither kind or of both, or too many, AddEntries returns a [*ValidationError] and sends nothing.
// If a call fails, it stops and returns the tasks so far with a [*PartialError], which says what was accepted, what
// not, and what is unknown. It is safe to call it again with all entries. A 2xx response without a task or entries
// counts as accepted, but proves nothing: if the entries must be there, read the list.
func (s *NetworkListsService) AddEntries(ctx context.Context, id string, entries []string) (tasks []string, err error) {
	if _, err := expand(entriesPath, id); err != nil { // checks the id even if there are no entries
		return nil, err
	}
	parsed, err := parseEntries("entries", "", entries)
	if err != nil {
		return nil, err
	}
	texts := lists.Texts(lists.SetOf(parsed).Entries)
	if len(texts) > s.limits.List {
		return nil, invalid("entries", "%d are more than the %d that a list can hold", len(texts), s.limits.List)
	}
	accepted := 0
	for part := range slices.Chunk(texts, s.limits.Call) {
		added, err := s.addPart(ctx, id, part)
		if err != nil {
			partial := &PartialError{Accepted: texts[:accepted], NotAccepted: texts[accepted:], Err: err}
			if OutcomeOf(err) != OutcomeNotApplied {
				partial.Unknown, partial.NotAccepted = part, texts[accepted+len(part):]
			}
			return tasks, partial
		}
		if accepted += len(part); added.task != nil {
			tasks = append(tasks, added.task.ID)
		}
	}
	return tasks, nil
}

// addPart adds entries that fit into one call.
func (s *NetworkListsService) addPart(ctx context.Context, id string, texts []string) (*addedEntries, error) {
	cl := at("NetworkLists.AddEntries", http.MethodPost, entriesPath, id)
	items := make([]map[string]string, len(texts))
	for i, text := range texts {
		items[i] = map[string]string{s.conn.dialect.EntryKey: text}
	}
	cl.Body, _ = marshalJSON(items) // texts can always be encoded
	r, err := s.conn.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	added := &addedEntries{response: &r}
	if added.task, err = r.optionalTask(id); err != nil {
		return nil, err
	}
	if wire.Decode(r.Body, &added.entries) != nil ||
		slices.ContainsFunc(added.entries, func(e NetworkListEntry) bool { return e.lacks() != "" }) {
		added.entries = nil // these are not entries
	}
	return added, nil
}

// PartialError means that a change of many entries stopped halfway ([NetworkListsService.AddEntries],
// [NetworkListsService.RemoveEntries]). Each entry is in one of its lists, in order. The outcome is
// [OutcomeNotApplied] if the service has certainly changed no entry, otherwise [OutcomeUnknown].
type PartialError struct {
	Accepted    []string // the service accepted the change of these
	NotAccepted []string // the service did not accept the change of these
	Unknown     []string // the service may have accepted the change of these
	Err         error    // the error that stopped it; Unwrap returns it
}

// Error returns the length of each list, and the text of Err.
func (e *PartialError) Error() string {
	return fmt.Sprintf("webdelivery: %s accepted, %d not, %d unknown: %s",
		counted(len(e.Accepted), "entry", "entries"), len(e.NotAccepted), len(e.Unknown), within(fmt.Sprint(e.Err)))
}

// Unwrap returns Err.
func (e *PartialError) Unwrap() error { return e.Err }

// A change that was applied in part is unknown as a whole.
func (e *PartialError) outcomeOfWrite() Outcome {
	if len(e.Accepted)+len(e.Unknown) == 0 {
		return OutcomeNotApplied
	}
	return OutcomeUnknown
}

// RemoveEntriesResult is the result of [NetworkListsService.RemoveEntries]. Values that mean the same appear once,
// spelled like the first.
type RemoveEntriesResult struct {
	Removed   []string `json:"removed"`     // the list held these, and they were removed
	NotInList []string `json:"not_in_list"` // the list did not hold these
	Tasks     []string `json:"tasks"`       // ids of the tasks in the responses; nil if there were none
}

// RemoveEntries removes entries by their values: every entry that means the same as one, however it is written:
// 2001:DB8::1 is 2001:db8::1. An address does not remove a range that contains it. A value that the list does not hold
// is returned in NotInList. If a value is no address, range or two-letter code, RemoveEntries returns a
// [*ValidationError] and removes nothing; [NetworkListsService.DeleteEntry] removes any entry.
//
// RemoveEntries reads the list, and sends one request per entry, 4 at a time. If one fails, it sends no more, and
// returns the result so far with a [*PartialError] about the values that the list held. It is safe to call it again
// with all values. It does not wait for the tasks. The task of a removal whose response was lost is not in Tasks.
func (s *NetworkListsService) RemoveEntries(ctx context.Context, id string, values []string) (*RemoveEntriesResult, error) {
	if _, err := expand(entriesPath, id); err != nil { // checks the id even if there are no values
		return nil, err
	}
	result := &RemoveEntriesResult{}
	if len(values) == 0 {
		return result, nil
	}
	if err := checkValues(values); err != nil {
		return nil, err
	}
	_, held, err := s.snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	wanted := lists.NewSet(len(values))
	for _, text := range values {
		wanted.Add(lists.Entry{Text: text, Meaning: lists.Read(text)})
	}
	type state struct{ count, removed, unknown int } // numbers of entries
	states, ids, valueOf := make([]state, len(wanted.Entries)), []string(nil), []int(nil)
	for _, e := range held {
		if at, found := wanted.Find(e.Meaning); found {
			ids, valueOf = append(ids, e.ID), append(valueOf, at)
			states[at].count++
		}
	}
	err = s.removeEach(ctx, id, ids, func(i int, task *Task, err error) {
		of := &states[valueOf[i]]
		switch {
		case err == nil:
			of.removed++
			if task.ID != "" {
				result.Tasks = append(result.Tasks, task.ID)
			}
		case OutcomeOf(err) != OutcomeNotApplied:
			of.unknown++
		}
	})
	partial := &PartialError{Err: err}
	for i, of := range states {
		in := &partial.NotAccepted
		switch {
		case of.count == 0:
			in = &result.NotInList
		case of.removed == of.count:
			in = &result.Removed
		case of.removed+of.unknown > 0: // the list may hold a value several times
			in = &partial.Unknown
		}
		*in = append(*in, wanted.Entries[i].Text)
	}
	if err == nil {
		return result, nil
	}
	partial.Accepted = result.Removed
	return result, partial
}

// checkValues refuses values that no list holds. It may hold a country code that is not assigned, such as XK.
func checkValues(values []string) error {
	var bad problems
	for i, text := range values {
		if _, err := lists.Parse(text); err != nil && len(text) != len("XK") {
			bad.add(fmt.Sprintf("values[%d]", i), "%v", err)
		}
	}
	return bad.err()
}

// removeEach removes entries by their ids, several at once, and reports each removal, one call at a time. After the
// first failure, which it returns, it starts no more removals, but waits for those in progress.
func (s *NetworkListsService) removeEach(ctx context.Context, id string, entries []string, report func(i int, task *Task, err error)) (failed error) {
	type removal struct {
		i    int
		task *Task
		err  error
		join func()
	}
	ended := make(chan removal)
	for next, underWay := 0, 0; underWay > 0 || failed == nil && next < len(entries); {
		if failed == nil && next < len(entries) && underWay < bulkConcurrency {
			go func(i int) {
				ctx, join := branch(ctx)
				task, err := s.removeEntry(ctx, id, entries[i])
				ended <- removal{i, task, err, join}
			}(next)
			underWay, next = underWay+1, next+1
			continue
		}
		r := <-ended
		if failed == nil { // of several responses, the caller sees the first failure
			r.join()
		}
		underWay--
		failed = cmp.Or(failed, r.err)
		report(r.i, r.task, r.err)
	}
	return failed
}

// removeEntry removes an entry. If the service does not find it, removeEntry tries to read it: if that fails, too, the
// entry is already gone; otherwise the address for deletions is wrong (open point 22).
func (s *NetworkListsService) removeEntry(ctx context.Context, id, entryID string) (*Task, error) {
	task, err := s.deleteEntry(ctx, id, entryID)
	if errors.Is(err, ErrNotFound) {
		_, readErr := s.GetEntry(ctx, id, entryID)
		if errors.Is(readErr, ErrNotFound) {
			return &Task{Complete: true}, nil
		}
		if e, ok := errors.AsType[*Error](err); ok && readErr == nil {
			e.hint = "the entry exists, so the service deletes at another path; set Dialect.EntryDeletePath"
		}
	}
	return task, err
}

// DeleteEntry removes one entry by its id. The task tracks the deployment of the changed list. If the response names
// none, or if an earlier attempt of the call removed the entry, the task is complete and has no id. If entryID is an
// address, a range or a country, it returns a [*ValidationError]: use [NetworkListsService.RemoveEntries].
func (s *NetworkListsService) DeleteEntry(ctx context.Context, id, entryID string) (*Task, error) {
	if _, err := lists.Parse(entryID); err == nil {
		return nil, invalid("entry_id", "%q is the value of an entry, not its id; use RemoveEntries", entryID)
	}
	return s.deleteEntry(ctx, id, entryID)
}

func (s *NetworkListsService) deleteEntry(ctx context.Context, id, entryID string) (*Task, error) {
	return s.change(ctx, at("NetworkLists.DeleteEntry", http.MethodDelete, s.conn.dialect.EntryDeletePath, id, entryID), id, entryID)
}

// ClearEntries removes all entries and keeps the list. If some are left, also because others added them meanwhile, or
// if it cannot read that, it returns an error together with the task, with the outcome [OutcomeUnknown]: call it
// again.
//
// If the response has a task that is not complete, the entries may go only when it completes, so ClearEntries does not
// look: wait for it. Without a task in the response, the returned one is complete and has no id.
func (s *NetworkListsService) ClearEntries(ctx context.Context, id string) (*Task, error) {
	path, query, err := s.batchDeletion(ctx, id)
	if err != nil {
		return nil, err
	}
	task, err := s.change(ctx, describe("NetworkLists.ClearEntries", s.conn.dialect.BatchDeletionMethod, path, query), id)
	if err != nil || !task.ended() {
		return task, err
	}
	rest, facts, err := readPage[NetworkListEntry](ctx, s.conn, EntryOptions{Count: 1}.call(id))
	if err != nil {
		return task, &outcomeError{fmt.Errorf("entries left after the batch deletion: %w", err), OutcomeUnknown}
	}
	left := max(rest.Total, int64(len(rest.Items)))
	if rest.HasMore || facts.Next != nil || rest.PageCount > 1 { // a page_count of 1 announces none, because that page may be empty
		left = max(left, 1)
	}
	if left > 0 {
		return task, &outcomeError{fmt.Errorf("webdelivery: network list %s still has %s after the batch deletion; call ClearEntries again",
			redact.Line(s.conn.secrets.Text(id)), counted(left, "entry", "entries")), OutcomeUnknown}
	}
	return task, nil
}

// batchDeletion reads the address that clears a list. A bad address comes from the service and is not the caller's
// mistake.
func (s *NetworkListsService) batchDeletion(ctx context.Context, id string) (path, query string, err error) {
	cl := objectCall("NetworkLists.Get", listPath, "includelist=false", id)
	listAt := cl.Path
	r, err := s.conn.send(ctx, cl)
	if err != nil {
		return "", "", err
	}
	var list NetworkList
	if err := r.decodeResource(&list); err != nil {
		return "", "", err
	}
	const field = "entries_batch_deletion_uri"
	if path, query, err = s.conn.resolve(field, list.EntriesBatchDeletionURI); err != nil {
		return "", "", r.bad("", err)
	}
	if len(path) <= len(listAt) || !strings.EqualFold(path[:len(listAt)+1], listAt+"/") { // as sameID compares ids
		return "", "", r.bad(field+" is not below "+listAt, nil)
	}
	return path, query, nil
}

// readEntries returns the entries with their meanings.
func readEntries(entries []NetworkListEntry) []lists.Entry {
	all := make([]lists.Entry, len(entries))
	for i, e := range entries {
		all[i] = lists.Entry{ID: e.ID, Text: e.Entry, Meaning: lists.Read(e.Entry)}
	}
	return all
}

// snapshot reads all entries of a list in large pages, and prefetches 4 of them.
//
// Others may change the list between two pages. An entry that moves to an earlier page is missed, one that moves to a
// later page appears twice, and a plan made from that would be wrong. So all pages must have the same total, which is
// the number of their entries, and no id may appear twice. The document does not say that a list holds a text only once
// (open point 26 assumes it of additions), so a text with two ids is two entries. An id with two texts is not an id.
func (s *NetworkListsService) snapshot(ctx context.Context, id string) (entries []NetworkListEntry, held []lists.Entry, err error) {
	pagesOf := func(count int) call { return EntryOptions{Count: count}.call(id) }
	entries, err = Collect(largePages[NetworkListEntry](ctx, s.conn, pagesOf, bulkConcurrency))
	if err != nil {
		return nil, nil, err
	}
	secrets, seen := s.conn.secrets, make(map[string]int, len(entries))
	for i, e := range entries {
		at, twice := seen[e.ID]
		switch {
		case !address.Fits(e.ID), twice && entries[at].Entry != e.Entry:
			return nil, nil, s.unusable("the entry %q has no id of its own", secrets.Excerpt([]byte(e.Entry), maxShown))
		case twice:
			return nil, nil, s.conn.incomplete(pagesOf(0).Path, fmt.Sprintf("after page %d: the list changed while it was read: the entry %s appears twice",
				(i+pageOfEntries-1)/pageOfEntries, e.Entry))
		}
		seen[e.ID] = i
	}
	return entries, readEntries(entries), nil
}

// unusable returns the error for a list that cannot be used. Nothing was changed.
func (s *NetworkListsService) unusable(format string, args ...any) error {
	return &outcomeError{fmt.Errorf("%w: %s", ErrBadResponse, s.conn.secrets.Text(fmt.Sprintf(format, args...))), OutcomeNotApplied}
}
