package webdelivery

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/objects"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// NetworkListsService keeps named lists of IP addresses or countries, to which WAF rules, blocking and throttling refer
// (service-interface section 4.6). It is [Client.NetworkLists], and safe for concurrent use. An id is a UUID; an empty
// one is a [*ValidationError], one that nothing has is [ErrNotFound]. Users who may not view the configuration get
// [ErrForbidden] (service-interface section 5).
type NetworkListsService struct {
	funnel *funnel
	tasks  *TasksService
}

// NetworkListType is what a network list holds (service-interface section 2.6).
type NetworkListType string

const (
	// ListTypeIP is a list of IPv4 addresses, IPv6 addresses and CIDR ranges.
	ListTypeIP NetworkListType = "IP"
	// ListTypeGEO is a list of ISO 3166-1 two-letter country codes.
	ListTypeGEO NetworkListType = "GEO"
)

// Limits of network lists (service-interface section 8).
const (
	maxListEntries = 50_000
	maxCallEntries = 5_000
)

// NetworkList is a named list (service-interface section 2.6). Times are in UTC.
type NetworkList struct {
	URI         string          `json:"uri"`           // address of the list
	ID          string          `json:"id"`            // UUID
	Type        NetworkListType `json:"type"`          // what its entries are
	List        []string        `json:"list,omitzero"` // entries; nil when the service left them out, empty when there are none
	Name        string          `json:"name"`          // for people; the document says nothing of its length
	Description string          `json:"description"`   // may be empty; collections may leave it out
	Deprecated  bool            `json:"deprecated"`    // left out of collections that do not ask for it
	EntriesURI  string          `json:"entries_uri"`   // address of its entries
	// EntriesBatchDeletionURI is where all entries are removed at once; ClearEntries does it.
	EntriesBatchDeletionURI string    `json:"entries_batch_deletion_uri"`
	CreationTimestamp       time.Time `json:"creation_timestamp,omitzero"` // when it was created
	ModifiedTimestamp       time.Time `json:"modified_timestamp,omitzero"` // zero when it was never modified
}

// UnmarshalJSON reads a list as the service sends it. An entry that is null is refused: it would be an empty text.
func (l *NetworkList) UnmarshalJSON(b []byte) error {
	type plain NetworkList
	w := struct {
		*plain
		List              []*string      `json:"list"`
		CreationTimestamp wire.Timestamp `json:"creation_timestamp"`
		ModifiedTimestamp wire.Timestamp `json:"modified_timestamp"`
	}{plain: (*plain)(l)}
	if err := wire.Decode(b, &w); err != nil {
		return err
	}
	l.List = nil
	if w.List != nil {
		l.List = make([]string, len(w.List))
	}
	for i, text := range w.List {
		if text == nil {
			return fmt.Errorf("list[%d] is null", i)
		}
		l.List[i] = *text
	}
	l.CreationTimestamp, l.ModifiedTimestamp = w.CreationTimestamp.Time, w.ModifiedTimestamp.Time
	return nil
}

func (l *NetworkList) resourceKind() objects.Kind { return objects.List }
func (l *NetworkList) identity() string           { return l.ID }
func (l *NetworkList) lacks() string              { return lacksID(l.ID) }
func (l *NetworkList) evident() bool              { return l.Name != "" || l.EntriesURI != "" }

// NetworkListEntry is one entry of a list, as the entries collection gives it (service-interface section 2.6).
type NetworkListEntry struct {
	URI               string    `json:"uri"`                         // address of the entry
	ID                string    `json:"id"`                          // UUID, by which DeleteEntry removes it
	Entry             string    `json:"entry"`                       // IP address, CIDR range or country code
	AddedBy           string    `json:"added_by"`                    // user who added it
	CreationTimestamp time.Time `json:"creation_timestamp,omitzero"` // when it was added, in UTC
}

// UnmarshalJSON reads an entry as the service sends it.
func (e *NetworkListEntry) UnmarshalJSON(b []byte) error {
	type plain NetworkListEntry
	w := struct {
		*plain
		CreationTimestamp wire.Timestamp `json:"creation_timestamp"`
	}{plain: (*plain)(e)}
	if err := wire.Decode(b, &w); err != nil {
		return err
	}
	e.CreationTimestamp = w.CreationTimestamp.Time
	return nil
}

