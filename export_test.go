package webdelivery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
	"github.com/webdelivery/webdelivery-go/internal/fixture"
)

// eventsService answers queries of raw events by section 4.2 of the service document. A response has the events from
// the start of the time range to before its end (an option changes either), in ascending order of time. Events of the
// same time come in another order each time. It can break its responses.
type eventsService struct {
	events   []anEvent // in ascending order
	requests []string  // their queries

	random *rand.Rand
	pieces int // rows after which a response breaks, on average; 0: never
	status func(request int) int
	body   func(request int) (body string, ok bool) // in place of the events
	cap    int                                      // most rows of a response; 0: no limit
	total  func(request, total, rows int) int

	added                        bool // a column that nobody has asked for
	startExclusive, endInclusive bool // open point 33

	recorded map[anEvent]time.Time // when an event appears, if not at once
	counted  string                // the name of events that are counted and not sent
}

type anEvent struct {
	at   time.Time
	name string
}

var exported = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// eventsOf returns so many events per second, in so many seconds. Every tenth has the content of another event of its
// millisecond.
func eventsOf(seconds, perSecond int) []anEvent {
	var events []anEvent
	for i := range seconds * perSecond {
		at := exported.Add(time.Duration(i/perSecond)*time.Second + time.Duration(i%perSecond/4*1000*4/perSecond)*time.Millisecond)
		name := strconv.Itoa(i)
		if i%10 == 3 && i%perSecond%4 > 0 {
			name = events[i-1].name
		}
		events = append(events, anEvent{at, name})
	}
	return events
}

func (s *eventsService) RoundTrip(req *http.Request) (*http.Response, error) {
	q := req.URL.Query()
	number := len(s.requests)
	s.requests = append(s.requests, req.URL.RawQuery)
	if s.status != nil {
		if status := s.status(number); status != http.StatusOK {
			return fixture.Response(status, []byte(`{}`)), nil
		}
	}
	if s.body != nil {
		if body, ok := s.body(number); ok {
			return fixture.Response(http.StatusOK, []byte(body)), nil
		}
	}
	const form = "2006-01-02T15:04:05"
	start, err1 := time.Parse(form, q.Get("starttime"))
	end, err2 := time.Parse(form, q.Get("endtime"))
	limit, err3 := strconv.Atoi(q.Get("limit"))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	if limit > 1 && q.Get("sortby") != "event_timestamp_ms" {
		return nil, fmt.Errorf("sortby is %q", q.Get("sortby"))
	}
	var rows []anEvent
	for _, e := range s.events {
		begun := e.at.After(start) || !s.startExclusive && e.at.Equal(start)
		ended := e.at.After(end) || !s.endInclusive && e.at.Equal(end)
		if begun && !ended && !s.recorded[e].After(time.Now()) {
			rows = append(rows, e)
		}
	}
	total := len(rows)
	if s.cap > 0 {
		limit = min(limit, s.cap)
	}
	rows = s.shuffled(rows[:min(limit, total)])
	rows = slices.DeleteFunc(rows, func(e anEvent) bool { return s.counted != "" && e.name == s.counted })
	if s.total != nil {
		total = s.total(number, total, len(rows))
	}
	resp := fixture.Response(http.StatusOK, nil)
	resp.Body = io.NopCloser(s.response(rows, total))
	return resp, nil
}

// shuffled puts events of the same time into another order.
func (s *eventsService) shuffled(events []anEvent) []anEvent {
	events = slices.Clone(events)
	for i := 1; i < len(events); i++ {
		if events[i].at.Equal(events[i-1].at) && s.random.IntN(2) == 0 {
			events[i], events[i-1] = events[i-1], events[i]
		}
	}
	return events
}

// response writes the rows, and breaks off within one of them.
func (s *eventsService) response(rows []anEvent, total int) io.Reader {
	var b bytes.Buffer
	added, value := "", ""
	if s.added {
		added, value = `{"name":"added"},`, fmt.Sprintf(`"%d",`, s.random.IntN(100))
	}
	b.WriteString(`{"columns":[` + added + `{"name":"event_timestamp_ms"},{"name":"rule_id"}],"rows":[`)
	for i, e := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		row := fmt.Sprintf(`[%s"%s","%s"]`, value, e.at.Format("2006-01-02T15:04:05.000"), e.name)
		if s.pieces > 0 && len(rows) > 1 && s.random.IntN(s.pieces) == 0 {
			b.WriteString(row[:1+s.random.IntN(len(row)-2)])
			return io.MultiReader(&b, iotest.ErrReader(io.ErrUnexpectedEOF))
		}
		b.WriteString(row)
	}
	fmt.Fprintf(&b, `],"total_results":%d}`, total)
	return &b
}

// anExport is an export from a service of its own in a bubble of fake time.
type anExport struct {
	*testing.T
	service *eventsService
	client  *webdelivery.Client
	query   webdelivery.EventsQuery
	log     bytes.Buffer // warnings
}

func inExport(t *testing.T, events []anEvent, test func(e *anExport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := &anExport{T: t, service: &eventsService{events: events, random: rand.New(rand.NewPCG(1, 2))}}
		e.query = webdelivery.EventsQuery{Start: exported, End: exported.Add(24 * time.Hour), Dimensions: []string{"rule_id"}}
		e.restart()
		test(e)
	})
}

