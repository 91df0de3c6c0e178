package batch

import "math/bits"

// A request that is refused says nothing of which items are refused. They are found by group testing (Hwang's generalized
// binary splitting): halves of a refused group are sent until one refused item stands alone, then groups of what is left,
// of a size in which about every second group has a refused one. k refused of n take about k*log2(n/k) + 2k requests.

// maxSplits bounds the requests for n items, as each takes a permit of everybody. It is enough to find 20 refused ones of
// 200; if there are more of them, the rest is given back to the callers.
func maxSplits(n int) int { return 1 + 16*bits.Len(uint(n)) }

// answer is what comes of one request.
type answer int

const (
	taken   answer = iota
	refused        // because of one of its items, at least
	lost           // any other error
)

// splitter finds the refused ones among items that are known by their numbers.
type splitter struct {
	left int                       // requests that may still be sent
	send func(from, to int) answer // sends the items from one number to before another
}

func (s *splitter) try(from, to int) answer {
	s.left--
	return s.send(from, to)
}

// split sends all of n items, the first time together. It returns the number of the first item of which it is not known
// what became of it: from there on all were refused together with others, or not sent. It is n if all are known.
func (s *splitter) split(n int) (known int) {
	size, found := n, 0
	for known < n && s.left > 0 {
		if 3*size > 2*(n-known) {
			size = n - known // a small rest is not worth a request of its own
		}
		if s.try(known, known+size) != refused {
			known += size
			size *= 2
			continue
		}
		known = s.find(known, known+size)
		if found++; found == 1 {
			size = n - known // most often there is one
		} else {
			size = max(1, known*7/10/found)
		}
	}
	return known
}

// find looks for the first refused one of a group that was refused. It returns up to where it is known what became of the
// items. If the first half of a group is taken, the refused one is in the other half, which need not be sent to know that.
func (s *splitter) find(at, end int) (known int) {
	alone := end-at == 1 // the last group that was refused is a single item
	for end-at > 1 && s.left > 0 {
		half := (end - at) / 2
		switch s.try(at, at+half) {
		case refused:
			end = at + half
			alone = half == 1
		case lost:
			return at + half
		case taken:
			at += half
			if end-at == 1 && s.left > 0 {
				s.try(at, end) // for its own words
				return end
			}
		}
	}
	if alone {
		return end
	}
	return at
}
