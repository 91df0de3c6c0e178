package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

// often lets the program save after few rows, also as a process of its own.
var often = pace{rows: 7, every: time.Hour, part: 50}

func TestMain(m *testing.M) {
	programtest.Main(m, "events", func(ctx context.Context, args []string, s program.Streams) error {
		usual = often
		return run(ctx, args, s)
	})
}

// many are events of ten minutes, two per second. Some are equal.
var many = func() []webdeliverytest.Event {
	many := make([]webdeliverytest.Event, 300)
	for i := range many {
		many[i] = webdeliverytest.Event{
			Time: noon.Add(time.Duration(i/2) * time.Second), RuleID: fmt.Sprint("rule-", i/3),
			ClientIP: netip.AddrFrom4([4]byte{192, 0, 2, byte(i / 3)}), ASN: 64496,
		}
	}
	return many
}()

// flagsOfMany are the flags of an export of many.
func flagsOfMany(file string, more ...string) []string {
	return append([]string{"-start", "2026-11-20T12:00:00Z", "-end", "2026-11-20T13:00:00Z", "-columns", "event_timestamp_ms,rule_id,client_ip,client_asn", "-o", file}, more...)
}

// start starts the program in this process. It saves often.
func start(ctx context.Context, srv *webdeliverytest.Server, t *testing.T, stderr io.Writer, args ...string) error {
	t.Helper()
	s := program.Streams{Out: io.Discard, Err: stderr}
	set, err := parse(args, s, noon.Add(time.Hour))
	if err != nil {
		return err
	}
	set.pace = often
	return export(ctx, srv.Client(t), set, s)
}

// earlyEnds are faults that end an export after some of its rows.
var earlyEnds = map[string]struct {
	faults []webdeliverytest.FaultRule
	after  time.Duration // ^C; 0 is never
	is     error
}{
	"^C":         {[]webdeliverytest.FaultRule{{Skip: 2, Stall: time.Hour, CutAfter: 12_000}}, time.Second, context.Canceled},
	"refused":    {[]webdeliverytest.FaultRule{cutOnce, {Skip: 2, Status: http.StatusForbidden}}, 0, webdelivery.ErrForbidden},
	"down":       {[]webdeliverytest.FaultRule{cutOnce, {Skip: 2, Status: http.StatusServiceUnavailable}}, 0, webdelivery.ErrServer},
	"cut always": {[]webdeliverytest.FaultRule{cutOnce, {Skip: 2, Cut: webdeliverytest.CutAfterRead}}, 0, io.EOF},
}

var cutOnce = webdeliverytest.FaultRule{Skip: 2, Count: 1, Cut: webdeliverytest.CutChunked, CutAfter: 12_000}

// endEarly exports until that fault, checks the files that are left, and returns the state.
func endEarly(t *testing.T, srv *webdeliverytest.Server, how, file string, args ...string) state {
	t.Helper()
	end := earlyEnds[how]
	for _, fault := range end.faults {
		fault.Path = dataPath
		defer srv.Fail(fault)()
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	if end.after > 0 {
		time.AfterFunc(end.after, interrupt)
	}
	err := start(ctx, srv, t, io.Discard, args...)
	require.ErrorIs(t, err, end.is)
	assert.Equal(t, program.Failed, program.Code("events", io.Discard, err))
	s, stateErr := readState(file)
	require.NoError(t, stateErr)
	assert.Positive(t, s.Cursor.Count())
	assert.Less(t, s.Cursor.Count(), int64(len(many)))
	assert.ErrorContains(t, err, fmt.Sprintf("after %d of ", s.Cursor.Count()))
	assert.True(t, strings.HasSuffix(err.Error(), "; continue with: events -resume "+file), err)
	return s
}

// A resumed export has the same bytes as one without a break. Until it is complete, the old file stays.
func TestTextGoesOn(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"csv", "ndjson"} {
		for how := range earlyEnds {
			for _, limit := range []string{"0", "290", "300"} {
				t.Run(format+"/"+how+"/"+limit, func(t *testing.T) {
					t.Parallel()
					inFakeTime(t, many, func(t *testing.T, srv *webdeliverytest.Server) {
						whole := filepath.Join(t.TempDir(), "whole."+format)
						require.NoError(t, start(t.Context(), srv, t, io.Discard, flagsOfMany(whole, "-limit", limit)...))
						want, err := os.ReadFile(whole)
						require.NoError(t, err)

						name := "events." + format
						file := filepath.Join(t.TempDir(), name)
						require.NoError(t, os.WriteFile(file, []byte("yesterday's"), 0o600))
						first := endEarly(t, srv, how, file, flagsOfMany(file, "-limit", limit)...)
						assertOnly(t, file, "yesterday's", name+".partial", name+".cursor")
						partial, err := os.ReadFile(partialOf(file))
						require.NoError(t, err)
						assert.Len(t, partial, int(first.Size))
						assert.Equal(t, string(want[:first.Size]), string(partial))

						extra := string(partial) + strings.Repeat("rows that were written after the last save\n", 1000) + "and ha"
						require.NoError(t, os.WriteFile(partialOf(file), []byte(extra), 0o600)) // as kill -9 leaves it
						require.NoError(t, os.WriteFile(newCursorOf(file), []byte("{"), 0o600))
						require.NoError(t, start(t.Context(), srv, t, io.Discard, "-resume", file))
						assertOnly(t, file, string(want))
					})
				})
			}
		}
	}
}

