package program

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
)

// maxLine is the longest line that is read, in bytes: what is longer is not what people meant to give.
const maxLine = 1 << 20

// Lines gives the lines of a text without the space around them. Blank lines and those that begin with # are passed over.
// What cannot be read is an error at the end, and so is the cause of a context that ends first.
//
// It reads in a goroutine of its own, because nothing interrupts the read of a pipe; one that waits for such a read is
// left behind.
func Lines(ctx context.Context, in io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		reading, stop := context.WithCancel(ctx)
		defer stop()
		lines, failed := make(chan string), error(nil)
		go func() {
			defer close(lines)
			failed = sendLines(reading, in, lines)
		}()
		for more := true; more; {
			var line string
			select {
			case <-ctx.Done():
			case line, more = <-lines:
			}
			switch {
			case more && ctx.Err() != nil:
				yield("", context.Cause(ctx))
				return
			case more:
				more = yield(line, nil)
			case failed != nil:
				yield("", failed)
			}
		}
	}
}

func sendLines(ctx context.Context, in io.Reader, lines chan<- string) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return scanner.Err()
}

// EachLine calls a function for each of the Lines, in so many goroutines at most, and returns when all have ended. The
// first error of the function ends the reading. What is returned is why not all lines were read.
func EachLine(ctx context.Context, in io.Reader, most int, do func(line string) error) (unread error) {
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var calls sync.WaitGroup
	places := make(chan struct{}, most)
	for line, err := range Lines(reading, in) {
		if err != nil {
			unread = fmt.Errorf("not all was read: %w", err)
			break
		}
		places <- struct{}{}
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
