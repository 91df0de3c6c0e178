package webdelivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/lists"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// NetworkListsService manages named lists of IP addresses or countries, which WAF rules, blocking and throttling use.
// Its methods are those of the service document, section 4.6.
//
// An id is a UUID. Calls return a [*ValidationError] for an empty id and [ErrNotFound] for an unknown one. Users who
// may not view the configuration get [ErrForbidden].
type NetworkListsService struct {
	conn   *conn
	tasks  *TasksService
	limits lists.Limits
}

// Limits of section 8 of the service document.
const (
	maxListEntries   = 50_000 // of a list
	maxUpdateEntries = 5_000  // of one call that changes a list
)

// NetworkListType says what a network list holds.
type NetworkListType string

const (
	// ListTypeIP is a list of IPv4 addresses, IPv6 addresses and CIDR ranges.
	ListTypeIP NetworkListType = "IP"
	// ListTypeGEO is a list of ISO 3166-1 two-letter country codes.
	ListTypeGEO NetworkListType = "GEO"
)

// NetworkList is a named list. Times are in UTC. (Section 2.6.)
type NetworkList struct {
	URI         string          `json:"uri"`           // address of the list
	ID          string          `json:"id"`            // UUID
	Type        NetworkListType `json:"type"`          // kind of its entries
	List        []string        `json:"list,omitzero"` // entries; nil if the response omits them, empty if the list has none
	Name        string          `json:"name"`          // name for people; no maximum length is documented
	Description string          `json:"description"`   // may be empty; collections may omit it
	Deprecated  bool            `json:"deprecated"`    // collections omit such lists unless NetworkListOptions asks
	EntriesURI  string          `json:"entries_uri"`   // address of its entries
	// EntriesBatchDeletionURI is the address that removes all entries at once. ClearEntries uses it.
	EntriesBatchDeletionURI string    `json:"entries_batch_deletion_uri"`
	CreationTimestamp       time.Time `json:"creation_timestamp,omitzero"` // when it was created
	ModifiedTimestamp       time.Time `json:"modified_timestamp,omitzero"` // zero if it was never modified
}

func (l *NetworkList) identity() string { return l.ID }

func (l *NetworkList) lacks() string {
	if i := slices.Index(l.List, ""); i >= 0 {
		return fmt.Sprintf("list[%d]", i) // it is null or empty
	}
	return lacksID(l.ID)
}

// NetworkListEntry is one entry of a list, as in the entries collection. (Section 2.6.)
type NetworkListEntry struct {
	URI               string    `json:"uri"`                         // address of the entry
	ID                string    `json:"id"`                          // UUID; DeleteEntry takes it
	Entry             string    `json:"entry"`                       // IP address, CIDR range or country code
	AddedBy           string    `json:"added_by"`                    // user who added it
	CreationTimestamp time.Time `json:"creation_timestamp,omitzero"` // when it was added, in UTC; zero if it is absent or cannot be read
}

// An entry is known by its text. Without an id it can be read, but not removed.
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

// entryAlone is the response for one entry by its id, which does not contain the entry itself.
type entryAlone struct {
	URI string `json:"uri"`
	ID  string `json:"id"`
}

func (i *entryAlone) identity() string { return i.ID }
func (i *entryAlone) lacks() string    { return lacksID(i.ID) }

// NetworkListOptions selects lists. A zero field is not sent, so the service uses its default.
type NetworkListOptions struct {
	Type       NetworkListType `url:"type,omitempty"`       // zero: both types
	Deprecated bool            `url:"deprecated,omitempty"` // true includes deprecated lists
	Page       int             `url:"page,omitempty"`       // from 1; All starts at this page
	Count      int             `url:"count,omitempty"`      // lists per page; the service's default is 10
}

// EntryOptions selects pages of entries. A zero field is not sent, so the service uses its default.
type EntryOptions struct {
	Page  int `url:"page,omitempty"`  // from 1; AllEntries starts at this page
	Count int `url:"count,omitempty"` // entries per page; the service's default is 100

	// ReadAhead is how many pages AllEntries may fetch before they are needed, up to 1,000, if the first page has its
	// page_index and page_count.
	ReadAhead int `url:"-"`
}

// Paths of section 4.6 of the service document.
const (
	listPath    = listsPath + "/{networklist_id}"
	entriesPath = listPath + "/entries"
	entryPath   = entriesPath + "/{entry_id}"
)

// List returns one page of the lists, without their entries.
func (s *NetworkListsService) List(ctx context.Context, options NetworkListOptions) (*Page[NetworkList], error) {
	return fetchPage[NetworkList](ctx, s.conn, options.call())
}

