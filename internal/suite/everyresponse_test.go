package suite_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// everyResponse is a response that every operation can read: it has the members of all resources of section 2 of the
// service document.
type everyResponse struct {
	text    func(member string) string // every text that the service is free to choose
	address func(member string) string // every address
	page    int                        // number of the page
	more    bool                       // another page follows
	pending bool                       // tasks and transactions have not ended
	failed  bool                       // tasks and transactions ended badly
	lacking bool                       // the purge names its transaction by the address alone, and rows are missing
}

// to returns the response to a request. If the request reads one object by its id, the response has that id. A
// session is no such object.
func (r everyResponse) to(request *http.Request) []byte {
	text := r.text
	address := request.URL.EscapedPath()
	switch last := address[strings.LastIndexByte(address, '/')+1:]; {
	case last == "sessions":
		body, _ := json.Marshal(map[string]string{"session_id": text("id"), "description": text("description")})
		return body
	case !strings.Contains(address, "/v1"):
	case slices.Contains([]string{"task", "list", "entry info"}, asksFor(address)):
		r.text = func(member string) string {
			if id, err := url.PathUnescape(last); err == nil && member == "id" {
				return id
			}
			return text(member)
		}
	}
	return r.json()
}

func (r everyResponse) json() []byte {
	const aTime = "2000-01-01T00:00:00Z"
	object := map[string]any{
		"uri": r.address("uri"), "id": r.text("id"), "operation": r.text("operation"), "status": r.text("status"),
		"complete": !r.pending, "progress": 50, "begin_time": aTime, "end_time": aTime, "last_updated": aTime,
		"user":   map[string]string{"id": r.text("user.id"), "uri": r.address("user.uri")},
		"target": map[string]string{"id": r.text("target.id"), "uri": r.address("target.uri")},
		"type":   r.text("type"), "list": []string{r.text("list")}, "name": r.text("name"), "description": r.text("description"),
		"entries_uri": r.address("entries_uri"), "entries_batch_deletion_uri": r.address("entries_batch_deletion_uri"),
		"creation_timestamp": aTime, "modified_timestamp": aTime, "entry": "192.0.2.1", "added_by": r.text("added_by"),
		"network_list_uri": r.address("network_list_uri"), "unknown_member": r.text("unknown_member"),
	}
	if r.failed {
		object["error_info"] = map[string]any{
			"message": r.text("error_info.message"), "type": r.text("error_info.type"), "unknown_member": r.text("unknown_member"),
			"details": []map[string]string{{"message": r.text("error_info.details.message")}},
		}
	}
	object["items"], object["has_more"] = []any{maps.Clone(object)}, r.more
	object["page_index"], object["page_count"], object["total"] = r.page, r.page, r.page
	object["prev_uri"] = r.address("prev_uri")
	if r.more {
		object["next_uri"], object["page_count"], object["total"] = r.address("next_uri"), r.page+1, r.page+1
	}

	status := "DONE"
	if r.failed {
		status = "FAILED "
	}
	if status += r.text("transaction_status"); r.pending {
		status = "PENDING"
	}
	object["code"] = 200
	object["transaction_id"] = 1
	object["purge_response"] = map[string]string{"transaction_status_uri": r.address("transaction_status_uri")}
	object["transaction_response"] = map[string]any{
		"begin_ts": 946684800, "end_ts": -1, "percent_received_responses": 50, "transaction_status": status,
		"transaction_status_description": r.text("transaction_status_description"), "unknown_member": r.text("unknown_member"),
	}

	object["query"] = map[string]any{
		"starttime": r.text("starttime"), "endtime": r.text("endtime"), "start": 0, "limit": 10,
		"dimensions": []string{r.text("query.dimensions")}, "filters": r.text("filters"),
	}
	object["columns"] = []map[string]string{{"name": "client_ip"}, {"name": "client_country_code"}}
	object["rows"], object["total_results"] = [][]string{{"192.0.2.1", r.text("rows")}}, 1
	for _, name := range []string{"dimensions", "metrics", "groupings"} {
		object[name] = []string{r.text(name)}
	}
	if r.lacking {
		delete(object, "transaction_id")
		object["total_results"] = 5
	}
	text, _ := json.Marshal(object)
	return text
}
