package testserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

const everything = "event_severity,event_type,event_action,client_connection_remote_ip,client_ip,client_browser," +
	"client_country_code,client_asn,rule_id,domain,property,waf_action,request_path"

// rowsOf returns the rows of a query of raw events, as received.
func (f fake) rowsOf(start, end string) []string {
	f.t.Helper()
	var rows []json.RawMessage
	got := f.result(events, "starttime", start, "endtime", end, "dimensions", everything, "limit", "100000000")
	require.NoError(f.t, json.Unmarshal(got.Rows, &rows))
	require.Len(f.t, rows, got.Total)
	var out []string
	for _, row := range rows {
		out = append(out, string(row))
	}
	return out
}

// Generated events depend only on the seed, the rate and their time, not on the server, the range or the time of the
// query.
func TestGeneratorIsDeterministic(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0.003, 0.7, 1, 33.3, 120} {
		cfg := testserver.Config{EventsPerSecond: rate, EventSeed: 7}
		f := start(t, cfg)
		whole := f.rowsOf("2026-11-20T09:58:20", "2026-11-20T10:00:00")
		assert.InDelta(t, rate*100, len(whole), 1.01)
		var parts []string
		cuts := []string{"2026-11-20T09:58:20", "2026-11-20T09:58:21", "2026-11-20T09:59:07", "2026-11-20T09:59:59", "2026-11-20T10:00:00"}
		for i := range cuts[1:] {
			parts = append(parts, f.rowsOf(cuts[i], cuts[i+1])...)
		}
		assert.True(t, slices.Equal(whole, parts), "in parts")

		cfg.Clock = testserver.NewClock(func() time.Time { return noon.Add(50 * time.Hour) })
		assert.True(t, slices.Equal(whole, start(t, cfg).rowsOf("2026-11-20T09:58:20", "2026-11-20T10:00:00")), "two days later")
		cfg.EventSeed = 8
		if rate > 0.5 {
			assert.False(t, slices.Equal(whole, start(t, cfg).rowsOf("2026-11-20T09:58:20", "2026-11-20T10:00:00")), "another seed")
		}
	}
}

// The stream has events of every family and category, and values that are hard to handle.
func TestGeneratedTraffic(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{EventsPerSecond: 0.5})
	for family := range families {
		assert.NotZero(t, f.result(family).Total, family)
	}
	rows := strings.Join(f.rowsOf("2026-11-20T11:00:00", "2026-11-20T12:00:00"), "\n")
	for _, awkward := range []string{`"/report;v=2,final"`, `"2001:db8:`, `null`, `"Opera, mini; \"old\""`, `4200000017`, `/café/menü`, `\\etc`} {
		assert.Contains(t, rows, awkward)
	}
}

// The server sends a long response while it creates it. Of its megabytes it never holds more than one buffer, and it does
// not hold the lock meanwhile. Events added meanwhile are not in the response.
func TestStreamIsNotHeld(t *testing.T) {
	t.Parallel()
	f := start(t, testserver.Config{EventsPerSecond: 1000})
	count := func() int { return f.EventCount(noon.Add(-time.Hour), noon.Add(-time.Hour+200*time.Second)) }
	rows, writes := count(), 0
	w := &streamed{ResponseRecorder: httptest.NewRecorder(), each: func(p []byte) {
		assert.LessOrEqual(t, len(p), 64<<10)
		writes++
		f.AddEvents(testserver.Event{Time: noon.Add(-time.Hour)}) // would block if the response held the lock
	}}
	r := httptest.NewRequest(http.MethodGet, "/acme/v1"+events+"/data?starttime=2026-11-20T11:00:00&endtime=2026-11-20T11:03:20"+
		"&limit=1000000&dimensions=event_action,client_asn,rule_id", nil)
	r.SetBasicAuth("alice", "correct-horse-battery")
	f.ServeHTTP(w, r)
	assert.Greater(t, writes, 200)
	assert.Contains(t, w.Body.String(), fmt.Sprintf(`"total_results":%d}`, rows))
	assert.Equal(t, rows+writes, count())
}

// streamed shows each piece of a response.
type streamed struct {
	*httptest.ResponseRecorder

	each func([]byte)
}

func (w *streamed) Write(p []byte) (int, error) {
	w.each(p)
	return w.ResponseRecorder.Write(p)
}
