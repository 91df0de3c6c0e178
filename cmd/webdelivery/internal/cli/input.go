package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
)

// stdin begins to read standard input, until the context ends: a pipe whose writer hangs must not keep a command after ^C.
func (a *App) stdin() io.ReadCloser {
	out, in := io.Pipe()
	context.AfterFunc(a.ctx, func() { in.CloseWithError(context.Cause(a.ctx)) })
	go func() {
		_, err := io.Copy(in, a.In)
		in.CloseWithError(err)
	}()
	return out
}

// Open opens a file that the user names; - is standard input. If it cannot be opened, that is wrong usage.
func (a *App) Open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return a.stdin(), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, Misused("%w", err)
	}
	return file, nil
}

// ReadFile reads a file that the user names, as [App.Open] does.
func (a *App) ReadFile(name string) ([]byte, error) {
	in, err := a.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

// Lines yields the lines of the arguments or, without any, of the named file or of standard input. It skips blank lines,
// those that begin with #, and the space around a line. If it would read a terminal, it is wrong usage: type missing.
func (a *App) Lines(args []string, file, missing string) (iter.Seq2[string, error], error) {
	switch {
	case len(args) > 0 && file != "":
		return nil, Misused("there are arguments and --file: give only one of them")
	case len(args) == 0 && file == "" && a.InTerminal:
		return nil, Misused("%s", missing)
	}
	for i, arg := range args {
		if arg = strings.TrimSpace(arg); arg == "" || arg[0] == '#' {
			return nil, Misused("argument %d is empty or a comment: set the variable that it comes from, or remove it", i+1)
		}
	}
	var err error
	in := io.NopCloser(strings.NewReader(strings.Join(args, "\n")))
	if len(args) == 0 {
		in, err = a.Open(cmp.Or(file, "-"))
	}
	if err != nil {
		return nil, err
	}
	return func(yield func(string, error) bool) {
		defer in.Close()
		lines(in, yield)
	}, nil
}

func lines(in io.Reader, yield func(string, error) bool) {
	text := bufio.NewReader(in)
	for number := 1; ; number++ {
		line, err := text.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) { // half a line could be the name of something else
			yield("", fmt.Errorf("line %d: %w", number, err))
			return
		}
		if number == 1 {
			line = strings.TrimPrefix(line, "\ufeff") // the byte order mark of some editors
		}
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' && !yield(line, nil) || err != nil {
			return
		}
	}
}

// Confirm asks a question on a terminal, and fails unless the answer is yes. Elsewhere, --yes must have been given.
func (a *App) Confirm(yes bool, question string) error {
	switch {
	case yes:
		return nil
	case !a.InTerminal || !a.ErrTerminal:
		return Misused("%s Add --yes to answer yes without a terminal", question)
	}
	fmt.Fprint(a.Err, question+" [y/N] ")
	in := a.stdin()
	defer in.Close()
	answer, _ := bufio.NewReader(in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}
