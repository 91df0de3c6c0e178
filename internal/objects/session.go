package objects

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// sessionIDNames are the members in which an id is looked for, in this order (open point 5).
var sessionIDNames = []string{"id", "session_id", "sessionid", "authtoken", "token"}

// membersOfNoSession are those of a task, a network list, an entry and a page (sections 2.1 and 2.6), whose ids are no
// sessions. A session may well have a name, a type, a status, a user and times.
var membersOfNoSession = []string{
	"operation", "complete", "progress", "begin_time", "error_info", "list", "deprecated", "entries_uri",
	"entries_batch_deletion_uri", "entry", "added_by", "network_list_uri", "items", "transaction_id", "transaction_response",
}

// SessionID finds the id of a session (open point 5). It reads a JSON object, a JSON string, a cookie of this name, or a
// bare token as text. It returns "" if there is none.
func SessionID(body []byte, header http.Header, cookie string) string {
	var object map[string]json.RawMessage
	switch err := wire.Decode(body, &object); {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return ""
	case err == nil:
		for _, name := range membersOfNoSession {
			if _, ok := object[name]; ok {
				return ""
			}
		}
		for _, name := range sessionIDNames {
			if id := Text(object[name]); id != "" {
				return id
			}
		}
	}
	body = bytes.TrimSpace(body)
	if id := Text(body); id != "" {
		return id
	}
	for _, sent := range (&http.Response{Header: header}).Cookies() {
		if sent.Name == cookie && sent.Value != "" {
			return sent.Value
		}
	}
	if wire.IsHTML(header) || json.Valid(body) || bytes.ContainsAny(body, "{}[]<>") {
		return ""
	}
	return string(body)
}
