package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
)

// reader reads until the context ends: a pipe whose writer hangs must not keep a command after ^C. A read that waits at
// that moment goes on in the background.
func reader(ctx context.Context, in io.Reader) io.Reader {
	own := make([]byte, 32<<10) // a read in the background must not write into the caller's buffer
	type result struct {
		n   int
		err error
	}
	return readFunc(func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		done := make(chan result, 1)
		go func() {
			n, err := in.Read(own[:min(len(p), len(own))])
			done <- result{n, err}
		}()
		select {
		case r := <-done:
			return copy(p, own[:r.n]), r.err
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	})
}

type readFunc func([]byte) (int, error)

// Read calls the function.
func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// Open opens a file that the user names; - is standard input. If it cannot be opened, that is wrong usage.
func (a *App) Open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.In), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, Misused("%w", err)
	}
	return file, nil
}

// Lines yields the arguments or, without any, the lines of the named file or of standard input, without the space around
// them. It skips blank lines and lines that begin with #. If there is no input, because standard input is a terminal, it
// returns wrong usage with the text missing, which says what to type.
func (a *App) Lines(args []string, file, missing string) (iter.Seq2[string, error], error) {
	switch {
	case len(args) > 0 && file != "":
		return nil, Misused("there are arguments and --file: give only one of them")
	case len(args) > 0:
		return arguments(args)
	case file == "" && a.InTerminal:
		return nil, Misused("%s", missing)
	case file == "":
		file = "-"
	}
	in, err := a.Open(file)
	if err != nil {
		return nil, err
	}
	return func(yield func(string, error) bool) {
		defer in.Close()
		lines(in, yield)
	}, nil
}

// arguments refuses an empty one, which nobody means.
func arguments(args []string) (iter.Seq2[string, error], error) {
	for i, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return nil, Misused("argument %d is empty: set the variable that it comes from, or remove it", i+1)
		}
	}
	return func(yield func(string, error) bool) {
		for _, arg := range args {
			if !yield(strings.TrimSpace(arg), nil) { // $(cat FILE) leaves space if the file comes from another system
				return
			}
		}
	}, nil
}

// maxLine is the longest line that is read, in bytes. A longer one is not input that people mean to give.
const maxLine = 1 << 20

// lines yields a last line without an end only at the end of the text: half a line that a failed read leaves could be
// the name of something else.
func lines(in io.Reader, yield func(string, error) bool) {
	failed := false
	scanner := bufio.NewScanner(readFunc(func(p []byte) (int, error) {
		n, err := in.Read(p)
		failed = err != nil && !errors.Is(err, io.EOF)
		return n, err
	}))
	scanner.Buffer(nil, maxLine)
	scanner.Split(func(text []byte, last bool) (int, []byte, error) {
		if last && failed && bytes.IndexByte(text, '\n') < 0 {
			return len(text), nil, nil
		}
		return bufio.ScanLines(text, last)
	})
	number := 1
	for ; scanner.Scan(); number++ {
		line := scanner.Text()
		if number == 1 {
			line = strings.TrimPrefix(line, "\ufeff") // the byte order mark of some editors
		}
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' && !yield(line, nil) {
			return
		}
	}
	if err := scanner.Err(); err != nil {
		yield("", fmt.Errorf("line %d: %w", number, err))
	}
}

// Confirm asks a question on a terminal, and returns an error unless the answer is yes. Without a terminal, --yes must
// have been given.
func (a *App) Confirm(yes bool, question string) error {
	switch {
	case yes:
		return nil
	case !a.InTerminal || !a.ErrTerminal:
		return Misused("%s Add --yes to answer yes without a terminal", question)
	}
	fmt.Fprint(a.Err, question+" [y/N] ")
	answer, _ := bufio.NewReader(a.In).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}