// restart takes another client, as another process would.
func (e *anExport) restart() {
	e.Helper()
	client, err := webdelivery.NewClient("https://api.example.com", fixture.Customer, webdelivery.BasicAuth(fixture.Username, fixture.Password),
		webdelivery.WithHTTPClient(&http.Client{Transport: e.service}),
		webdelivery.WithLogger(slog.New(slog.NewTextHandler(&e.log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	require.NoError(e, err)
	e.client = client
}

// read ranges over an export until it has read so many rows.
func (e *anExport) read(export *webdelivery.Export, most int) (names []string, err error) {
	e.Helper()
	time.Sleep(time.Until(e.query.End)) // an export does not ask for the future
	for row, err := range export.All(e.Context()) {
		if err != nil {
			return names, err
		}
		at, err := row.At(0).Time()
		require.NoError(e, err)
		names = append(names, at.Format("15:04:05.000 ")+row.At(1).String())
		if len(names) == most {
			break
		}
	}
	return names, nil
}

// all reads an export to its end.
func (e *anExport) all(export *webdelivery.Export) []string {
	e.Helper()
	names, err := e.read(export, math.MaxInt)
	require.NoError(e, err)
	return names
}

// endless returns an export without an end, an hour after the first event.
func (e *anExport) endless() *webdelivery.Export {
	e.query.End = time.Time{}
	time.Sleep(time.Until(exported.Add(time.Hour)))
	return e.from(webdelivery.Cursor{})
}

// from returns an export that goes on at a cursor.
func (e *anExport) from(cursor webdelivery.Cursor) *webdelivery.Export {
	return e.client.Stats.NewExport(e.query, cursor, webdelivery.ExportOptions{})
}

func namesOf(events []anEvent) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.at.Format("15:04:05.000 ") + e.name
	}
	return names
}

// Connections break within rows, and events of the same time come in another order each time. The process is killed
// and restarted with a stored cursor. Still the export yields each row exactly once.
func TestAnExportHasEachRowOnce(t *testing.T) {
	t.Parallel()
	const seconds, perSecond = 300, 100
	inExport(t, eventsOf(seconds, perSecond), func(e *anExport) {
		e.service.pieces = seconds * perSecond / 30
		var cursor webdelivery.Cursor
		var got []string
		for restarts := 0; ; restarts++ {
			e.restart()
			export := e.from(cursor)
			most := 1 + e.service.random.IntN(len(e.service.events)/5)
			names, err := e.read(export, most)
			require.NoError(e, err)
			got = append(got, names...)
			cursor = e.stored(export.Cursor())
			require.Equal(e, int64(len(got)), cursor.Count())
			if len(names) < most {
				assert.Greater(e, restarts, 5)
				break
			}
		}
		assert.Equal(e, slices.Sorted(slices.Values(namesOf(e.service.events))), slices.Sorted(slices.Values(got)))
		assert.Greater(e, len(e.service.requests), 30)
	})
}

// Without a break an export sends two requests: one for the total, one for the rows.
func TestRequestsOfAnExport(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(3, 10), func(e *anExport) {
		e.query.Limit = 5 // is ignored
		export := e.from(webdelivery.Cursor{})
		assert.ElementsMatch(e, namesOf(e.service.events), e.all(export))
		const query = "dimensions=rule_id&endtime=2026-11-21T12%3A00%3A00&limit="
		const sorted = "&sortby=event_timestamp_ms&starttime=2026-11-20T12%3A00%3A00"
		assert.Equal(e, []string{query + "1" + sorted, query + "1030" + sorted}, e.service.requests)
		assert.Equal(e, exported.Add(2800*time.Millisecond), export.Cursor().Time())

		e.service.requests = nil
		e.service.events = append(e.service.events, anEvent{exported.Add(3 * time.Second), "new"})
		assert.Equal(e, []string{"12:00:03.000 new"}, e.all(export), "a later range continues")
		const later = "&sortby=event_timestamp_ms&starttime=2026-11-20T12%3A00%3A01"
		const upTo = "dimensions=rule_id&endtime=2026-11-20T12%3A00%3A03&limit="
		assert.Equal(e, []string{query + "1" + later, query + "1021" + sorted, upTo + "1" + sorted}, e.service.requests)
	})
}

// An export survives a service that is down for a while between two responses. A rejection ends it, and so does an
// outage of more than 5 minutes.
func TestWhatEndsAnExport(t *testing.T) {
	t.Parallel()
	const never, some = math.MaxInt, -1
	// Statuses and bodies of the requests from number from on.
	statuses := func(status, from, to int) func(s *eventsService) {
		return func(s *eventsService) {
			s.status = func(n int) int { return map[bool]int{true: status, false: http.StatusOK}[n >= from && n < to] }
		}
	}
	bodies := func(body string, from, to int) func(s *eventsService) {
		return func(s *eventsService) { s.body = func(n int) (string, bool) { return body, n >= from && n < to } }
	}
	const noTimes = `{"columns":[{"name":"rule_id"}],"rows":[["a"]],"total_results":1}`
	const noon = `{"columns":[{"name":"event_timestamp_ms"}],"rows":[["noon"]],"total_results":1}`
	const others = `{"columns":[{"name":"event_timestamp_ms"},{"name":"domain"}],"rows":[["2026-11-20T13:00:00","a"]],"total_results":1}`
	for name, tc := range map[string]struct {
		prepare func(s *eventsService)
		is      error
		got     int // rows
		within  time.Duration
	}{
		"the first request fails":    {statuses(503, 0, never), webdelivery.ErrServer, 0, time.Minute},
		"down for ever":              {statuses(503, 2, never), webdelivery.ErrServer, some, 6 * time.Minute},
		"rejected later":             {statuses(404, 2, never), webdelivery.ErrNotFound, some, time.Minute},
		"down for some minutes":      {statuses(502, 2, 80), nil, 1000, 5 * time.Minute},
		"a page of HTML for a while": {bodies("<html>", 2, 4), nil, 1000, time.Minute},
		"HTML for ever":              {bodies("<html>", 2, never), webdelivery.ErrBadResponse, some, time.Minute},
		"a response that is not sorted": {func(s *eventsService) {
			slices.Reverse(s.events)
			s.pieces = 0
		}, webdelivery.ErrBadResponse, some, time.Minute},
		"no event_timestamp_ms":                     {bodies(noTimes, 0, never), webdelivery.ErrBadResponse, 0, time.Minute},
		"an invalid time":                           {bodies(noon, 0, never), webdelivery.ErrBadResponse, 0, time.Minute},
		"other columns":                             {bodies(others, 2, 3), webdelivery.ErrBadResponse, some, time.Minute},
		"the service limits the rows of a response": {func(s *eventsService) { s.cap, s.pieces = 150, 0 }, nil, 1000, time.Minute},
		"the service limits its totals as well": {func(s *eventsService) {
			s.cap, s.pieces = 150, 0
			s.total = func(_, total, _ int) int { return min(total, 150) }
		}, nil, some, time.Minute},
		"the total is at most the limit": {func(s *eventsService) {
			s.events = eventsOf(100, 40)
			s.total = func(_, _, rows int) int { return rows }
		}, nil, 4000, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inExport(t, eventsOf(100, 10), func(e *anExport) {
				e.service.pieces = 400
				tc.prepare(e.service)
				time.Sleep(time.Until(e.query.End))
				began := time.Now()
				got, err := e.read(e.from(webdelivery.Cursor{}), math.MaxInt)
				assert.LessOrEqual(e, time.Since(began), tc.within)
				require.ErrorIs(e, err, tc.is)
				if err != nil {
					assert.Equal(e, webdelivery.OutcomeNotApplied, webdelivery.OutcomeOf(err))
				}
				if tc.got >= 0 {
					assert.Len(e, got, tc.got)
				} else {
					assert.NotEmpty(e, got)
				}
				want := namesOf(e.service.events)
				for _, name := range got {
					i := slices.Index(want, name)
					require.GreaterOrEqual(e, i, 0, "%s came twice", name)
					want = slices.Delete(want, i, i+1)
				}
			})
		})
	}
}

