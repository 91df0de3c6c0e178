package conformance

import (
	"encoding/json"
	"net/http"
	pathpkg "path"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// A service may send members that the document does not name. That breaks no rule.

// documented has the members that the document names in each type of the SDK, and in an object within. A member that
// holds such an object is not listed.
var documented = map[string][]string{
	"Task": { // section 2.1
		"id", "uri", "operation", "status", "complete", "progress", "begin_time", "end_time", "last_updated", "user", "target",
	},
	"ErrorInfo":                   {"details", "message", "type"},
	"PurgeReceipt":                {"code", "description", "transaction_id"}, // section 2.3
	"PurgeReceipt.purge_response": {"transaction_status_uri"},
	"Transaction":                 {"code", "description", "transaction_id"},
	"Transaction.transaction_response": {
		"begin_ts", "end_ts", "percent_received_responses", "transaction_status", "transaction_status_description",
	},
	"NetworkList": { // section 2.6
		"uri", "id", "type", "list", "name", "description", "deprecated", "entries_uri", "entries_batch_deletion_uri", "creation_timestamp",
		"modified_timestamp",
	},
	"NetworkListEntry": {"uri", "id", "entry", "added_by", "creation_timestamp"},
}

// Unnamed returns a line for each type of the SDK of which the service sent members that the document does not name,
// with their names.
func (s *Service) Unnamed() (lines []string) {
	for _, kind := range []string{"Task", "ErrorInfo", "PurgeReceipt", "Transaction", "NetworkList", "NetworkListEntry"} {
		if names := s.unnamed[kind]; names != nil {
			lines = append(lines, OneLine(kind+": "+s.secrets.Text(list(names), redact.Most)))
		}
	}
	return lines
}

// look notes what a successful response has that the document does not name.
func (s *Service) look(method, path string, body []byte) {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return
	}
	is := func(wanted, pattern string) bool {
		matches, err := pathpkg.Match(pattern, path)
		return method == wanted && err == nil && matches
	}
	switch tasks := s.TasksPrefix + "/tasks"; {
	case is(http.MethodGet, tasks):
		s.compare("Task", itemsOf(value)...)
	case is(http.MethodGet, tasks+"/*"):
		s.compare("Task", value)
	case is(http.MethodGet, lists):
		s.compare("NetworkList", itemsOf(value)...)
	case is(http.MethodGet, lists+"/*"):
		s.compare("NetworkList", value)
	case is(http.MethodGet, lists+"/*/entries"):
		s.compare("NetworkListEntry", itemsOf(value)...)
	case is(http.MethodPost, purgePath):
		s.compare("PurgeReceipt", value)
	case is(http.MethodGet, "/transactions/*"):
		s.compare("Transaction", value)
	}
}

// compare notes the members of objects that the document does not name, and those of the objects within.
func (s *Service) compare(kind string, values ...any) {
	of, within, _ := strings.Cut(kind, ".")
	for _, value := range values {
		object, _ := value.(map[string]any)
		for name, content := range object {
			switch inner := kind + "." + name; {
			case kind == "Task" && name == "error_info":
				s.compare("ErrorInfo", content)
			case documented[inner] != nil:
				s.compare(inner, content)
			case slices.Contains(documented[kind], name):
			default:
				if s.unnamed[of] == nil {
					s.unnamed[of] = map[string]bool{}
				}
				s.unnamed[of][strings.TrimPrefix(within+"."+name, ".")] = true
			}
		}
	}
}

// itemsOf returns the items of a page, whatever its shape (open point 2).
func itemsOf(page any) []any {
	for _, at := range []any{page, member(page, "items"), member(page, "tasks")} {
		if items, ok := at.([]any); ok {
			return items
		}
	}
	return nil
}

func member(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}
