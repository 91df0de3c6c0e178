package cli_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

// Arguments and a file are used before standard input, and nothing waits for input on a terminal. Blank lines, comments
// and the space around a line are skipped, with all kinds of line ends. A byte order mark is one only at the beginning.
func TestLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "lines")
	require.NoError(t, os.WriteFile(file, []byte("of the file\n#b"), 0o600))
	const mark = "\ufeff"
	for _, tt := range []struct {
		args     []string
		file     string
		stdin    string
		terminal bool
		want     []string
		refused  string
	}{
		{args: []string{"a b", "#c", " d\r"}, want: []string{"a b", "#c", "d"}, terminal: true},
		{file: file, want: []string{"of the file"}},
		{file: "-", stdin: "of a pipe", want: []string{"of a pipe"}},
		{stdin: "# of today\r\n\r\n  a  \n\t#b\nc d #e\n \nf", want: []string{"a", "c d #e", "f"}},
		{stdin: mark + "a\n" + mark + "b", want: []string{"a", mark + "b"}},
		{stdin: mark + "# of today\na", want: []string{"a"}},
		{terminal: true, refused: "type this"},
		{file: file, args: []string{"a"}, refused: "only one of them"},
		{file: file + ".txt", refused: "no such file"},
		{args: []string{"a", " "}, refused: "argument 2 is empty"},
	} {
		app := &cli.App{In: strings.NewReader(tt.stdin), InTerminal: tt.terminal}
		lines, err := app.Lines(tt.args, tt.file, "type this")
		if tt.refused != "" {
			require.ErrorContains(t, err, tt.refused)
			require.ErrorAs(t, err, new(*cli.Exit))
			continue
		}
		require.NoError(t, err)
		var got []string
		for line, err := range lines {
			require.NoError(t, err)
			got = append(got, line)
		}
		assert.Equal(t, tt.want, got)
	}
}

// Half a line that a failed read leaves is not a line: as a prefix it would purge more.
func TestAFailedRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	app := &cli.App{In: io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken))}
	lines, err := app.Lines(nil, "", "")
	require.NoError(t, err)
	var got []string
	for line, err := range lines {
		if err != nil {
			require.ErrorIs(t, err, broken)
			break
		}
		got = append(got, line)
	}
	assert.Equal(t, []string{"a"}, got)
}
