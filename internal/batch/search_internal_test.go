package batch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// searched is a search for a service that refuses some URIs. It records the requests and what becomes of each URI.
type searched struct {
	hosts   []int        // number of URIs of each host; they are numbered from 0
	sure    int          // so many hosts were accepted before
	refused map[int]bool // URIs
	lost    map[int]bool // requests, by their number from 1
	most    int          // number of requests

	requests []string
	outcomes map[string]string // by URI
	together map[string]bool   // URIs of refused requests
	alone    map[string]int    // URIs of a host that were refused alone in a row
}

func (s *searched) run() *searched {
	s.outcomes, s.together, s.alone = map[string]string{}, map[string]bool{}, map[string]int{}
	var groups [][]URI
	next := 0
	for h, n := range s.hosts {
		var uris []URI
		for range n {
			uris = append(uris, URI{Host: fmt.Sprint("host", h), Pattern: fmt.Sprint(next)})
			next++
		}
		groups = append(groups, uris)
	}
	(&searcher{s, s.most}).hosts(groups, s.sure)
	return s
}

func (s *searched) send(uris []URI) (got Response) {
	var patterns []string
	for _, uri := range uris {
		patterns = append(patterns, uri.Pattern)
		if s.isRefused(uri.Pattern) {
			got = Response{Refused: true, Err: errors.New("refused")}
		}
	}
	s.requests = append(s.requests, strings.Join(patterns, " "))
	outcome := "accepted"
	if got.Refused {
		outcome = "refused"
	}
	if s.lost[len(s.requests)] {
		got, outcome = Response{Err: errors.New("lost")}, "lost"
	}
	for _, uri := range uris {
		if got.Refused && len(uris) > 1 {
			s.together[uri.Pattern] = true
			continue
		}
		s.outcomes[uri.Pattern] = outcome
		switch outcome {
		case "accepted":
			s.alone[uri.Host] = 0
		case "refused":
			s.alone[uri.Host]++
		}
	}
	return got
}

func (s *searched) whole(host string) bool { return s.alone[host] >= several }

// undecided appends to the outcome, so that a URI with two outcomes is seen.
func (s *searched) undecided(uris []URI, whole bool) {
	for _, uri := range uris {
		s.outcomes[uri.Pattern] += fmt.Sprint("undecided ", whole)
	}
}

func (s *searched) isRefused(pattern string) bool {
	var n int
	_, _ = fmt.Sscan(pattern, &n)
	return s.refused[n]
}

func numbers(list ...int) map[int]bool {
	set := map[int]bool{}
	for _, n := range list {
		set[n] = true
	}
	return set
}

// from returns the numbers from first on.
func from(first, count int) map[int]bool {
	set := map[int]bool{}
	for n := range count {
		set[first+n] = true
	}
	return set
}

