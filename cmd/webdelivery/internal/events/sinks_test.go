package events_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/events"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const file1, file54 = "events-000000000001-19991231T233000Z.csv", "events-000000000054-19991231T233053Z.csv"

// assertFiles checks the number of files in a folder but those of the state, and the rules in those that are complete.
// Only their owner can read them.
func assertFiles(t *testing.T, dir string, number int, rules ...string) {
	t.Helper()
	synctest.Wait()
	found, err := filepath.Glob(filepath.Join(dir, "events-*"))
	require.NoError(t, err)
	assert.Len(t, found, number)
	var text string
	for _, name := range append(found, dir) {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077)
		if strings.HasSuffix(name, ".csv") {
			content, _ := os.ReadFile(name)
			rows, headed := strings.CutPrefix(string(content), "rule_id\n")
			assert.True(t, headed)
			text += rows
		}
	}
	assert.Equal(t, rules, strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
}

// After ^C, or a kill between any two steps, here a failure of the next one, the same command continues. Each event is in one
// file.
func TestTheSameCommandContinues(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		after int    // bytes, after which the service stalls
		block string // the file that cannot be written then
		told  string // after ^C while the service stalls
		left  []string
	}{
		{10, file1 + ".partial", "", nil},
		{500_000, "cursor.new", "", []string{file1 + ".partial"}},
		{500_000, file1, "", []string{file1 + ".partial"}},
		{500_000, file54 + ".partial", "", []string{file1}},
		{1_500_000, "cursor.new", "", []string{file1, file54 + ".partial"}},
		{1_500_000, file54, "", []string{file1, file54 + ".partial"}},
		{1_085_000, file54, "; the same command continues\n", []string{file1, file54 + ".partial"}}, // with one event
		{1_500_000, "none", "(?s) % 1 events.* 74 events written to DIR; the same command continues\n.*: interrupted\n", []string{file1, file54}},
	} {
		inBubble(t, large(160), func(t *testing.T, srv *webdeliverytest.Server) {
			dir := filepath.Join(t.TempDir(), "new", "folder")
			export := []string{"export", "--since", "1h", "--columns", "rule_id", "--rotate", "1MB", "--dir", dir} // 53 events in a file
			works := srv.Fail(webdeliverytest.FaultRule{Path: dataPath, Skip: 1, Stall: time.Hour, CutAfter: tt.after})
			_, end := start(t, srv, export...)
			assert.Contains(t, run(t, srv, export...).Stderr, "already open")
			require.NoError(t, os.MkdirAll(filepath.Join(dir, tt.block, "in the way"), 0o700))
			if tt.told == "" {
				time.Sleep(2 * time.Hour)
			}
			code, told := end()
			assert.Equal(t, cli.Failed, code)
			assert.Regexp(t, strings.ReplaceAll(tt.told, "DIR", dir), told)
			require.NoError(t, os.RemoveAll(filepath.Join(dir, tt.block)))
			for _, name := range tt.left {
				assert.FileExists(t, filepath.Join(dir, name))
			}
			works()
			happens(srv, 0, "after the end of the time range")
			assert.Equal(t, cli.Done, run(t, srv, export...).Code)
			assertFiles(t, dir, 4, large(160)...)
			assert.Equal(t, "webdelivery: the export is complete, with 160 events up to 2000-01-01T00:00:00Z; "+
				"for newer ones, begin another one or follow\n", run(t, srv, export...).Stderr)
		})
	}
}

// A file that somebody removes before it is complete loses no event: the next run writes them again.
func TestARemovedFile(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"a", "b"}, func(t *testing.T, srv *webdeliverytest.Server) {
		dir := t.TempDir()
		follow := []string{"follow", "--columns", "rule_id", "--dir", dir}
		_, end := start(t, srv, follow...)
		require.NoError(t, os.Remove(filepath.Join(dir, file1+".partial")))
		code, told := end()
		assert.Equal(t, cli.Failed, code)
		assert.Contains(t, told, ".partial was removed while it was written; the next run writes its events again\n")
		assert.NotContains(t, told, "events written")
		_, end = start(t, srv, follow...)
		code, _ = end()
		assert.Equal(t, cli.Done, code)
		require.NoError(t, os.Chmod(dir, 0o700))
		assertFiles(t, dir, 1, "a", "b")
	})
}