// All returns all lists without their entries, from the page of the options to the last. [TasksService.All] says how
// pages are checked.
func (s *NetworkListsService) All(ctx context.Context, options NetworkListOptions) iter.Seq2[NetworkList, error] {
	return eachItem[NetworkList](ctx, s.conn, options.call(), 0)
}

// allInLargePages returns what All returns. The options have no Count.
func (s *NetworkListsService) allInLargePages(ctx context.Context, options NetworkListOptions) iter.Seq2[NetworkList, error] {
	pagesOf := func(count int) call {
		options.Count = count
		return options.call()
	}
	return largePages[NetworkList](ctx, s.conn, pagesOf, 0)
}

func (o NetworkListOptions) call() call {
	var p problems
	if o.Type != "" && o.Type != ListTypeIP && o.Type != ListTypeGEO {
		p.add("type", "%q is neither IP nor GEO", string(o.Type))
	}
	checkPaging(&p, o.Page, o.Count)
	return pagedCall(&p, "NetworkLists.List", listsPath, o)
}

// Get returns one list with its entries, up to 50,000, from one response.
func (s *NetworkListsService) Get(ctx context.Context, id string) (*NetworkList, error) {
	return s.get(ctx, id, "")
}

// GetSummary returns one list without its entries: List is nil.
func (s *NetworkListsService) GetSummary(ctx context.Context, id string) (*NetworkList, error) {
	list, err := s.get(ctx, id, "includelist=false")
	if err != nil {
		return nil, err
	}
	list.List = nil // a service may ignore includelist
	return list, nil
}

// uuid matches the ids of lists and entries (section 2.6 of the service document).
var uuid = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

func (s *NetworkListsService) get(ctx context.Context, id, query string) (*NetworkList, error) {
	list, err := fetch[NetworkList](ctx, s.conn, objectCall("NetworkLists.Get", listPath, query, id))
	if e, ok := errors.AsType[*Error](err); ok && !uuid.MatchString(id) {
		e.hint = "this is no id of a list; GetByName finds a list by its name"
	}
	return list, err
}

// GetByName returns the summary of the list of any type with exactly this name, byte for byte, which is not
// deprecated. If there is none, the error matches [ErrNotFound]. If several lists have the name, the error gives the
// first five of their ids.
func (s *NetworkListsService) GetByName(ctx context.Context, name string) (*NetworkList, error) {
	if name == "" {
		return nil, invalid("name", "is empty")
	}
	var ids []string
	for list, err := range s.allInLargePages(ctx, NetworkListOptions{}) {
		if err != nil {
			return nil, err
		}
		isThis := func(id string) bool { return sameID(id, list.ID) }
		if list.Name == name && !list.Deprecated && !slices.ContainsFunc(ids, isThis) {
			ids = append(ids, list.ID)
		}
	}
	text := strconv.Quote(s.conn.secrets.Text(name))
	if len(ids) > 1 {
		shown := s.conn.secrets.Text(strings.Join(ids[:min(len(ids), 5)], ", "))
		several := fmt.Sprintf("webdelivery: %d network lists have the name %s: %s", len(ids), text, shown)
		return nil, &outcomeError{errors.New(redact.Line(several)), OutcomeNotApplied}
	}
	if len(ids) == 1 {
		if err := s.usable(ids[0]); err != nil {
			return nil, err
		}
		list, err := s.GetSummary(ctx, ids[0])
		if err != nil || list.Name == name {
			return list, err
		}
	}
	return nil, &outcomeError{fmt.Errorf("%w: no network list has the name %s", ErrNotFound, redact.Line(text)), OutcomeNotApplied}
}

// Entries returns one page of a list's entries.
func (s *NetworkListsService) Entries(ctx context.Context, id string, options EntryOptions) (*Page[NetworkListEntry], error) {
	return fetchPage[NetworkListEntry](ctx, s.conn, options.call(id))
}

// AllEntries returns all entries of a list, from the page of the options to the last. [TasksService.All] says how pages
// are checked. Pages without numbers are read one after the other, even with ReadAhead.
//
// The removal of one entry together with the addition of another, while AllEntries reads, may go unnoticed.
// [NetworkListsService.Get] reads all entries in one response.
func (s *NetworkListsService) AllEntries(ctx context.Context, id string, options EntryOptions) iter.Seq2[NetworkListEntry, error] {
	return eachItem[NetworkListEntry](ctx, s.conn, options.call(id), options.ReadAhead)
}

