package program_test

import (
	"bytes"
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
)

// The help is the package comment as it would be read, the settings where it has any, and the flags.
func TestFlags(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	const source = "// X does it.\n//\n//\tx -wait // at once\n//\n// Exit codes: 0 done.\npackage main\n\n// not this\npackage x\n"
	set := program.Flags("x", source, program.Streams{Err: &told})
	set.Bool("wait", false, "wait for `it`")
	require.ErrorIs(t, program.Parse(set, []string{"-h"}), flag.ErrHelp)
	assert.Equal(t, "X does it.\n\n\tx -wait // at once\n\nExit codes: 0 done.\n\n"+program.Settings+"\n\nFlags:\n  -wait it\n    \twait for it\n", told.String())

	told.Reset()
	set = program.FlagsAlone("x", source, program.Streams{Err: &told})
	require.ErrorIs(t, program.Parse(set, []string{"-h"}), flag.ErrHelp)
	assert.Equal(t, "X does it.\n\n\tx -wait // at once\n\nExit codes: 0 done.\n\nFlags:\n", told.String())
}