// If an argument of an export is invalid, All yields the error and sends nothing.
func TestArgumentsOfAnExport(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(5, 2), func(e *anExport) {
		export := e.from(webdelivery.Cursor{})
		e.all(export)
		cursor := export.Cursor()
		e.service.requests = nil
		for _, tc := range []struct {
			field  string
			change func(q *webdelivery.EventsQuery, o *webdelivery.ExportOptions)
		}{
			{"sortby", func(q *webdelivery.EventsQuery, _ *webdelivery.ExportOptions) { q.SortBy = []string{"-rule_id"} }},
			{"dimensions", func(q *webdelivery.EventsQuery, _ *webdelivery.ExportOptions) { q.Dimensions = nil }},
			{"endtime", func(q *webdelivery.EventsQuery, _ *webdelivery.ExportOptions) { q.End = q.Start }},
			{"cursor", func(q *webdelivery.EventsQuery, _ *webdelivery.ExportOptions) { q.Dimensions = []string{"domain"} }},
			{"cursor", func(q *webdelivery.EventsQuery, _ *webdelivery.ExportOptions) { q.Filter = filters.Eq("rule_id", "1") }},
			{"cursor", func(q *webdelivery.EventsQuery, _ *webdelivery.ExportOptions) { q.End = q.Start.Add(time.Second) }},
			{"ExportOptions.Lookback", func(_ *webdelivery.EventsQuery, o *webdelivery.ExportOptions) { o.Lookback = -1 }},
			{"ExportOptions.Lookback", func(_ *webdelivery.EventsQuery, o *webdelivery.ExportOptions) { o.Lookback = 72*time.Hour + 1 }},
			{"ExportOptions.Delay", func(_ *webdelivery.EventsQuery, o *webdelivery.ExportOptions) { o.Delay = -1 }},
		} {
			query, options := e.query, webdelivery.ExportOptions{}
			tc.change(&query, &options)
			wrong := e.client.Stats.NewExport(query, cursor, options)
			_, err := e.read(wrong, 1)
			refusedAs(e.T, tc.field, err, tc.field)
			assert.Equal(e, cursor, wrong.Cursor(), "the cursor is not lost")
		}
		for _, follow := range []iter.Seq[iter.Seq2[webdelivery.Row, error]]{
			export.Follow(e.Context(), 0), e.client.Stats.NewExport(e.query, cursor, webdelivery.ExportOptions{MaxOutage: -1}).Follow(e.Context(), time.Second),
		} {
			for events := range follow { // one round
				_, err := collect(events)
				require.ErrorIs(e, err, webdelivery.ErrInvalid)
			}
		}
		assert.Empty(e, e.service.requests)
		e.query.End = e.query.End.Add(time.Hour)
		assert.Empty(e, e.all(e.from(cursor)), "the end may change, and nothing is new")
	})
}

