// Command bench measures the SDK against references in the same run. It prints the results beside the goals of
// docs/performance.md. In this folder, with GOWORK=off:
//
//	go run .                                        # everything but other SDKs
//	go run . -only 'rows|get'                       # a part of it
//	go run . -markdown ../docs/performance.md       # also writes the tables of the page
//	go run . -only rows -seed 7                     # rows with other values
//	go run -tags peers .                            # other SDKs beside this one, and nothing else
//	go run . -profile rows                          # a CPU profile of an area; -profile '' prints the areas
//	go run . -allocs allocs.txt -check              # the guard on allocations; -write commits new values
//
// A missed goal does not change the exit code, because times vary. The exit code is 1 if a measurement fails, or if the
// guard finds more allocations than the committed numbers.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	if role := os.Getenv(childRole); role != "" {
		exit(beChild(role, os.Stdin, os.Stdout))
	}
	o := defaults()
	var allocs string
	var check, write bool
	var area *string
	only := flag.String("only", "", "measure only the topics that match this regular expression. The topics are "+topicNames())
	flag.IntVar(&o.rounds, "rounds", o.rounds, "rounds per figure; the tables show their median")
	flag.Uint64Var(&o.seed, "seed", o.seed, "seed of the rows; another seed makes rows with other values")
	flag.Func("profile", "only write the CPU profile of this area to AREA.prof in this folder; '' prints the areas", func(name string) error {
		area = &name
		return nil
	})
	flag.StringVar(&o.markdown, "markdown", "", "also write the tables between the markers of this file")
	flag.StringVar(&allocs, "allocs", "", "only count allocations; this `file` has the committed numbers; requires -check or -write")
	flag.BoolVar(&check, "check", false, "with -allocs: fail if a number has grown")
	flag.BoolVar(&write, "write", false, "with -allocs: write the file")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		misused("there are only flags, and %q is none", flag.Arg(0))
	case o.rounds < 1:
		misused("-rounds %d is below 1", o.rounds)
	case check && write || (check || write) != (allocs != ""):
		misused("-allocs takes either -check or -write, and these two take -allocs")
	case area != nil:
		exit(profile(os.Stdout, ".", *area, o))
	case write:
		exit(writeAllocs(allocs, guarded))
	case check:
		exit(checkAllocs(os.Stdout, allocs, guarded))
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		exit(err)
	}
	exit(run(os.Stdout, o))
}

// misused says what is wrong with the command line, and ends the program.
func misused(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"; -help lists the flags\n", args...)
	os.Exit(2)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options are what to measure, and how much.
type options struct {
	rounds   int
	seed     uint64        // of the rows
	round    time.Duration // intended duration of a round of one subject
	only     *regexp.Regexp
	markdown string
	profiled time.Duration // of a profile
	sizes    sizes
}

// sizes are the sizes of the measurements.
type sizes struct {
	rows, manyRows int           // of a response; of a second one that must not need more memory
	uris           int           // in one purge
	callers, alone int           // of the queue; number of single purges, from which the time for all callers is extrapolated
	entries        int           // of a list, and desired entries
	slow           time.Duration // delay of each response when pages are read ahead
	calls          int           // small GET requests, one after the other
	requests       int           // of 64 goroutines
	coldBuild      bool
	growth         growthSizes
	sharing        sharingSizes
}

// sharingSizes are how many URIs so many goroutines purge, with how many per call.
type sharingSizes struct {
	uris, goroutines int
	perCall          []int
}

type growthSizes struct{ rows, entries, tasks, uris, callers, goroutines []int }

func defaults() options {
	return options{
		rounds: 9, seed: 1, round: 100 * time.Millisecond, profiled: 5 * time.Second, only: regexp.MustCompile(""),
		sizes: sizes{
			rows: 1_000_000, manyRows: 4_000_000, uris: 100_000, callers: 10_000, alone: 20, entries: 50_000,
			slow: 50 * time.Millisecond, calls: 20_000, requests: 10_000, coldBuild: true,
			growth: growthSizes{
				rows: []int{10_000, 100_000, 1_000_000}, entries: []int{1_000, 10_000, 50_000},
				tasks: []int{1_000, 10_000, 100_000}, uris: []int{1_000, 10_000, 100_000},
				callers: []int{1_000, 10_000, 100_000}, goroutines: []int{1, 16, 256},
			},
			sharing: sharingSizes{uris: 20_000, goroutines: 200, perCall: []int{1, 10, 100}},
		},
	}
}

// bench is one run.
type bench struct {
	options

	url                                   string // of the server in its own process
	goals, byShape, queues, peers, growth *table
}

// topic is a measurement.
type topic struct {
	name    string
	measure func(*bench) error
}

// topics are the measurements, in their order. With the build tag peers, there is only that of the other SDKs. More code
// in a program changes where the compiler places the rest, and that alone changes times by up to a third.
var topics = []topic{
	{"rows", (*bench).rows},
	{"memory", (*bench).memory},
	{"get", (*bench).get},
	{"connections", (*bench).connections},
	{"purge", (*bench).purge},
	{"queue", (*bench).queue},
	{"sharing", (*bench).sharing},
	{"plan", (*bench).plan},
	{"ahead", (*bench).ahead},
	{"weight", (*bench).weight},
	{"growth", (*bench).growing},
}

func topicNames() string {
	names := make([]string, 0, len(topics))
	for _, t := range topics {
		names = append(names, t.name)
	}
	return strings.Join(names, ", ")
}

var (
	errMarkdownOfSome = errors.New("-markdown writes whole tables; remove -only")
	errNoTopic        = errors.New("-only matches no topic")
)

// run measures and prints the tables.
func run(out io.Writer, o options) error {
	if o.markdown != "" && o.only.String() != "" {
		return errMarkdownOfSome
	}
	if !slices.ContainsFunc(topics, func(t topic) bool { return o.only.MatchString(t.name) }) {
		return fmt.Errorf("%w; the topics are %s", errNoTopic, topicNames())
	}
	url, stop, err := startServer()
	if err != nil {
		return err
	}
	defer stop()
	b := &bench{options: o, url: url, goals: goalTable(), byShape: rowsTable(), queues: sharingTable(), growth: growthTable(), peers: peerTable()}
	if err := b.measure(); err != nil {
		return err
	}
	return b.show(out)
}

func (b *bench) measure() error {
	o := b.options
	for _, t := range topics {
		if !o.only.MatchString(t.name) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", t.name)
		if err := t.measure(b); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

func (b *bench) show(out io.Writer) error {
	o := b.options
	machine := fmt.Sprintf("%s, %s/%s, %d CPUs (%s), %d rounds, rows of seed %d.",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpuModel(), o.rounds, o.seed)
	fmt.Fprintln(out, machine)
	for _, t := range []*table{b.byShape, b.goals, b.queues, b.peers, b.growth} {
		if len(t.lines) == 0 {
			continue
		}
		if err := t.print(out); err != nil {
			return err
		}
		if o.markdown != "" {
			if err := t.insert(o.markdown, machine); err != nil {
				return err
			}
		}
	}
	return nil
}

// cpuModel returns the name that Linux gives the processor.
func cpuModel() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, model, found := strings.Cut(string(info), "model name")
	if !found {
		return "unknown"
	}
	model, _, _ = strings.Cut(model, "\n")
	return strings.Trim(model, "\t :")
}
