package program

import (
	"flag"
	"fmt"
	"strings"
)

// Flags makes an empty set of flags. Its help is the package comment of the program, with which its source begins, and
// the Settings.
func Flags(name, source string, s Streams) *flag.FlagSet {
	return flags(name, source, "\n\n"+Settings, s)
}

// FlagsAlone are the Flags of a program that heeds none of the Settings.
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
