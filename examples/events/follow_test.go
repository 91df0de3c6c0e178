package main

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// followed is a client that prints what Follow logs.
func followed(t *testing.T, srv *webdeliverytest.Server, stderr io.Writer) *webdelivery.Client {
	t.Helper()
	return srv.Client(t, webdelivery.WithLogger(slog.New(warnings{stderr})))
}

// Each event is written once, 5 minutes after it happened or when it is recorded late, also after a round without the
// service, and after a stop.
func TestFollow(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"", "events.ndjson"} {
		synctest.Test(t, func(t *testing.T) {
			srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
			happens := func(ago time.Duration, rule string) {
				srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(-ago), RuleID: rule})
			}
			rows := filepath.Join(t.TempDir(), cmp.Or(file, "stdout"))
			var stdout io.Writer
			if file == "" {
				out, err := os.Create(rows)
				require.NoError(t, err)
				defer out.Close()
				stdout = out
			}
			var told bytes.Buffer
			client := followed(t, srv, &told)
			var stop context.CancelFunc
			var ended chan error
			begin := func(args ...string) {
				set, err := parse(args, program.Streams{Err: &told}, time.Now())
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				stop, ended = cancel, make(chan error, 1)
				go func() { ended <- export(ctx, client, set, program.Streams{Out: stdout, Err: &told}) }()
				synctest.Wait()
			}
			written := func() (rules string) {
				text, err := os.ReadFile(rows)
				require.NoError(t, err)
				for line := range strings.Lines(string(text)) {
					rules += strings.Split(line, `"`)[3]
				}
				return rules
			}
			after := func(d time.Duration) (rules string) {
				time.Sleep(d)
				synctest.Wait()
				return written()
			}
			args := []string{"-follow", "-since", "1h", "-format", "ndjson", "-columns", "rule_id,event_timestamp_ms"}
			if file != "" {
				args = append(args, "-o", rows)
			}

			happens(30*time.Minute, "a")
			happens(time.Minute, "b")
			begin(args...)
			assert.Equal(t, "a", written())
			happens(0, "c")
			assert.Equal(t, "ab", after(5*time.Minute))
			happens(9*time.Minute, "l")
			happens(29*time.Minute, "too late")
			works := srv.Fail(webdeliverytest.FaultRule{Path: dataPath, Status: http.StatusServiceUnavailable})
			assert.Equal(t, "ab", after(6*time.Minute)) // with the retries of the SDK
			works()
			assert.Equal(t, "ablc", after(5*time.Minute))
			stop()
			require.NoError(t, <-ended)
			assert.Contains(t, told.String(), "503")
			assert.Contains(t, told.String(), "events: webdelivery: 1 event between ")
			assert.Contains(t, told.String(), " recorded too late to be exported; a longer -lookback finds such events\n")
			if file == "" {
				return
			}
			assert.Contains(t, told.String(), "events: 4 events in "+rows+"; continue with: events -resume "+rows+"\n")

			happens(0, "d")
			time.Sleep(10 * time.Minute)
			begin("-resume", rows)
			assert.Equal(t, "ablcd", written())
			stop()
			require.NoError(t, <-ended)
			_, err := parse(args, program.Streams{Err: &told}, time.Now())
			require.EqualError(t, err, rows+" exists: continue it with -resume "+rows+", or name another file")
		})
	}
}

// The first round ends with the error of the service, and each round with that of the output.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := webdeliverytest.NewServer(t, webdeliverytest.InMemory())
		set, err := parse([]string{"-follow"}, program.Streams{}, time.Now())
		require.NoError(t, err)
		srv.Fail(webdeliverytest.FaultRule{Path: dataPath, Skip: 1, Status: http.StatusForbidden, Count: 1})
		require.ErrorContains(t, export(t.Context(), srv.Client(t), set, program.Streams{Out: &bytes.Buffer{}}), "403")

		srv.AddEvents(webdeliverytest.Event{Time: time.Now().Add(time.Minute)})
		reader, writer := io.Pipe()
		require.NoError(t, reader.Close())
		require.ErrorIs(t, export(t.Context(), srv.Client(t), set, program.Streams{Out: writer}), io.ErrClosedPipe)
	})
}
