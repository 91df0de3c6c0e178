package testserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// longQuery has about 200,000 rows at 1,000 events per second.
const (
	longQuery      = events + "/data?starttime=2026-11-20T11:00:00&endtime=2026-11-20T11:03:20&limit=1000000&dimensions=" + longDimensions
	longDimensions = "event_action,client_asn,rule_id"
)

// middleQuery has about 20,000 rows, more than all buffers on the way can hold.
const middleQuery = events + "/data?starttime=2026-11-20T11:00:00&endtime=2026-11-20T11:00:20&limit=1000000&dimensions=" + longDimensions

func longStart(t *testing.T) fake {
	t.Helper()
	return start(t, testserver.Config{EventsPerSecond: 1000})
}

// A response of 200,000 rows arrives completely: each row once, in order, and as many as announced.
func TestSection24LongReply(t *testing.T) {
	t.Parallel()
	f := longStart(t)
	resp, err := f.client.Do(f.request(http.MethodGet, longQuery, ""))
	require.NoError(t, err)
	assert.Equal(t, []string{"chunked"}, resp.TransferEncoding)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.True(t, json.Valid(body))

	_, body, _ = bytes.Cut(body, []byte(`"rows":[[`))
	all, total, _ := strings.Cut(string(body), "]]")
	rows := strings.Split(all, "],[")
	want := f.EventCount(at("2026-11-20T11:00:00"), at("2026-11-20T11:03:20"))
	assert.InDelta(t, 200_000, want, 1)
	assert.Equal(t, want, len(rows)) //nolint:testifylint // Len would print them all
	assert.Equal(t, fmt.Sprintf(",\"total_results\":%d}\n", want), total)
	assert.Equal(t, f.firstCells("2026-11-20T11:00:00"), rows[0])
	assert.Equal(t, f.firstCells("2026-11-20T11:02:00"), rows[f.EventCount(at("2026-11-20T11:00:00"), at("2026-11-20T11:02:00"))])
	last := ""
	for _, row := range rows {
		if now := row[:len(last)]; now < last || strings.Count(row, ",") < 3 {
			t.Fatalf("%s after %s", row, last)
		}
		last = row[:len(`"2026-11-20T11:00:00.000"`)]
	}
}

// firstCells returns the values of the first row of the long query from a time on.
func (f fake) firstCells(from string) string {
	f.t.Helper()
	got := f.result(events, "starttime", from, "dimensions", longDimensions, "limit", "1")
	return strings.Trim(string(got.Rows), "[]")
}

func startOnTCP(t *testing.T, cfg testserver.Config) fake {
	t.Helper()
	s := testserver.New(cfg)
	_, err := s.ListenTCP()
	require.NoError(t, err)
	transport := s.Transport()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		assert.NoError(t, s.Close())
	})
	return fake{Server: s, t: t, client: &http.Client{Transport: transport}}
}

// meter receives a response without a network. All data that it has not received yet are in the server.
type meter struct {
	header  http.Header
	writes  int
	bytes   int
	longest int
	hash    hash.Hash64 // of the body, unless nil
	during  func(m *meter)
}

func (m *meter) Header() http.Header { return m.header }
func (m *meter) WriteHeader(int)     {}
func (m *meter) Write(p []byte) (int, error) {
	m.writes++
	m.bytes += len(p)
	m.longest = max(m.longest, len(p))
	if m.hash != nil {
		_, _ = m.hash.Write(p)
	}
	if m.during != nil {
		m.during(m)
	}
	return len(p), nil
}

// handle runs a request in the test's own goroutine.
func (f fake) handle(ctx context.Context, m *meter, query string) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/acme/v1"+query, nil)
	r.SetBasicAuth("alice", "correct-horse-battery")
	m.header = http.Header{}
	f.ServeHTTP(m, r)
}

