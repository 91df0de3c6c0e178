package program_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// collect returns all lines, and the error that they end with.
func collect(ctx context.Context, in io.Reader) (lines []string, failed error) {
	for line, err := range program.Lines(ctx, in) {
		if err != nil {
			return lines, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// Blank lines, comments and the space around a line are skipped, with all kinds of line ends.
func TestLines(t *testing.T) {
	t.Parallel()
	got, err := collect(t.Context(), strings.NewReader("# of today\r\n\r\n  a  \n\t#b\nc d #e\n \nf"))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "c d #e", "f"}, got)

	const mark = "\ufeff" // byte order mark; it is one only at the beginning
	got, err = collect(t.Context(), strings.NewReader(mark+"a\n"+mark+"b"))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", mark + "b"}, got)
	got, err = collect(t.Context(), strings.NewReader(mark+"# of today\na"))
	require.NoError(t, err)
	assert.Equal(t, []string{"a"}, got)
}

// A read error ends the lines with an error. The lines before it are yielded, except an incomplete one.
func TestUnreadableLines(t *testing.T) {
	t.Parallel()
	got, err := collect(t.Context(), strings.NewReader("a\n\n#b\n"+strings.Repeat("x", 2<<20)))
	require.ErrorIs(t, err, bufio.ErrTooLong)
	require.ErrorContains(t, err, "line 4:")
	assert.Equal(t, []string{"a"}, got)

	broken := errors.New("broken disk")
	got, err = collect(t.Context(), io.MultiReader(strings.NewReader("a\nb\nhalf"), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	assert.Equal(t, []string{"a", "b"}, got)
}

// The end of a context ends a read of an empty pipe.
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
		require.NoError(t, pipe.Close()) // ends the read in the background, as the end of the process does
	})
}
