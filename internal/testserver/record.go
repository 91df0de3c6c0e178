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

// Request is one received request, also one that was refused or cut.
type Request struct {
	Time     time.Time   // arrival, by the server's clock
	Method   string      // as received
	Path     string      // escaped, as received
	RawQuery string      // as received
	Header   http.Header // as received
	Body     []byte      // what was read of it
	User     string      // whose credentials it carried; "" when it was not authenticated
	Status   int         // status line sent; 0 when the connection was closed before one, or nothing was sent yet
	Conn     int         // number of its connection, from 1; 0 when the handler was called without a listener
}

// Requests returns copies of all requests, in order of arrival; none with Config.RequestLog.
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

// Count returns how many requests match; method and path are those of [Fault]. It is 0 with Config.RequestLog.
func (s *Server) Count(method, path string) int {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	count := 0
	for _, e := range s.log.entries {
		if matches(method, path, e.Method, e.at) {
			count++
		}
	}
	return count
}

// Refused returns how many requests got 401, or 403 because they were not authenticated. It is 0 with Config.RequestLog.
func (s *Server) Refused() int {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	count := 0
	for _, e := range s.log.entries {
		if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && e.User == "" {
			count++
		}
	}
	return count
}

// Forget drops what grows with the number of requests: their records, tasks, transactions, purges and added events. Lists,
// sessions, faults and counts (other than [Server.Count]) stay, and no id is given out again. A test that runs for hours
// calls it while no request is under way, and its memory then tells about the client.
func (s *Server) Forget() {
	s.log.mu.Lock()
	s.log.entries = nil
	s.log.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks, s.transactions = map[string]*task{}, map[int64]*transaction{}
	s.purges, s.added = nil, nil
	// The last arrivals count towards the purge rate of the next.
	s.arrivals = slices.Clone(s.arrivals[max(0, len(s.arrivals)-max(0, s.cfg.PurgeRate)):])
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

// arrive looks at the clock and at the faults under the lock, so that times ascend like the entries, and the order of
// arrival by which faults choose is theirs.
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
	return e, s.faults.take(r.Method, at)
}

// read takes the body in. A client that was cut off in the middle of it leaves an error and what did come.
func (rec *recorder) read(e *entry, r *http.Request) error {
	if r.Body == nil { // possible when the handler is called without net/http's server
		return nil
	}
	body, err := io.ReadAll(r.Body)
	rec.mu.Lock()
	defer rec.mu.Unlock()
	e.Body = body
	return err
}

func (rec *recorder) user(e *entry, user *User) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if user != nil {
		e.User = user.Name
	}
}

// status is called before the status line leaves, so that whoever has the reply also finds it here.
func (rec *recorder) status(e *entry, status int) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if e.Status == 0 && status >= http.StatusOK {
		e.Status = status
	}
}

// leave is called when all is done for a request.
func (rec *recorder) leave(e *entry, log func(Request)) {
	if log == nil {
		return
	}
	rec.mu.Lock()
	done := e.Request
	rec.mu.Unlock()
	log(done)
}

// serve runs a fault's own handler and records the status that it answers with.
func (rec *recorder) serve(e *entry, handler http.HandlerFunc, w http.ResponseWriter, r *http.Request) {
	watched := &statusWriter{ResponseWriter: w, status: func(status int) { rec.status(e, status) }}
	r.Body = io.NopCloser(bytes.NewReader(e.Body))
	handler(watched, r)
	if !watched.hijacked {
		rec.status(e, http.StatusOK) // what net/http answers for a handler that wrote nothing
	}
}

// statusWriter tells which status is sent and still offers what a handler of a fault needs to misbehave.
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
