package webdelivery

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/lists"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// parseEntries reads entries for a list of this type. If listType is "", the first readable entry decides. One error
// names everything that is wrong, each with its place, up to maxProblems.
func parseEntries(field, listType string, texts []string) ([]lists.Entry, error) {
	entries := make([]lists.Entry, 0, len(texts))
	var bad problems
	err := bad.entries(field, len(texts), func(yield func(int, error) bool) {
		for i, text := range texts {
			e, err := lists.ParseFor(listType, text)
			if err == nil {
				listType, entries = e.Type(), append(entries, e)
			} else if !yield(i, err) {
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

// AddEntriesReply is the response to one call that adds entries. The service document does not show it, so each field
// may be nil (open point 21). An object with an id counts as a task only if it has other members of a task or no
// other member.
type AddEntriesReply struct {
	Task    *Task              `json:"task,omitempty"`    // only its ID is set if the response has no more
	Entries []NetworkListEntry `json:"entries,omitempty"` // the added entries, if the response lists them
	Raw     json.RawMessage    `json:"raw,omitempty"`     // the body of the response, as a JSON string if it is not JSON; empty if there was none
}

// AddEntriesResult is the result of [NetworkListsService.AddEntries].
type AddEntriesResult struct {
	Added   []string          `json:"added"`   // the entries that were sent: without duplicates, countries in upper case
	Replies []AddEntriesReply `json:"replies"` // one per call
}

// AddEntries adds up to 50,000 entries to a list, 5,000 per call, in order. The entries are either IP addresses and
// CIDR ranges, or country codes, which are sent in upper case. An entry that comes twice is sent once (open point 27
// says which entries are the same). An entry that the list already has stays there once (open point 26). Without
// entries, AddEntries sends nothing.
//
// If entries are invalid, AddEntries returns a [*ValidationError] with their places and sends nothing. Invalid are
// entries of neither kind, mixed kinds, and more entries than a list can hold. If a call fails, AddEntries stops and
// returns the result so far together with a [*PartialError]. It says which entries were accepted, which were not, and
// which are unknown. You may safely call AddEntries again with all of them.
//
// The service decides whether the list has room. AddEntries does not wait for the tasks in the responses. A 2xx
// response of any shape counts as accepted. If it neither names a task nor shows the entries, it proves nothing: if
// the entries must be there, read the list.
func (s *NetworkListsService) AddEntries(ctx context.Context, id string, entries []string) (*AddEntriesResult, error) {
	if _, err := expand(entriesPath, id); err != nil { // checks the id also if there are no entries
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
	result := &AddEntriesResult{}
	for part := range slices.Chunk(texts, s.limits.Call) {
		at := len(result.Added)
		reply, _, err := s.addPart(ctx, id, part)
		if err != nil {
			partial := &PartialError{Accepted: texts[:at], NotAccepted: texts[at:], Err: err}
			if OutcomeOf(err) != OutcomeNotApplied {
				partial.Unknown, partial.NotAccepted = part, texts[at+len(part):]
			}
			return result, partial
		}
		result.Added = texts[:at+len(part)]
		result.Replies = append(result.Replies, *reply)
	}
	return result, nil
}

// addPart adds entries that fit into one call. It also returns the response.
func (s *NetworkListsService) addPart(ctx context.Context, id string, texts []string) (*AddEntriesReply, *response, error) {
	cl := at(http.MethodPost, entriesPath, id)
	items := make([]map[string]string, len(texts))
	for i, text := range texts {
		items[i] = map[string]string{s.funnel.dialect.EntryKey: text}
	}
	body, err := marshalJSON(items)
	if err != nil {
		return nil, nil, err
	}
	cl.Body = body
	r, err := s.funnel.send(ctx, cl)
	if err != nil {
		return nil, nil, err
	}
	result := &AddEntriesReply{Raw: rawJSON(r.Body)}
	if result.Task, err = r.optionalTask(id); err != nil {
		return nil, nil, err
	}
	if wire.Decode(r.Body, &result.Entries) != nil ||
		slices.ContainsFunc(result.Entries, func(e NetworkListEntry) bool { return e.lacks() != "" }) {
		result.Entries = nil // these are no entries; Raw has them
	}
	return result, &r, nil
}

// PartialError means that a change of many entries stopped halfway ([NetworkListsService.AddEntries]). Each entry is
// in one of its lists, in order. The outcome is [OutcomeNotApplied] if the service has certainly taken no entry,
// otherwise [OutcomeUnknown].
type PartialError struct {
	Accepted    []string // the service has accepted these
	NotAccepted []string // the service has not accepted these
	Unknown     []string // the service may have accepted these
	Err         error    // the error that stopped it; Unwrap returns it
}

// Error returns the length of each list, and the text of Err.
func (e *PartialError) Error() string {
	return fmt.Sprintf("webdelivery: %d entries accepted, %d not, %d unknown: %s",
		len(e.Accepted), len(e.NotAccepted), len(e.Unknown), within(fmt.Sprint(e.Err)))
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

// DeleteEntry removes one entry by its id. The task tracks the deployment of the changed list. It is nil if the
// response has none, or if an earlier attempt of the call had removed the entry. If the entry does not exist,
// DeleteEntry returns [ErrNotFound].
func (s *NetworkListsService) DeleteEntry(ctx context.Context, id, entryID string) (*Task, error) {
	return s.change(ctx, at(http.MethodDelete, s.funnel.dialect.EntryDeletePath, id, entryID), id, entryID)
}

// ClearEntries removes all entries and keeps the list. It uses the address that the list has for this (open point
// 24). It sends up to three requests: one reads the list, one clears it, and one reads how many entries are left. The
// task is nil if the response has none.
//
// If the task is not complete, the entries may go when it completes, so ClearEntries does not read what is left. Wait
// for the task with [TasksService.Wait], and read Total of [NetworkListsService.Entries] with a Count of 1.
// Otherwise, if entries are left or the page announces more, ClearEntries returns an [*EntriesLeftError] together
// with the task. Entries that others added meanwhile count, too. A service may remove only a part of the entries per
// call, so you may call ClearEntries again. If it cannot read what is left, it returns that error together with the
// task, and the outcome is [OutcomeUnknown].
//
// If the list does not exist, ClearEntries returns [ErrNotFound]. If the response has another id, or no address for
// the deletion below the list, it returns [ErrBadReply] and does not clear the list.
func (s *NetworkListsService) ClearEntries(ctx context.Context, id string) (*Task, error) {
	path, query, err := s.batchDeletion(ctx, id)
	if err != nil {
		return nil, err
	}
	task, err := s.change(ctx, describe(s.funnel.dialect.BatchDeletionMethod, path, query), id)
	if err != nil || task != nil && !task.ended() {
		return task, err
	}
	rest, err := s.Entries(ctx, id, EntryOptions{Count: 1})
	if err != nil {
		return task, &changeError{fmt.Errorf("entries left after the batch deletion: %w", err), OutcomeUnknown}
	}
	if left := leftIn(rest); left > 0 {
		return task, &EntriesLeftError{ListID: s.funnel.secrets.Text(id), Left: left}
	}
	return task, nil
}

// leftIn returns how many entries the first page announces, at least 1 if it announces another page. A page_count of
// 1 announces none, because that page may be empty.
func leftIn(first *Page[NetworkListEntry]) int64 {
	left := max(first.Total, int64(len(first.Items)))
	if first.HasMore || first.NextURI != "" || first.PageCount > 1 {
		left = max(left, 1)
	}
	return left
}

// batchDeletion reads the address that clears a list. A bad address is not the caller's mistake, as it is in a
// response.
func (s *NetworkListsService) batchDeletion(ctx context.Context, id string) (path, query string, err error) {
	cl := objectCall(listPath, "includelist=false", id)
	own := cl.Path
	r, err := s.funnel.send(ctx, cl)
	if err != nil {
		return "", "", err
	}
	var list NetworkList
	if err := r.decodeResource(&list); err != nil {
		return "", "", err
	}
	const field = "entries_batch_deletion_uri"
	if path, query, err = s.funnel.resolveSent(field, list.EntriesBatchDeletionURI); err != nil {
		return "", "", r.bad("", err)
	}
	if len(path) <= len(own) || !strings.EqualFold(path[:len(own)+1], own+"/") { // as sameID compares ids
		return "", "", r.bad(field+" is not below "+own, nil)
	}
	return path, query, nil
}

// EntriesLeftError means that a network list still has entries after [NetworkListsService.ClearEntries]. The service
// accepted the deletion, and some entries may be gone, so the outcome is [OutcomeUnknown]. Call ClearEntries again as
// long as Left gets smaller. (Open point 24.)
type EntriesLeftError struct {
	ListID string // UUID of the list
	Left   int64  // entries after the deletion, at least 1; 1 if the response has no total
}

// Error returns the list and the number of entries.
func (e *EntriesLeftError) Error() string {
	return fmt.Sprintf("webdelivery: network list %s still has %d entries after the batch deletion; repeat it",
		redact.Line(e.ListID), e.Left)
}

func (e *EntriesLeftError) outcomeOfWrite() Outcome { return OutcomeUnknown }
