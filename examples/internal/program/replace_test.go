package program_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// A complete file replaces the old one, and only its owner can read it. A failure leaves no temporary file.
func TestReplace(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	name := filepath.Join(folder, "report")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o600))
	require.NoError(t, os.Chmod(name, 0o644)) // whatever the umask is
	content := func() string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}

	broken := errors.New("broken stream")
	err := program.Replace(name, func(out io.Writer) error {
		_, err := io.WriteString(out, "half")
		return errors.Join(err, broken)
	})
	require.ErrorIs(t, err, broken)
	assert.Equal(t, "old", content())

	write := func(out io.Writer) error {
		_, err := io.WriteString(out, "new")
		assert.Equal(t, "old", content(), "until the new one is whole")
		return err
	}
	require.NoError(t, program.Replace(name, write))
	assert.Equal(t, "new", content())
	there, err := os.Lstat(name)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), there.Mode())

	none := filepath.Join(folder, "none", "report")
	var told bytes.Buffer
	assert.Equal(t, program.Failed, program.Code("x", &told, program.Replace(none, write)))
	assert.Equal(t, "x: "+none+" cannot be written: no such file or directory\nx: name a file in a folder that exists and that you may write to\n", told.String())

	taken := filepath.Join(folder, "taken")
	require.NoError(t, os.MkdirAll(filepath.Join(taken, "file"), 0o700))
	err = program.Replace(taken, func(io.Writer) error { return nil })
	require.ErrorContains(t, err, taken+" cannot be written: ")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "report and taken")
}

// A name is special if it exists and is no regular file.
func TestSpecial(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, link, dangling := filepath.Join(folder, "file"), filepath.Join(folder, "link"), filepath.Join(folder, "dangling")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, os.Symlink(filepath.Join(folder, "nothing"), dangling))
	for name, want := range map[string]bool{folder: true, link: true, dangling: true, file: false, file + "x": false, "": false} {
		assert.Equal(t, want, program.Special(name), name)
	}
}
