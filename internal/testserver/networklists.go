package testserver

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// NetworkListSpec describes a network list that is created now (service document, section 2.6).
type NetworkListSpec struct {
	ID          string // "" creates a UUID; the id of an existing list replaces that list
	Type        string // "IP" or "GEO"; "" means "IP"
	Name        string // name
	Description string // description; always present when a single list is read

	NoDescription bool // items of the collection lack the member description
	Deprecated    bool // collections show the list only if they ask for deprecated ones

	// Entries are the initial entries, at most 50,000. As with POST entries, duplicates count once. Their values are
	// not validated, so that a test can show a client unexpected ones. An invalid entry is compared with others by its
	// text.
	Entries []string
}

// networkList is the current state of a list.
type networkList struct {
	NetworkListSpec
	entrySet

	created, modified time.Time // modified is zero until the contents change
}

// AddNetworkList adds a list and returns its id. Its entries have the added_by "operator". AddNetworkList panics if the
// type is unknown, or if there are more than 50,000 entries.
func (s *Server) AddNetworkList(spec NetworkListSpec) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spec.Type = cmp.Or(spec.Type, typeIP)
	if spec.Type != typeIP && spec.Type != typeGEO {
		panic(fmt.Sprintf("testserver: type %q of a network list is neither IP nor GEO", spec.Type))
	}
	if spec.ID == "" {
		spec.ID = s.newUUID()
	}
	l := &networkList{NetworkListSpec: spec, entrySet: newEntrySet(), created: s.cfg.Clock.Now()}
	l.Entries = nil
	if err := s.addTo(l, l.values(spec.Entries), "operator"); err != nil {
		panic("testserver: " + err.Error())
	}
	l.modified = time.Time{}
	s.removeList(spec.ID)
	s.lists = append(s.lists, l)
	return spec.ID
}

// Entries returns the current entries of a list, in order of addition. If the list does not exist, Entries returns nil.
func (s *Server) Entries(id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.list(id); l != nil {
		return l.texts()
	}
	return nil
}

// ChangeEntries changes a list as another user would, with "somebody-else" in added_by. It first removes and then adds
// entries, takes effect at once and creates no task. Values are compared as usual; like those of AddNetworkList, they
// are not validated. ChangeEntries panics if the list does not exist or would exceed 50,000 entries.
func (s *Server) ChangeEntries(id string, add, remove []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.list(id)
	if l == nil {
		panic(fmt.Sprintf("testserver: network list %q does not exist", id))
	}
	for _, v := range l.values(remove) {
		if e := l.byKey[v.key]; e != nil {
			s.removeFrom(l, e)
		}
	}
	if err := s.addTo(l, l.values(add), "somebody-else"); err != nil {
		panic("testserver: " + err.Error())
	}
}

// list returns the list with the id, or nil.
func (s *Server) list(id string) *networkList {
	for _, l := range s.lists {
		if l.ID == id {
			return l
		}
	}
	return nil
}

func (s *Server) removeList(id string) {
	s.lists = slices.DeleteFunc(s.lists, func(l *networkList) bool { return l.ID == id })
}

// newUUID returns a unique id that is the same in each run. It is a version 8 UUID, whose bits the implementation may
// choose (RFC 9562).
func (s *Server) newUUID() string {
	s.uuids++
	noise := mix(s.uuids)
	return fmt.Sprintf("%08x-%04x-8%03x-a%03x-%012x", noise>>32, noise>>16&0xffff, noise>>4&0xfff, noise&0xf, s.uuids)
}

func (s *Server) networkListRoutes() []route {
	const all, one = "/config/networklists", "/config/networklists/{list}"
	const entries, oneEntry = one + "/entries", one + "/entries/{entry}"
	return []route{
		{method: http.MethodGet, path: all, config: true, params: []string{"page", "count", "type", "deprecated"}, handle: listNetworkLists},
		{method: http.MethodGet, path: one, config: true, params: []string{"includelist"}, handle: ofList(getNetworkList)},
		{method: http.MethodDelete, path: one, handle: ofList(deleteNetworkList)},
		{method: http.MethodGet, path: entries, config: true, params: []string{"page", "count"}, handle: ofList(listEntries)},
		{method: http.MethodPost, path: entries, body: true, handle: ofList(addEntries)},
		{method: http.MethodGet, path: oneEntry, config: true, handle: ofEntry(getEntry)},
		{method: http.MethodDelete, path: s.dialect.EntryDeletePath, handle: ofEntry(deleteEntry)},
		{method: s.dialect.BatchDeletionMethod, path: entries + "/deletions", handle: ofList(clearEntries)},
	}
}

// checkEntryPath rejects a Dialect.EntryDeletePath that routes cannot match.
func checkEntryPath(template string) error {
	elements := strings.Split(template, "/")
	for _, name := range []string{"{list}", "{entry}"} {
		if !slices.Contains(elements, name) || strings.Count(template, "{") != 2 {
			return fmt.Errorf("testserver: Dialect.EntryDeletePath %q needs the path elements {list} and {entry} once each", template)
		}
	}
	return nil
}