// The server sends a long response while it creates it. Of its megabytes, the server never holds more than one buffer,
// and it does not hold the lock meanwhile. Events added meanwhile are not in the response.
func TestStreamIsNotHeld(t *testing.T) {
	t.Parallel()
	f := longStart(t)
	for i := range 20 {
		f.AddEvents(testserver.Event{Time: at("2026-11-20T11:03:00").Add(time.Duration(i) * time.Second), Action: strings.Repeat("x", i)})
	}
	count := func() int { return f.EventCount(at("2026-11-20T11:00:00"), at("2026-11-20T11:03:20")) }
	before := count()
	first := meter{hash: fnv.New64()}
	f.handle(t.Context(), &first, longQuery)
	assert.Greater(t, first.bytes, 8<<20)
	assert.LessOrEqual(t, first.longest, 64<<10)
	assert.Greater(t, first.writes, 200)

	second := meter{hash: fnv.New64(), during: func(*meter) {
		f.AddEvents(testserver.Event{Time: at("2026-11-20T11:00:00")}) // would block if the response held the lock
	}}
	f.handle(t.Context(), &second, longQuery)
	assert.Equal(t, first.hash.Sum64(), second.hash.Sum64())
	assert.Equal(t, before+second.writes, count())
}

// Close ends responses that are being sent.
func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{EventsPerSecond: 1e6})
	resp, err := f.client.Do(f.request(http.MethodGet, events+"/data?starttime=2026-11-01T00:00:00&endtime=2026-12-01T00:00:00"+
		"&limit=1000000000000&dimensions=domain", ""))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = io.Copy(io.Discard, resp.Body)
	require.Error(t, err)
	require.NoError(t, resp.Body.Close())
}

// Faults affect a stream like any other response. A cut or a stall comes after CutAfter bytes, or after 500 by default.
func TestFaultsOnStreams(t *testing.T) {
	t.Parallel()
	whole := longStart(t).get(middleQuery).body
	const short = events + "/data?starttime=2026-11-20T11:00:00&endtime=2026-11-20T11:00:01&limit=1&dimensions=domain"
	brief := longStart(t).get(short).body
	tooFar := len(brief) + 1
	for name, tc := range map[string]struct {
		query string
		fault testserver.Fault
		want  string
		cut   bool
	}{
		"in the body":        {middleQuery, testserver.Fault{Cut: testserver.CutBody}, whole[:500], true},
		"in chunks":          {middleQuery, testserver.Fault{Cut: testserver.CutChunked}, whole[:500], true},
		"at a byte":          {middleQuery, testserver.Fault{Cut: testserver.CutBody, CutAfter: 1}, whole[:1], true},
		"far in chunks":      {middleQuery, testserver.Fault{Cut: testserver.CutChunked, CutAfter: 700_001}, whole[:700_001], true},
		"far in the body":    {middleQuery, testserver.Fault{Cut: testserver.CutBody, CutAfter: 700_001}, whole[:700_001], true},
		"behind a short one": {short, testserver.Fault{Cut: testserver.CutBody, CutAfter: tooFar}, brief, true},
		"behind the chunks":  {short, testserver.Fault{Cut: testserver.CutChunked, CutAfter: tooFar}, brief, true},
		"at its end":         {short, testserver.Fault{Cut: testserver.CutBody, CutAfter: len(brief)}, brief, true},
		"before its end":     {short, testserver.Fault{Cut: testserver.CutChunked, CutAfter: len(brief) - 1}, brief[:len(brief)-1], true},
		"stall":              {middleQuery, testserver.Fault{Stall: time.Nanosecond}, whole, false},
		"late stall":         {short, testserver.Fault{Stall: time.Nanosecond, CutAfter: tooFar}, brief, false},
		"dribble":            {short, testserver.Fault{Dribble: time.Nanosecond}, brief, false},
		"delay":              {short, testserver.Fault{Delay: time.Nanosecond}, brief, false},
		"header":             {middleQuery, testserver.Fault{Header: http.Header{"X-Test": {"1"}}}, whole, false},
		"another body":       {middleQuery, testserver.Fault{Body: "{}"}, "{}", false},
		"its middle":         {middleQuery, testserver.Fault{Body: "12345678", Cut: testserver.CutBody}, "1234", true},
		"not its middle":     {middleQuery, testserver.Fault{Body: "12345678", Cut: testserver.CutBody, CutAfter: 7}, "1234567", true},
		"its end":            {middleQuery, testserver.Fault{Body: "12345678", Cut: testserver.CutBody, CutAfter: 9}, "12345678", true},
		"its chunks' end":    {middleQuery, testserver.Fault{Body: "12345678", Cut: testserver.CutChunked, CutAfter: 9}, "12345678", true},
		"status":             {middleQuery, testserver.Fault{Status: 503}, "", false},
		"status, executed":   {middleQuery, testserver.Fault{Status: 503, Execute: true}, "", false},
	} {
		for _, wire := range []string{"memory", "tcp"} {
			t.Run(name+"/"+wire, func(t *testing.T) {
				t.Parallel()
				f := longStart(t)
				if wire == "tcp" {
					f = startOnTCP(t, testserver.Config{EventsPerSecond: 1000, Clock: f.Clock()})
				}
				f.Fail(tc.fault)
				resp, err := f.client.Do(f.request(http.MethodGet, tc.query, ""))
				require.NoError(t, err)
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, resp.Body.Close())
				if tc.cut {
					assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
				} else {
					assert.NoError(t, err)
				}
				assert.Equal(t, tc.fault.Cut == testserver.CutBody, tc.cut && resp.ContentLength > int64(len(got)))
				if tc.want != string(got) { // the difference would be long
					t.Errorf("%d bytes for %d", len(got), len(tc.want))
				}
				assert.Equal(t, max(200, tc.fault.Status), resp.StatusCode)
				assert.Equal(t, tc.fault.Header.Get("X-Test"), resp.Header.Get("X-Test"))
			})
		}
	}
}