// An export never takes a fault of the service for the end of the events.
func TestWhatAnExportDoesNotBelieve(t *testing.T) {
	t.Parallel()
	const head = `{"columns":[{"name":"event_timestamp_ms"},{"name":"rule_id"}],"rows":[`
	whole := func(rows string, total int) string {
		return fmt.Sprintf(`%s%s],"total_results":%d}`, head, rows, total)
	}
	const a, b, c = `["2026-11-20T12:00:01","a"]`, `["2026-11-20T12:00:02.5","b"]`, `["2026-11-20T12:00:09","c"]`
	const broken, all = head + a + "," + b + ",[", a + "," + b + "," + c
	other := whole(`["2026-11-20 12:00:01.000","a"],["2026-11-20 12:00:02.500","b"],`+c, 3)
	bad := webdelivery.ErrBadResponse.Error() + ": "
	for name, tc := range map[string]struct {
		bodies []string // the last one again and again
		got    string
		says   string // "": no error
	}{
		"a replica has no events after a break":        {[]string{whole(a, 3), broken, whole("", 0)}, "a b", bad + "the response lacks 2 events"},
		"a replica lacks events that were read before": {[]string{whole(a, 3), broken, whole(c, 1)}, "a b c", ""},
		"fewer events than the total":                  {[]string{whole(a, 9), broken, whole(all, 3)}, "a b c", "3 rows arrived, and 9 match"},
		// The fourth response is that for the seconds before c.
		"the time has another format after a break": {[]string{other, broken, other, whole(a, 2), other}, "a b c", ""},
		"events before the time range":              {[]string{whole(`["2026-11-20T11:59:59.999","x"]`, 1)}, "", bad + "an event of"},
		"events behind the time range":              {[]string{whole(`["2026-11-21T12:00:01","x"]`, 1)}, "", bad + "an event of"},
		"an event at its end":                       {[]string{whole(`["2026-11-21T12:00:00","x"]`, 1)}, "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inExport(t, nil, func(e *anExport) {
				time.Sleep(time.Until(exported)) // now is the day of the events, so that they are kept
				e.service.body = func(n int) (string, bool) { return tc.bodies[min(n, len(tc.bodies)-1)], true }
				names, err := e.read(e.from(webdelivery.Cursor{}), math.MaxInt)
				for i := range names {
					_, names[i], _ = strings.Cut(names[i], " ")
				}
				if tc.says == "" {
					require.NoError(e, err)
				} else {
					require.ErrorContains(e, err, tc.says)
				}
				assert.Equal(e, tc.got, strings.Join(names, " "))
			})
		})
	}
}

// lateEvents are so many events, one a second, which are recorded up to 18 minutes late.
func (s *eventsService) lateEvents(seconds int) {
	s.recorded = map[anEvent]time.Time{}
	for i := range seconds {
		e := anEvent{exported.Add(time.Duration(i) * time.Second), strconv.Itoa(i)}
		s.events = append(s.events, e)
		s.recorded[e] = e.at.Add(time.Duration(s.random.Int64N(int64(18 * time.Minute))))
	}
}

// A forwarder that follows an export is killed again and again, between its events and after storing its cursor. Events
// that are recorded late come all the same, and those that come twice, because no cursor was stored after them, have the
// same key.
func TestLateEventsAreDelivered(t *testing.T) {
	t.Parallel()
	inExport(t, nil, func(e *anExport) {
		e.service.lateEvents(3000)
		e.service.pieces = 1000
		e.query.End = time.Time{}
		time.Sleep(time.Until(exported))
		keys, twice, kills := map[string]string{}, 0, 0
		var cursor webdelivery.Cursor
		follow := func(life context.Context, left int) {
			e.restart()
			export := e.client.Stats.NewExport(e.query, e.stored(cursor), webdelivery.ExportOptions{Lookback: 20 * time.Minute})
			for events := range export.Follow(life, time.Minute) {
				for row, err := range events {
					require.NoError(e, err)
					name := row.At(1).String()
					if key, known := keys[export.Key()]; known {
						assert.Equal(e, key, name)
						twice++
					}
					if keys[export.Key()] = name; left == 0 {
						return // killed
					}
					if left--; e.service.random.IntN(50) == 0 {
						cursor = export.Cursor()
					}
				}
				if life.Err() == nil {
					cursor = export.Cursor()
				}
			}
			assert.Zero(e, export.Late())
		}
		last := exported.Add(3000*time.Second + 30*time.Minute) // all events are recorded by then
		for ; time.Now().Before(last); kills++ {
			life, cancel := context.WithDeadline(e.Context(), last)
			follow(life, e.service.random.IntN(300))
			cancel()
		}
		life, cancel := context.WithTimeout(e.Context(), 10*time.Minute)
		defer cancel()
		follow(life, math.MaxInt)
		assert.Len(e, keys, 3000)
		assert.Positive(e, twice)
		assert.Greater(e, kills, 10)
	})
}

