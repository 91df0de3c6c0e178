package testserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// response is the response to a request, kept in memory so that a fault can change it.
type response struct {
	status int
	header http.Header
	body   []byte

	// stream, if not nil, writes the body in pieces and replaces the field body. It runs without the server's lock and
	// ends with its context. It may run more than once, always with the same result.
	stream func(context.Context, io.Writer) error
}

func jsonResponse(status int, value any) response {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // addresses keep their "&"
	if err := enc.Encode(value); err != nil {
		return textResponse(http.StatusInternalServerError, "text/plain", fmt.Sprintf("testserver: %v", err))
	}
	return response{status: status, header: http.Header{"Content-Type": {"application/json"}}, body: body.Bytes()}
}

func textResponse(status int, contentType, text string) response {
	return response{status: status, header: http.Header{"Content-Type": {contentType}}, body: []byte(text)}
}

// send writes the response, as far and as fast as the fault allows.
func (s *Server) send(w http.ResponseWriter, r *http.Request, answer response, fault Fault, seen *entry) {
	if fault.Cut == CutAfterExecute {
		abort()
	}
	header := w.Header()
	header.Set("Date", s.cfg.Clock.Now().UTC().Format(http.TimeFormat))
	if length, ok := answer.announced(r, fault); ok && mayHaveBody(answer.status) {
		header.Set("Content-Length", strconv.Itoa(length))
	}
	for name, values := range answer.header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	s.log.status(seen, answer.status)
	w.WriteHeader(answer.status)
	if r.Method != http.MethodHead {
		answer.write(newOutlet(w, r, answer, fault))
	}
}

// announced returns the Content-Length, if the response has one. A stream has none, except for a CutBody, which must
// fall short of it.
func (answer response) announced(r *http.Request, fault Fault) (length int, ok bool) {
	length = len(answer.body)
	switch {
	case fault.Cut == CutChunked:
		return 0, false
	case fault.Cut != CutBody:
		return length, answer.stream == nil
	case answer.stream != nil:
		var counted counter
		if answer.stream(r.Context(), &counted) != nil {
			abort()
		}
		length = int(counted)
	}
	// A client must notice a cut of an empty body too, so the length is at least one byte more than is sent.
	return max(length, answer.breach(fault)+1), true
}

// breach returns after how many bytes of the body a fault cuts or stalls. A stall must come before the last byte: a
// client does not notice one after the announced length.
func (answer response) breach(fault Fault) int {
	switch {
	case answer.stream != nil:
		return cmp.Or(fault.CutAfter, streamBreach)
	case fault.CutAfter > 0 && fault.Cut == CutNone:
		return max(0, min(fault.CutAfter, len(answer.body)-1))
	case fault.CutAfter > 0:
		return min(fault.CutAfter, len(answer.body))
	default:
		return len(answer.body) / 2
	}
}

// streamBreach is where a stream is cut or stalls by default, because its middle is not known.
const streamBreach = 500

// write sends the body. It does not return if the fault cuts the body, or if the client disconnects within a stream.
func (answer response) write(out *outlet) {
	if answer.stream == nil {
		_, _ = out.Write(answer.body) // an error means that the client has disconnected
	} else if answer.stream(out.ctx, out) != nil {
		abort()
	}
	if out.breaks {
		out.breach() // the body was shorter than CutAfter
	}
}

// counter counts what is written to it.
type counter int

// Write implements [io.Writer].
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func mayHaveBody(status int) bool {
	return status >= http.StatusOK && status != http.StatusNoContent && status != http.StatusNotModified
}
