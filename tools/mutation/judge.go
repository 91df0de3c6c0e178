package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// fate is the result for a mutant.
type fate string

const (
	killed    fate = "killed"    // a test failed
	hung      fate = "hung"      // a test did not end, or used all memory
	survived  fate = "survived"  // every test that reaches it passed
	unreached fate = "unreached" // no test reaches it
)

// suite is the test binary.
type suite struct {
	binary, dir, work string
	tests             []test
}

type test struct {
	name string
	took time.Duration
}

// build compiles the tests with all mutants, none of them active.
func build(dir, work string) (*suite, error) {
	s := &suite{binary: filepath.Join(work, "mutants.test"), dir: dir, work: work}
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(work, "overlay.json"), "-o", s.binary, ".") //nolint:gosec,noctx // our own
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	out, err := s.command(context.Background(), "", "-test.list=^(Test|Example|Fuzz)").Output()
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(string(out)) {
		s.tests = append(s.tests, test{name: name})
	}
	return s, nil
}

// command returns a command that runs the binary. Its memory is limited, because a mutant may use it without end.
func (s *suite) command(ctx context.Context, environment string, args ...string) *exec.Cmd {
	const kilobytes = 6 << 20
	script := fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, kilobytes)
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-c", script, s.binary}, args...)...) //nolint:gosec // our own
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "GOGC=400")
	cmd.Env = append(cmd.Env, strings.Fields(environment)...)
	cmd.WaitDelay = time.Second
	return cmd
}

// record runs each test alone. The test must pass; record stores its time and the mutants that it reaches.
func (s *suite) record(workers int, mutants []*mutant) error {
	reached := make([][]byte, len(s.tests))
	failed := make([]error, len(s.tests))
	each(workers, len(s.tests), func(i int) {
		notes := filepath.Join(s.work, "reached"+strconv.Itoa(i))
		if failed[i] = os.WriteFile(notes, nil, 0o600); failed[i] != nil {
			return
		}
		began := time.Now()
		cmd := s.command(context.Background(), "MUTANTS_REACHED="+notes, "-test.run="+pattern(s.tests[i].name), "-test.short", "-test.timeout=5m")
		out, err := cmd.CombinedOutput()
		if err != nil {
			failed[i] = fmt.Errorf("%s fails without a mutant: %w\n%s", s.tests[i].name, err, out)
			return
		}
		s.tests[i].took = time.Since(began)
		reached[i], failed[i] = os.ReadFile(notes) //nolint:gosec // our own
	})
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for i, notes := range reached {
		for _, id := range strings.Fields(string(notes)) {
			n, err := strconv.Atoi(id)
			if err != nil {
				return err
			}
			mutants[n-1].tests = append(mutants[n-1].tests, i)
		}
	}
	return nil
}

// A mutant first meets the quick tests that noticed others of its file, then all other quick tests, then the slower
// ones. The few tests that take as long as all others together come last. This order only shortens the search: a
// survivor has met all tests.
const (
	quick = 300 * time.Millisecond
	slow  = 3 * time.Second
	first = 12
)

// judge activates one mutant after the other, and runs the tests that reach it.
func (s *suite) judge(workers int, mutants []*mutant) {
	var mu sync.Mutex
	done, kills := 0, map[string]map[int]int{}
	each(workers, len(mutants), func(i int) {
		m := mutants[i]
		mu.Lock()
		rounds := s.rounds(m.tests, kills[m.file])
		mu.Unlock()
		m.fate = unreached
		var by []int
		for _, round := range rounds {
			if len(round) > 0 && m.fate != killed && m.fate != hung {
				m.fate, by = s.try(m, round)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for _, t := range by {
			if kills[m.file] == nil {
				kills[m.file] = map[int]int{}
			}
			kills[m.file][t]++
		}
		done++
		fmt.Fprintf(os.Stderr, "\r%d of %d ", done, len(mutants))
	})
	fmt.Fprintln(os.Stderr)
}

func (s *suite) rounds(tests []int, kills map[int]int) (rounds [4][]int) {
	sorted := slices.Clone(tests)
	slices.SortStableFunc(sorted, func(a, b int) int { return kills[b] - kills[a] })
	for i, t := range sorted {
		switch {
		case s.tests[t].took > slow:
			rounds[3] = append(rounds[3], t)
		case s.tests[t].took > quick:
			rounds[2] = append(rounds[2], t)
		case i < first && kills[t] > 0:
			rounds[0] = append(rounds[0], t)
		default:
			rounds[1] = append(rounds[1], t)
		}
	}
	return rounds
}

// try runs tests with an active mutant. It returns the fate of the mutant, and the tests that noticed it.
func (s *suite) try(m *mutant, tests []int) (fate, []int) {
	var names []string
	limit := 20 * time.Second
	for _, t := range tests {
		names = append(names, s.tests[t].name)
		limit += 4 * s.tests[t].took
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit+5*time.Second)
	defer cancel()
	out, err := s.command(ctx, "MUTANT="+strconv.Itoa(m.id),
		"-test.run="+pattern(names...), "-test.failfast", "-test.short", "-test.timeout="+limit.String()).CombinedOutput()
	switch {
	case err == nil:
		return survived, nil
	case ctx.Err() != nil, bytes.Contains(out, []byte("panic: test timed out")), bytes.Contains(out, []byte("out of memory")):
		return hung, nil
	default:
		return killed, slices.DeleteFunc(tests, func(t int) bool {
			return !bytes.Contains(out, []byte("--- FAIL: "+s.tests[t].name+" "))
		})
	}
}

func pattern(names ...string) string {
	for i, name := range names {
		names[i] = regexp.QuoteMeta(name)
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// each calls a function for 0 to n-1, some in parallel.
func each(workers, n int, do func(int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
