// Command mutation measures how much of the SDK's code its tests check. It changes one thing at a time, and counts the
// changes that no test notices. The score of a file is the share of noticed changes.
//
//	go run ./mutation -dir ../internal/transport call.go send.go  # every mutant of these files
//	go run ./mutation -dir .. -sample 40 -seed 7 plan.go apply.go # a sample, always the same for one seed
//
// One test binary contains all mutants, and an environment variable selects the active one. So nothing is compiled
// twice, and the working tree does not change (go build -overlay). A first round runs each test alone and records the
// mutants that it reaches. Then only those tests run with a mutant, because the others cannot notice it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", ".", "directory of the package")
	flag.IntVar(&o.workers, "workers", 2, "mutants to test at a time")
	flag.IntVar(&o.sample, "sample", 0, "mutants per file; 0 means all")
	flag.Uint64Var(&o.seed, "seed", 1, "seed that selects the sample")
	flag.Float64Var(&o.least, "min", 85, "minimum score of each file, in percent")
	flag.Parse()
	if err := run(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

type options struct {
	dir             string
	workers, sample int
	seed            uint64
	least           float64
}

// errWeak means that the score of a file is below the minimum.
var errWeak = errors.New("the score is too low")

func run(o options, files []string) error {
	if len(files) == 0 {
		return errors.New("name the files to mutate, for example: -dir .. plan.go apply.go")
	}
	work, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	mutants, err := instrument(o.dir, work, files)
	if err != nil {
		return err
	}
	tests, err := build(o.dir, work)
	if err != nil {
		return err
	}
	if err := tests.record(o.workers, mutants); err != nil {
		return err
	}
	chosen := choose(mutants, o.sample, o.seed)
	tests.judge(o.workers, chosen)
	return report(files, chosen, o.least)
}

// instrument writes the changed files, the file with the switches, and the overlay that replaces the originals.
func instrument(dir, work string, files []string) ([]*mutant, error) {
	sources, err := load(dir, files)
	if err != nil {
		return nil, err
	}
	var mutants []*mutant
	replace := map[string]string{}
	put := func(name string, text []byte) error {
		path := filepath.Join(work, name)
		replace[filepath.Join(sources[0].dir, name)] = path
		return os.WriteFile(path, text, 0o600)
	}
	for _, s := range sources {
		text := s.mutate(&mutants)
		if err := put(s.name, text); err != nil {
			return nil, err
		}
	}
	helpers := bytes.Replace(switches, []byte("package p"), []byte("package "+sources[0].pkg), 1)
	helpers = bytes.Replace(helpers, []byte("[1]"), fmt.Appendf(nil, "[%d]", len(mutants)+1), 1)
	if err := put("mutation_switches.go", helpers); err != nil {
		return nil, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	return mutants, os.WriteFile(filepath.Join(work, "overlay.json"), overlay, 0o600)
}

// choose returns a sample of each file, always the same for the same seed.
func choose(mutants []*mutant, size int, seed uint64) []*mutant {
	if size == 0 {
		return mutants
	}
	byFile := map[string][]*mutant{}
	for _, m := range mutants {
		byFile[m.file] = append(byFile[m.file], m)
	}
	var chosen []*mutant
	for _, ms := range byFile {
		r := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // a sample is no secret
		r.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
		chosen = append(chosen, ms[:min(size, len(ms))]...)
	}
	slices.SortFunc(chosen, func(a, b *mutant) int { return a.id - b.id })
	return chosen
}

// report prints the surviving mutants and the score of each file.
func report(files []string, mutants []*mutant, least float64) error {
	var weak bool
	for _, m := range mutants {
		if m.fate == survived || m.fate == unreached {
			fmt.Printf("%s:%d:%d: %s: %s\n", m.file, m.line, m.column, m.fate, m.change)
		}
	}
	fmt.Printf("\n%-18s %8s %8s %8s %10s %10s %8s\n", "file", "mutants", "killed", "hung", "survived", "unreached", "score")
	for _, file := range files {
		count := map[fate]int{}
		for _, m := range mutants {
			if m.file == file {
				count[m.fate]++
			}
		}
		noticed := count[killed] + count[hung]
		total := noticed + count[survived] + count[unreached]
		score := 100.0
		if total > 0 {
			score = 100 * float64(noticed) / float64(total)
		}
		weak = weak || score < least
		fmt.Printf("%-18s %8d %8d %8d %10d %10d %7.1f%%\n",
			file, total, count[killed], count[hung], count[survived], count[unreached], score)
	}
	if weak {
		return fmt.Errorf("%w: each file needs at least %.0f %%", errWeak, least)
	}
	return nil
}
