package hostile

import (
	"fmt"
	"net/http"
)

// response returns the status and body for a purge (service document, section 2.3).
func (a Action) response(id int) (status int, body string) {
	if a == Unavailable {
		return http.StatusServiceUnavailable, `{"code":503,"description":"fault in the purge infrastructure"}`
	}
	return http.StatusCreated, fmt.Sprintf(`{"code":201,"description":"request submitted","transaction_id":%d,`+
		`"purge_response":{"transaction_status_uri":"/transactions/%d"}}`, id, id)
}