// A folder belongs to one export. As long as it has no event, that can change.
func TestAnotherExport(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"a", "b"}, func(t *testing.T, srv *webdeliverytest.Server) {
		dir := filepath.Join(t.TempDir(), "new")
		assert.Contains(t, run(t, srv, "export", "--columns", "rule", "--dir", dir).Stderr, `unknown dimension "rule"`)
		first := []string{"export", "--dir", dir, "--columns", "rule_id", "--limit", "1", "--filter", "rule_id!=x", "-o", "csv"}
		assert.Equal(t, cli.Done, run(t, srv, first...).Code)
		for _, other := range []string{"--columns=domain", "-oecs", "--filter=rule_id==b", "--since=2h", "--until=today", "--limit=2"} {
			r := run(t, srv, append(first, other)...)
			assert.Equal(t, cli.Misuse, r.Code, other)
			assert.Contains(t, r.Stderr, "the folder was begun with: webdelivery events export --columns 'rule_id' --filter 'rule_id!=x' --limit '1' --output 'csv'; give the same")
		}
		assert.Equal(t, cli.Misuse, run(t, srv, "follow", "--dir", dir, "--columns", "rule_id").Code)
		assert.Contains(t, run(t, srv, first...).Stderr, "--limit is reached: 1 events")
		require.NoError(t, os.Remove(filepath.Join(dir, "cursor")))
		assert.Contains(t, run(t, srv, first...).Stderr, file1+" belongs to another export; name another --dir\n")
		assertFiles(t, dir, 1, "a")
	})
}

// Files of follow are complete at an age, and when it stops. The same command continues.
func TestFollowIntoFiles(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"a", "b"}, func(t *testing.T, srv *webdeliverytest.Server) {
		dir := filepath.Join(t.TempDir(), "new")
		follow := []string{"follow", "--columns", "rule_id", "--delay", "1m", "--rotate", "20m", "--dir", dir}
		_, end := start(t, srv, follow...)
		time.Sleep(19 * time.Minute)
		happens(srv, 0, "c")
		time.Sleep(2 * time.Minute)
		assertFiles(t, dir, 2, "a", "b")
		_, told := end()
		assert.Contains(t, told, "webdelivery: 3 events written to "+dir+"; the same command continues\n")
		time.Sleep(2 * time.Hour) // --since is now behind all events
		happens(srv, time.Hour, "d")
		_, end = start(t, srv, follow...)
		require.NoError(t, os.Mkdir(filepath.Join(dir, "cursor.new"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cursor.new", "in the way"), nil, 0o600))
		code, _ := end()
		assert.Equal(t, cli.Failed, code)
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "cursor.new")))
		_, end = start(t, srv, follow...)
		end()
		assertFiles(t, dir, 3, "a", "b", "c", "d")
	})
}

// The metrics are served until the command ends.
func TestMetrics(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t)
	happens(srv, 20*time.Minute, "good", "bad", "good")
	app, _, _ := clitest.App(srv, "")
	told, in := io.Pipe()
	app.Err = in
	c := newCollector(t, "otlp")
	c.answers(answer{status: http.StatusBadRequest}, "bad")
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		ended <- app.Run(ctx, append([]string{"events", "--metrics=127.0.0.1:0"}, c.to...), events.Command)
	}()
	var address string
	_, err := fmt.Fscanf(told, "webdelivery: metrics are at %s\n", &address)
	require.NoError(t, err)
	go func() { _, _ = io.Copy(io.Discard, told) }()
	want := regexp.MustCompile(`(?m)^webdelivery_export_lag_seconds (299|3\d\d)\.\d{3}\n#.*\nwebdelivery_export_events_total 2\n#.*\n` +
		`webdelivery_export_late_events_total 0\n#.*\nwebdelivery_export_rejected_events_total 1$`)
	require.Eventually(t, func() bool {
		reply, err := http.Get(address)
		require.NoError(t, err)
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		return err == nil && want.Match(text)
	}, 20*time.Second, 5*time.Millisecond)
	interrupt()
	assert.Equal(t, cli.Done, <-ended)
}