func (e *NetworkListEntry) resourceKind() objects.Kind { return objects.Entry }
func (e *NetworkListEntry) evident() bool              { return e.Entry != "" }

// An entry is its text. Without an id it can be read, but not removed.
func (e *NetworkListEntry) identity() string {
	if e.ID == "" {
		return " " + e.Entry
	}
	return e.ID
}

func (e *NetworkListEntry) lacks() string {
	if e.Entry == "" {
		return "entry"
	}
	return ""
}

// NetworkListEntryInfo is what the service tells of one entry by its id: not the entry itself, but where it belongs
// (service-interface section 2.6).
type NetworkListEntryInfo struct {
	URI            string          `json:"uri"`              // address of the entry
	ID             string          `json:"id"`               // UUID
	Type           NetworkListType `json:"type"`             // of its list
	NetworkListURI string          `json:"network_list_uri"` // address of its list
}

func (i *NetworkListEntryInfo) resourceKind() objects.Kind { return objects.EntryInfo }
func (i *NetworkListEntryInfo) identity() string           { return i.ID }
func (i *NetworkListEntryInfo) lacks() string              { return lacksID(i.ID) }
func (i *NetworkListEntryInfo) evident() bool              { return i.NetworkListURI != "" }

// NetworkListOptions selects lists (service-interface section 4.6). A zero field is not sent: the service's defaults
// hold.
type NetworkListOptions struct {
	Type       NetworkListType `url:"type,omitempty"`       // zero: both
	Deprecated bool            `url:"deprecated,omitempty"` // true includes deprecated lists
	Page       int             `url:"page,omitempty"`       // from 1; All begins there
	Count      int             `url:"count,omitempty"`      // lists a page; the service's default is 10
	MaxPages   int             `url:"-"`                    // All ends with a *PaginationError when more pages follow; 0: no bound
}

// EntryOptions selects pages of entries (service-interface section 4.6). A zero field is not sent: the service's
// defaults hold.
type EntryOptions struct {
	Page     int `url:"page,omitempty"`  // from 1; AllEntries begins there
	Count    int `url:"count,omitempty"` // entries a page; the service's default is 100
	MaxPages int `url:"-"`               // AllEntries ends with a *PaginationError when more pages follow; 0: no bound
}

// The paths of service-interface section 4.6.
const (
	listPath    = listsPath + "/{networklist_id}"
	entriesPath = listPath + "/entries"
	entryPath   = entriesPath + "/{entry_id}"
)

// List reads one page of the lists, without their entries (service-interface section 4.6). Options that make no sense
// are a [*ValidationError].
func (s *NetworkListsService) List(ctx context.Context, options NetworkListOptions) (*Page[NetworkList], error) {
	cl, err := options.call(ctx, s.via())
	if err != nil {
		return nil, err
	}
	return fetchPage[NetworkList](ctx, s.funnel, cl)
}

// All reads every list, without its entries, from the first page asked for to the last (service-interface section 4.6).
// It ends with the first error, which is yielded with a zero NetworkList; a page that is announced and cannot be had is
// a [*PaginationError]. The end, repeated pages and the parameters of a next_uri are checked as by [TasksService.All],
// which also says how pages that announce nothing are read. Each range over the sequence sends new requests.
func (s *NetworkListsService) All(ctx context.Context, options NetworkListOptions) iter.Seq2[NetworkList, error] {
	cl, err := options.call(ctx, s.via())
	if err != nil {
		return failing[NetworkList](err)
	}
	return eachItem[NetworkList](ctx, s.funnel, cl, options.MaxPages, 0)
}

func (o NetworkListOptions) call(ctx context.Context, f *funnel) (call, error) {
	if err := f.usable(ctx); err != nil {
		return call{}, err
	}
	var p problems
	if o.Type != "" && o.Type != ListTypeIP && o.Type != ListTypeGEO {
		p.add("type", "%q is neither IP nor GEO", string(o.Type))
	}
	checkPaging(&p, o.Page, o.Count, o.MaxPages)
	return pagedCall(&p, listsPath, o)
}

