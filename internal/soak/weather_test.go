package soak

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// weather changes the faults of the service. It counts requests instead of time. So the share of failing requests does
// not depend on their rate. That holds in fake time too, where most requests take no time.
//
// It behaves like networks, proxies and services in trouble, but does not lie about what happened. A rejected request
// is not executed, and no existing object is reported as missing (the weather never responds to a DELETE with 404). If
// a service lies, no client can find out the outcome of a write.
type weather struct {
	soak *soak
	rng  *rand.Rand

	requests atomic.Int64
	ticks    chan struct{}
	stop     chan struct{}
	ended    chan struct{}

	rules []func() // each removes one rule, oldest first
	days  time.Duration
}

const (
	// weatherHeader marks responses that the weather created.
	weatherHeader = "X-Weather"
	// requestsPerChange is the number of requests per change. Most changes add a rule that hits two requests on
	// average.
	requestsPerChange = 18
	// mostRules is the maximum number of active rules.
	mostRules = 16
	// mostAdvance is the maximum advance of the clock in a round. Raw events of the current day are stored for three
	// more days (service document, section 6).
	mostAdvance = 48 * time.Hour
	// tooLong is longer than the timeout of an attempt.
	tooLong = 2500 * time.Millisecond
)

func newWeather(s *soak) *weather {
	return &weather{soak: s, rng: rand.New(rand.NewPCG(s.seed, 0)), ticks: make(chan struct{}, 1)}
}

func (w *weather) begin() {
	w.stop, w.ended, w.days = make(chan struct{}), make(chan struct{}), mostAdvance
	go func() {
		defer close(w.ended)
		for {
			select {
			case <-w.ticks:
				w.change()
			case <-w.stop:
				return
			}
		}
	}()
}

func (w *weather) end() {
	close(w.stop)
	<-w.ended
	for _, remove := range w.rules {
		remove()
	}
	w.rules = nil
	select {
	case <-w.ticks:
	default:
	}
}

func (w *weather) tick() {
	if w.requests.Add(1)%requestsPerChange == 0 {
		select {
		case w.ticks <- struct{}{}:
		default:
		}
	}
}

func (w *weather) change() {
	switch n := w.rng.IntN(100); {
	case n < 70:
		w.fail(w.fault())
	case n < 80:
		w.lostAndRefused()
	case n < 87:
		w.soak.srv.ExpireSessions()
	case n < 96:
		d := time.Duration(w.rng.Int64N(int64(24 * time.Hour)))
		d = min(d>>w.rng.IntN(10), w.days)
		w.days -= d
		w.soak.srv.Clock().Advance(d)
	default:
		w.soak.srv.FailTransactions(1, "FAILED", "a cache does not answer", 0)
	}
}

// fail adds a rule. If there are too many, the rule replaces the oldest one.
func (w *weather) fail(f testserver.Fault) {
	if len(w.rules) == mostRules {
		w.rules[0]()
		w.rules = w.rules[1:]
	}
	w.rules = append(w.rules, w.soak.srv.Fail(f))
}

// lostAndRefused is for an entry that a worker is about to delete. The first attempt succeeds but its response is lost;
// the second one is rejected. Random faults seldom hit one call twice in this order.
func (w *weather) lostAndRefused() {
	i := int(w.soak.nextDoom.Load()) + w.rng.IntN(2*workers)
	if i >= len(w.soak.doomed) {
		return
	}
	path := "/config/networklists/" + w.soak.doomed[i].list + "/" + w.soak.doomed[i].id
	w.fail(testserver.Fault{Path: path, Count: 1, Cut: testserver.CutAfterExecute})
	w.fail(testserver.Fault{Path: path, Count: 1, Status: http.StatusForbidden})
}

func (w *weather) fault() testserver.Fault {
	f := w.trouble()
	f.Skip, f.Count = w.rng.IntN(10), 1+w.rng.IntN(3)
	if f.Path == "" {
		paths := []string{
			"", "/**", "/tasks/**", "/tasks/*", "/cache/purge", "/cache/purge", "/transactions/*", "/stats/**",
			"/config/networklists/**", "/config/networklists/**", "/config/networklists/*/entries", "/sessions",
		}
		f.Path = paths[w.rng.IntN(len(paths))]
	}
	if f.Header == nil {
		f.Header = http.Header{}
	}
	f.Header.Set(weatherHeader, "bad")
	return f
}

