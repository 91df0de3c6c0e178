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

// maxLine is the longest line that is read, in bytes. A longer one is not input that people mean to give.
const maxLine = 1 << 20

// Lines yields the lines of a text without the space around them. It skips blank lines and lines that begin with #. If
// the text cannot be read, or the context ends, Lines yields the error and ends. It yields an incomplete last line only
// at the end of the text. The text of a pipe also ends if its writer is killed, which a reader cannot see.
func Lines(ctx context.Context, in io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		source := &failing{Reader: reading(ctx, in)}
		scanner := bufio.NewScanner(source)
		scanner.Buffer(nil, maxLine)
		scanner.Split(func(text []byte, last bool) (int, []byte, error) {
			if last && source.failed && bytes.IndexByte(text, '\n') < 0 {
				return len(text), nil, nil // half a line: a purge by prefix would take it for a short one
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

// failing remembers that a read has failed.
type failing struct {
	io.Reader
	failed bool
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	f.failed = err != nil && !errors.Is(err, io.EOF)
	return n, err
}