// A round in which nothing is new takes two requests for one row.
func TestARoundWithoutNewEvents(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(300, 10), func(e *anExport) {
		e.query.End = time.Time{}
		time.Sleep(time.Until(exported.Add(time.Hour)))
		export := e.client.Stats.NewExport(e.query, webdelivery.Cursor{}, webdelivery.ExportOptions{Lookback: 2 * time.Minute})
		assert.Len(e, e.all(export), 3000)
		for range 3 {
			time.Sleep(time.Minute)
			e.service.requests = nil
			assert.Empty(e, e.all(export))
			require.Len(e, e.service.requests, 2)
			assert.Contains(e, e.service.requests[0], "limit=1&")
			assert.Contains(e, e.service.requests[1], "limit=1&")
		}
	})
}

// Without an End, an export reads up to the delay before now; with one in the future, up to now.
func TestTheEndOfAnExport(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end   time.Time
		delay time.Duration
		want  string
	}{
		"no end":              {time.Time{}, 0, "12:25:00"},
		"no end, and a delay": {time.Time{}, time.Minute, "12:29:00"},
		"an end":              {exported.Add(time.Minute), 0, "12:01:00"},
		"in the future":       {exported.Add(time.Hour), time.Minute, "12:30:00"},
	} {
		inExport(t, nil, func(e *anExport) {
			time.Sleep(time.Until(exported.Add(30 * time.Minute)))
			e.query.End = tc.end
			_, err := collect(e.client.Stats.NewExport(e.query, webdelivery.Cursor{}, webdelivery.ExportOptions{Delay: tc.delay}).All(e.Context()))
			require.NoError(e, err)
			require.Len(e, e.service.requests, 1)
			asked, err := url.ParseQuery(e.service.requests[0])
			require.NoError(e, err)
			assert.Equal(e, "2026-11-20T"+tc.want, asked.Get("endtime"), name)
		})
	}
}

// Reached stays where it is while events are missing that the service has announced, so that a lag shows.
func TestReachedStaysWhileEventsAreMissing(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(10, 1), func(e *anExport) {
		export := e.endless()
		e.all(export)
		reached := exported.Add(55 * time.Minute)
		assert.Equal(e, reached, export.Cursor().Reached())
		time.Sleep(10 * time.Minute)
		e.service.total = func(_, total, _ int) int { return total + 1 }
		_, err := e.read(export, math.MaxInt)
		require.ErrorAs(e, err, new(*webdelivery.IncompleteError))
		assert.Equal(e, reached, export.Cursor().Reached())
		e.service.total = nil
		e.all(export)
		assert.Equal(e, time.Now().Add(-5*time.Minute).UTC().Truncate(time.Second), export.Cursor().Reached())
	})
}

// An event that the service counts and does not send keeps no others back, neither at the end of a range nor within
// Lookback.
func TestAnEventThatNeverComes(t *testing.T) {
	t.Parallel()
	var events []anEvent
	for i := range 60 {
		events = append(events, anEvent{exported.Add(time.Duration(i) * 3 * time.Minute), strconv.Itoa(i)})
	}
	events[7].at = events[7].at.Add(-2 * time.Minute)
	for i := range events {
		events[i].at = events[i].at.Add(time.Duration(i%2) * time.Second)
	}
	inExport(t, events, func(e *anExport) {
		e.service.counted = "7"
		e.query.End = time.Time{}
		time.Sleep(time.Until(exported))
		export := e.client.Stats.NewExport(e.query, webdelivery.Cursor{}, webdelivery.ExportOptions{Lookback: 20 * time.Minute})
		ctx, cancel := context.WithDeadline(e.Context(), exported.Add(3*time.Hour))
		defer cancel()
		rows := 0
		for events := range export.Follow(ctx, time.Minute) {
			more, err := collect(events)
			require.NoError(e, err)
			rows += len(more)
			assert.GreaterOrEqual(e, rows, int(time.Since(exported)/time.Minute)/3-4)
		}
	})
	inExport(t, events[:1], func(e *anExport) { // and after days without any other
		e.service.counted = "0"
		export := e.endless()
		ctx, cancel := context.WithDeadline(e.Context(), exported.Add(6*24*time.Hour))
		defer cancel()
		for events := range export.Follow(ctx, time.Hour) {
			_, err := collect(events)
			require.NoError(e, err)
		}
		assert.Error(e, ctx.Err(), "no gap: every range was read in time")
		assert.Zero(e, export.Cursor().Reached())
	})
}

