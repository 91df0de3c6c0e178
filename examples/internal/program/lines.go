package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// maxLine is the longest line that is read, in bytes: what is longer is not what people meant to give.
const maxLine = 1 << 20

// Lines gives the lines of a text without the space around them. Blank lines and those that begin with # are passed over.
// What cannot be read is an error at the end, and so is the cause of a context that ends first. Half a line is given only
// where the text ends there: that of a pipe also ends when its writer is killed, which nobody can tell from its end.
func Lines(ctx context.Context, in io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		source := &failing{Reader: reading(ctx, in)}
		scanner := bufio.NewScanner(source)
		scanner.Buffer(nil, maxLine)
		scanner.Split(func(text []byte, last bool) (int, []byte, error) {
			if last && source.failed && bytes.IndexByte(text, '\n') < 0 {
				return len(text), nil, nil // half a line, which a purge by prefix would take for a short one
			}
			return bufio.ScanLines(text, last)
		})
		number := 1
		for ; scanner.Scan(); number++ {
			line := scanner.Text()
			if number == 1 {
				line = strings.TrimPrefix(line, "\ufeff") // the mark that editors of some systems put first
			}
			line = strings.TrimSpace(line)
			switch {
			case ctx.Err() != nil:
				yield("", context.Cause(ctx))
				return
			case line == "" || line[0] == '#':
			case !yield(line, nil):
				return
			}
		}
		switch err := scanner.Err(); {
		case err != nil && ctx.Err() != nil:
			yield("", context.Cause(ctx))
		case err != nil:
			yield("", fmt.Errorf("line %d: %w", number, err))
		}
	}
}

// failing remembers that a text ended before its end.
type failing struct {
	io.Reader
	failed bool
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	f.failed = err != nil && !errors.Is(err, io.EOF)
	return n, err //nolint:wrapcheck // a reader gives the errors of its source
}