func TestSearch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		searched
		requests string // the URIs of each
	}{
		{"nothing is refused", searched{hosts: []int{4}, most: 9}, "0 1 2 3"},
		{"one alone", searched{hosts: []int{1}, refused: numbers(0), most: 9}, "0"},
		{"the last of two is sent for its own error", searched{hosts: []int{2}, refused: numbers(1), most: 9}, "0 1,0,1"},
		{"both of two", searched{hosts: []int{2}, refused: numbers(0, 1), most: 9}, "0 1,0,1"},
		{"one of eight", searched{hosts: []int{8}, refused: numbers(2), most: 9}, "0 1 2 3 4 5 6 7,0,1 2 3,1,2,3 4 5 6 7"},
		{"a part that must contain it is not sent whole", searched{hosts: []int{8}, refused: numbers(6), most: 9}, "0 1 2 3 4 5 6 7,0,1 2 3,4 5,6,7"},
		{"single URIs from all over the list until one is accepted", searched{hosts: []int{8}, refused: numbers(0, 7, 4), most: 9}, "0 1 2 3 4 5 6 7,0,7,4,2,3,5 6,1"},
		{"a refused host of one URI", searched{hosts: []int{4, 1}, refused: numbers(4), most: 9}, "0 1 2 3 4,0 1 2 3,4"},
		{"a refused host", searched{hosts: []int{2, 9}, refused: from(2, 9), most: 9}, "0 1 2 3 4 5 6 7 8 9 10,0 1,2,10,7,6,4"},
		{"the first host is refused", searched{hosts: []int{8, 1}, refused: from(0, 8), most: 9}, "0 1 2 3 4 5 6 7 8,0 1 2 3 4 5 6 7,8,0,7,4,2,3"},
		{"the accepted hosts come first", searched{hosts: []int{1, 2, 2}, sure: 2, refused: numbers(3, 4), most: 9}, "0 1 2 3 4,0 1 2,3,4"},
		{"a lost request says nothing of the others", searched{hosts: []int{4}, lost: numbers(2), refused: numbers(1), most: 9}, "0 1 2 3,0,3,2,1"},
		{"all is lost", searched{hosts: []int{4}, lost: numbers(1), most: 9}, "0 1 2 3"},
		{"no more requests", searched{hosts: []int{4}, refused: numbers(3), most: 2}, "0 1 2 3,0"},
	} {
		assert.Equal(t, c.requests, strings.Join(c.run().requests, ","), c.name)
	}
}

// Whatever is refused and lost, each URI has one outcome, which is that of its own last request. Undecided URIs were in a
// refused request, and either their host is refused as a whole, or no request was left.
func TestSearchAnything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, n := &searched{refused: map[int]bool{}, lost: map[int]bool{}}, 0
		for range 1 + r.IntN(6) {
			more := 1 + r.IntN(20)
			if s.hosts = append(s.hosts, more); r.IntN(3) == 0 {
				for i := range more {
					s.refused[n+i] = true
				}
			}
			n += more
		}
		s.sure, s.most = r.IntN(len(s.hosts)+1), maxRequests(n)
		if seed%3 == 0 {
			s.most = 1 + r.IntN(20)
		}
		if seed%4 == 0 {
			s.lost[1+r.IntN(5)] = true
		}
		for range r.IntN(10) {
			s.refused[r.IntN(n)] = true
		}
		s.run()
		assert.LessOrEqual(t, len(s.requests), s.most, "seed %d", seed)
		for i := range n {
			switch outcome := s.outcomes[fmt.Sprint(i)]; {
			case outcome == "undecided true":
				assert.True(t, s.together[fmt.Sprint(i)], "seed %d, URI %d", seed, i)
			case outcome == "undecided false":
				assert.True(t, s.together[fmt.Sprint(i)], "seed %d, URI %d", seed, i)
				assert.Len(t, s.requests, s.most, "seed %d stops too soon", seed)
			case outcome == "lost":
				assert.NotEmpty(t, s.lost, "seed %d, URI %d", seed, i)
			case s.refused[i]:
				assert.Equal(t, "refused", outcome, "seed %d, URI %d", seed, i)
			default:
				assert.Equal(t, "accepted", outcome, "seed %d, URI %d", seed, i)
			}
		}
	}
}

// The bound is enough for 20 refused URIs of a host, in any order: each good one is accepted.
func TestSearchIsLongEnough(t *testing.T) {
	t.Parallel()
	for _, n := range []int{200, 1000, 10_000} {
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, 2))
			s := (&searched{hosts: []int{n}, refused: numbers(r.Perm(n)[:20]...), most: maxRequests(n)}).run()
			for uri, outcome := range s.outcomes {
				assert.True(t, outcome == "accepted" || s.isRefused(uri), "seed %d: %s of %d is %s", seed, uri, n, outcome)
			}
		}
	}
	assert.Equal(t, []int{21, 41, 161, 281}, []int{maxRequests(1), maxRequests(2), maxRequests(200), maxRequests(10_000)})
}
