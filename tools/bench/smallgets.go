package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Small GET requests are judged by their CPU time. Their wall time also depends on the server and on the other programs
// of the machine. A process knows only the CPU time of all that it does. So a child process makes the
// requests and does nothing else.

// perRound is the number of calls of a round. Each round has a few garbage collections, whose CPU time counts.
const perRound = 1000

// measuredGet is the cost of one way to make a small GET.
type measuredGet struct {
	Name   string          `json:"name"`
	Rounds []time.Duration `json:"rounds"`
	Allocs float64         `json:"allocs"`
	Bytes  float64         `json:"bytes"`
}

func (g measuredGet) cost() measured {
	return measured{rounds: g.Rounds, allocs: g.Allocs, bytes: g.Bytes}
}

// smallGets measures small GET requests in a child process. The first result is that of net/http, the second that of
// this SDK. With others, the results of the other SDKs follow.
func (b *bench) smallGets(others bool) ([]measuredGet, error) {
	cmd, err := child(context.Background(), fmt.Sprintf("get %s %d %t", b.url, b.sizes.calls, others))
	if err != nil {
		return nil, err
	}
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var results []measuredGet
	err = json.Unmarshal(out, &results)
	return results, err
}

// measureGets is the work of that process. The arguments are those of smallGets.
func measureGets(arguments string, out io.Writer) error {
	var url string
	var calls int
	var others bool
	if _, err := fmt.Sscan(arguments, &url, &calls, &others); err != nil {
		return err
	}
	names, subjects, err := getters(url, others)
	if err != nil {
		return err
	}
	each, n := min(perRound, calls), make([]int, len(subjects))
	for i, s := range subjects {
		n[i] = each
		if _, err := measure(s, each, cpuTime); err != nil { // warms up
			return err
		}
	}
	results, err := inTurns(calls/each, n, cpuTime, subjects)
	if err != nil {
		return err
	}
	named := make([]measuredGet, len(results))
	for i, m := range results {
		named[i] = measuredGet{names[i], m.rounds, m.allocs, m.bytes}
	}
	return json.NewEncoder(out).Encode(named)
}

// getters returns the ways to make a small GET: that of net/http first, then that of this SDK.
func getters(url string, others bool) (names []string, subjects []subject, err error) {
	all := []peer{
		{name: "net/http and encoding/json", client: func(url string) (subject, error) { return rawGet(netHTTP(), url), nil }},
		{name: "webdelivery-go", client: sdkGet},
	}
	if others {
		all = append(all, peers...)
	}
	for _, p := range all {
		get, err := p.client(url)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p.name, err)
		}
		names, subjects = append(names, p.name), append(subjects, get)
	}
	return names, subjects, nil
}

// get measures small GET requests over loopback, one after the other.
func (b *bench) get() error {
	results, err := b.smallGets(false)
	if err != nil {
		return err
	}
	raw, sdk := results[0].cost(), results[1].cost()
	r := sdk.ratio(raw)
	b.figure("Tasks.Get over loopback: CPU time of the client process, reference net/http with the same headers",
		inTime(sdk.time()), inTime(raw.time()), times(r), atMost(1.05, r, "times"))
	more := sdk.allocs - raw.allocs
	b.figure("Tasks.Get: allocations", fmt.Sprintf("%.1f", sdk.allocs), fmt.Sprintf("%.1f", raw.allocs),
		fmt.Sprintf("%+.1f", more), atMost(10, more, "more"))
	return nil
}
