package testserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// reply is a whole answer, held back until faults had their say.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func jsonReply(status int, value any) reply {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // addresses in replies keep their "&"
	if err := enc.Encode(value); err != nil {
		return textReply(http.StatusInternalServerError, "text/plain", fmt.Sprintf("testserver: %v", err))
	}
	return reply{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: body.Bytes()}
}

func textReply(status int, contentType, text string) reply {
	return reply{status: status, header: http.Header{"Content-Type": {contentType}}, body: []byte(text)}
}

// send writes the reply, as far and as fast as the fault lets it.
func (s *Server) send(w http.ResponseWriter, r *http.Request, answer reply, fault Fault, seen *entry) {
	if fault.Cut == CutAfterExecute {
		abort()
	}
	header := w.Header()
	header.Set("Date", s.cfg.Clock.Now().UTC().Format(http.TimeFormat))
	if fault.Cut != CutChunked && mayHaveBody(answer.status) {
		// A cut must show in an empty body as well, so at least one byte is announced.
		announced := len(answer.body)
		if fault.Cut == CutBody {
			announced = max(announced, 1)
		}
		header.Set("Content-Length", strconv.Itoa(announced))
	}
	for name, values := range answer.header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	s.log.status(seen, answer.status)
	w.WriteHeader(answer.status)

	body := answer.body
	cut := fault.Cut == CutBody || fault.Cut == CutChunked
	if cut {
		body = body[:len(body)/2]
	}
	if !write(w, r, body, fault.Dribble) {
		abort()
	}
	if cut {
		_ = http.NewResponseController(w).Flush() // without it the half body could stay behind in a buffer
		abort()
	}
}

// write tells whether all of the body went out before the client was gone.
func write(w http.ResponseWriter, r *http.Request, body []byte, dribble time.Duration) bool {
	if dribble <= 0 {
		_, _ = w.Write(body) // an error here means that nobody listens any more
		return true
	}
	control := http.NewResponseController(w)
	_ = control.Flush()
	for i := range body {
		if !pause(r.Context(), dribble) {
			return false
		}
		_, _ = w.Write(body[i : i+1])
		_ = control.Flush()
	}
	return true
}

func mayHaveBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}
