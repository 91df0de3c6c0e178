package main

import (
	"cmp"
	"runtime"
	"slices"
	"time"
)

// The machine has few cores, shared with other programs, so a time alone means nothing. Compared subjects are measured
// in turns, round by round. The result is the median of the rounds' ratios.

// clock returns the time since some moment. Only the difference of two times means something.
type clock func() time.Duration

var started = time.Now()

func wallTime() time.Duration { return time.Since(started) }

// subject is one operation to measure. It checks its own result.
type subject func() error

// measured is the cost of one operation of a subject.
type measured struct {
	rounds []time.Duration // in the order of the rounds
	allocs float64
	bytes  float64
}

func (m measured) time() time.Duration { return median(m.rounds) }

// ratio returns the cost of m divided by that of other.
func (m measured) ratio(other measured) float64 {
	ratios := make([]float64, len(m.rounds))
	for i := range ratios {
		ratios[i] = float64(m.rounds[i]) / float64(other.rounds[i])
	}
	return median(ratios)
}

// minus returns the additional cost of m over other.
func (m measured) minus(other measured) measured {
	rest := measured{allocs: m.allocs - other.allocs, bytes: m.bytes - other.bytes}
	for i := range m.rounds {
		rest.rounds = append(rest.rounds, m.rounds[i]-other.rounds[i])
	}
	return rest
}

func median[T cmp.Ordered](all []T) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// interleave measures the wall time of subjects in turns. It chooses the number of operations of a round.
func (o options) interleave(subjects ...subject) ([]measured, error) {
	n := make([]int, len(subjects))
	for i, s := range subjects {
		var err error
		if n[i], err = o.calibrate(s); err != nil {
			return nil, err
		}
	}
	return inTurns(o.rounds, n, wallTime, subjects)
}

// inTurns measures subjects in turns. Each round begins with another subject. n has the number of operations of a round
// for each subject.
func inTurns(rounds int, n []int, now clock, subjects []subject) ([]measured, error) {
	results := make([]measured, len(subjects))
	allocs, bytes := make([][]float64, len(subjects)), make([][]float64, len(subjects))
	for round := range rounds {
		for k := range subjects {
			i := (round + k) % len(subjects)
			one, err := measure(subjects[i], n[i], now)
			if err != nil {
				return nil, err
			}
			results[i].rounds = append(results[i].rounds, one.rounds...)
			allocs[i], bytes[i] = append(allocs[i], one.allocs), append(bytes[i], one.bytes)
		}
	}
	for i := range results {
		results[i].allocs, results[i].bytes = median(allocs[i]), median(bytes[i])
	}
	return results, nil
}

// calibrate returns the number of operations of a round. The first operation warms up.
func (o options) calibrate(s subject) (n int, err error) {
	if err := s(); err != nil {
		return 0, err
	}
	for n = 1; ; n *= 2 {
		one, err := measure(s, n, wallTime)
		if err != nil {
			return 0, err
		}
		if took := one.rounds[0]; took*time.Duration(n) >= o.round/4 {
			return max(1, int(o.round/max(1, took))), nil
		}
	}
}

// measure runs one round of n operations. It first collects the garbage of earlier rounds.
func measure(s subject, n int, now clock) (measured, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := now()
	for range n {
		if err := s(); err != nil {
			return measured{}, err
		}
	}
	took := now() - began
	runtime.ReadMemStats(&after)
	return measured{
		rounds: []time.Duration{took / time.Duration(n)},
		allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}, nil
}
