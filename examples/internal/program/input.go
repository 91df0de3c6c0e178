package program

import (
	"io"
	"os"
	"strings"
)

// Input is what a program reads lines from: its arguments, else the named file, else standard input, for which it does
// not wait on a terminal. Close closes the file alone.
func Input(s Streams, file string, args []string) (io.ReadCloser, error) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			return nil, Misused("%s comes too late: flags come first", arg)
		}
	}
	switch {
	case len(args) > 0 && file != "":
		return nil, Misused("there are arguments and a file: one of them, please")
	case len(args) > 0:
		return io.NopCloser(strings.NewReader(strings.Join(args, "\n"))), nil
	case file != "":
		in, err := os.Open(file) //nolint:gosec // the file that the user names
		if err != nil {
			return nil, Misused("%w", err)
		}
		return in, nil
	case s.InTerminal:
		return nil, Misused("nothing is given: name it, or give a file, or pipe it in; -h tells more")
	default:
		return io.NopCloser(s.In), nil
	}
}
