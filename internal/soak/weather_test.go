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

// weather changes what goes wrong at the service. It goes by the number of requests, not by time: then the share of
// those that fail is the same however fast they come, and in fake time too, where most of them take no time.
//
// It does what networks, proxies and services in trouble do, but does not lie about what happened: a refusal is not
// executed, and nothing that is there is called gone (a DELETE is never answered 404 by the weather). From a service
// that lies nobody could learn what became of a write.
type weather struct {
	soak *soak
	rng  *rand.Rand

	requests atomic.Int64
	ticks    chan struct{}
	stop     chan struct{}
	ended    chan struct{}

	rules []func() // each removes one, oldest first
	days  time.Duration
}

const (
	// weatherHeader marks replies that the weather made.
	weatherHeader = "X-Weather"
	// requestsPerChange: most changes add a rule that hits two requests on average.
	requestsPerChange = 18
	// mostRules that are in force at once.
	mostRules = 16
	// mostAdvance of the clock in a round: raw events of the current day stay for three more (service-interface section 6).
	mostAdvance = 48 * time.Hour
	// tooLong is longer than an attempt may take.
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

// end leaves fair weather behind.
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

// tick is told of each request.
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

// fail adds a rule, in place of the oldest when there are many.
func (w *weather) fail(f testserver.Fault) {
	if len(w.rules) == mostRules {
		w.rules[0]()
		w.rules = w.rules[1:]
	}
	w.rules = append(w.rules, w.soak.srv.Fail(f))
}

// lostAndRefused is for an entry that is about to be deleted: the first attempt works and its reply is lost, and the
// second is refused. Faults that go by chance seldom hit one call twice in this order.
func (w *weather) lostAndRefused() {
	i := int(w.soak.nextDoom.Load()) + w.rng.IntN(2*workers)
	if i >= len(w.soak.doomed) {
		return
	}
	path := "/config/networklists/" + w.soak.doomed[i].list + "/" + w.soak.doomed[i].id
	w.fail(testserver.Fault{Path: path, Count: 1, Cut: testserver.CutAfterExecute})
	w.fail(testserver.Fault{Path: path, Count: 1, Status: http.StatusForbidden})
}

// fault draws what goes wrong and where.
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
	case 4, 5: // trouble at the service, before or after it did what was asked
		return testserver.Fault{Status: one(408, 500, 502, 503, 504), Body: "<html>trouble</html>", Execute: w.rng.IntN(2) == 0}
	case 6, 7, 8: // a connection that breaks
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
	case 13: // of a large reply it would take minutes
		return testserver.Fault{Path: "/tasks/*", Dribble: time.Duration(w.rng.IntN(10)) * time.Millisecond}
	case 14: // executed, and then a body that tells nothing
		bodies := []string{`{"id":"ta`, "<html>oops</html>", "null", "\xff\xfe", "[1,2"}
		return testserver.Fault{Body: bodies[w.rng.IntN(len(bodies))]}
	case 15:
		types := [][]string{{"text/html; charset=utf-8"}, {"application/octet-stream"}, nil}
		return testserver.Fault{Header: http.Header{"Content-Type": types[w.rng.IntN(len(types))]}}
	default:
		switch w.rng.IntN(3) {
		case 0: // of a write that was refused it would be a lie
			return testserver.Fault{Method: http.MethodGet, Status: http.StatusNoContent}
		case 1: // the envelope contradicts the status
			return testserver.Fault{Path: "/config/networklists/**", Body: `{"code":500,"description":"trouble"}`}
		default:
			return testserver.Fault{Status: one(302, 307), Header: http.Header{"Location": {"http://198.51.100.7/"}}}
		}
	}
}

// while is mostly short, and now and then longer than an attempt may take.
func (w *weather) while() time.Duration {
	if w.rng.IntN(16) == 0 {
		return tooLong
	}
	return time.Duration(1 + w.rng.Int64N(int64(150*time.Millisecond)))
}

// hangUp answers with a text that is no reply, or without one with a reset.
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
		_, _ = io.WriteString(conn, text) // nobody may be there any more
		_ = conn.Close()
	}
}
