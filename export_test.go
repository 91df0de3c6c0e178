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
	"os"
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

	added                                      bool // a column that nobody has asked for
	startExclusive, endInclusive, wholeSeconds bool // open point 33; it compares whole seconds

	drops    bool          // it has no events from before its retention
	replicas time.Duration // some responses are so old
	counted  string        // the name of events that are counted and not sent
}

type anEvent struct {
	at       time.Time
	name     string
	recorded time.Time // when it appears; zero: at once
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
		events = append(events, anEvent{at: at, name: name})
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
	now := time.Now()
	if s.replicas > 0 && s.random.IntN(4) == 0 {
		now = now.Add(-s.replicas)
	}
	for _, e := range s.events {
		at := e.at
		if s.wholeSeconds {
			at = at.Truncate(time.Second)
		}
		begun := at.After(start) || !s.startExclusive && at.Equal(start)
		ended := at.After(end) || !s.endInclusive && at.Equal(end)
		gone := s.drops && e.at.Before(webdelivery.EventsRetention(time.Now()))
		if begun && !ended && !gone && !e.recorded.After(now) {
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

// read is a round after the End of the query, because an export does not ask for the future.
func (e *anExport) read(export *webdelivery.Export, most int) (names []string, err error) {
	e.Helper()
	time.Sleep(time.Until(e.query.End))
	return e.round(export, most)
}

// round ranges over an export until it has read so many rows.
func (e *anExport) round(export *webdelivery.Export, most int) (names []string, err error) {
	e.Helper()
	for row, err := range export.All(e.Context()) {
		if err != nil {
			return names, err
		}
		at, err := row.At(0).Time()
		require.NoError(e, err)
		names = append(names, at.Format("02T15:04:05.000 ")+row.At(1).String())
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

// from returns an export that goes on at a cursor.
func (e *anExport) from(cursor webdelivery.Cursor) *webdelivery.Export {
	return e.client.Stats.NewExport(e.query, cursor, webdelivery.ExportOptions{})
}

func namesOf(events []anEvent) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.at.Format("02T15:04:05.000 ") + e.name
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
			require.Less(e, restarts, 100)
			export := e.from(cursor)
			most := 1 + e.service.random.IntN(len(e.service.events)/5)
			names, err := e.read(export, most)
			require.NoError(e, err)
			got = append(got, names...)
			cursor = e.stored(export.Cursor())
			require.Equal(e, int64(len(got)), cursor.Count())
			text, err := json.Marshal(cursor)
			require.NoError(e, err)
			assert.Less(e, len(text), 500+3*perSecond*11, "it has the events of up to three seconds")
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
		e.query.Limit = -1 // does not count
		export := e.from(webdelivery.Cursor{})
		assert.ElementsMatch(e, namesOf(e.service.events), e.all(export))
		const query = "dimensions=rule_id&endtime=2026-11-21T12%3A00%3A00&limit="
		const sorted = "&sortby=event_timestamp_ms&starttime=2026-11-20T12%3A00%3A00"
		assert.Equal(e, []string{query + "1" + sorted, query + "1030" + sorted}, e.service.requests)
		assert.Equal(e, exported.Add(2800*time.Millisecond), export.Cursor().Time())
		e.service.requests = nil
		e.service.events = append(e.service.events, anEvent{at: exported.Add(3 * time.Second), name: "new"})
		assert.Len(e, e.all(export), 1, "a later range continues")
		assert.Contains(e, e.service.requests[1], "starttime=2026-11-20T12%3A00%3A00", "at the second before those that must come again")
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
		"the first request fails":                   {statuses(503, 0, never), webdelivery.ErrServer, 0, time.Minute},
		"down for ever":                             {statuses(503, 2, never), webdelivery.ErrServer, some, 6 * time.Minute},
		"rejected later":                            {statuses(404, 2, never), webdelivery.ErrNotFound, some, time.Minute},
		"down for some minutes":                     {statuses(502, 2, 80), nil, 1000, 5 * time.Minute},
		"a page of HTML for a while":                {bodies("<html>", 2, 4), nil, 1000, time.Minute},
		"HTML for ever":                             {bodies("<html>", 2, never), webdelivery.ErrBadResponse, some, time.Minute},
		"a response that is not sorted":             {func(s *eventsService) { slices.Reverse(s.events) }, webdelivery.ErrBadResponse, some, time.Minute},
		"no event_timestamp_ms":                     {bodies(noTimes, 0, never), webdelivery.ErrBadResponse, 0, time.Minute},
		"an invalid time":                           {bodies(noon, 0, never), webdelivery.ErrBadResponse, 0, time.Minute},
		"other columns":                             {bodies(others, 2, 3), webdelivery.ErrBadResponse, some, time.Minute},
		"the service limits the rows of a response": {func(s *eventsService) { s.cap, s.pieces = 150, 0 }, nil, 1000, time.Minute},
		"the service limits its totals as well": {func(s *eventsService) {
			s.cap, s.pieces = 150, 0
			s.total = func(_, total, _ int) int { return min(total, 150) }
		}, nil, some, time.Minute},
		"the total is at most the limit, and a second has more": {func(s *eventsService) {
			s.events, s.pieces = eventsOf(1, 4000), 0
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

// A forwarder that follows an export is killed again and again, between its events and after storing its cursor. Events
// that are recorded late come all the same, and those that come twice, because no cursor was stored after them, have the
// same key.
func TestLateEventsAreDelivered(t *testing.T) {
	t.Parallel()
	inExport(t, nil, func(e *anExport) {
		for i := range 3000 { // one a second, recorded up to 18 minutes late
			at := exported.Add(time.Duration(i) * time.Second)
			late := time.Duration(e.service.random.Int64N(int64(18 * time.Minute)))
			e.service.events = append(e.service.events, anEvent{at, strconv.Itoa(i), at.Add(late)})
		}
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

// Without an End, an export reads up to the delay before now; with one in the future, up to now. Reached is the end of what
// was read, and stays where it is while events are missing that the service has announced, so that a lag shows.
func TestTheEndOfAnExport(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end   time.Time
		delay time.Duration
		want  time.Duration // after the first event
	}{
		"no end":              {time.Time{}, 0, 25 * time.Minute},
		"no end, and a delay": {time.Time{}, time.Minute, 29 * time.Minute},
		"an end":              {exported.Add(time.Minute), 0, time.Minute},
		"in the future":       {exported.Add(time.Hour), time.Minute, 30 * time.Minute},
	} {
		inExport(t, eventsOf(10, 1), func(e *anExport) {
			time.Sleep(time.Until(exported.Add(30 * time.Minute)))
			e.query.End = tc.end
			export := e.client.Stats.NewExport(e.query, webdelivery.Cursor{}, webdelivery.ExportOptions{Delay: tc.delay})
			_, err := collect(export.All(e.Context()))
			require.NoError(e, err)
			assert.Equal(e, exported.Add(tc.want), export.Cursor().Reached(), name)
			assert.Contains(e, e.service.requests[0], "endtime="+url.QueryEscape(exported.Add(tc.want).Format("2006-01-02T15:04:05")), name)

			time.Sleep(10 * time.Minute)
			e.service.total = func(_, total, _ int) int { return total + 1 }
			_, err = collect(export.All(e.Context()))
			require.ErrorAs(e, err, new(*webdelivery.IncompleteError), name)
			assert.Equal(e, exported.Add(tc.want), export.Cursor().Reached(), name)
		})
	}
}

// Events that are recorded up to Lookback late come once, others are reported once, whatever the borders of the service
// are, and however often its responses break, its replicas lag, it drops old days and the process is killed.
// WEBDELIVERY_WORLDS is another number of simulated services.
func TestLateRowsComeOnce(t *testing.T) {
	t.Parallel()
	worlds, _ := strconv.ParseUint(os.Getenv("WEBDELIVERY_WORLDS"), 10, 64)
	for seed := range max(worlds, uint64(fixture.Cases(8, 2))) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			inExport(t, nil, func(e *anExport) { e.simulate(seed) })
		})
	}
}

func (e *anExport) simulate(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 46))
	minute := time.Minute
	if random.IntN(4) == 0 {
		minute = 20 * time.Minute // some days, so that the service drops events
	}
	s, options, span := e.service, webdelivery.ExportOptions{Delay: 5 * minute, Lookback: 20 * minute}, 300*minute
	s.random, s.drops = random, true
	s.wholeSeconds, s.startExclusive, s.endInclusive = random.IntN(3) == 0, random.IntN(2) == 0, random.IntN(2) == 0
	s.pieces, s.replicas = []int{0, 100, 20}[random.IntN(3)], []time.Duration{0, 0, 20 * time.Second}[random.IntN(3)]
	few := []int64{1, 5, 50, 10_000}[random.IntN(4)]
	begin, tooLate := exported.Add(time.Duration(random.IntN(24*60))*time.Minute), int64(0)
	for range []int{3, 100, 400}[random.IntN(3)] {
		units := []time.Duration{time.Millisecond, time.Second, 250 * time.Millisecond, time.Minute}
		at := begin.Add(time.Duration(random.Int64N(int64(span)))).Truncate(units[random.IntN(len(units))]) // some in the same instant
		event := anEvent{at, string(rune('a' + random.IntN(3))), at}
		switch random.IntN(20) {
		case 0:
			event.recorded = at.Add(options.Delay + options.Lookback + 30*minute) // in no round that looks back
			tooLate++
		case 1, 2, 3, 4, 5, 6:
			event.recorded = at.Add(time.Duration(random.Int64N(int64(18 * minute))))
		}
		s.events = append(s.events, event)
	}
	slices.SortStableFunc(s.events, func(a, b anEvent) int { return a.at.Compare(b.at) })
	e.query.Start, e.query.End = begin.Add(-time.Minute), time.Time{}
	export := e.client.Stats.NewExport(e.query, webdelivery.Cursor{}, options)
	missing, reported := map[string]int{}, int64(0)
	for _, name := range namesOf(s.events) {
		missing[name]++
	}
	end := begin.Add(span + 100*minute)
	for now := begin; now.Before(end); now = now.Add(7 * minute) {
		time.Sleep(time.Until(now))
		if now.Add(7 * minute).After(end) {
			s.pieces, s.replicas = 0, 0 // whatever the rounds before have left
		}
		for killed := true; killed; {
			most := math.MaxInt
			if random.IntN(3) == 0 {
				most = 1 + random.IntN(30)
			}
			export.SetFew(few)
			names, err := e.round(export, most)
			for _, name := range names {
				missing[name]--
				assert.GreaterOrEqual(e, missing[name], 0, "seed %d: %s came too often", seed, name)
			}
			if late, ok := errors.AsType[*webdelivery.LateError](err); ok {
				reported += late.Late
			} else if s.pieces == 0 && s.replicas == 0 {
				require.NoError(e, err, "seed %d", seed)
			}
			if killed = len(names) == most; killed || random.IntN(4) == 0 {
				export = e.client.Stats.NewExport(e.query, e.stored(export.Cursor()), options)
			}
		}
	}
	lost := int64(0)
	for _, n := range missing {
		lost += int64(n)
	}
	assert.LessOrEqual(e, lost, tooLate, "seed %d: lost", seed)
	assert.Equal(e, lost, reported, "seed %d: reported", seed)
}

// An event that the service counts and does not send keeps no others back, neither at the end of a range nor within
// Lookback.
func TestAnEventThatNeverComes(t *testing.T) {
	t.Parallel()
	var events []anEvent
	for i := range 60 {
		events = append(events, anEvent{at: exported.Add(time.Duration(i)*3*time.Minute + time.Duration(i%2)*time.Second), name: strconv.Itoa(i)})
	}
	events[7].at = events[7].at.Add(-2 * time.Minute)
	for _, tc := range []struct {
		counted       string
		every, during time.Duration
	}{{"7", time.Minute, 3 * time.Hour}, {"59", time.Hour, 6 * 24 * time.Hour}} { // the latter for days after any other
		inExport(t, events, func(e *anExport) {
			e.service.counted = tc.counted
			e.query.End = time.Time{}
			time.Sleep(time.Until(exported))
			export := e.client.Stats.NewExport(e.query, webdelivery.Cursor{}, webdelivery.ExportOptions{Lookback: 20 * time.Minute})
			ctx, cancel := context.WithDeadline(e.Context(), exported.Add(tc.during))
			defer cancel()
			rows := 0
			for events := range export.Follow(ctx, tc.every) {
				more, err := collect(events)
				require.NoError(e, err, "an export that reads in time has no gap")
				rows += len(more)
				assert.GreaterOrEqual(e, rows, min(59, int(time.Since(exported)/time.Minute)/3-4))
			}
		})
	}
}

// A key is the first half of the SHA-256 of the customer, the number of the event among identical ones, its time in
// nanoseconds and its row without the time. Receivers have stored it, so it must not change. A column that the service
// adds to its responses, for good or for a time, changes no key and makes no known event new.
func TestKeysOfEvents(t *testing.T) {
	t.Parallel()
	at := exported.Add(500 * time.Millisecond)
	for _, added := range [][]bool{{false, false, false}, {false, true, false}, {true, true, true}} {
		inExport(t, []anEvent{{at: at, name: "a"}, {at: at, name: "a"}, {at: at, name: "b"}}, func(e *anExport) {
			var keys []string
			var cursor webdelivery.Cursor
			for _, e.service.added = range added { // each event in a process of its own
				e.restart()
				export := e.from(cursor)
				time.Sleep(time.Until(e.query.End))
				for _, err := range export.All(e.Context()) {
					require.NoError(e, err)
					keys = append(keys, export.Key())
					break
				}
				cursor = e.stored(export.Cursor())
			}
			assert.ElementsMatch(e, []string{
				"8b2e527e6408a93f95b21d1576c28a7b", "a137a712acb89ed3eb9deeb80eec6fa4", "38e74a325aee7e5dfdfc12592ec9ed67",
			}, keys)
		})
	}
}

// A cursor does not change with the export that it is of, also if both go on within the same second.
func TestACursorIsACopy(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(4, 40), func(e *anExport) {
		first := e.from(webdelivery.Cursor{})
		got, err := e.read(first, 5)
		require.NoError(e, err)
		second := e.from(first.Cursor())
		names, err := e.read(second, 2)
		require.NoError(e, err)
		e.service.events = slices.Insert(e.service.events, 0, anEvent{at: exported, name: "new"})
		_, err = e.read(first, 2)
		require.NoError(e, err)
		got = append(append(got, names...), e.all(second)...)
		assert.ElementsMatch(e, namesOf(e.service.events), got)
	})
}

// An export that was not continued for days says which events are gone, and goes on when somebody has confirmed it.
func TestAGapIsNotSkippedInSilence(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(10, 1), func(e *anExport) {
		e.query.End = time.Time{}
		time.Sleep(time.Until(exported.Add(time.Hour)))
		export := e.from(webdelivery.Cursor{})
		unread := export.Cursor()
		e.all(export)
		quiet := e.from(export.Cursor())
		for range 10 {
			time.Sleep(12 * time.Hour)
			e.all(quiet) // there were no events, which is no gap
			assert.Equal(e, time.Now().Add(-5*time.Minute).UTC(), e.stored(quiet.Cursor()).Reached())
		}

		e.service.events = []anEvent{{at: time.Now().UTC().Add(-time.Hour), name: "new"}}
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

// Follow goes on after faults of the service that pass, and ends at those that do not. An outage begins with the first
// round that fails: neither the pause between rounds nor a slow loop counts.
func TestWhatEndsFollow(t *testing.T) {
	t.Parallel()
	// Statuses from one time to another.
	between := func(from, to time.Duration, status int) func(time.Duration) int {
		return func(d time.Duration) int { return map[bool]int{true: status, false: 200}[d > from && d < to] }
	}
	for name, tc := range map[string]struct {
		status      func(since time.Duration) int
		is          error
		every, body time.Duration // of the rounds, and of the loop after each
		least, most time.Duration
	}{
		"down for a while":   {between(time.Minute, 10*time.Minute, 503), nil, time.Minute, 0, 4 * time.Hour, 4 * time.Hour},
		"a slow loop":        {between(10*time.Minute, 30*time.Minute, 503), nil, time.Minute, 12 * time.Minute, 4 * time.Hour, 260 * time.Minute},
		"HTML, slow rounds":  {between(0, 0, 0), nil, 15 * time.Minute, 0, 4 * time.Hour, 4 * time.Hour},
		"down for ever":      {between(-1, time.Hour, 503), webdelivery.ErrServer, time.Minute, 0, 10 * time.Minute, 11 * time.Minute},
		"rejected":           {between(-1, time.Hour, 404), webdelivery.ErrNotFound, time.Minute, 0, 0, time.Second},
		"a revoked password": {between(time.Minute, time.Hour, 401), webdelivery.ErrUnauthorized, time.Minute, 0, time.Minute, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inExport(t, eventsOf(10, 1), func(e *anExport) {
				e.query.End = time.Time{}
				time.Sleep(time.Until(exported.Add(time.Hour)))
				began := time.Now()
				e.service.status = func(int) int { return tc.status(time.Since(began)) }
				e.service.body = func(n int) (string, bool) { return "<html>", strings.HasPrefix(name, "HTML") && (n == 2 || n == 5) }
				ctx, cancel := context.WithTimeout(e.Context(), 4*time.Hour)
				defer cancel()
				var last error
				rows := 0
				for events := range e.from(webdelivery.Cursor{}).Follow(ctx, tc.every) {
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

// The oldest day is dropped at midnight, while a run reads it. What it has lost is a gap.
func TestMidnightDuringARun(t *testing.T) {
	t.Parallel()
	inExport(t, nil, func(e *anExport) {
		for i := range 4000 {
			e.service.events = append(e.service.events, anEvent{at: exported.Add(time.Duration(i) * time.Minute), name: "event"})
		}
		time.Sleep(time.Until(time.Date(2026, 11, 23, 23, 59, 0, 0, time.UTC)))
		e.query.Start, e.query.End = exported.Truncate(24*time.Hour), time.Time{}
		e.service.pieces, e.service.drops = 500, true
		e.service.status = func(n int) int {
			if n == 2 {
				time.Sleep(2 * time.Minute) // beyond midnight
			}
			return http.StatusOK
		}
		export := e.from(webdelivery.Cursor{})
		_, err := e.read(export, math.MaxInt)
		require.ErrorIs(e, err, webdelivery.ErrExportGap)
		require.ErrorContains(e, err, "from 2026-11-20T00:00:00Z to 2026-11-21T00:00:00Z")
		e.all(export) // it is reported once
	})
}

// What Follow finds out about late events is logged and counted. It neither ends the loop nor hastens the next round.
func TestFollowCountsLateEvents(t *testing.T) {
	t.Parallel()
	inExport(t, eventsOf(60, 1), func(e *anExport) {
		e.query.End = time.Time{}
		time.Sleep(time.Until(exported.Add(time.Hour)))
		late := exported.Add(90 * time.Minute)
		e.service.events[7].recorded, e.service.events[8].recorded = late, late
		export := e.client.Stats.NewExport(e.query, webdelivery.Cursor{}, webdelivery.ExportOptions{Lookback: 20 * time.Second})
		ctx, cancel := context.WithTimeout(e.Context(), 2*time.Hour)
		defer cancel()
		rows, rounds := 0, 0
		for events := range export.Follow(ctx, 25*time.Minute) { // longer than an outage may be
			more, err := collect(events)
			require.NoError(e, err)
			rows, rounds = rows+len(more), rounds+1
		}
		assert.Equal(e, 58, rows)
		assert.Equal(e, 5, rounds, "they are no outage")
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
// (open point 33), and that compare whole seconds or do not.
func inBorders(t *testing.T, test func(e *anExport)) {
	t.Helper()
	for i := range 8 {
		if i%7 > 0 && testing.Short() {
			continue
		}
		startExclusive, endInclusive, wholeSeconds := i&1 > 0, i&2 > 0, i&4 > 0
		t.Run(fmt.Sprintf("start exclusive %t, end inclusive %t, whole seconds %t", startExclusive, endInclusive, wholeSeconds), func(t *testing.T) {
			t.Parallel()
			inExport(t, nil, func(e *anExport) {
				e.service.startExclusive, e.service.endInclusive, e.service.wholeSeconds = startExclusive, endInclusive, wholeSeconds
				test(e)
			})
		})
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

// An export runs every hour for nine days. Five events of day 1 arrive late, and five of day 7 on the
// next day. The first five do not hide the others, although the service no longer has them.
func TestNineDaysOfHourlyRuns(t *testing.T) {
	t.Parallel()
	inBorders(t, func(e *anExport) {
		first := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		e.query.Start, e.service.drops = first.Add(-time.Hour), true
		for at := first; at.Before(first.AddDate(0, 0, 10)); at = at.Add(20 * time.Minute) {
			e.service.events = append(e.service.events, anEvent{at, "in time", at})
			if day := at.Sub(first); day == 34*time.Hour || day == 190*time.Hour { // at 10:00 of day 1, at 22:00 of day 7
				for second := range 5 {
					e.service.events = append(e.service.events, anEvent{at.Add(time.Duration(second) * time.Second), "late", at.Add(3 * time.Hour)})
				}
			}
		}
		var cursor webdelivery.Cursor
		got, reports := map[string]int{}, map[string]string{}
		for run := range 9 * 24 {
			now := first.Add(time.Duration(1+run)*time.Hour + 10*time.Minute)
			time.Sleep(time.Until(now))
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
		const says = "webdelivery: 5 events between %s recorded too late to be exported; a longer Lookback finds such events"
		assert.Equal(e, map[string]string{
			"21 13:10": fmt.Sprintf(says, "2026-11-21T00:00:00Z and 2026-11-21T12:59:59Z"),
			"28 01:10": fmt.Sprintf(says, "2026-11-27T00:00:00Z and 2026-11-28T00:00:00Z"),
		}, reports)
		assert.Len(e, got, 9*72+1) // three an hour, up to 00:05 of the tenth day
		assert.Equal(e, int64(9*72+1), cursor.Count())
	})
}

// Wherever a service draws the borders of a time range, a resumed export yields each event once, late ones, too, and a
// round soon takes no more requests than where nothing is counted at a border: four, and two if nothing is new. A replica
// that lags hides no late event.
func TestBordersOfATimeRange(t *testing.T) {
	t.Parallel()
	inBorders(t, func(e *anExport) {
		time.Sleep(time.Until(exported))
		for half := range 480 {
			e.service.events = append(e.service.events, anEvent{at: exported.Add(time.Second + time.Duration(half)*time.Second/2), name: "event"})
		}
		late := exported.Add(142*time.Second + 250*time.Millisecond)
		e.service.events = slices.Insert(e.service.events, 283, anEvent{late, "late", late.Add(10 * time.Second)})
		e.query.End = exported.Add(time.Minute)
		export := e.from(webdelivery.Cursor{})
		got, err := e.read(export, 30)
		require.NoError(e, err)
		for _, round := range []struct{ end, requests int }{{60, 0}, {90, 0}, {120, 4}, {150, 4}, {150, 2}, {190, 0}, {242, 0}} {
			e.query.End = exported.Add(time.Duration(round.end) * time.Second)
			export = e.client.Stats.NewExport(e.query, e.stored(export.Cursor()), webdelivery.ExportOptions{Lookback: 20 * time.Second})
			e.service.requests = nil
			e.service.total = func(n, total, _ int) int { // in the only round that can find the late event, a replica lags
				return total - map[bool]int{true: 3}[round.end == 190 && n == 1]
			}
			got = append(got, e.all(export)...)
			if round.requests > 0 {
				assert.Len(e, e.service.requests, round.requests, "up to %d s", round.end)
			}
		}
		assert.ElementsMatch(e, namesOf(e.service.events), got)
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