// A key is the first half of the SHA-256 of the customer, the number of the event among identical ones, its time in
// nanoseconds and its row without the time. Receivers have stored it, so it must not change.
func TestKeysOfEvents(t *testing.T) {
	t.Parallel()
	at := exported.Add(500 * time.Millisecond)
	inExport(t, []anEvent{{at, "a"}, {at, "a"}, {at, "b"}}, func(e *anExport) {
		time.Sleep(time.Until(e.query.End))
		export := e.from(webdelivery.Cursor{})
		var keys []string
		for _, err := range export.All(e.Context()) {
			require.NoError(e, err)
			keys = append(keys, export.Key())
		}
		assert.ElementsMatch(e, []string{
			"8b2e527e6408a93f95b21d1576c28a7b", "a137a712acb89ed3eb9deeb80eec6fa4", "38e74a325aee7e5dfdfc12592ec9ed67",
		}, keys)
	})
}

// A column that the service adds to its responses, for good or for a time, changes no key and makes no known event new.
func TestAnAddedColumn(t *testing.T) {
	t.Parallel()
	at := exported.Add(500 * time.Millisecond)
	inExport(t, []anEvent{{at, "a"}, {at, "a"}, {at, "b"}}, func(e *anExport) {
		time.Sleep(time.Until(e.query.End))
		keys := func(export *webdelivery.Export, n int) (keys []string) {
			for _, err := range export.All(e.Context()) {
				require.NoError(e, err)
				if keys = append(keys, export.Key()); len(keys) == n {
					break
				}
			}
			return keys
		}
		all := keys(e.from(webdelivery.Cursor{}), 3)
		var some []string
		cursor := webdelivery.Cursor{}
		for _, added := range []bool{false, true, false} {
			e.service.added = added
			export := e.from(cursor)
			some = append(some, keys(export, 1)...)
			cursor = e.stored(export.Cursor())
			e.restart()
		}
		assert.ElementsMatch(e, all, some)
	})
}

// An export that was not continued for days says which events are gone, and goes on when somebody has confirmed it.
func TestAGapIsNotSkippedInSilence(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(10, 1), func(e *anExport) {
		export := e.endless()
		unread := export.Cursor()
		e.all(export)
		quiet := e.from(export.Cursor())
		for range 10 {
			time.Sleep(12 * time.Hour)
			e.all(quiet) // there were no events, which is no gap
			assert.Equal(e, time.Now().Add(-5*time.Minute).UTC(), e.stored(quiet.Cursor()).Reached())
		}

		e.service.events = []anEvent{{time.Now().UTC().Add(-time.Hour), "new"}}
		e.service.requests = nil
		_, err := e.read(e.from(export.Cursor()), math.MaxInt)
		require.ErrorIs(e, err, webdelivery.ErrExportGap)
		require.ErrorContains(e, err, "from 2026-11-20T12:55:00Z to 2026-11-22T00:00:00Z")
		_, err = e.read(e.from(unread), math.MaxInt)
		require.ErrorContains(e, err, "from 2026-11-20T12:00:00Z to 2026-11-22T00:00:00Z")
		for events := range e.from(export.Cursor()).Follow(e.Context(), time.Minute) { // the only round
			_, err = collect(events)
			require.ErrorIs(e, err, webdelivery.ErrExportGap)
		}
		assert.Empty(e, e.service.requests)
		assert.NotContains(e, e.log.String(), "are gone")
		assert.Len(e, e.all(e.client.Stats.NewExport(e.query, export.Cursor(), webdelivery.ExportOptions{AcceptGap: true})), 1)
		assert.Contains(e, e.log.String(), "those from 2026-11-20T12:55:00Z to 2026-11-22T00:00:00Z are gone")
	})
}

// Follow goes on after faults of the service that pass, and ends at those that do not.
func TestWhatEndsFollow(t *testing.T) {
	t.Parallel()
	// Statuses from one time to another.
	between := func(from, to time.Duration, status int) func(time.Duration) int {
		return func(d time.Duration) int { return map[bool]int{true: status, false: 200}[d > from && d < to] }
	}
	for name, tc := range map[string]struct {
		status      func(since time.Duration) int
		is          error
		body        time.Duration // of the loop, after each round
		least, most time.Duration
	}{
		"the context":        {between(0, 0, 0), nil, 0, time.Hour, time.Hour},
		"down for a while":   {between(time.Minute, 10*time.Minute, 503), nil, 0, time.Hour, time.Hour},
		"a slow loop":        {between(10*time.Minute, 30*time.Minute, 503), nil, 12 * time.Minute, time.Hour, 80 * time.Minute},
		"down for ever":      {between(-1, time.Hour, 503), webdelivery.ErrServer, 0, 10 * time.Minute, 11 * time.Minute},
		"rejected":           {between(-1, time.Hour, 404), webdelivery.ErrNotFound, 0, 0, time.Second},
		"a revoked password": {between(time.Minute, time.Hour, 401), webdelivery.ErrUnauthorized, 0, time.Minute, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inExport(t, eventsOf(10, 1), func(e *anExport) {
				e.query.End = time.Time{}
				time.Sleep(time.Until(exported.Add(time.Hour)))
				began := time.Now()
				e.service.status = func(int) int { return tc.status(time.Since(began)) }
				ctx, cancel := context.WithTimeout(e.Context(), time.Hour)
				defer cancel()
				var last error
				rows := 0
				for events := range e.from(webdelivery.Cursor{}).Follow(ctx, time.Minute) {
					require.NoError(e, last, "after an error")
					for _, err := range events {
						if last = err; err == nil {
							rows++
						}
					}
					time.Sleep(tc.body)
				}
				require.ErrorIs(e, last, tc.is)
				if tc.is == nil {
					assert.Equal(e, 10, rows)
				}
				assert.GreaterOrEqual(e, time.Since(began), tc.least)
				assert.LessOrEqual(e, time.Since(began), tc.most)
			})
		})
	}
}