// A stall comes once, after the earlier bytes were sent, and ends when the client disconnects.
func TestStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t, testserver.Config{EventsPerSecond: 10, Clock: testserver.NewClock(nil), EventsSince: time.Now().Add(-time.Hour)})
		query := events + "/data?starttime=1999-12-31T00:00:00&endtime=2000-01-02T00:00:00&limit=1000&dimensions=domain"
		body := "0123456789"
		for _, tc := range []struct {
			fault  testserver.Fault
			before int
		}{
			{testserver.Fault{Stall: time.Hour}, 500},
			{testserver.Fault{Stall: time.Hour, CutAfter: 40_000}, 40_000},
			{testserver.Fault{Stall: time.Hour, Body: body}, 5},
			{testserver.Fault{Stall: time.Hour, Body: body, CutAfter: 3}, 3},
			{testserver.Fault{Stall: time.Hour, Body: body, CutAfter: 30}, 9},
			{testserver.Fault{Stall: time.Hour, Cut: testserver.CutChunked, CutAfter: 600}, 600},
		} {
			remove := f.Fail(tc.fault)
			began := time.Now()
			resp, err := f.client.Do(f.request(http.MethodGet, query, ""))
			require.NoError(t, err)
			_, err = io.ReadFull(resp.Body, make([]byte, tc.before))
			require.NoError(t, err)
			assert.Zero(t, time.Since(began))
			_, err = io.Copy(io.Discard, resp.Body)
			assert.Equal(t, tc.fault.Cut != testserver.CutNone, err != nil)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, time.Hour, time.Since(began), "%+v", tc.fault)

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			resp, err = f.client.Do(f.request(http.MethodGet, query, "").WithContext(ctx))
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NoError(t, resp.Body.Close())
			cancel()
			remove()
		}
		synctest.Wait()
		require.NoError(t, f.Close())
	})
}
