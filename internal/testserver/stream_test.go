package testserver_test

import (
	"context"
	"hash"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/internal/testserver"
)

// longQuery has about 200,000 rows at 1,000 events per second.
const longQuery = events + "/data?starttime=2026-11-20T11:00:00&endtime=2026-11-20T11:03:20&limit=1000000" +
	"&dimensions=event_action,client_asn,rule_id"

// meter receives a response without a network. All data that it has not received yet are in the server.
type meter struct {
	header  http.Header
	writes  int
	bytes   int
	longest int
	hash    hash.Hash64 // of the body
	during  func()
}

func (m *meter) Header() http.Header { return m.header }
func (m *meter) WriteHeader(int)     {}
func (m *meter) Write(p []byte) (int, error) {
	m.writes++
	m.bytes += len(p)
	m.longest = max(m.longest, len(p))
	if m.during != nil {
		m.during()
	}
	return m.hash.Write(p)
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
	f := start(t, testserver.Config{EventsPerSecond: 1000})
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

	second := meter{hash: fnv.New64(), during: func() {
		f.AddEvents(testserver.Event{Time: at("2026-11-20T11:00:00")}) // would block if the response held the lock
	}}
	f.handle(t.Context(), &second, longQuery)
	assert.Equal(t, first.hash.Sum64(), second.hash.Sum64())
	assert.Equal(t, before+second.writes, count())
}
