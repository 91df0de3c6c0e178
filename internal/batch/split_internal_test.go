package batch

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// splitting splits a number of items for a service that refuses some of them, and records the requests.
type splitting struct {
	n       int
	refused map[int]bool
	lost    map[int]bool // lost requests, by their number from 1
	most    int          // largest number of requests

	sent  []string
	fates []string // the fate of each item
	known int
}

func (s *splitting) run() *splitting {
	s.fates = make([]string, s.n)
	sp := splitter{s.most, func(from, to int) answer {
		s.sent = append(s.sent, fmt.Sprintf("%d-%d", from, to))
		answer, word := taken, "taken"
		for i := from; i < to; i++ {
			if s.refused[i] {
				answer, word = refused, "refused"
			}
		}
		if s.lost[len(s.sent)] {
			answer, word = lost, "lost"
		}
		for i := from; i < to && (answer != refused || to-from == 1); i++ {
			s.fates[i] = word
		}
		return answer
	}}
	s.known = sp.split(s.n)
	return s
}

func numbers(list ...int) map[int]bool {
	set := map[int]bool{}
	for _, n := range list {
		set[n] = true
	}
	return set
}

// The sent requests: their first item and the one after their last.
func TestSplit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		splitting
		sent  []string
		known int
	}{
		{"nothing is refused", splitting{n: 8, most: 9}, []string{"0-8"}, 8},
		{"one alone", splitting{n: 1, refused: numbers(0), most: 9}, []string{"0-1"}, 1},
		{"the first of two", splitting{n: 2, refused: numbers(0), most: 9}, []string{"0-2", "0-1", "1-2"}, 2},
		{"the last of two is sent for its own words", splitting{n: 2, refused: numbers(1), most: 9}, []string{"0-2", "0-1", "1-2"}, 2},
		{"both", splitting{n: 2, refused: numbers(0, 1), most: 9}, []string{"0-2", "0-1", "1-2"}, 2},
		{"one of eight", splitting{n: 8, refused: numbers(2), most: 99}, []string{"0-8", "0-4", "0-2", "2-3", "3-8"}, 8},
		{"a half that must hold it is not sent whole", splitting{n: 8, refused: numbers(6), most: 99}, []string{"0-8", "0-4", "4-6", "6-7", "7-8"}, 8},
		{"the last", splitting{n: 8, refused: numbers(7), most: 99}, []string{"0-8", "0-4", "4-6", "6-7", "7-8"}, 8},
		{"many, so groups get smaller", splitting{n: 4, refused: numbers(0, 1, 2, 3), most: 99}, []string{"0-4", "0-2", "0-1", "1-4", "1-2", "2-3", "3-4"}, 4},
		{"a request that is lost says nothing of the others", splitting{n: 4, lost: numbers(2), refused: numbers(1), most: 99}, []string{"0-4", "0-2", "2-4"}, 4},
		{"all is lost", splitting{n: 4, lost: numbers(1), most: 99}, []string{"0-4"}, 4},
		{"no more requests: refused together", splitting{n: 4, refused: numbers(3), most: 1}, []string{"0-4"}, 0},
		{"no more requests: what was taken is known", splitting{n: 4, refused: numbers(3), most: 2}, []string{"0-4", "0-2"}, 2},
		{"no more requests: the last without words of its own", splitting{n: 4, refused: numbers(3), most: 3}, []string{"0-4", "0-2", "2-3"}, 3},
		{"no more requests: the last with words of its own", splitting{n: 4, refused: numbers(3), most: 4}, []string{"0-4", "0-2", "2-3", "3-4"}, 4},
		{"no more requests: one was found", splitting{n: 4, refused: numbers(0, 3), most: 3}, []string{"0-4", "0-2", "0-1"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.run()
			assert.Equal(t, c.sent, s.sent)
			assert.Equal(t, c.known, s.known)
		})
	}
}

// Whatever is refused and lost, four rules hold. Each item has the result of its own last request. Each refused item
// was sent alone. There are no more requests than allowed. From the item where split stops, no fate is known.
func TestSplitAnything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := &splitting{n: 1 + r.IntN(60), refused: map[int]bool{}, lost: map[int]bool{}}
		s.most = maxSplits(s.n)
		if seed%3 == 0 {
			s.most = 1 + r.IntN(20)
		}
		if seed%4 == 0 {
			s.lost[1+r.IntN(5)] = true
		}
		for range r.IntN(s.n + 1) {
			s.refused[r.IntN(s.n)] = true
		}
		s.run()
		assert.LessOrEqual(t, len(s.sent), s.most, "seed %d", seed)
		assert.True(t, s.known == s.n || len(s.sent) == s.most, "seed %d stops too soon", seed)
		for i, fate := range s.fates {
			switch {
			case i >= s.known:
				assert.Empty(t, fate, "seed %d, item %d", seed, i)
			case fate == "lost":
				assert.NotEmpty(t, s.lost, "seed %d, item %d", seed, i)
			case s.refused[i]:
				assert.Equal(t, "refused", fate, "seed %d, item %d", seed, i)
			default:
				assert.Equal(t, "taken", fate, "seed %d, item %d", seed, i)
			}
		}
	}
}

// The bound is enough for 20 refused items of 200, at any positions.
func TestSplitsAreEnough(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := &splitting{n: 200, refused: numbers(r.Perm(200)[:20]...), most: maxSplits(200)}
		assert.Equal(t, 200, s.run().known, "seed %d", seed)
	}
	assert.Equal(t, []int{17, 33, 129, 225}, []int{maxSplits(1), maxSplits(2), maxSplits(200), maxSplits(10_000)})
}