// An outage begins with the first round that fails: neither the pause between rounds nor a slow loop counts.
func TestASlowFollowSurvivesABadResponse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ every, body time.Duration }{{15 * time.Minute, 0}, {time.Minute, 12 * time.Minute}} {
		inExport(t, eventsOf(10, 1), func(e *anExport) {
			e.query.End = time.Time{}
			time.Sleep(time.Until(exported.Add(time.Hour)))
			e.service.body = func(n int) (string, bool) { return "<html>", n == 2 || n == 5 }
			ctx, cancel := context.WithTimeout(e.Context(), 4*time.Hour)
			defer cancel()
			rounds := 0
			for events := range e.from(webdelivery.Cursor{}).Follow(ctx, tc.every) {
				rounds++
				_, err := collect(events)
				require.NoError(e, err)
				time.Sleep(tc.body)
			}
			assert.Greater(e, rounds, 10)
		})
	}
}

// The oldest day is dropped at midnight, while a run reads it. What it has lost is a gap.
func TestMidnightDuringARun(t *testing.T) {
	t.Parallel()
	inExport(t, nil, func(e *anExport) {
		for i := range 4000 {
			e.service.events = append(e.service.events, anEvent{exported.Add(time.Duration(i) * time.Minute), "event"})
		}
		time.Sleep(time.Until(time.Date(2026, 11, 23, 23, 59, 0, 0, time.UTC)))
		e.query.Start, e.query.End = exported.Truncate(24*time.Hour), time.Time{}
		e.service.pieces = 500
		all := e.service.events
		e.service.status = func(n int) int {
			if n == 2 {
				time.Sleep(2 * time.Minute) // beyond midnight
			}
			kept := webdelivery.EventsRetention(time.Now())
			e.service.events = slices.DeleteFunc(slices.Clone(all), func(a anEvent) bool { return a.at.Before(kept) })
			return http.StatusOK
		}
		export := e.from(webdelivery.Cursor{})
		_, err := e.read(export, math.MaxInt)
		require.ErrorIs(e, err, webdelivery.ErrExportGap)
		require.ErrorContains(e, err, "from 2026-11-20T00:00:00Z to 2026-11-21T00:00:00Z")
		e.all(export) // it is reported once
	})
}

// What Follow finds out about late events is logged and counted. It does not end the loop.
func TestFollowCountsLateEvents(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(60, 1), func(e *anExport) {
		e.query.End = time.Time{}
		time.Sleep(time.Until(exported.Add(time.Hour)))
		late := exported.Add(90 * time.Minute)
		e.service.recorded = map[anEvent]time.Time{e.service.events[7]: late, e.service.events[8]: late}
		export := e.client.Stats.NewExport(e.query, webdelivery.Cursor{}, webdelivery.ExportOptions{Lookback: 20 * time.Second})
		ctx, cancel := context.WithTimeout(e.Context(), 2*time.Hour)
		defer cancel()
		rows := 0
		for events := range export.Follow(ctx, time.Minute) {
			more, err := collect(events)
			require.NoError(e, err)
			rows += len(more)
		}
		assert.Equal(e, 58, rows)
		assert.Equal(e, int64(2), export.Late())
		assert.Equal(e, 1, strings.Count(e.log.String(), "2 events between 2026-11-20T12:00:00Z and 2026-11-20T12:00:37Z recorded too late"), e.log.String())
	})
}

// A cursor knows where its export began. An earlier Start of the query has no effect, and a warning says so. There is none
// about the retention, which the export has told before.
func TestStartOfAnExportThatGoesOn(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(10, 1), func(e *anExport) {
		e.query.End = exported.AddDate(0, 0, 5)
		time.Sleep(time.Until(e.query.End))
		export := e.from(webdelivery.Cursor{})
		_, err := e.read(export, 5)
		require.NoError(e, err)
		assert.Contains(e, e.log.String(), "raw events are kept for three days")
		for start, warnings := range map[time.Time]int{{}: 0, exported: 0, exported.Add(time.Hour): 0, exported.Add(-time.Second): 1} {
			e.query.Start = start
			e.log.Reset()
			again := e.client.Stats.NewExport(e.query, export.Cursor(), webdelivery.ExportOptions{AcceptGap: true})
			assert.Len(e, e.all(again), 5)
			assert.Equal(e, warnings, strings.Count(e.log.String(), "the earlier Start of the query has no effect"), e.log.String())
			assert.Equal(e, warnings, strings.Count(e.log.String(), "\n"), e.log.String())
		}
	})
}