// After kill -9, the saved rows stay, and the export continues there.
func TestKilled(t *testing.T) { //nolint:paralleltest // the environment is that of all tests
	for _, format := range []string{"csv", "ndjson", "parquet"} {
		began := time.Now().UTC().Truncate(time.Second).Add(-time.Hour) // the process has the real time
		srv := webdeliverytest.NewServer(t)
		for _, event := range many {
			event.Time = began.Add(event.Time.Sub(noon))
			srv.AddEvents(event)
		}
		programtest.UseService(t, srv)
		whole, file := filepath.Join(t.TempDir(), "whole."+format), filepath.Join(t.TempDir(), "events."+format)
		times := []string{"-start", began.Format(time.RFC3339), "-end", began.Add(time.Hour).Format(time.RFC3339)}
		require.NoError(t, export1(t.Context(), t, srv, program.Streams{Err: io.Discard}, flagsOfMany(whole, times...)...))

		remove := srv.Fail(webdeliverytest.FaultRule{Path: dataPath, Skip: 2, Stall: time.Hour, CutAfter: 12_000})
		process := programtest.Start(t, nil, flagsOfMany(file, times...)...)
		require.Eventually(t, func() bool {
			s, err := readState(file)
			return err == nil && s.Cursor.Count() >= 100
		}, 20*time.Second, 5*time.Millisecond)
		process.Signal(t, syscall.SIGKILL)
		code, _, _ := process.End(t)
		assert.Equal(t, -1, code)
		remove()
		assert.NoFileExists(t, file)

		code, _, told := programtest.Run("events", program.Streams{}, func(s program.Streams) error {
			return run(t.Context(), []string{"-resume", file}, s)
		})
		assert.Equal(t, program.Done, code, told)
		if format == "parquet" {
			assert.Equal(t, rowsOf(t, whole), rowsOf(t, partsOf(t, file)...))
			continue
		}
		want, err := os.ReadFile(whole)
		require.NoError(t, err)
		assertOnly(t, file, string(want))
	}
}

// If rows were recorded too late, the program fails with both numbers, and keeps its rows.
func TestLateRows(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"csv", "ndjson", "parquet"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			inFakeTime(t, many, func(t *testing.T, srv *webdeliverytest.Server) {
				file := filepath.Join(t.TempDir(), "events."+format)
				fault := cutOnce
				fault.Path, fault.Stall = dataPath, time.Minute
				srv.Fail(fault)
				time.AfterFunc(time.Second, func() { srv.AddEvents(webdeliverytest.Event{Time: noon, RuleID: "late"}) })
				err := start(t.Context(), srv, t, io.Discard, flagsOfMany(file)...)
				var late *webdelivery.LateError
				require.ErrorAs(t, err, &late)
				assert.EqualValues(t, 1, late.Late)
				var told strings.Builder
				assert.Equal(t, program.Failed, program.Code("events", &told, err))
				assert.Contains(t, told.String(), "; a longer -lookback finds such events; export again with -o "+file+"\n")
				assert.NoFileExists(t, file)
				s, err := readState(file)
				require.NoError(t, err)
				assert.EqualValues(t, 300, s.Cursor.Count())

				require.ErrorContains(t, start(t.Context(), srv, t, io.Discard, "-resume", file), "after 300 of 301 events: ")
				require.NoError(t, start(t.Context(), srv, t, io.Discard, flagsOfMany(file)...)) // again
				assert.NoFileExists(t, cursorOf(file))
			})
		})
	}
}
