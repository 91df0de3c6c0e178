package events_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/clitest"
	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/events"
	"github.com/webdelivery/webdelivery-go/webdeliverytest"
)

const file1, file54 = "events-000000000001-19991231T233000Z.csv", "events-000000000054-19991231T233053Z.csv"

// toFiles are the arguments of an export to a folder, whose files have 53 events.
func toFiles(dir string) []string {
	return []string{"export", "--since", "1h", "--columns", "rule_id", "--rotate", "1MB", "--dir", dir}
}

// stall lets the response with the events stop after that many bytes. It returns the end of the fault.
func stall(srv *webdeliverytest.Server, after int) (remove func()) {
	return srv.Fail(webdeliverytest.FaultRule{Path: dataPath, Skip: 1, Stall: time.Hour, CutAfter: after})
}

// assertFiles checks the number of files in a folder but those of the state, and the rules in those that are complete. Only
// their owner can read them.
func assertFiles(t *testing.T, dir string, number int, rules ...string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "events-*"))
	require.NoError(t, err)
	assert.Len(t, found, number)
	var text string
	for _, name := range found {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
		if strings.HasSuffix(name, ".csv") {
			content, err := os.ReadFile(name)
			require.NoError(t, err)
			rows, headed := strings.CutPrefix(string(content), "rule_id\n")
			assert.True(t, headed)
			text += rows
		}
	}
	assert.Equal(t, rules, strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
}

// After ^C the same command continues; when it is complete, it says so. Each event is in one file.
func TestTheSameCommandContinues(t *testing.T) {
	t.Parallel()
	inBubble(t, large(160), func(t *testing.T, srv *webdeliverytest.Server) {
		dir := filepath.Join(t.TempDir(), "new", "folder")
		remove := stall(srv, 1_500_000)
		_, end := start(t, srv, toFiles(dir)...)
		assertFiles(t, dir, 2, large(53)...)
		assert.Contains(t, run(t, srv, toFiles(dir)...).Stderr, "already open")
		code, told := end()
		assert.Equal(t, cli.Failed, code)
		assert.Equal(t, "webdelivery: 74 events written to "+dir+"; the same command continues\nwebdelivery: interrupted\n", told)
		assertFiles(t, dir, 2, large(74)...)
		remove()

		happens(srv, 0, "after the end of the time range")
		time.Sleep(time.Hour)
		assert.Equal(t, cli.Done, run(t, srv, toFiles(dir)...).Code)
		assertFiles(t, dir, 4, large(160)...)
		again := run(t, srv, toFiles(dir)...)
		assert.Equal(t, "webdelivery: the export is complete, with 160 events up to 2000-01-01T00:00:00Z; for newer ones, begin another one or follow\n",
			again.Stderr)
		info, err := os.Stat(dir)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	})
}

// A kill between any two steps, here a failure of the next one, loses no event and repeats none.
func TestKilledBetweenSteps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		after int    // bytes, from where on the step fails
		block string // the file that is missing then
		left  []string
	}{
		{10, file1 + ".partial", nil},
		{500_000, "cursor.new", []string{file1 + ".partial"}},
		{500_000, file1, []string{file1 + ".partial"}},
		{500_000, file54 + ".partial", []string{file1}},
		{1_500_000, "cursor.new", []string{file1, file54 + ".partial"}},
		{1_500_000, file54, []string{file1, file54 + ".partial"}},
	} {
		inBubble(t, large(160), func(t *testing.T, srv *webdeliverytest.Server) {
			dir := t.TempDir()
			remove := stall(srv, tt.after)
			_, end := start(t, srv, toFiles(dir)...)
			require.NoError(t, os.MkdirAll(filepath.Join(dir, tt.block, "in the way"), 0o700))
			time.Sleep(2 * time.Hour)
			end()
			require.NoError(t, os.RemoveAll(filepath.Join(dir, tt.block)))
			for _, name := range tt.left {
				assert.FileExists(t, filepath.Join(dir, name))
			}
			remove()
			assert.Equal(t, cli.Done, run(t, srv, toFiles(dir)...).Code)
			assertFiles(t, dir, 4, large(160)...)
		})
	}
}

// A folder belongs to one export. As long as it has no event, that can change.
func TestAnotherExport(t *testing.T) {
	t.Parallel()
	inBubble(t, []string{"a", "b"}, func(t *testing.T, srv *webdeliverytest.Server) {
		dir := t.TempDir()
		assert.Contains(t, run(t, srv, "export", "--columns", "rule", "--dir", dir).Stderr, `unknown dimension "rule"`)
		first := []string{"export", "--dir", dir, "--columns", "rule_id", "--limit", "1"}
		assert.Equal(t, cli.Done, run(t, srv, first...).Code)
		for _, other := range []string{"--columns=domain", "-oecs", "--filter=rule_id==b", "--since=2h", "--until=today", "--limit=2"} {
			r := run(t, srv, append(first, other)...)
			assert.Equal(t, cli.Misuse, r.Code, other)
			assert.Contains(t, r.Stderr, "the folder was begun with: webdelivery events export --columns 'rule_id' --limit '1'; give the same")
		}
		assert.Equal(t, cli.Misuse, run(t, srv, "follow", "--dir", dir, "--columns", "rule_id").Code)
		require.NoError(t, os.Remove(filepath.Join(dir, "cursor")))
		assert.Contains(t, run(t, srv, first...).Stderr, file1+" belongs to another export; name another --dir\n")
		assertFiles(t, dir, 1, "a")
	})
}

// The metrics are served until the command ends.
func TestMetrics(t *testing.T) {
	t.Parallel()
	srv := webdeliverytest.NewServer(t)
	happens(srv, 20*time.Minute, "good", "bad", "good")
	app, _, _ := clitest.App(srv, "")
	out, in := io.Pipe()
	app.Err = in
	c := newCollector(t, "otlp")
	c.answers(answer{status: http.StatusBadRequest}, "bad")
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		_ = in.CloseWithError(fmt.Errorf("code %d", app.Run(ctx, append([]string{"events"}, append(c.to, "--metrics=127.0.0.1:0")...), events.Command)))
	}()
	told := bufio.NewReader(out)
	address, err := told.ReadString('\n')
	require.NoError(t, err)
	_, err = told.ReadString('\n') // of the rejected event
	require.NoError(t, err)
	want := regexp.MustCompile(`(?m)^webdelivery_export_lag_seconds (299|3\d\d)\.\d{3}\n#.*\nwebdelivery_export_events_total 2\n#.*\n` +
		`webdelivery_export_late_events_total 0\n#.*\nwebdelivery_export_rejected_events_total 1$`)
	require.Eventually(t, func() bool {
		reply, err := http.Get(strings.TrimSpace(strings.TrimPrefix(address, "webdelivery: metrics are at ")))
		require.NoError(t, err)
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		return want.Match(text)
	}, 20*time.Second, 5*time.Millisecond)
	interrupt()
	last, err := io.ReadAll(told)
	require.EqualError(t, err, "code 0")
	assert.Equal(t, "webdelivery: 2 events delivered; the same command continues\n", string(last))
}