func (o EntryOptions) call(id string) call {
	path, err := expand(entriesPath, id)
	var p problems
	checkPaging(&p, o.Page, o.Count)
	p.addBelow0("ReadAhead", int64(o.ReadAhead))
	cl := pagedCall(&p, "NetworkLists.Entries", path, o)
	cl.invalid = cmp.Or(err, cl.invalid)
	return cl
}

// GetEntry reports whether a list has an entry with this id. It returns the ID and the URI alone: the service does not
// send the rest, which [NetworkListsService.AllEntries] has. If the entry does not exist, it returns [ErrNotFound]. If
// the response has no id or another one, it returns [ErrBadResponse].
func (s *NetworkListsService) GetEntry(ctx context.Context, id, entryID string) (*NetworkListEntry, error) {
	e, err := fetch[entryAlone](ctx, s.conn, objectCall("NetworkLists.GetEntry", entryPath, "", id, entryID))
	if err != nil {
		return nil, err
	}
	return &NetworkListEntry{URI: e.URI, ID: e.ID}, nil
}

// NetworkListMatch is an entry that [NetworkListsService.Find] returns, and its list.
type NetworkListMatch struct {
	Addr  netip.Addr       `json:"addr,omitzero"` // one of addrs, as Unmap returns it, without zone; zero in unreadable
	List  NetworkList      `json:"list"`          // without its entries
	Entry NetworkListEntry `json:"entry"`         // of this list
}

// Find returns the entries of all IP lists, deprecated ones included, that cover one of the addresses: the address
// itself, and the ranges that contain it. They show why an address is blocked, who added it, and when. An IPv4 address
// in IPv6 form counts as the IPv4 address, a range such as ::/0 covers IPv4, too, and a zone is ignored. unreadable
// are entries that are neither an address nor a range, such as 192.0.2.1-192.0.2.9, and may cover one.
//
// Find reads all IP lists once, 1,000 entries per request if the service allows it. If it notices that a list changes
// meanwhile, it returns an [*IncompleteError]: call it again.
func (s *NetworkListsService) Find(ctx context.Context, addrs []netip.Addr) (matches, unreadable []NetworkListMatch, err error) {
	sorted := make([]netip.Addr, len(addrs))
	for i, addr := range addrs {
		if !addr.IsValid() {
			return nil, nil, invalid(fmt.Sprintf("addrs[%d]", i), "is the zero netip.Addr; parse one with netip.ParseAddr")
		}
		sorted[i] = netip.AddrFrom16(addr.As16())
	}
	slices.SortFunc(sorted, netip.Addr.Compare)
	sorted = slices.Compact(sorted)
	all, err := Collect(s.allInLargePages(ctx, NetworkListOptions{Type: ListTypeIP, Deprecated: true}))
	if err != nil {
		return nil, nil, err
	}
	all = slices.DeleteFunc(all, func(list NetworkList) bool { return list.Type == ListTypeGEO }) // a service may ignore the type
	for _, list := range all {
		if err := s.usable(list.ID); err != nil {
			return nil, nil, err
		}
		entries, held, err := s.snapshot(ctx, list.ID)
		if errors.Is(err, ErrNotFound) {
			return nil, nil, s.conn.incomplete(listsPath+"/"+list.ID, "the list was deleted meanwhile")
		}
		if err != nil {
			return nil, nil, err
		}
		for i, e := range held {
			if !e.Prefix.IsValid() {
				unreadable = append(unreadable, NetworkListMatch{List: list, Entry: entries[i]})
				continue
			}
			for _, addr := range lists.Covered(sorted, e.Prefix) {
				matches = append(matches, NetworkListMatch{addr.Unmap(), list, entries[i]})
			}
		}
	}
	return matches, unreadable, nil
}

// usable refuses the id of a list that came from the service: a ValidationError would blame the caller.
func (s *NetworkListsService) usable(id string) error {
	if address.Fits(id) {
		return nil
	}
	return s.unusable("the list has the id %q, which cannot be part of an address", redact.Line(id))
}

// Delete permanently removes a list and all its data. If the response names no task, or if an earlier attempt of the
// call removed the list, the task is complete and has no id.
func (s *NetworkListsService) Delete(ctx context.Context, id string) (*Task, error) {
	return s.change(ctx, at("NetworkLists.Delete", http.MethodDelete, listPath, id), id)
}

// change sends a change without a body. If the response names no task, the task is complete and has no id. ids identify
// the list or entry that it changes.
func (s *NetworkListsService) change(ctx context.Context, cl call, ids ...string) (*Task, error) {
	r, err := s.conn.send(ctx, cl)
	if err != nil {
		return nil, err
	}
	task, err := r.optionalTask(ids...)
	if task == nil && err == nil {
		task = &Task{Complete: true}
	}
	return task, err
}
