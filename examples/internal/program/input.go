package program

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
)

// Arguments returns the arguments after the flags, without the space around them: x $(cat FILE) leaves some if the file
// comes from another system. It refuses an empty one, which nobody means.
func Arguments(args []string) ([]string, error) {
	trimmed := make([]string, len(args))
	for i, arg := range args {
		if trimmed[i] = strings.TrimSpace(arg); trimmed[i] == "" {
			return nil, Misused("argument %d is empty: set the variable that it comes from, or remove it", i+1)
		}
	}
	return trimmed, nil
}

// Input is what a program works through: its arguments, the lines of the named file, or those of standard input. It
// does not wait for standard input on a terminal.
type Input struct {
	args []string
	text io.ReadCloser // nil if there are arguments
}

// NewInput returns the Input of a program. If there is none, because standard input is a terminal, it returns a Misused
// error with the text missing, which says what to type. If the context ends before the file is open, it returns its
// cause.
func NewInput(ctx context.Context, s Streams, file string, args []string, missing string) (*Input, error) {
	args, err := Arguments(args)
	switch {
	case err != nil:
		return nil, err
	case len(args) > 0 && file != "":
		return nil, Misused("there are arguments and -file: give only one of them")
	case len(args) > 0:
		return &Input{args: args}, nil
	case file != "":
		in, err := Open(ctx, file)
		return &Input{text: in}, err
	case s.InTerminal:
		return nil, Misused("%s", missing)
	default:
		return &Input{text: io.NopCloser(s.In)}, nil
	}
}

// all yields the arguments unchanged, or the Lines.
func (in *Input) all(ctx context.Context) iter.Seq2[string, error] {
	if in.text != nil {
		return Lines(ctx, in.text)
	}
	return func(yield func(string, error) bool) {
		for _, arg := range in.args {
			if !yield(arg, context.Cause(ctx)) {
				return
			}
		}
	}
}

// Each calls do for each argument or line, in at most that many goroutines, and returns when all calls have returned.
// The first error of do ends the reading. Each returns why it did not read everything. It closes the file, so call it
// once.
func (in *Input) Each(ctx context.Context, most int, do func(line string) error) (unread error) {
	if in.text != nil {
		defer in.text.Close()
	}
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var calls sync.WaitGroup
	places := make(chan struct{}, most)
	for line, err := range in.all(reading) {
		if err == nil {
			places <- struct{}{}
			err = context.Cause(reading) // a call may have failed meanwhile
		}
		if err != nil {
			unread = fmt.Errorf("not all was read: %w", err)
			break
		}
		calls.Go(func() {
			if err := do(line); err != nil {
				stop(err)
			}
			<-places
		})
	}
	calls.Wait()
	return unread
}
