package conformance

import (
	"encoding/json"
	pathpkg "path"
	"slices"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// shapes are the objects of the document, by type of the SDK and, for an object within, its member: names and kinds of the
// members. "!" marks those that must be there. A kind may also be all the values of a text.
var shapes = map[string]string{
	"Task": "id:text! uri:text operation:text status:text complete:flag progress:integer begin_time:time end_time:time " + // section 2.1
		"last_updated:time user:Reference target:Reference error_info:ErrorInfo",
	"Reference":   "id:text! uri:text!",
	"ErrorInfo":   "details:[]ErrorDetail message:text! type:text",
	"ErrorDetail": "message:text!",

	"PurgeReceipt":                     "code:integer! description:text! transaction_id:integer! purge_response:PurgeReceipt.purge_response!", // section 2.3
	"PurgeReceipt.purge_response":      "transaction_status_uri:text!",
	"Transaction":                      "code:integer! description:text! transaction_id:integer! transaction_response:Transaction.transaction_response!",
	"Transaction.transaction_response": "begin_ts:seconds! end_ts:integer! percent_received_responses:percent! transaction_status:text! transaction_status_description:text!",

	"Result": "query:Query! columns:[]Column! total_results:integer!", // section 2.4; rows may be null (open point 50)
	"Query":  "starttime:text! endtime:text! start:integer! limit:integer! dimensions:[]text! filters:text!",
	"Column": "name:text!",

	"NetworkList": "uri:text! id:uuid! type:IP|GEO! list:[]text name:text! description:text deprecated:flag! entries_uri:text! " + // section 2.6
		"entries_batch_deletion_uri:text! creation_timestamp:time! modified_timestamp:time",
	"NetworkListEntry": "uri:text! id:uuid! entry:text! added_by:text! creation_timestamp:time!",
	"EntryDetails":     "uri:text! id:uuid! type:IP|GEO! network_list_uri:text!",
	"Page": "uri:text! items:[]object! total:integer! has_more:flag! page_count:integer! page_index:integer! prev_uri:address! " +
		"next_uri:address!",
}

// kindOf returns the kind of a member, or "" if the shape has no such member.
func kindOf(shape, member string) string {
	for m := range strings.FieldsSeq(shapes[shape]) {
		if kind, found := strings.CutPrefix(m, member+":"); found {
			return strings.TrimSuffix(kind, "!")
		}
	}
	return ""
}

// is checks the members of an object.
func (n node) is(shape string) node {
	typed[map[string]any](n, "an object")
	for m := range strings.FieldsSeq(shapes[shape]) {
		name, kind, _ := strings.Cut(m, ":")
		kind, required := strings.CutSuffix(kind, "!")
		if required || n.has(name) {
			n.at(name).of(kind)
		}
	}
	return n
}

// of checks the kind of a value.
func (n node) of(kind string) {
	if item, list := strings.CutPrefix(kind, "[]"); list {
		for _, i := range n.items() {
			i.of(item)
		}
		return
	}
	switch kind {
	case "text":
		n.text()
	case "integer":
		n.integer()
	case "flag":
		n.flag()
	case "time":
		n.time()
	case "seconds": // of a transaction of this run
		if off := time.Unix(n.integer(), 0).Sub(n.p.Now()).Abs(); off > 24*time.Hour {
			n.wrong("is %v, %s away from now in epoch seconds", n.value, off)
		}
	case "percent":
		if percent := n.integer(); percent < 0 || percent > 100 {
			n.wrong("is %d, not a percentage", percent)
		}
	case "uuid":
		n.match(isUUID, "a UUID")
	case "address":
		if !n.null() {
			n.text()
		}
	case "IP|GEO":
		if !slices.Contains(strings.Split(kind, "|"), n.text()) {
			n.wrong("is %q, not one of %s", n.value, kind)
		}
	default:
		n.is(kind)
	}
}

// Unnamed returns a line for each type of the SDK of which the service sent members that the document does not name,
// with their names. That a service sends such members breaks no rule.
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
	tasks := s.TasksPrefix + "/tasks"
	for request, kind := range map[string]string{
		"GET " + tasks:                "[]Task",
		"GET " + tasks + "/*":         "Task",
		"GET " + lists:                "[]NetworkList",
		"GET " + lists + "/*":         "NetworkList",
		"GET " + lists + "/*/entries": "[]NetworkListEntry",
		"POST " + purgePath:           "PurgeReceipt",
		"GET /transactions/*":         "Transaction",
	} {
		matches, err := pathpkg.Match(request, method+" "+path)
		switch item, many := strings.CutPrefix(kind, "[]"); {
		case err != nil || !matches:
		case many:
			s.compare(item, itemsOf(value)...)
		default:
			s.compare(kind, value)
		}
	}
}

// compare notes the members of objects that the document does not name, and those of the objects within.
func (s *Service) compare(kind string, values ...any) {
	of, within, _ := strings.Cut(kind, ".")
	for _, value := range values {
		object, _ := value.(map[string]any)
		for name, content := range object {
			switch inner := kindOf(kind, name); {
			case shapes[inner] != "":
				s.compare(inner, content)
			case inner == "":
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
	object, _ := page.(map[string]any)
	for _, at := range []any{page, object["items"], object["tasks"]} {
		if items, ok := at.([]any); ok {
			return items
		}
	}
	return nil
}