type networkListJSON struct {
	URI         string   `json:"uri"`
	ID          string   `json:"id"`
	Type        string   `json:"type"`
	List        []string `json:"list,omitzero"` // nil omits the member
	Name        string   `json:"name"`
	Description *string  `json:"description,omitempty"`
	Deprecated  bool     `json:"deprecated"`
	EntriesURI  string   `json:"entries_uri"`
	DeletionURI string   `json:"entries_batch_deletion_uri"`
	Created     string   `json:"creation_timestamp"`
	Modified    string   `json:"modified_timestamp,omitempty"`
}

// networkListJSON returns a list without the member list.
func (c *call) networkListJSON(l *networkList) networkListJSON {
	uri := l.path()
	out := networkListJSON{
		URI: c.address(uri), ID: l.ID, Type: l.Type, Name: l.Name, Description: &l.Description, Deprecated: l.Deprecated,
		EntriesURI: c.address(uri + "/entries"), DeletionURI: c.address(uri + "/entries/deletions"),
		Created: listStamp(l.created),
	}
	if !l.modified.IsZero() {
		out.Modified = listStamp(l.modified)
	}
	return out
}

func (l *networkList) path() string { return "/config/networklists/" + url.PathEscape(l.ID) }

// listNetworkLists is GET /config/networklists (service document, section 4.6), in order of creation.
func listNetworkLists(c *call) (response, error) {
	deprecated, err := c.boolean("deprecated", false)
	if err != nil {
		return response{}, err
	}
	if kind := c.query.Get("type"); c.query.Has("type") && kind != typeIP && kind != typeGEO {
		return response{}, refuse(http.StatusBadRequest, "type %q is neither IP nor GEO", kind)
	}
	var found []*networkList
	for _, l := range c.s.lists {
		if c.wanted("type", l.Type) && (deprecated || !l.Deprecated) {
			found = append(found, l)
		}
	}
	return pageResponse(c, "envelope", found, 10, func(l *networkList) networkListJSON {
		item := c.networkListJSON(l)
		if l.NoDescription {
			item.Description = nil
		}
		return item
	})
}

// getNetworkList is GET /config/networklists/{networklist_id} (service document, section 4.6).
func getNetworkList(c *call, l *networkList) (response, error) {
	include, err := c.boolean("includelist", true)
	if err != nil {
		return response{}, err
	}
	out := c.networkListJSON(l)
	if include {
		out.List = l.texts()
	}
	return jsonResponse(http.StatusOK, out), nil
}

// deleteNetworkList is DELETE /config/networklists/{networklist_id}: it removes the list and all its data (service
// document, section 4.6). The deployment of the change has a task, even if the response does not show it.
func deleteNetworkList(c *call, l *networkList) (response, error) {
	c.s.removeList(l.ID)
	return c.taskResponse(c.s.dialect.ListDeleteReply, c.deploy("networklist-delete", l)), nil
}

// ofList is a handler for the list that the path names.
func ofList(handle func(*call, *networkList) (response, error)) func(*call) (response, error) {
	return func(c *call) (response, error) {
		if l := c.s.list(c.vars["list"]); l != nil {
			return handle(c, l)
		}
		return response{}, refuse(http.StatusNotFound, "network list %q does not exist", c.vars["list"])
	}
}

// FailDeploys makes the tasks of the next n changes of lists fail. The lists change nevertheless.
func (s *Server) FailDeploys(n int, failure TaskError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failingDeploys = append(s.failingDeploys, slices.Repeat([]TaskError{failure}, n)...)
}

// deploy starts the task that deploys a changed list. The document leaves the names of operations open.
func (c *call) deploy(operation string, l *networkList) *task {
	var failure *TaskError
	if len(c.s.failingDeploys) > 0 {
		failure, c.s.failingDeploys = &c.s.failingDeploys[0], c.s.failingDeploys[1:]
	}
	return c.s.newTask(TaskSpec{
		Operation: operation, Duration: max(0, c.s.cfg.DeployDuration), Error: failure,
		User:   Ref{ID: c.user.Name, URI: c.address("/users/" + url.PathEscape(c.user.Name))},
		Target: Ref{ID: l.ID, URI: c.address(l.path())},
	})
}

// taskResponse returns a task in one of the forms that the document leaves open.
func (c *call) taskResponse(form string, t *task) response {
	switch form {
	case "empty":
		return response{status: http.StatusNoContent, header: http.Header{}}
	case "task_id", "id":
		return jsonResponse(http.StatusOK, map[string]string{form: t.ID})
	default:
		return jsonResponse(http.StatusOK, c.taskJSON(t))
	}
}

// boolean reads a query parameter that is true or false.
func (c *call) boolean(name string, fallback bool) (bool, error) {
	switch value := c.query.Get(name); {
	case !c.query.Has(name):
		return fallback, nil
	case value != "true" && value != "false":
		return false, refuse(http.StatusBadRequest, "%s must be true or false", name)
	default:
		return value == "true", nil
	}
}
