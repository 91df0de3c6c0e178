package testserver

import (
	"net/http"
	"net/url"
)

type listEntryJSON struct {
	URI     string `json:"uri"`
	ID      string `json:"id"`
	Entry   string `json:"entry"`
	AddedBy string `json:"added_by"`
	Created string `json:"creation_timestamp"`
}

// listEntryJSON is an entry as the entries collection has it (service-interface section 2.6).
func (c *call) listEntryJSON(l *networkList, e *listEntry) listEntryJSON {
	return listEntryJSON{
		URI: c.entryAddress(l, e), ID: e.id, Entry: e.text, AddedBy: e.addedBy, Created: c.s.dialect.listStamp(e.created),
	}
}

func (c *call) entryAddress(l *networkList, e *listEntry) string {
	return c.address(l.path() + "/entries/" + url.PathEscape(e.id))
}

// listEntries is GET /config/networklists/{networklist_id}/entries (service-interface section 4.6), in order of addition.
func listEntries(c *call) (reply, error) {
	l, err := c.namedList()
	if err != nil {
		return reply{}, err
	}
	return pageReply(c, l.all(), 100, func(e *listEntry) listEntryJSON { return c.listEntryJSON(l, e) })
}

// getEntry is GET /config/networklists/{networklist_id}/entries/{entry_id}. Of the entry itself it does not tell the
// value (service-interface section 2.6).
func getEntry(c *call) (reply, error) {
	l, e, err := c.namedEntry()
	if err != nil {
		return reply{}, err
	}
	return jsonReply(http.StatusOK, map[string]string{
		"uri": c.entryAddress(l, e), "id": e.id, "type": l.Type, "network_list_uri": c.address(l.path()),
	}), nil
}

// addEntries is POST /config/networklists/{networklist_id}/entries (service-interface section 4.6): all or nothing, and
// what is there already stays. The reply is open.
func addEntries(c *call) (reply, error) {
	l, err := c.namedList()
	if err != nil {
		return reply{}, err
	}
	values, err := readEntries(c.body, c.s.dialect.EntryKey, l.Type)
	if err != nil {
		return reply{}, refuse(http.StatusBadRequest, "%v", err)
	}
	if err := c.s.addTo(l, values, c.user.Name); err != nil {
		return reply{}, refuse(http.StatusBadRequest, "%v", err)
	}
	t := c.deploy("networklist-update", l)
	if form := c.s.dialect.EntriesReply; form != "entries" {
		return c.taskReply(form, t), nil
	}
	items := make([]listEntryJSON, 0, len(values))
	for _, v := range values {
		items = append(items, c.listEntryJSON(l, l.byKey[v.key]))
	}
	return jsonReply(http.StatusOK, items), nil
}

// deleteEntry is DELETE of one entry, whose path is open (service-interface section 4.6).
func deleteEntry(c *call) (reply, error) {
	l, e, err := c.namedEntry()
	if err != nil {
		return reply{}, err
	}
	c.s.removeFrom(l, e)
	return c.taskReply("task", c.deploy("networklist-update", l)), nil
}

// clearEntries is what entries_batch_deletion_uri is for: it removes all entries and keeps the list (service-interface
// section 2.6). Method and reply are open.
func clearEntries(c *call) (reply, error) {
	l, err := c.namedList()
	if err != nil {
		return reply{}, err
	}
	if len(l.byID) > 0 {
		l.entrySet, l.modified = newEntrySet(), c.now
	}
	return c.taskReply("task", c.deploy("networklist-update", l)), nil
}

// namedEntry is the entry that the path names, and its list.
func (c *call) namedEntry() (*networkList, *listEntry, error) {
	l, err := c.namedList()
	if err != nil {
		return nil, nil, err
	}
	if e := l.byID[c.vars["entry"]]; e != nil {
		return l, e, nil
	}
	return nil, nil, refuse(http.StatusNotFound, "network list %q has no entry %q", l.ID, c.vars["entry"])
}

// addTo puts distinct values in; either all or, if the list would pass its limit, none.
func (s *Server) addTo(l *networkList, values []entryValue, by string) error {
	fresh := l.missing(values)
	if err := l.mayGrow(len(fresh)); err != nil {
		return err
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