// inBorders runs a test against services that count the events at the very start and end of a time range or do not
// (open point 33).
func inBorders(t *testing.T, test func(e *anExport)) {
	t.Helper()
	for _, startExclusive := range []bool{false, true} {
		for _, endInclusive := range []bool{false, true} {
			t.Run(fmt.Sprintf("start exclusive %t, end inclusive %t", startExclusive, endInclusive), func(t *testing.T) {
				t.Parallel()
				inExport(t, nil, func(e *anExport) {
					e.service.startExclusive, e.service.endInclusive = startExclusive, endInclusive
					test(e)
				})
			})
		}
	}
}

// stored returns a cursor as another process reads it.
func (e *anExport) stored(cursor webdelivery.Cursor) (read webdelivery.Cursor) {
	e.Helper()
	text, err := json.Marshal(cursor)
	require.NoError(e, err)
	require.NoError(e, json.Unmarshal(text, &read))
	return read
}

// sorted returns events in ascending order.
func sorted(events []anEvent) []anEvent {
	slices.SortStableFunc(events, func(a, b anEvent) int { return a.at.Compare(b.at) })
	return events
}

// An export runs every hour for nine days, as in the recipe. Five events of day 1 arrive late, and five of day 7. The
// first five do not hide the others, although the service no longer has them.
func TestNineDaysOfHourlyRuns(t *testing.T) {
	t.Parallel()
	inBorders(t, func(e *anExport) {
		first := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		e.query.Start = first.Add(-time.Hour)
		arrivals := map[anEvent]time.Time{}
		for at := first; at.Before(first.AddDate(0, 0, 10)); at = at.Add(20 * time.Minute) {
			arrivals[anEvent{at, "in time"}] = at
		}
		for _, day := range []int{1, 7} {
			for second := range 5 {
				at := first.AddDate(0, 0, day).Add(10*time.Hour + time.Duration(second)*time.Second)
				arrivals[anEvent{at, "late"}] = at.Add(3 * time.Hour)
			}
		}
		var cursor webdelivery.Cursor
		got, reports := map[string]int{}, map[string]string{}
		for run := range 9 * 24 {
			now := first.Add(time.Duration(1+run)*time.Hour + 10*time.Minute)
			time.Sleep(time.Until(now))
			e.service.events = nil
			for event, arrival := range arrivals {
				if !arrival.After(now) && !event.at.Before(webdelivery.EventsRetention(now)) {
					e.service.events = append(e.service.events, event)
				}
			}
			sorted(e.service.events)
			e.query.End = now.Add(-5 * time.Minute)
			export := e.from(e.stored(cursor))
			for row, err := range export.All(e.Context()) {
				if late, ok := errors.AsType[*webdelivery.LateError](err); ok {
					reports[now.Format("02 15:04")] = late.Error()
					continue
				}
				require.NoError(e, err)
				got[row.At(0).String()+row.At(1).String()]++
			}
			cursor = export.Cursor()
		}
		late := func(n int) string {
			at := first.AddDate(0, 0, n)
			return fmt.Sprintf("webdelivery: 5 events between %s and %s recorded too late to be exported; a longer Lookback finds such events",
				at.Format(time.RFC3339), at.Add(12*time.Hour+59*time.Minute+59*time.Second).Format(time.RFC3339))
		}
		assert.Equal(e, map[string]string{"21 13:10": late(1), "27 13:10": late(7)}, reports)
		assert.Len(e, got, 9*72+1) // three an hour, up to 00:05 of the tenth day
		assert.Equal(e, int64(9*72+1), cursor.Count())
	})
}

// A resumed export yields each event once, wherever the service draws the borders of a time range.
func TestBordersOfATimeRange(t *testing.T) {
	t.Parallel()
	inBorders(t, func(e *anExport) {
		time.Sleep(time.Until(exported.Add(time.Hour)))
		for second := range 60 {
			e.service.events = append(e.service.events, anEvent{exported.Add(time.Duration(1+second) * time.Second), "event"})
		}
		e.query.End = exported.Add(61 * time.Second)
		export := e.from(webdelivery.Cursor{})
		got, err := e.read(export, 30)
		require.NoError(e, err)
		require.Equal(e, exported.Add(30*time.Second), export.Cursor().Time())
		for _, end := range []int{30, 45, 60, 60, 61} {
			e.query.End = exported.Add(time.Duration(end) * time.Second)
			export = e.from(e.stored(export.Cursor()))
			got = append(got, e.all(export)...)
		}
		assert.Equal(e, namesOf(e.service.events), got)
	})
}

// A cursor may be after the end of a time range: in the second of the end, which the service may count, or because the
// delay is longer than before. Then nothing is new.
func TestACursorAfterTheEnd(t *testing.T) {
	t.Parallel()
	inExport(t, nil, func(e *anExport) {
		const body = `{"columns":[{"name":"event_timestamp_ms"},{"name":"rule_id"}],"rows":[["2026-11-21T12:00:00.9","x"]],"total_results":1}`
		e.service.body = func(int) (string, bool) { return body, true }
		export := e.from(webdelivery.Cursor{})
		assert.Len(e, e.all(export), 1)
		assert.Empty(e, e.all(e.from(export.Cursor())))
		e.query.End, e.service.requests = time.Time{}, nil
		assert.Empty(e, e.all(e.client.Stats.NewExport(e.query, export.Cursor(), webdelivery.ExportOptions{Delay: time.Hour})))
		assert.Empty(e, e.service.requests)
	})
}
