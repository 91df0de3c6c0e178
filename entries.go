package webdelivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// listTypeOf returns the type of list that an entry belongs to.
func listTypeOf(e ipset.Entry) NetworkListType {
	if e.HasAddresses() {
		return ListTypeIP
	}
	return ListTypeGEO
}

// parseEntries reads entries for a list of one type; of any when want is "", and then the first decides. Everything
// that is wrong is in one error, each with its place, up to maxProblems.
func parseEntries(field string, want NetworkListType, texts []string) ([]ipset.Entry, error) {
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

// AddEntriesReply is what the service answers to one call that adds entries. The service document does not show it, so
// each of its fields may be nil (service-interface section 4.6, open point 21). An object with an id is a task only if
// it has other members of a task, or no other member.
type AddEntriesReply struct {
	Task    *Task              `json:"task,omitempty"`    // with no more than its ID when the service gives no more
	Entries []NetworkListEntry `json:"entries,omitempty"` // those that were added, when the service lists them
	Raw     json.RawMessage    `json:"raw,omitempty"`     // the reply as it came; empty when there was none
}

// AddEntriesResult is what became of [NetworkListsService.AddEntries].
type AddEntriesResult struct {
	Added   []string          `json:"added"`   // what was sent: without duplicates, countries in upper case
	Replies []AddEntriesReply `json:"replies"` // one a call
}

// AddEntries adds up to 50,000 entries to a list, 5,000 a call, in order (service-interface sections 4.6 and 8): IP
// addresses and CIDR ranges, or country codes, which are sent in upper case. An entry that comes twice is sent once
// (open point 27 says what is the same); one that the list has already stays one (open point 26).
//
// Entries that are neither, or not all of one kind, are a [*ValidationError] that names their places, and so are more
// than a list can hold; nothing is sent then. A call that fails ends it with a [*PartialError] that says which entries
// were accepted, which not, and of which that is unknown; the result comes with it and has the replies so far.
// Repeating it with all of them does no harm. Without entries nothing is sent. Whether there is room in the list is for
// the service to say. Tasks of the replies are not waited for. A 2xx response of any shape counts as accepted: one that
// neither names a task nor shows the entries proves nothing, so read the list if they must be there.
func (s *NetworkListsService) AddEntries(ctx context.Context, id string, entries []string) (*AddEntriesResult, error) {
	if _, err := s.via().expand(ctx, entriesPath, id); err != nil { // also without entries
		return nil, err
	}
	parsed, err := parseEntries("entries", "", entries)
	if err != nil {
		return nil, err
	}
	texts := ipset.Texts(ipset.Unique(parsed))
	if len(texts) > maxListEntries {
		return nil, invalid("entries", "%d are more than the %d that a list can hold", len(texts), maxListEntries)
	}
	result := &AddEntriesResult{}
	for at := 0; at < len(texts); at += maxCallEntries {
		part := texts[at:min(at+maxCallEntries, len(texts))]
		reply, _, err := s.addPart(ctx, id, part)
		if err != nil {
			return result, newPartialError(texts, at, len(part), err)
		}
		result.Added = texts[:at+len(part)]
		result.Replies = append(result.Replies, *reply)
	}
	return result, nil
}

// addPart adds what fits into one call. It also gives the response.
func (s *NetworkListsService) addPart(ctx context.Context, id string, texts []string) (*AddEntriesReply, *response, error) {
	path, err := expand(entriesPath, id)
	if err != nil {
		return nil, nil, err
	}
	items := make([]map[string]string, len(texts))
	for i, text := range texts {
		items[i] = map[string]string{s.funnel.dialect.EntryKey: text}
	}
	body, err := marshalJSON(items)
	if err != nil {
		return nil, nil, err
	}
	cl := describe(http.MethodPost, path, "")
	cl.Body = body
	r, err := s.funnel.send(ctx, cl)
	if err != nil {
		return nil, nil, err
	}
	result := &AddEntriesReply{Raw: r.Body}
	if result.Task, err = r.optionalTask(id); err != nil {
		return nil, nil, err
	}
	if wire.Decode(r.Body, &result.Entries) != nil || wire.Defect(r.Body) != "" ||
		slices.ContainsFunc(result.Entries, func(e NetworkListEntry) bool { return e.lacks() != "" }) {
		result.Entries = nil // it lists something else; Raw has it
	}
	return result, &r, nil
}

// PartialError is a change of many entries that stopped on its way ([NetworkListsService.AddEntries]). Each entry that
// was to be sent is in one of its lists, in order. Its outcome is [OutcomeNotApplied] when none was or may have been
// taken, else [OutcomeUnknown].
type PartialError struct {
	Accepted    []string // the service has taken these
	NotAccepted []string // the service has not taken these
	Unknown     []string // the service may have taken these, or not
	Err         error    // what went wrong; Unwrap gives it
}

// newPartialError sorts entries of which those before at were accepted, and count from there failed with err.
func newPartialError(entries []string, at, count int, err error) *PartialError {
	e := &PartialError{Accepted: entries[:at], NotAccepted: entries[at:], Err: err}
	if OutcomeOf(err) != OutcomeNotApplied {
		e.Unknown, e.NotAccepted = entries[at:at+count], entries[at+count:]
	}
	return e
}

// Error gives how many entries are in each list, and what went wrong.
func (e *PartialError) Error() string {
	return fmt.Sprintf("webdelivery: %d entries accepted, %d not, %d unknown: %s",
		len(e.Accepted), len(e.NotAccepted), len(e.Unknown), redact.Within(prefix, fmt.Sprint(e.Err)))
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
		return OutcomeNotApplied
	}
	return OutcomeUnknown
}

