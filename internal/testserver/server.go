// Package testserver is a strict fake of the web-delivery management service.
//
// It is written from the service document (service-interface) alone and knows nothing of the SDK that is tested on it:
// what the document rules out is refused, what it leaves open follows [Dialect], and whatever arrives is recorded.
// A server is an [http.Handler]; [Server.ListenTCP], [Server.ListenOn] and [Server.ListenMemory] give it an address.
// Nothing in it runs by itself: tasks, transactions and sessions age by looking at its [Clock] when a request comes, and
// security events are made up, or found among those of [Server.AddEvents], when somebody asks for them.
//
// Every request passes these steps, and the first that refuses it answers: address (404), method (405),
// authentication (401, or 403 in the purge area), right to view configuration (403), purge rate (503), content types
// (406), query and body (400). That a list, an entry or a task does not exist (404) comes after what is wrong with the
// names of parameters, and before what is wrong with their values and inside a body.
//
// Inside a testing/synctest bubble a server is made, used and closed within the bubble, and listens in memory.
package testserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config says which service is faked. The zero value is a service with one customer and one user.
type Config struct {
	Customer        string        // customer name in the path; "" means "acme"
	BasePath        string        // path in front of /{customer}/v1, for example "/root"; "" none
	Users           []User        // who may log in; nil means one User{Name: "alice", Password: "correct-horse-battery"}
	SessionLifetime time.Duration // on the clock; 0 means until ExpireSessions
	Clock           *Clock        // nil means NewClock(nil)
	PurgeRate       int           // purge requests per PurgeWindow; 0 means 2, negative means unlimited
	PurgeWindow     time.Duration // 0 means one second
	CountRefused    bool          // purges that are refused as too fast count against the rate as well (open point 39)
	PurgeDuration   time.Duration // how long a transaction is PENDING; 0 means two seconds, negative means not at all
	IdleTimeout     time.Duration // after which an idle connection is closed; 0 means never
	HostPatterns    []string      // host patterns of the customer's properties; nil means example.com and example.net
	Dialect         Dialect       // wire spellings that the service document leaves open

	DeployDuration time.Duration // how long the task of a changed network list takes; 0 means two seconds, negative means at once

	RecordingDelay time.Duration // how long after its time an event shows; 0 means at once

	RequestLog func(Request) // is given every request once it was answered or cut, from its own goroutine; they are not kept then

	EventsPerSecond float64   // generated security events, on average; 0 means none, more than a million is too many
	EventSeed       uint64    // which stream of them; an event depends on the seed, the rate and its time alone
	EventsSince     time.Time // there are none before; zero means 35 days before the Clock's time in New
}

// User is somebody who may log in.
type User struct {
	Name, Password string

	Domains          []string // domains it may purge, written like Config.HostPatterns; nil means all
	MayNotViewConfig bool     // configuration reads answer 403 (service-interface section 5)
}

// Server is the fake service. It is safe for concurrent use.
type Server struct {
	cfg      Config
	dialect  Dialect
	unusable error // what makes no sense in cfg; every request is answered with it
	base     place // {base_url}/{customer}/v1
	routes   []route
	traffic  generator

	log     recorder
	faults  faultRules
	network network

	mu           sync.Mutex // guards what follows; a route's handler runs with it held
	sessions     map[string]session
	logins       int
	tasks        map[string]*task
	taskNumber   int
	arrivals     []time.Time // of purge requests that count against the rate, ascending
	purges       []Purge
	transactions map[int64]*transaction

	transactionNumber int64 // made so far
	failures          []ending
	lists             []*networkList // in order of creation
	uuids             uint64         // made so far
	added             []record       // ascending in time; replaced as a whole, so that a reply under way keeps what it began with
}

// New makes a server that does not listen yet.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	s := &Server{
		cfg:          cfg,
		dialect:      cfg.Dialect,
		unusable:     cfg.Dialect.check(),
		base:         split(cfg.BasePath + "/" + url.PathEscape(cfg.Customer) + "/v1"),
		sessions:     map[string]session{},
		tasks:        map[string]*task{},
		transactions: map[int64]*transaction{},
	}
	s.traffic, s.unusable = newGenerator(cfg), errors.Join(s.unusable, checkRate(cfg.EventsPerSecond))
	if !s.base.inside {
		s.unusable = fmt.Errorf("testserver: Config.BasePath %q is not an escaped path", cfg.BasePath)
	}
	s.network.ctx, s.network.cancel = context.WithCancel(context.Background())
	s.routes = s.allRoutes()
	return s
}

// Err tells what makes no sense in the Config. A server that was made of it answers 501 to everything, with these words.
func (s *Server) Err() error { return s.unusable }

// Identity returns the customer and the first user.
func (s *Server) Identity() (customer string, user User) { return s.cfg.Customer, s.cfg.Users[0] }

func (cfg Config) withDefaults() Config {
	setDefault(&cfg.Customer, "acme")
	cfg.BasePath = prefix(cfg.BasePath)
	cfg.Users = slices.Clone(cfg.Users)
	if cfg.Users == nil {
		cfg.Users = []User{{Name: "alice", Password: "correct-horse-battery"}}
	}
	if cfg.Clock == nil {
		cfg.Clock = NewClock(nil)
	}
	if cfg.HostPatterns == nil {
		cfg.HostPatterns = []string{"www.example.com", "*.example.com", "example.com", "*.example.net", "example.net"}
	}
	setDefault(&cfg.PurgeRate, 2) // service-interface section 8
	setDefault(&cfg.PurgeWindow, time.Second)
	setDefault(&cfg.PurgeDuration, 2*time.Second)
	setDefault(&cfg.DeployDuration, 2*time.Second)
	setDefault(&cfg.EventsSince, cfg.Clock.Now().AddDate(0, 0, -35))
	cfg.Dialect = cfg.Dialect.withDefaults()
	return cfg
}

// prefix gives a path that others are appended to one form: "" or with a slash in front and none behind.
func prefix(path string) string {
	if path = strings.Trim(path, "/"); path == "" {
		return ""
	}
	return "/" + path
}

func setDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// Clock returns the clock by which the server lives.
func (s *Server) Clock() *Clock { return s.cfg.Clock }

// ServeHTTP records the request, lets the first fault that matches act, and else executes it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.network.enter(r)()
	at := s.locate(r.URL)
	seen, fault := s.arrive(r, at)
	defer s.log.leave(seen, s.cfg.RequestLog)

	// The body is read before a delay: only then does net/http notice that the client goes away.
	if fault.Cut != CutBeforeRead {
		if err := s.log.read(seen, r); err != nil {
			abort()
		}
	}
	if !pause(r.Context(), fault.Delay) {
		abort()
	}
	user, basic := s.identify(r)
	s.log.user(seen, user)

	switch {
	case fault.Cut == CutBeforeRead, fault.Cut == CutAfterRead:
		abort()
	case fault.Handler != nil:
		s.log.serve(seen, fault.Handler, w, r)
	default:
		answer := fault.rewrite(func() reply {
			return s.execute(&call{s: s, r: r, at: at, user: user, basic: basic, body: seen.Body, arrived: seen.Time})
		})
		s.send(w, r, answer, fault, seen)
	}
}

// abort closes the connection without a reply (HTTP/2: resets the stream). net/http takes this panic as the way to say
// it, works alike on every kind of connection and keeps the bookkeeping that Close relies on.
func abort() {
	panic(http.ErrAbortHandler)
}

// pause waits and tells whether the client is still there.
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
