package program

import (
	"flag"
	"fmt"
	"strings"
)

// Flags makes an empty set of flags. Its help is the package comment of the program, with which its source begins.
func Flags(name, source string, s Streams) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(s.Err)
	set.Usage = func() {
		comment, _, _ := strings.Cut("\n"+source, "\npackage ")
		text := strings.NewReplacer("\n// ", "\n", "\n//", "\n").Replace(comment)
		fmt.Fprintf(s.Err, "%s\n\n%s\n\nFlags:\n", strings.TrimSpace(text), Settings)
		set.PrintDefaults()
	}
	return set
}
