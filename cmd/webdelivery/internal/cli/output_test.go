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

// Items have the same content in every format. After an error, those before it are printed. Without any, there is a
// header or [], and only after an error nothing. A row with one empty cell is a row. In a table, a text of the service
// cannot move the cursor, change colours or turn the text beside it.
func TestPrint(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		format, header string
		items          []string // their cells have commas between them
		want           string
	}{
		{"table", "id colour", []string{"a\x1b,<red>", "long,"}, "ID     COLOUR\na\\x1b  <red>\nlong\n"},
		{"csv", "id colour", []string{`a "b",<red>`, ","}, "id,colour\n\"a \"\"b\"\"\",<red>\n,\n"},
		{"json", "id colour", []string{"a\x1b,<red>", "b"}, "[\n  \"a\\u001b,<red>\",\n  \"b\"\n]\n"},
		{"ndjson", "id colour", []string{"a\x1b,<red>", "b"}, "\"a\\u001b,<red>\"\n\"b\"\n"},
		{"csv", "id", []string{"a", "", "b"}, "id\na\n\"\"\nb\n"},
		{"table", "id", []string{"Zürich 東京 🙂 a\tb\x1b[31m\u202egnp\xff it's"}, "ID\nZürich 東京 🙂 a\\tb\\x1b[31m\\u202egnp\\ufffd it's\n"},
		{"table", "id", nil, "ID\n"},
		{"json", "id", nil, "[]\n"},
		{"csv", "id", nil, "id\n"},
	} {
		for _, end := range []error{nil, errors.New("broken")} {
			var out bytes.Buffer
			all := func(yield func(string, error) bool) {
				cli.All(tt.items)(yield)
				_ = end != nil && yield("", end)
			}
			cells := func(item string) []string { return strings.Split(item, ",") }
			require.ErrorIs(t, cli.Print(&cli.App{Out: &out}, tt.format, strings.Fields(tt.header), all, cells), end)
			if end != nil && tt.items == nil {
				tt.want = ""
			}
			assert.Equal(t, tt.want, out.String())
		}
	}
}

// On a terminal, texts are cut, the longest first, so that no line is wider; ids, addresses and times are not. In a pipe,
// nothing is cut.
func TestATableFits(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		0:  "A                     B                   C             D\n2026-11-20T08:00:00Z  a very long reason  not so short  no\n",
		50: "A                     B            C            D\n2026-11-20T08:00:00Z  a very lon…  not so sho…  no\n",
		20: "A                     B         C         D\n2026-11-20T08:00:00Z  a very …  not so …  no\n",
	} {
		var out bytes.Buffer
		app := &cli.App{Out: &out, OutTerminal: width > 0, Width: max(width, 1)}
		row := []string{"2026-11-20T08:00:00Z", "a very long reason", "not so short", "no"}
		require.NoError(t, cli.Print(app, "table", []string{"a", "b", "c", "d"}, cli.All([]int{0}), func(int) []string { return row }))
		assert.Equal(t, want, out.String())
	}
}

// Progress is shown on a terminal, within its width.
func TestShow(t *testing.T) {
	t.Parallel()
	for percent, want := range map[int]string{-1: "[..................", 50: "[###############...", 200: "[##################"} {
		var out bytes.Buffer
		(&cli.App{Err: &out, ErrTerminal: true, Width: 20}).Show(cli.Bar(percent))
		assert.Equal(t, "\r"+want+"\x1b[K", out.String())
	}
}

// A file is replaced when it is complete, and only its owner can read it. A device or a link is not replaced.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, link := filepath.Join(dir, "report"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o644))
	require.NoError(t, cli.WriteFile(name, []byte("new")))
	text, _ := os.ReadFile(name)
	assert.Equal(t, "new", string(text))
	require.NoError(t, os.Symlink(name, link))
	info, err := os.Stat(link)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.ErrorContains(t, cli.WriteFile(link, nil), "is not a regular file")
	missing := filepath.Join(dir, "no", "report")
	require.EqualError(t, cli.WriteFile(missing, nil), missing+" cannot be written: no such file or directory")
	files, _ := os.ReadDir(dir)
	assert.Len(t, files, 2)
}
