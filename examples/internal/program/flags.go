package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// Flags creates an empty set of flags. Its help is the package comment at the beginning of the program's source,
// followed by the Settings.
func Flags(name, source string, s Streams) *flag.FlagSet {
	return flags(name, source, "\n\n"+Settings, s)
}

// FlagsAlone creates the Flags of a program that ignores the Settings.
func FlagsAlone(name, source string, s Streams) *flag.FlagSet { return flags(name, source, "", s) }

func flags(name, source, settings string, s Streams) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(s.Err)
	set.Usage = func() {
		comment, _, _ := strings.Cut("\n"+source, "\npackage ")
		text := strings.NewReplacer("\n// ", "\n", "\n//", "\n").Replace(comment)
		fmt.Fprintf(s.Err, "%s%s\n\nFlags:\n", strings.TrimSpace(text), settings)
		set.PrintDefaults()
	}
	return set
}

// Parse reads flags. If one is wrong, it prints the reason and then the help, and returns a Misused error with the same
// reason. Code prints that below the help, so the reason is on the screen, however long the help is.
func Parse(set *flag.FlagSet, args []string) error {
	out, help := set.Output(), set.Usage
	set.SetOutput(io.Discard) // package flag would print the reason above the help alone
	set.Usage = func() {}
	err := set.Parse(args)
	set.SetOutput(out)
	set.Usage = help
	switch {
	case errors.Is(err, flag.ErrHelp):
		help()
		return err
	case err != nil:
		return wrong(set, err)
	default:
		return nil
	}
}

// ParseAlone is Parse for a program without arguments: one is reported as a wrong flag is.
func ParseAlone(set *flag.FlagSet, args []string) error {
	err := Parse(set, args)
	if err == nil && set.NArg() > 0 {
		return wrong(set, fmt.Errorf("unexpected argument %q: all settings are flags", set.Arg(0)))
	}
	return err
}

// wrong prints the reason and the help, and returns a Misused error.
func wrong(set *flag.FlagSet, reason error) error {
	fmt.Fprintf(set.Output(), "%s: %v\n\n", set.Name(), reason)
	set.Usage()
	fmt.Fprintln(set.Output())
	return Misused("%w", reason)
}

// IsSet reports whether a flag was given.
func IsSet(set *flag.FlagSet, name string) (given bool) {
	set.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}
