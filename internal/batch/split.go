package batch

import "math/bits"

// The response to a refused request does not say which items are refused. The queue finds them by group testing
// (Hwang's generalized binary splitting). It halves a refused group until one refused item is left. Then it sends
// groups of the remaining items, of a size at which about every second group contains a refused item. Finding k refused
// items among n takes about k*log2(n/k) + 2k requests.

// maxSplits returns the maximum number of requests for n items, because each one takes a permit from other callers. It
// is enough to find 20 refused items among 200. If there are more, the remaining items fail.
func maxSplits(n int) int { return 1 + 16*bits.Len(uint(n)) }

// answer is the result of one request.
type answer int

const (
	taken   answer = iota
	refused        // because of at least one of its items
	lost           // any other error
)

// splitter finds the refused items. Items are numbered from 0.
type splitter struct {
	left int                       // requests that may still be sent
	send func(from, to int) answer // sends the items from number from to number to, exclusive
}

func (s *splitter) try(from, to int) answer {
	s.left--
	return s.send(from, to)
}

// split sends n items, at first together. The results of the items before known are final. The others were only refused
// together with others, or not sent.
func (s *splitter) split(n int) (known int) {
	size, found := n, 0
	for known < n && s.left > 0 {
		if 3*size > 2*(n-known) {
			size = n - known // a small rest is not worth an extra request
		}
		if s.try(known, known+size) != refused {
			known += size
			size *= 2
			continue
		}
		known = s.find(known, known+size)
		if found++; found == 1 {
			size = n - known // usually there is only one refused item
		} else {
			size = max(1, known*7/10/found)
		}
	}
	return known
}

// find searches a refused group for its first refused item. The results of the items before known are final. If the
// first half of a group is accepted, a refused item must be in the other half, so find does not send that half as a
// whole.
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
				s.try(at, end) // to get the error for this item alone
				return end
			}
		}
	}
	if alone {
		return end
	}
	return at
}
