package program_test

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
)

// The help is the package comment without its comment marks, the settings if the program uses them, and the flags.
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

// An argument of a program that takes none is reported as a wrong flag is.
func TestAnUnexpectedArgument(t *testing.T) {
	t.Parallel()
	code, _, stderr := programtest.Run("x", program.Streams{}, func(s program.Streams) error {
		return program.ParseAlone(program.FlagsAlone("x", "// X does it.\npackage main\n", s), []string{"today"})
	})
	assert.Equal(t, program.Misuse, code)
	const line = "x: unexpected argument \"today\": all settings are flags\n"
	assert.Equal(t, line+"\nX does it.\n\nFlags:\n\n"+line, stderr)
	assert.NoError(t, program.ParseAlone(program.FlagsAlone("x", "", program.Streams{}), nil))
}

// The reason why a flag is wrong is the first line and the last. The help is between them.
func TestAWrongFlag(t *testing.T) {
	t.Parallel()
	for reason, args := range map[string][]string{
		"flag provided but not defined: -waait":                                               {"-waait"},
		`invalid value "x" for flag -count: parse error`:                                      {"-count", "x"},
		"flag needs an argument: -count":                                                      {"-count"},
		`invalid boolean value "no!" for -wait: parse error`:                                  {"-wait=no!"},
		"invalid value \"7x\" for flag -since: want a duration such as 30m, 12h, 7d or 1d12h": {"-since", "7x"},
	} {
		code, stdout, stderr := programtest.Run("x", program.Streams{}, func(s program.Streams) error {
			set := program.FlagsAlone("x", "// X does it.\npackage main\n", s)
			set.Bool("wait", false, "wait for `it`")
			set.Int("count", 0, "a `number`")
			set.Var(new(program.Duration), "since", "a `duration`")
			return program.Parse(set, args)
		})
		assert.Equal(t, program.Misuse, code)
		assert.Empty(t, stdout)
		line := "x: " + reason + "\n"
		assert.True(t, strings.HasPrefix(stderr, line+"\nX does it.\n"), stderr)
		assert.True(t, strings.HasSuffix(stderr, "\n\n"+line), stderr)
		assert.Equal(t, 2, strings.Count(stderr, line))
	}
}
