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

// reply is an answer, held back until faults had their say.
type reply struct {
	status int
	header http.Header
	body   []byte

	// stream, if not nil, writes the body piece by piece in place of body. It runs without the server's lock, ends when
	// the context does, and may run more than once, always with the same result.
	stream func(context.Context, io.Writer) error
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

// announced is the Content-Length, if the reply has one: a stream has none, unless the fault wants one to fall short of.
func (answer reply) announced(r *http.Request, fault Fault) (length int, ok bool) {
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
	// A cut must show in an empty body as well, so at least one byte more is announced than goes out.
	return max(length, answer.breach(fault)+1), true
}

// breach is after how many bytes of the body a fault cuts or stalls. Nobody notices a stall behind an announced length.
func (answer reply) breach(fault Fault) int {
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

// streamBreach is where a stream is cut or stalls when the fault does not say; the middle of it is not known.
const streamBreach = 500

// write puts the body out. It does not return if the fault cuts it or the client goes away in the middle of a stream.
func (answer reply) write(out *outlet) {
	if answer.stream == nil {
		_, _ = out.Write(answer.body) // an error here means that nobody listens any more
	} else if answer.stream(out.ctx, out) != nil {
		abort()
	}
	if out.breaks {
		out.breach() // the body was shorter
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
