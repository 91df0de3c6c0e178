package testserver

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is one received request, including those that were rejected or cut.
type Request struct {
	Time     time.Time   // arrival, by the server's clock
	Method   string      // as received
	Path     string      // escaped, as received
	RawQuery string      // as received
	Header   http.Header // as received
	Body     []byte      // the part that the server read
	User     string      // name of the user whose credentials it carried; "" without valid credentials
	Status   int         // status of the response; 0 if there is none yet, or the connection was closed before it
	Conn     int         // number of its connection, from 1; 0 if the handler was called without a listener
}

// Requests returns copies of all requests, in order of arrival. With Config.RequestLog, it returns none.
func (s *Server) Requests() []Request {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	all := make([]Request, len(s.log.entries))
	for i, e := range s.log.entries {
		all[i] = e.Request
		all[i].Header = e.Header.Clone()
		all[i].Body = slices.Clone(e.Body)
	}
	return all
}

// Count returns the number of requests that match; method and path work like those of [Fault]. With
// Config.RequestLog, it returns 0.
func (s *Server) Count(method, path string) (count int) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	for _, e := range s.log.entries {
		if matches(method, path, e.Method, e.at) {
			count++
		}
	}
	return count
}

// recorder keeps every request in order of arrival.
type recorder struct {
	mu      sync.Mutex
	entries []*entry
}

type entry struct {
	Request
	at place
}

// arrive reads the clock and the faults under the lock, so times ascend in the order of the entries, and faults see
// requests in that order too.
func (s *Server) arrive(r *http.Request, at place) (*entry, Fault) {
	e := &entry{at: at, Request: Request{
		Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery,
		Header: r.Header.Clone(), Conn: connectionNumber(r.Context()),
	}}
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	e.Time = s.cfg.Clock.Now()
	if s.cfg.RequestLog == nil {
		s.log.entries = append(s.log.entries, e)
	}
	return e, s.take(r.Method, at)
}

// note reads or changes what the lock guards.
func (rec *recorder) note(change func()) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	change()
}

// read reads the body. If the connection of the client breaks, read stores the part that arrived and returns the
// error.
func (rec *recorder) read(e *entry, r *http.Request) error {
	if r.Body == nil { // possible if the handler is called without the server of net/http
		return nil
	}
	body, err := io.ReadAll(r.Body)
	rec.note(func() { e.Body = body })
	return err
}

// status is called before the status line is sent, so that a caller with the response also finds its status here.
func (rec *recorder) status(e *entry, status int) {
	rec.note(func() {
		if e.Status == 0 && status >= http.StatusOK {
			e.Status = status
		}
	})
}

// leave is called when a request has been processed completely.
func (rec *recorder) leave(e *entry, log func(Request)) {
	if log == nil {
		return
	}
	var done Request
	rec.note(func() { done = e.Request })
	log(done)
}

// serve runs the handler of a fault and records the status of its response.
func (rec *recorder) serve(e *entry, handler http.HandlerFunc, w http.ResponseWriter, r *http.Request) {
	watched := &statusWriter{ResponseWriter: w, status: func(status int) { rec.status(e, status) }}
	r.Body = io.NopCloser(bytes.NewReader(e.Body))
	handler(watched, r)
	if !watched.hijacked {
		rec.status(e, http.StatusOK) // the status that net/http sends for a handler that wrote nothing
	}
}

// statusWriter reports the status that is sent. A handler of a fault can still flush and hijack through it.
type statusWriter struct {
	http.ResponseWriter

	status   func(int)
	hijacked bool
}

// WriteHeader implements [http.ResponseWriter].
func (w *statusWriter) WriteHeader(status int) {
	w.status(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *statusWriter) Write(p []byte) (int, error) {
	w.status(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Flush implements [http.Flusher].
func (w *statusWriter) Flush() {
	w.status(http.StatusOK)
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements [http.Hijacker].
func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.hijacked = true
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Unwrap serves [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
