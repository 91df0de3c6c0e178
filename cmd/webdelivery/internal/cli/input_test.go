package cli_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go"
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
		want     string // the lines with slashes between them, or the error
	}{
		{args: []string{"a b", " d\r"}, want: "a b/d", terminal: true},
		{file: file, want: "of the file"},
		{file: "-", stdin: "of a pipe", want: "of a pipe"},
		{stdin: "# of today\r\n\r\n  a  \n\t#b\nc d #e\n \nf", want: "a/c d #e/f"},
		{stdin: mark + "a\n" + mark + "b", want: "a/" + mark + "b"},
		{terminal: true, want: "type this"},
		{file: file, args: []string{"a"}, want: "only one of them"},
		{file: file + ".txt", want: "no such file"},
		{args: []string{"a", " "}, want: "argument 2 is empty"},
		{args: []string{"#a"}, want: "argument 1 is empty or a comment"},
	} {
		var got []string
		app := &cli.App{In: strings.NewReader(tt.stdin), InTerminal: tt.terminal}
		code, _, stderr := runApp(t.Context(), app, func(app *cli.App, _ context.Context) error {
			lines, err := app.Lines(tt.args, tt.file, "type this")
			if err == nil {
				got, err = webdelivery.Collect(lines)
			}
			return err
		}, "do", "each")
		if code == cli.Done {
			assert.Equal(t, tt.want, strings.Join(got, "/"))
		} else {
			assert.Equal(t, cli.Misuse, code)
			assert.Contains(t, stderr, tt.want)
		}
	}
}

// Half a line that a failed read leaves is not a line: as a prefix it would purge more. An interruption ends a read.
func TestAFailedRead(t *testing.T) {
	t.Parallel()
	hangs, _ := io.Pipe()
	for want, in := range map[string]io.Reader{"broken": iotest.ErrReader(errors.New("broken")), "interrupted": hangs} {
		ctx, interrupt := context.WithCancelCause(t.Context())
		app := &cli.App{In: io.MultiReader(strings.NewReader("a\nb"), in)}
		code, stdout, stderr := runApp(ctx, app, func(app *cli.App, _ context.Context) error {
			lines, err := app.Lines(nil, "", "")
			require.NoError(t, err)
			return cli.Print(app, "csv", []string{"line"}, lines, func(line string) []string {
				if want == "interrupted" {
					interrupt(errors.New(want))
				}
				return []string{line}
			})
		}, "do", "each")
		assert.Equal(t, cli.Partly, code)
		assert.Equal(t, "line\na\n", stdout)
		assert.Equal(t, "webdelivery: line 2: "+want+"\n", stderr)
	}
}
