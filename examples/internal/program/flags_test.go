package program_test

import (
	"flag"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go/examples/internal/program"
	"github.com/webdelivery/webdelivery-go/examples/internal/program/programtest"
)

// Requested help goes to standard output: the package comment without its comment marks, the settings if the program
// uses them, and the flags.
func TestFlags(t *testing.T) {
	t.Parallel()
	const source = "// X does it.\n//\n//\tx -wait // at once\n//\n// Exit codes: 0 done.\npackage main\n\n// not this\npackage x\n"
	const begin, end = "X does it.\n\n\tx -wait // at once\n\nExit codes: 0 done.\n\n", "Flags:\n  -version\n    \tprint the version and end\n  -wait it\n    \twait for it\n"
	for want, create := range map[string]func(name, source string, s program.Streams) *flag.FlagSet{
		begin + program.Settings + "\n\n" + end: program.Flags, begin + end: program.FlagsAlone,
	} {
		code, stdout, stderr := programtest.Run("x", program.Streams{}, func(s program.Streams) error {
			set := create("x", source, s)
			set.Bool("wait", false, "wait for `it`")
			return program.ParseAlone(set, []string{"-h"})
		})
		assert.Equal(t, program.Done, code)
		assert.Equal(t, want, stdout)
		assert.Empty(t, stderr)
	}
}

// The version is one line on standard output: the name of the program, what the go command wrote into it, and the platform.
func TestVersion(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := programtest.Run("x", program.Streams{}, func(s program.Streams) error {
		return program.ParseAlone(program.FlagsAlone("x", "", s), []string{"-version"})
	})
	assert.Equal(t, program.Done, code)
	assert.Regexp(t, `^x v\d+\.\d+\.\d+\S*, go1\.\S+( \S+)*, `+runtime.GOOS+"/"+runtime.GOARCH+`\n$`, stdout)
	assert.Empty(t, stderr)
}

// A wrong flag is one line. A program without arguments reports one in the same way.
func TestAWrongFlag(t *testing.T) {
	t.Parallel()
	for reason, args := range map[string][]string{
		"flag provided but not defined: -waait":                                               {"-waait"},
		`invalid value "x" for flag -count: parse error`:                                      {"-count", "x"},
		"flag needs an argument: -count":                                                      {"-count"},
		`invalid boolean value "no!" for -wait: parse error`:                                  {"-wait=no!"},
		"invalid value \"7x\" for flag -since: want a duration such as 30m, 12h, 7d or 1d12h": {"-since", "7x"},
		"-wait comes after an argument: put flags first":                                      {"a", "-wait"},
		`unexpected argument "a": all settings are flags`:                                     {"a", "-"},
	} {
		code, stdout, stderr := programtest.Run("x", program.Streams{}, func(s program.Streams) error {
			set := program.FlagsAlone("x", "// X does it.\npackage main\n", s)
			set.Bool("wait", false, "wait for `it`")
			set.Int("count", 0, "a `number`")
			set.Var(new(program.Duration), "since", "a `duration`")
			return program.ParseAlone(set, args)
		})
		assert.Equal(t, program.Misuse, code)
		assert.Empty(t, stdout)
		assert.Equal(t, "x: "+reason+"; -h shows all flags\n", stderr)
	}
}
