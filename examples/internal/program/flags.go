package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/webdelivery/webdelivery-go"
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
	told := set.Bool("version", false, "print the version and end")
	set.Usage = func() {
		if *told {
			fmt.Fprintln(s.Out, name, version())
			return
		}
		comment, _, _ := strings.Cut("\n"+source, "\npackage ")
		text := strings.NewReplacer("\n// ", "\n", "\n//", "\n").Replace(comment)
		fmt.Fprintf(s.Out, "%s%s\n\nFlags:\n", strings.TrimSpace(text), settings)
		set.SetOutput(s.Out)
		set.PrintDefaults()
	}
	return set
}

// version is what the go command wrote into the program: the tag of its module, or the commit. Where it wrote none, as for
// go run, version is that of the SDK.
func version() string {
	text := "v" + webdelivery.Version
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		text = info.Main.Version
	}
	return fmt.Sprintf("%s, %s, %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Parse reads flags. What -h and -version ask for goes to standard output. If a flag is wrong or comes after an argument,
// Parse returns a Misused error of one line.
func Parse(set *flag.FlagSet, args []string) error {
	set.SetOutput(io.Discard) // package flag would print the reason and the whole help
	help := set.Usage
	set.Usage = func() {}
	err := set.Parse(args)
	set.Usage = help
	for _, arg := range set.Args() {
		if arg = strings.TrimSpace(arg); err == nil && len(arg) > 1 && arg[0] == '-' { // - alone is standard input
			err = fmt.Errorf("%s comes after an argument: put flags first", arg)
		}
	}
	switch {
	case errors.Is(err, flag.ErrHelp), err == nil && IsSet(set, "version"):
		help()
		return flag.ErrHelp
	case err != nil:
		return wrong(err)
	default:
		return nil
	}
}

// ParseAlone is Parse for a program without arguments: one is reported like a wrong flag.
func ParseAlone(set *flag.FlagSet, args []string) error {
	err := Parse(set, args)
	if err == nil && set.NArg() > 0 {
		return wrong(fmt.Errorf("unexpected argument %q: all settings are flags", set.Arg(0)))
	}
	return err
}

func wrong(reason error) error { return Misused("%w; -h shows all flags", reason) }

// IsSet reports whether a flag was given.
func IsSet(set *flag.FlagSet, name string) (given bool) {
	set.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}
