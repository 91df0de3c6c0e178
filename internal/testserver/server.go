// Package testserver is a strict fake of the web-delivery management service.
//
// It follows the service document alone and never imports the SDK, which is tested against it. It rejects what the
// document forbids. Where the document leaves something open, [Dialect] selects a form. It records every request. A
// server is an [http.Handler]; [Server.ListenTCP], [Server.ListenOn] and [Server.ListenMemory] give it an address.
// Nothing happens between requests: each request reads the [Clock] and computes how far tasks, transactions and
// sessions have progressed. A query generates its security events, or finds them among those of [Server.AddEvents].
//
// Every request passes these checks, and the first failed check decides the response:
//  1. address (404)
//  2. method (405)
//  3. authentication (401, or 403 in the purge area)
//  4. right to view configuration (403)
//  5. purge rate (503)
//  6. content types (406)
//  7. names of query parameters (400)
//  8. existence of the list, entry or task (404)
//  9. values of query parameters, and the body (400)
//
// For a testing/synctest bubble, create, use and close the server within the bubble, and let it listen in memory.
package testserver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config describes the service to fake. The zero value is a service with one customer and one user.
type Config struct {
	Customer        string        // customer name in the path; "" means "acme"
	Users           []User        // nil means one User{Name: "alice", Password: "correct-horse-battery"}
	SessionLifetime time.Duration // by the clock; 0 means until ExpireSessions
	Clock           *Clock        // nil means NewClock(nil)
	PurgeRate       int           // purge requests per PurgeWindow; 0 means 2, negative means unlimited
	PurgeWindow     time.Duration // 0 means one second
	CountRefused    bool          // purges rejected as too fast count against the rate as well (open point 39)
	PurgeDuration   time.Duration // how long a transaction is PENDING; 0 means two seconds, negative means that it ends at once
	IdleTimeout     time.Duration // after which an idle connection is closed; 0 means never
	HostPatterns    []string      // host patterns of the customer's properties; nil means example.com and example.net
	Dialect         Dialect       // forms on the wire that the service document leaves open
	SmallIDs        bool          // ids of transactions count from 1, in place of odd numbers above 2^53

	DeployDuration time.Duration // how long the task of a changed list runs; 0 means two seconds, negative means that it ends at once

	RecordingDelay time.Duration // how long after its time an event appears in the statistics

	// RequestLog is called with each request, after its response was sent or cut. The server then stores no requests.
	RequestLog func(Request)

	EventsPerSecond float64   // generated security events per second, on average; 0 means none; at most a million
	EventSeed       uint64    // selects the events; an event depends only on the seed, the rate and its time
	EventsSince     time.Time // time of the first event; zero means 35 days before the Clock's time in New
}

// User is a user of the service.
type User struct {
	Name, Password string

	Domains          []string // domains that the user may purge, in the form of Config.HostPatterns; nil means all
	MayNotViewConfig bool     // the service rejects the user's configuration reads with 403 (service document, section 5)
}

// Server is the fake service. It is safe for concurrent use.
type Server struct {
	cfg      Config
	dialect  Dialect
	unusable error // the first problem of cfg; the server answers every request with it
	base     place // {base_url}/{customer}/v1
	routes   []route
	traffic  generator

	requests atomic.Int64 // that got a response

	log     recorder
	faults  []*faultRule // guarded by the lock of log
	network network

	mu           sync.Mutex // guards the fields below; handlers of routes run with it held
	sessions     map[string]session
	logins       int
	tasks        map[string]*task
	taskNumber   int
	arrivals     []time.Time // times of the purge requests that count against the rate, ascending
	purges       []Purge
	transactions map[int64]*transaction

	transactionNumber int64 // number created so far
	failures          []ending
	failingDeploys    []TaskError
	lists             []*networkList // in order of creation
	uuids             uint64         // number created so far
	added             []record       // ascending in time; never changed in place, as responses may still read it
}

// New creates a server that does not listen yet.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	s := &Server{
		cfg:          cfg,
		dialect:      cfg.Dialect,
		unusable:     cfg.Dialect.check(),
		base:         split("/" + url.PathEscape(cfg.Customer) + "/v1"),
		sessions:     map[string]session{},
		tasks:        map[string]*task{},
		transactions: map[int64]*transaction{},
	}
	s.traffic = newGenerator(cfg)
	s.network.ctx, s.network.cancel = context.WithCancel(context.Background())
	s.routes = s.allRoutes()
	return s
}

// Err returns an error if the Config is invalid. Such a server answers every request with 501 and the text of the
// error.
func (s *Server) Err() error { return s.unusable }

// Identity returns the customer and the first user.
func (s *Server) Identity() (customer string, user User) { return s.cfg.Customer, s.cfg.Users[0] }

func (c Config) withDefaults() Config {
	c.Customer = cmp.Or(c.Customer, "acme")
	c.Users = slices.Clone(c.Users)
	if c.Users == nil {
		c.Users = []User{{Name: "alice", Password: "correct-horse-battery"}}
	}
	if c.Clock == nil {
		c.Clock = NewClock(nil)
	}
	if c.HostPatterns == nil {
		c.HostPatterns = []string{"www.example.com", "*.example.com", "example.com", "*.example.net", "example.net"}
	}
	c.PurgeRate = cmp.Or(c.PurgeRate, 2) // service document, section 8
	c.PurgeWindow = cmp.Or(c.PurgeWindow, time.Second)
	c.PurgeDuration = cmp.Or(c.PurgeDuration, 2*time.Second)
	c.DeployDuration = cmp.Or(c.DeployDuration, 2*time.Second)
	c.EventsSince = cmp.Or(c.EventsSince, c.Clock.Now().AddDate(0, 0, -35))
	c.Dialect = c.Dialect.withDefaults()
	return c
}

// Clock returns the clock of the server.
func (s *Server) Clock() *Clock { return s.cfg.Clock }

// ServeHTTP records the request and executes it, unless the faults that hit it prevent that: several are joined into one.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.network.enter(r)()
	at := s.locate(r.URL)
	seen, fault := s.arrive(r, at)
	defer s.log.leave(seen, s.cfg.RequestLog)

	// Read the body before a delay: only then does net/http notice that the client disconnects.
	if fault.Cut != CutBeforeRead {
		if err := s.log.read(seen, r); err != nil {
			abort()
		}
	}
	if !pause(r.Context(), fault.Delay) {
		abort()
	}
	user, basic := s.identify(r)
	if user != nil {
		s.log.note(func() { seen.User = user.Name })
	}

	switch {
	case fault.Cut == CutBeforeRead, fault.Cut == CutAfterRead:
		abort()
	case fault.Handler != nil:
		s.log.serve(seen, fault.Handler, w, r)
	default:
		w.Header().Set("X-Request-Id", fmt.Sprintf("request-%d", s.requests.Add(1))) // a rule may have another
		answer := fault.rewrite(func() response {
			return s.execute(&call{s: s, r: r, at: at, user: user, basic: basic, body: seen.Body, arrived: seen.Time})
		})
		s.send(w, r, answer, fault, seen)
	}
}

// abort closes the connection without a response (HTTP/2: resets the stream). net/http defines this panic for it, which
// works alike on every kind of connection and keeps the counts that Close relies on.
func abort() {
	panic(http.ErrAbortHandler)
}

// pause waits, and reports whether the client is still connected.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
