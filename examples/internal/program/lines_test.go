package program_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// collect gives all lines, and the error that they end with.
func collect(ctx context.Context, in io.Reader) (lines []string, failed error) {
	for line, err := range program.Lines(ctx, in) {
		if err != nil {
			return lines, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// Blank lines, comments and the space around a line are passed over, whatever the ends of lines are.
func TestLines(t *testing.T) {
	t.Parallel()
	got, err := collect(t.Context(), strings.NewReader("# of today\r\n\r\n  a  \n\t#b\nc d #e\n \nf"))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "c d #e", "f"}, got)
}

// What cannot be read ends the lines with an error; what came before it is given.
func TestUnreadableLines(t *testing.T) {
	t.Parallel()
	got, err := collect(t.Context(), strings.NewReader("a\n"+strings.Repeat("x", 2<<20)))
	require.ErrorIs(t, err, bufio.ErrTooLong)
	assert.Equal(t, []string{"a"}, got)

	broken := errors.New("broken disk")
	got, err = collect(t.Context(), io.MultiReader(strings.NewReader("a\nb\n"), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	assert.Equal(t, []string{"a", "b"}, got)
}

// The end of a context ends a read of a pipe that has nothing to give, and nobody reads on.
func TestLinesAreInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pipe, more := io.Pipe()
		ctx, interrupt := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		go func() {
			_, err := io.WriteString(more, "a\n")
			assert.NoError(t, err)
			synctest.Wait()
			interrupt(enough)
		}()
		got, err := collect(ctx, pipe)
		require.ErrorIs(t, err, enough)
		assert.Equal(t, []string{"a"}, got)
		require.NoError(t, pipe.Close()) // lets the read go, as the end of the process does
	})
}

// Who has seen enough leaves no goroutine behind.
func TestLinesAreLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // fails when a goroutine is left
		for line, err := range program.Lines(t.Context(), strings.NewReader("a\nb\nc")) {
			require.NoError(t, err)
			assert.Equal(t, "a", line)
			break
		}
	})
}

// Each line has a call of its own, and there are never more calls at a time than asked for.
func TestEachLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most, all = 3, 10
		var mu sync.Mutex
		seen, running, peak := map[string]int{}, 0, 0
		err := program.EachLine(t.Context(), strings.NewReader("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"), most, func(line string) error {
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

// An error ends the reading, and is told when something was left unread.
func TestEachLineStops(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	calls := 0
	err := program.EachLine(t.Context(), strings.NewReader("a\nb\nc\nd\n"), 1, func(string) error { calls++; return wrong })
	require.ErrorIs(t, err, wrong)
	require.ErrorContains(t, err, "not all was read")
	assert.Less(t, calls, 4)

	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	err = program.EachLine(ctx, strings.NewReader("a\n"), 1, func(string) error { t.Error("called"); return nil })
	require.ErrorIs(t, err, context.Canceled)
}
