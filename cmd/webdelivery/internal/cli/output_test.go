package cli_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/cmd/webdelivery/internal/cli"
)

// Records have the same content in every format. After an error, those before it are printed.
func TestPrint(t *testing.T) {
	t.Parallel()
	type item struct {
		ID string `json:"id"`
	}
	broken := errors.New("broken")
	for format, want := range map[string]string{
		"table":  "ID     COLOUR\na\\x1b  <red>\nlong   \"x\", y\n",
		"json":   "[\n  {\n    \"id\": \"a\\u001b\"\n  },\n  {\n    \"id\": \"long\"\n  }\n]\n",
		"ndjson": "{\"id\":\"a\\u001b\"}\n{\"id\":\"long\"}\n",
		"csv":    "id,colour\na\x1b,<red>\nlong,\"\"\"x\"\", y\"\n",
	} {
		for _, end := range []error{nil, broken} {
			var out bytes.Buffer
			app := &cli.App{Out: &out}
			err := app.Print(format, []string{"id", "colour"}, func(yield func(cli.Record, error) bool) {
				_ = yield(cli.Record{Value: item{"a\x1b"}, Cells: []string{"a\x1b", "<red>"}}, nil) &&
					yield(cli.Record{Value: item{"long"}, Cells: []string{"long", `"x", y`}}, nil) &&
					end != nil && yield(cli.Record{}, end)
			})
			require.ErrorIs(t, err, end)
			assert.Equal(t, want, out.String())
		}
	}
}

// An empty list is [] in JSON, and a header in a table and in CSV.
func TestPrintNothing(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"table": "ID\n", "json": "[]\n", "ndjson": "", "csv": "id\n"} {
		var out bytes.Buffer
		require.NoError(t, (&cli.App{Out: &out}).Print(format, []string{"id"}, func(func(cli.Record, error) bool) {}))
		assert.Equal(t, want, out.String())
	}
}

// On a terminal, the widest column is cut, so that no line is wider. In a pipe, nothing is cut.
func TestATableFits(t *testing.T) {
	t.Parallel()
	for terminal, want := range map[bool]string{
		true:  "A    B             C\nyes  xxxxxxxxxxx…  no\n",
		false: "A    B                     C\nyes  xxxxxxxxxxxxxxxxxxxx  no\n",
	} {
		var out bytes.Buffer
		app := &cli.App{Out: &out, OutTerminal: terminal, Width: 21}
		require.NoError(t, app.Print("table", []string{"a", "b", "c"}, func(yield func(cli.Record, error) bool) {
			yield(cli.Record{Cells: []string{"yes", strings.Repeat("x", 20), "no"}}, nil)
		}))
		assert.Equal(t, want, out.String())
	}
}

// A text of the service cannot move the cursor, change colours or turn the text beside it.
func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Zürich 東京 🙂": "Zürich 東京 🙂", "a\tb\n": `a\tb\n`, "\x1b[31m": `\x1b[31m`, "\u202egnp": `\u202egnp`, "a\xff": `a\ufffd`, "it's": "it's", "'\x07'": `'\a'`,
	} {
		assert.Equal(t, want, cli.Printable(text))
	}
}

// Progress is shown on a terminal only, within its width.
func TestShow(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	app := &cli.App{Err: &out}
	app.Show(cli.Bar(50))
	assert.Empty(t, out.String())
	app.ErrTerminal, app.Width = true, 20
	app.Show(cli.Bar(50))
	assert.Equal(t, "\r[###############...\x1b[K", out.String())
	assert.Equal(t, "["+strings.Repeat(".", 30)+"]   0 %", cli.Bar(-1))
	assert.Equal(t, "["+strings.Repeat("#", 30)+"] 100 %", cli.Bar(101))
}

// A file is replaced when it is complete, and only its owner can read it. A device or a link is not replaced.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, link := filepath.Join(dir, "report"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o600))
	require.NoError(t, cli.WriteFile(name, []byte("new")))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, "new", string(text))
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, os.Symlink(name, link))
	require.ErrorContains(t, cli.WriteFile(link, nil), "is not a regular file")
	require.EqualError(t, cli.WriteFile(filepath.Join(dir, "no", "report"), nil), filepath.Join(dir, "no", "report")+" cannot be written: no such file or directory")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 2)
}