// trouble draws one of the faults of the fault matrix.
func (w *weather) trouble() testserver.Fault {
	one := func(choices ...int) int { return choices[w.rng.IntN(len(choices))] }
	switch w.rng.IntN(17) {
	case 0, 1: // refusals
		status := one(400, 401, 403, 404)
		f := testserver.Fault{Status: status, Body: `{"code":` + http.StatusText(status) + `}`} // not even JSON
		if status == http.StatusNotFound {
			f.Method = []string{http.MethodGet, http.MethodPost}[w.rng.IntN(2)]
		}
		return f
	case 2, 3: // too fast
		f := testserver.Fault{Status: one(429, 429, 503), Body: `{"description":"slow down"}`, Header: http.Header{}}
		after := []string{"", "0", "1", "3600", time.Now().Add(time.Second).UTC().Format(http.TimeFormat), "soon"}
		if text := after[w.rng.IntN(len(after))]; text != "" {
			f.Header.Set("Retry-After", text)
		}
		return f
	case 4, 5: // a failure of the service, before or after it executed the request
		return testserver.Fault{Status: one(408, 500, 502, 503, 504), Body: "<html>trouble</html>", Execute: w.rng.IntN(2) == 0}
	case 6, 7, 8: // a connection that breaks off
		cuts := []testserver.Cut{
			testserver.CutBeforeRead, testserver.CutAfterRead, testserver.CutAfterExecute, testserver.CutBody, testserver.CutChunked,
		}
		return testserver.Fault{Cut: cuts[w.rng.IntN(len(cuts))], CutAfter: w.rng.IntN(300)}
	case 9:
		return testserver.Fault{Handler: w.hangUp("")}
	case 10:
		return testserver.Fault{Handler: w.hangUp("HTTP/1.1 what\r\n\r\n")}
	case 11: // slowness
		return testserver.Fault{Delay: w.while()}
	case 12:
		return testserver.Fault{Stall: w.while(), CutAfter: w.rng.IntN(300)}
	case 13: // a large response would take minutes
		return testserver.Fault{Path: "/tasks/*", Dribble: time.Duration(w.rng.IntN(10)) * time.Millisecond}
	case 14: // executed, with a body that says nothing
		bodies := []string{`{"id":"ta`, "<html>oops</html>", "null", "\xff\xfe", "[1,2"}
		return testserver.Fault{Body: bodies[w.rng.IntN(len(bodies))]}
	case 15:
		types := [][]string{{"text/html; charset=utf-8"}, {"application/octet-stream"}, nil}
		return testserver.Fault{Header: http.Header{"Content-Type": types[w.rng.IntN(len(types))]}}
	default:
		switch w.rng.IntN(3) {
		case 0: // for a rejected write, it would be a lie
			return testserver.Fault{Method: http.MethodGet, Status: http.StatusNoContent}
		case 1: // the envelope contradicts the status
			return testserver.Fault{Path: "/config/networklists/**", Body: `{"code":500,"description":"trouble"}`}
		default:
			return testserver.Fault{Status: one(302, 307), Header: http.Header{"Location": {"http://198.51.100.7/"}}}
		}
	}
}

// while returns a duration that is mostly short, and now and then longer than the timeout of an attempt.
func (w *weather) while() time.Duration {
	if w.rng.IntN(16) == 0 {
		return tooLong
	}
	return time.Duration(1 + w.rng.Int64N(int64(150*time.Millisecond)))
}

// hangUp writes a text that is not a response, or resets the connection.
func (w *weather) hangUp(text string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		conn, _, err := rw.(http.Hijacker).Hijack()
		if err != nil {
			w.soak.problem("weather", "%v", err)
			return
		}
		if tcp, ok := conn.(*net.TCPConn); ok && text == "" {
			_ = tcp.SetLinger(0)
		}
		_, _ = io.WriteString(conn, text) // the client may have disconnected
		_ = conn.Close()
	}
}