// Get reads one list with its entries, up to 50,000, in one reply (service-interface section 4.6). A list that does not
// exist is [ErrNotFound]. If the response has no id or another one, or is another resource, Get returns [ErrBadReply].
func (s *NetworkListsService) Get(ctx context.Context, id string) (*NetworkList, error) {
	return s.get(ctx, id, "")
}

// GetSummary reads one list without its entries, so that List is nil (service-interface section 4.6,
// includelist=false).
func (s *NetworkListsService) GetSummary(ctx context.Context, id string) (*NetworkList, error) {
	list, err := s.get(ctx, id, "includelist=false")
	if err != nil {
		return nil, err
	}
	list.List = nil // of a service that sends it all the same
	return list, nil
}

func (s *NetworkListsService) get(ctx context.Context, id, query string) (*NetworkList, error) {
	path, err := s.via().expand(ctx, listPath, id)
	if err != nil {
		return nil, err
	}
	return fetch[NetworkList](ctx, s.funnel, objectCall(path, query, id))
}

// GetByName reads the list with exactly this name, byte for byte, of any type, with its entries (service-interface
// section 4.6). Deprecated lists do not count, so that a list that replaces one may have its name. GetByName reads all
// pages of the collection, a thousand lists a page, and then the list with [NetworkListsService.Get].
//
// If no list has the name, also if it was removed or renamed in between, the error matches [ErrNotFound]. If several have
// it, GetByName returns an [*AmbiguousNameError] with their ids. An empty name is a [*ValidationError].
func (s *NetworkListsService) GetByName(ctx context.Context, name string) (*NetworkList, error) {
	if name == "" {
		return nil, invalid("name", "is empty")
	}
	var ids []string
	for list, err := range s.All(ctx, NetworkListOptions{Count: pageOfEntries}) {
		if err != nil {
			return nil, err
		}
		isThis := func(id string) bool { return sameID(id, list.ID) }
		if list.Name == name && !list.Deprecated && !slices.ContainsFunc(ids, isThis) {
			ids = append(ids, list.ID)
		}
	}
	switch len(ids) {
	case 1:
		if !address.Fits(ids[0]) { // it comes from the service, so it is no invalid argument
			return nil, s.unusable("the list has the id %q, which cannot be part of an address", redact.Line(ids[0]))
		}
		list, err := s.Get(ctx, ids[0])
		if err != nil || list.Name == name {
			return list, err
		}
	case 0:
	default:
		for i := range ids {
			s.funnel.secrets.Texts(&ids[i])
		}
		return nil, &AmbiguousNameError{s.funnel.secrets.Text(name), ids}
	}
	text := redact.Line(strconv.Quote(s.funnel.secrets.Text(name)))
	return nil, &changeError{fmt.Errorf("%w: no network list has the name %s", ErrNotFound, text), OutcomeNotApplied}
}

// AmbiguousNameError means that several network lists have the name that [NetworkListsService.GetByName] was asked for.
// Read the right one by its id.
type AmbiguousNameError struct {
	Name string   // as it was asked for
	IDs  []string // of the lists, in the order in which the service gives them
}

// Error gives the name and the number of the lists with their ids, the first five of them.
func (e *AmbiguousNameError) Error() string {
	const shown = 5
	text := fmt.Sprintf("webdelivery: %d network lists have the name %q: %s", len(e.IDs), e.Name, strings.Join(e.IDs[:min(len(e.IDs), shown)], ", "))
	return redact.Line(text)
}

