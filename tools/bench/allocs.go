package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/webdelivery/webdelivery-go"
)

// The guard on allocations. Unlike times, allocations are the same in every run and on every machine, so a check can
// fail on them. It shows one more allocation per call, row or URI in the change that adds it.

// counted is a subject whose number of allocations is committed.
type counted struct {
	name  string
	runs  int // number of runs; the result is their average, rounded down
	slack int // a growth up to this number passes
	make  func() (subject, error)
}

// readAheadSlack exists because the scheduling of the goroutines that fetch pages decides what they find in pools.
const readAheadSlack = 100

var guarded = []counted{
	{"Scan of 1,000 short rows", 50, 0, func() (subject, error) { return scanning(shapes[0], 1_000) }},
	{"Scan of 10,000 short rows", 10, 0, func() (subject, error) { return scanning(shapes[0], 10_000) }},
	{"Scan of 10,000 mixed rows", 10, 0, func() (subject, error) { return scanning(shapes[1], 10_000) }},
	{"Scan of 1,000 long rows", 10, 0, func() (subject, error) { return scanning(shapes[2], 1_000) }},
	{"Query of 1,000 rows", 50, 0, func() (subject, error) { return querying(1_000) }},
	{"Tasks.Get", 200, 0, func() (subject, error) {
		return calling(taskBody, func(c *webdelivery.Client) error {
			_, err := c.Tasks.Get(context.Background(), "task-1")
			return err
		})
	}},
	{"Submit of 1 URI", 200, 0, func() (subject, error) { return submitting(purgeOf(1)) }},
	{"Submit of 1,000 URIs", 50, 0, func() (subject, error) { return submitting(purgeOf(1_000)) }},
	{"Entries: a page of 100", 50, 0, func() (subject, error) {
		page := string(entryPage(addresses(100), 0, 100, 1, 1))
		return calling(page, func(c *webdelivery.Client) error {
			_, err := c.NetworkLists.Entries(context.Background(), listID, webdelivery.EntryOptions{Count: 100})
			return err
		})
	}},
	{"Plan of 2,000 against 2,000 entries", 5, readAheadSlack, func() (subject, error) {
		plan, _, err := planning(2_000)
		return plan, err
	}},
}

func scanning(s *shape, n int) (subject, error) {
	client, err := alwaysResponding(s.body(1, n))
	return all(n, func() (int, error) { return s.scan(client) }), err
}

func querying(n int) (subject, error) {
	client, err := alwaysResponding(shapes[0].body(1, n))
	return all(n, func() (int, error) { return queryAll(client) }), err
}

func calling(body string, do func(*webdelivery.Client) error) (subject, error) {
	client, err := alwaysResponding([]byte(body))
	return func() error { return do(client) }, err
}

// batches is the number of batches, of which the lowest result counts, because the runtime itself allocates now and
// then.
const batches = 5

// countAllocs counts the allocations of one operation. It uses one processor and no garbage collector, because a
// collection empties pools.
func (c counted) countAllocs() (least int, took time.Duration, err error) {
	s, err := c.make()
	if err != nil {
		return 0, 0, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if err := s(); err != nil {
		return 0, 0, err
	}
	for batch := range batches {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		for range c.runs {
			if err := s(); err != nil {
				return 0, 0, err
			}
		}
		took = time.Since(began) / time.Duration(c.runs)
		runtime.ReadMemStats(&after)
		if n := int(after.Mallocs-before.Mallocs) / c.runs; batch == 0 || n < least { //nolint:gosec // far from overflowing
			least = n
		}
	}
	return least, took, nil
}

const allocsHead = "# Allocations of one operation. make bench-allocs fails when one grows; make bench-allocs ALLOCS=-write,\n" +
	"# writes what they are now.\n"

// writeAllocs writes the current numbers to the file.
func writeAllocs(path string, guarded []counted) error {
	text := allocsHead
	for _, c := range guarded {
		n, _, err := c.countAllocs()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		text += fmt.Sprintf("%s\t%d\n", c.name, n)
	}
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // a committed file that everyone may read
}

var errGrown = errors.New("allocations have grown. If the growth is intended, run 'make bench-allocs ALLOCS=-write', " +
	"commit the file, and say why in the commit")

// checkAllocs compares the current numbers with the committed ones. It also prints times, only for information.
func checkAllocs(out io.Writer, path string, guarded []counted) error {
	committed, err := readAllocs(path)
	if err != nil {
		return err
	}
	var grown []error
	for _, c := range guarded {
		was, ok := committed[c.name]
		if !ok {
			return fmt.Errorf("%s lacks %q", path, c.name)
		}
		n, took, err := c.countAllocs()
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(out, "%s: %d allocations, %d committed; %s\n", c.name, n, was, inTime(took))
		if n > was+c.slack {
			grown = append(grown, fmt.Errorf("%s: %d allocations, %d more than the %d committed", c.name, n, n-was, was))
		}
	}
	if grown != nil {
		return errors.Join(append(grown, errGrown)...)
	}
	return nil
}

func readAllocs(path string) (map[string]int, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the file that -allocs names
	if err != nil {
		return nil, err
	}
	committed := map[string]int{}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		name, number, ok := strings.Cut(lines.Text(), "\t")
		if strings.HasPrefix(name, "#") {
			continue
		}
		var n int
		if _, err := fmt.Sscan(number, &n); !ok || err != nil {
			return nil, fmt.Errorf("%s: %q is not a name, a tab and a number", path, lines.Text())
		}
		committed[name] = n
	}
	return committed, lines.Err()
}
