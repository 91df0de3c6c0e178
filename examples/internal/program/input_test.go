package program_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// Arguments come before standard input, and so does a file; nobody waits for a terminal.
func TestInput(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "lines")
	require.NoError(t, os.WriteFile(file, []byte("of the file"), 0o600))
	tests := []struct {
		name, file    string
		args          []string
		terminal      bool
		want, refused string
	}{
		{name: "arguments", args: []string{"a b", "c"}, want: "a b\nc"},
		{name: "arguments on a terminal", args: []string{"a"}, terminal: true, want: "a"},
		{name: "file", file: file, want: "of the file"},
		{name: "standard input", want: "of a pipe"},
		{name: "terminal", terminal: true, refused: "pipe it in"},
		{name: "arguments and a file", file: file, args: []string{"a"}, refused: "one of them"},
		{name: "no such file", file: file + ".txt", refused: "no such file"},
		{name: "flag after an argument", args: []string{"a", "-wait"}, refused: "-wait comes too late"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in, err := program.Input(program.Streams{In: strings.NewReader("of a pipe"), InTerminal: tt.terminal}, tt.file, tt.args)
			if tt.refused != "" {
				require.ErrorContains(t, err, tt.refused)
				assert.Equal(t, program.Misuse, program.Code("x", io.Discard, err))
				return
			}
			require.NoError(t, err)
			got, err := io.ReadAll(in)
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(got))
			require.NoError(t, in.Close())
		})
	}
}
