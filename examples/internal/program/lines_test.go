package program_test

import (
	"context"
	"io"
	"strings"
	"testing"

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