// DeleteEntry removes one entry by its id (service-interface section 4.6). The task tracks the deployment of the
// changed list; it is nil when the service gives none, and when an earlier attempt of the call had removed the entry
// already. An entry that does not exist is [ErrNotFound].
func (s *NetworkListsService) DeleteEntry(ctx context.Context, id, entryID string) (*Task, error) {
	if err := s.via().usable(ctx); err != nil {
		return nil, err
	}
	path, err := expand(s.funnel.dialect.EntryDeletePath, id, entryID)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, http.MethodDelete, path, "", id, entryID)
}

// ClearEntries removes all entries and keeps the list, by the address that the list gives for it (service-interface
// section 2.6, open point 24). It sends up to three requests: one reads the list, one clears it, and one reads how many
// entries are left. The task is nil when the service gives none.
//
// If the task is not complete, the entries may go when it completes. Then ClearEntries does not read what is left: wait
// for the task with [TasksService.Wait], and read Total of [NetworkListsService.Entries] with a Count of 1. Otherwise,
// if entries are left or the page announces more of them, ClearEntries returns an [*EntriesLeftError] with the task.
// Entries that others added meanwhile count too. A service may remove only some of them with one call (section 8); the
// call can be repeated. If what is left cannot be read, that error comes with the task, and its outcome is
// [OutcomeUnknown].
//
// A list that does not exist is [ErrNotFound]. If the response is a list with another id, or gives no address for the
// deletion, or one that is not below the list, ClearEntries returns [ErrBadReply] and does not clear the list.
func (s *NetworkListsService) ClearEntries(ctx context.Context, id string) (*Task, error) {
	path, query, err := s.batchDeletion(ctx, id)
	if err != nil {
		return nil, err
	}
	task, err := s.change(ctx, s.funnel.dialect.BatchDeletionMethod, path, query, id)
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

// leftIn is how many entries the first page says there are, at least 1 if it announces another page. A page_count of 1
// announces none: that page may be empty.
func leftIn(first *Page[NetworkListEntry]) int64 {
	left := max(first.Total, int64(len(first.Items)))
	if first.HasMore || first.NextURI != "" || first.PageCount > 1 {
		left = max(left, 1)
	}
	return left
}

// batchDeletion reads where a list is cleared. The address is a part of a reply: one that is of no use is not the
// caller's mistake.
func (s *NetworkListsService) batchDeletion(ctx context.Context, id string) (path, query string, err error) {
	own, err := s.via().expand(ctx, listPath, id)
	if err != nil {
		return "", "", err
	}
	r, err := s.funnel.send(ctx, objectCall(own, "includelist=false", id))
	if err != nil {
		return "", "", err
	}
	var list NetworkList
	if err := r.decodeResource(&list); err != nil {
		return "", "", err
	}
	const field = "entries_batch_deletion_uri"
	path, query, err = s.funnel.resolveSent(field, list.EntriesBatchDeletionURI)
	var unusable *ValidationError
	switch {
	case list.EntriesBatchDeletionURI == "":
		return "", "", r.bad("no "+field, nil)
	case errors.As(err, &unusable):
		return "", "", r.bad(field+" "+unusable.Reason, nil)
	case err != nil:
		return "", "", err
	case !strings.HasPrefix(path, own+"/"):
		return "", "", r.bad(field+" is not below "+own, nil)
	}
	return path, query, nil
}

// EntriesLeftError means that a network list still has entries after [NetworkListsService.ClearEntries]. The service
// accepted the deletion, and some entries may be gone, so the outcome is [OutcomeUnknown]. Repeat the call as long as
// Left becomes smaller. (Service-interface sections 2.6 and 8, open point 24.)
type EntriesLeftError struct {
	ListID string // UUID of the list
	Left   int64  // entries that were read afterwards, at least 1; 1 when the service gives no total
}

// Error gives the list and the number of entries.
func (e *EntriesLeftError) Error() string {
	return fmt.Sprintf("webdelivery: network list %s still has %d entries after the batch deletion; repeat it",
		redact.Line(e.ListID), e.Left)
}

// LogValue gives the list and the number of entries.
func (e *EntriesLeftError) LogValue() slog.Value {
	return slog.GroupValue(slog.String("networklist", redact.Line(e.ListID)), slog.Int64("left", e.Left))
}

func (e *EntriesLeftError) outcomeOfWrite() Outcome { return OutcomeUnknown }
