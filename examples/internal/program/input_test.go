package program_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// Arguments and a file are used before standard input. A program does not wait for input on a terminal.
func TestInput(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "lines")
	require.NoError(t, os.WriteFile(file, []byte("of the file\n#b"), 0o600))
	for i, tt := range []struct {
		file     string
		args     []string
		terminal bool
		want     []string
		refused  string
	}{
		{args: []string{"a b", "c"}, want: []string{"a b", "c"}},
		{args: []string{"#a", "b\nc", " d\r"}, want: []string{"#a", "b\nc", "d"}},
		{args: []string{"a"}, terminal: true, want: []string{"a"}},
		{file: file, want: []string{"of the file"}},
		{want: []string{"of a pipe"}},
		{terminal: true, refused: "x: type x THING"},
		{file: file, args: []string{"a"}, refused: "only one of them"},
		{file: file + ".txt", refused: "no such file"},
		{args: []string{"a", ""}, refused: "argument 2 is empty"},
		{args: []string{" "}, terminal: true, refused: "argument 1 is empty"},
	} {
		s := program.Streams{In: strings.NewReader("of a pipe"), InTerminal: tt.terminal}
		in, err := program.NewInput(t.Context(), s, tt.file, tt.args, "x: type x THING")
		if tt.refused != "" {
			require.ErrorContains(t, err, tt.refused)
			assert.Equal(t, program.Misuse, program.Code("x", io.Discard, err))
			continue
		}
		require.NoError(t, err, "row %d", i)
		var got []string
		require.NoError(t, in.Each(t.Context(), 1, func(line string) error { got = append(got, line); return nil }))
		assert.Equal(t, tt.want, got)
	}
}

// piped returns an input that reads this text from a pipe.
func piped(t *testing.T, text string) *program.Input {
	t.Helper()
	in, err := program.NewInput(t.Context(), program.Streams{In: strings.NewReader(text)}, "", nil, "")
	require.NoError(t, err)
	return in
}

// Each line has a call of its own, and the number of calls at a time never exceeds the limit.
func TestEach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most, all = 3, 10
		var mu sync.Mutex
		seen, running, peak := map[string]int{}, 0, 0
		err := piped(t, "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n").Each(t.Context(), most, func(line string) error {
			mu.Lock()
			seen[line]++
			running++
			peak = max(peak, running)
			mu.Unlock()
			time.Sleep(time.Second) // of fake time: all calls that may run do
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		})
		require.NoError(t, err)
		assert.Len(t, seen, all)
		assert.Equal(t, most, peak)
		assert.Zero(t, running)
	})
}

// An error ends the reading of arguments and of lines at once. The returned error says that something was not read.
func TestEachStops(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	arguments := func() *program.Input {
		in, err := program.NewInput(t.Context(), program.Streams{}, "", []string{"a", "b", "c", "d"}, "")
		require.NoError(t, err)
		return in
	}
	for _, in := range []*program.Input{piped(t, "a\nb\nc\nd\n"), arguments()} {
		calls := 0
		err := in.Each(t.Context(), 1, func(string) error { calls++; return wrong })
		require.ErrorIs(t, err, wrong)
		require.ErrorContains(t, err, "not all was read")
		assert.Equal(t, 1, calls)
	}

	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, in := range []*program.Input{piped(t, "a\n"), arguments()} {
		err := in.Each(ctx, 1, func(string) error { t.Error("called"); return nil })
		require.ErrorIs(t, err, context.Canceled)
	}
}