func (e *AmbiguousNameError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

// Entries reads one page of a list's entries (service-interface section 4.6). Numbers below 0 are a [*ValidationError].
func (s *NetworkListsService) Entries(ctx context.Context, id string, options EntryOptions) (*Page[NetworkListEntry], error) {
	cl, err := options.call(ctx, s.via(), id)
	if err != nil {
		return nil, err
	}
	return fetchPage[NetworkListEntry](ctx, s.funnel, cl)
}

// AllEntries reads every entry of a list, from the first page asked for to the last (service-interface section 4.6). It
// ends with the first error, which is yielded with a zero NetworkListEntry; a page that is announced and cannot be had
// is a [*PaginationError]. The end and repeated pages are checked as by [TasksService.All], which also says how pages are
// read that announce nothing: one after the other, also with [ReadAhead]. Each range over the sequence sends new requests.
// If a list changes while it is read, an entry may come twice or not at all. [ReadAhead] detects most such changes and
// ends with an error.
func (s *NetworkListsService) AllEntries(ctx context.Context, id string, options EntryOptions, read ...ReadOption) iter.Seq2[NetworkListEntry, error] {
	cl, err := options.call(ctx, s.via(), id)
	if err != nil {
		return failing[NetworkListEntry](err)
	}
	ahead, err := pagesAhead(read)
	if err != nil {
		return failing[NetworkListEntry](err)
	}
	return eachItem[NetworkListEntry](ctx, s.funnel, cl, options.MaxPages, ahead)
}

func (o EntryOptions) call(ctx context.Context, f *funnel, id string) (call, error) {
	path, err := f.expand(ctx, entriesPath, id)
	if err != nil {
		return call{}, err
	}
	var p problems
	checkPaging(&p, o.Page, o.Count, o.MaxPages)
	return pagedCall(&p, path, o)
}

// GetEntry reads one entry by its id (service-interface section 4.6). An entry that does not exist is [ErrNotFound]. If
// the response has no id or another one, or is another resource, GetEntry returns [ErrBadReply].
func (s *NetworkListsService) GetEntry(ctx context.Context, id, entryID string) (*NetworkListEntryInfo, error) {
	path, err := s.via().expand(ctx, entryPath, id, entryID)
	if err != nil {
		return nil, err
	}
	return fetch[NetworkListEntryInfo](ctx, s.funnel, objectCall(path, "", entryID))
}

// Delete removes a list and all its data, for good (service-interface section 4.6). The task is nil when the service
// gives none (open point 23), and when an earlier attempt of the call had removed the list already. A list that does
// not exist is [ErrNotFound].
func (s *NetworkListsService) Delete(ctx context.Context, id string) (*Task, error) {
	path, err := s.via().expand(ctx, listPath, id)
	if err != nil {
		return nil, err
	}
	return s.change(ctx, http.MethodDelete, path, "", id)
}

// change sends a change without a body, which may be answered with a task. It changes what has these ids.
func (s *NetworkListsService) change(ctx context.Context, method, path, query string, ids ...string) (*Task, error) {
	r, err := s.funnel.send(ctx, describe(method, path, query))
	if err != nil {
		return nil, err
	}
	return r.optionalTask(ids...)
}

// optionalTask reads a response that may hold a task, or no more than its id; nil when it holds none (open point 21). The
// change was accepted, so a response of a shape that is not known is no error: only a page for people is, which no service
// sends. An object with nothing but the id of what was changed shows that, and no task.
func (r *response) optionalTask(changed ...string) (*Task, error) {
	if wire.IsHTML(r.Header) {
		return nil, r.bad("an HTML page", nil)
	}
	task := readOptionalTask(r.Body)
	if task != nil && !address.Fits(task.ID) { // nobody can ask for it
		return nil, r.bad("a task whose id cannot be part of an address", nil)
	}
	isChanged := func(id string) bool { return sameID(id, task.ID) }
	if task != nil && slices.ContainsFunc(changed, isChanged) && *task == (Task{ID: task.ID}) {
		return nil, nil //nolint:nilnil // no task is no error
	}
	return task, nil
}

func readOptionalTask(body []byte) *Task {
	answer := objects.ReadAnswer(body)
	var task Task
	if wire.Decode(body, &task) != nil || answer.IsNoTask() {
		task = Task{} // a member does not fit, or belongs to something else; what matters is the id
	}
	if task.ID = answer.TaskID(task.URI); task.ID == "" {
		return nil
	}
	return &task
}
