package testserver

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// maxEntries is the maximum number of entries of a list (service document, section 8).
const maxEntries = 50_000

// listEntry is an entry of a network list.
type listEntry struct {
	entryValue

	id      string
	addedBy string
	created time.Time
}

// entrySet holds the entries of a network list, without duplicates.
type entrySet struct {
	ordered []*listEntry // in order of addition; valid until the next change
	byID    map[string]*listEntry
	byKey   map[string]*listEntry
}

func newEntrySet() entrySet {
	return entrySet{byID: map[string]*listEntry{}, byKey: map[string]*listEntry{}}
}

func (s *entrySet) put(e *listEntry) {
	s.ordered = append(s.ordered, e)
	s.byID[e.id], s.byKey[e.key] = e, e
}

func (s *entrySet) remove(e *listEntry) {
	delete(s.byID, e.id)
	delete(s.byKey, e.key)
	i := slices.Index(s.ordered, e)
	s.ordered = slices.Delete(s.ordered, i, i+1)
}

func (s *entrySet) texts() []string {
	texts := make([]string, 0, len(s.byID))
	for _, e := range s.ordered {
		texts = append(texts, e.text)
	}
	return texts
}

type listEntryJSON struct {
	URI     string `json:"uri"`
	ID      string `json:"id"`
	Entry   string `json:"entry"`
	AddedBy string `json:"added_by"`
	Created string `json:"creation_timestamp"`
}

// listEntryJSON returns an entry in the form of the entries collection (service document, section 2.6).
func (c *call) listEntryJSON(l *networkList, e *listEntry) listEntryJSON {
	return listEntryJSON{
		URI: c.entryAddress(l, e), ID: e.id, Entry: e.text, AddedBy: e.addedBy, Created: listStamp(e.created),
	}
}

func (c *call) entryAddress(l *networkList, e *listEntry) string {
	return c.address(l.path() + "/entries/" + url.PathEscape(e.id))
}

// listEntries is GET /config/networklists/{networklist_id}/entries (service document, section 4.6), in order of
// addition.
func listEntries(c *call, l *networkList) (response, error) {
	return pageResponse(c, "envelope", l.ordered, 100, func(e *listEntry) listEntryJSON { return c.listEntryJSON(l, e) })
}

// getEntry is GET /config/networklists/{networklist_id}/entries/{entry_id}. The response does not contain the entry
// itself (service document, section 2.6).
func getEntry(c *call, l *networkList, e *listEntry) (response, error) {
	return jsonResponse(http.StatusOK, map[string]string{
		"uri": c.entryAddress(l, e), "id": e.id, "type": l.Type, "network_list_uri": c.address(l.path()),
	}), nil
}

// addEntries is POST /config/networklists/{networklist_id}/entries (service document, section 4.6). It adds all entries
// or none. Entries that the list already has stay unchanged. The document leaves the response open.
func addEntries(c *call, l *networkList) (response, error) {
	values, err := readEntries(c.body, c.s.dialect.EntryKey, l.Type)
	if err != nil {
		return response{}, refuse(http.StatusBadRequest, "%v", err)
	}
	if err := c.s.addTo(l, values, c.user.Name); err != nil {
		return response{}, refuse(http.StatusBadRequest, "%v", err)
	}
	t := c.deploy("networklist-update", l)
	if form := c.s.dialect.EntriesReply; form != "entries" {
		return c.taskResponse(form, t), nil
	}
	items := make([]listEntryJSON, 0, len(values))
	for _, v := range values {
		items = append(items, c.listEntryJSON(l, l.byKey[v.key]))
	}
	return jsonResponse(http.StatusOK, items), nil
}

// deleteEntry is DELETE of one entry. The document leaves its path open (service document, section 4.6).
func deleteEntry(c *call, l *networkList, e *listEntry) (response, error) {
	c.s.removeFrom(l, e)
	return c.taskResponse("task", c.deploy("networklist-update", l)), nil
}

// clearEntries serves entries_batch_deletion_uri: it removes all entries and keeps the list (service document, section
// 2.6). The document leaves the method and the response open.
func clearEntries(c *call, l *networkList) (response, error) {
	if len(l.byID) > 0 {
		l.entrySet, l.modified = newEntrySet(), c.now
	}
	return c.taskResponse("task", c.deploy("networklist-update", l)), nil
}

// ofEntry is a handler for the entry that the path names, and its list.
func ofEntry(handle func(*call, *networkList, *listEntry) (response, error)) func(*call) (response, error) {
	return ofList(func(c *call, l *networkList) (response, error) {
		if e := l.byID[c.vars["entry"]]; e != nil {
			return handle(c, l, e)
		}
		return response{}, refuse(http.StatusNotFound, "network list %q has no entry %q", l.ID, c.vars["entry"])
	})
}

// addTo adds distinct values. If the list would exceed its limit, addTo adds none.
func (s *Server) addTo(l *networkList, values []entryValue, by string) error {
	fresh := slices.DeleteFunc(slices.Clone(values), func(v entryValue) bool { return l.byKey[v.key] != nil })
	if size := len(l.byID) + len(fresh); size > maxEntries {
		return fmt.Errorf("the list would have %d entries, more than %d", size, maxEntries)
	}
	now := s.cfg.Clock.Now()
	for _, v := range fresh {
		l.put(&listEntry{entryValue: v, id: s.newUUID(), addedBy: by, created: now})
		l.modified = now
	}
	return nil
}

func (s *Server) removeFrom(l *networkList, e *listEntry) {
	l.remove(e)
	l.modified = s.cfg.Clock.Now()
}
