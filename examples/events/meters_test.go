package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// An export that is far behind says so at most once a minute.
func TestTellsThatItIsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m meters
		var told bytes.Buffer
		m.reach(time.Now())
		m.reach(time.Time{})
		m.reach(time.Now().Add(-time.Hour)) // of a late event
		time.Sleep(10 * time.Second)
		m.tell(&told, 5*time.Second)
		assert.Empty(t, told.String())
		for range 5 {
			time.Sleep(20 * time.Second)
			m.tell(&told, 5*time.Second)
		}
		assert.Equal(t, "events: 30s behind, which is more than twice the delay of 5s\n"+
			"events: 1m30s behind, which is more than twice the delay of 5s\n", told.String())
	})
}

// The program serves its metrics until it is interrupted. Of its events the collector takes one and rejects one.
func TestMetrics(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		packed, err := gzip.NewReader(r.Body)
		assert.NoError(t, err)
		body, err := io.ReadAll(packed)
		assert.NoError(t, err)
		if bytes.Contains(body, []byte(`"bad"`)) {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, `{"code":0}`)
	}))
	defer collector.Close()
	srv := webdeliverytest.NewServer(t)
	srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(-20 * time.Minute)}, webdeliverytest.Event{Time: time.Now().Add(-10 * time.Minute), RuleID: "bad"})
	programtest.UseService(t, srv)
	t.Setenv("SPLUNK_HEC_TOKEN", aSecret)
	out, in := io.Pipe()
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		args := []string{"-follow", "-hec", collector.URL, "-cursor", filepath.Join(t.TempDir(), "cursor"), "-metrics", "127.0.0.1:0"}
		ended <- run(ctx, args, program.Streams{Out: io.Discard, Err: in})
		_ = in.Close()
	}()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	_, address, found := strings.Cut(strings.TrimSpace(line), "events: metrics are at ")
	require.True(t, found, line)
	var text string
	require.Eventually(t, func() bool {
		reply, err := http.Get(address)
		require.NoError(t, err)
		defer reply.Body.Close()
		all, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		text = string(all)
		return strings.Contains(text, "\nwebdelivery_export_rejected_events_total 1\n")
	}, 20*time.Second, 5*time.Millisecond)
	assert.Contains(t, text, "\nwebdelivery_export_lag_seconds ")
	assert.Contains(t, text, "\nwebdelivery_export_late_events_total 0\n")
	assert.Contains(t, text, "\nwebdelivery_export_events_total 1\n")
	interrupt()
	told, err := io.ReadAll(lines)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(string(told), "\nevents: 1 events delivered; the same command continues\n"), string(told))
	require.NoError(t, <-ended)
}
