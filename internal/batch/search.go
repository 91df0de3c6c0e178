package batch

import (
	"math/bits"
	"slices"
)

// The response to a refused request does not say which URIs are refused. Usually they are those of a host, so the queue
// first searches for refused hosts, and then for refused URIs of these. Both times it uses group testing (Hwang's
// generalized binary splitting): it halves a refused group until one refused item is left, and then sends groups of the
// remaining items, of a size at which about every second group contains a refused item. Finding k refused items among n
// takes about k*log2(n/k) + 2k requests.

// maxRequests returns the maximum number of requests for n URIs, because each one takes a permit from other callers. It
// is enough to find 20 refused URIs of one host. The URIs that are left fail.
func maxRequests(n int) int { return 1 + 20*bits.Len(uint(n)) }

// searcher finds the refused URIs of a request.
type searcher struct {
	sender

	left int // requests that may still be sent
}

// sender is a request.
type sender interface {
	send(uris []URI) Response         // sends URIs in one request
	whole(host string) bool           // reports whether a host is refused as a whole
	undecided(uris []URI, whole bool) // ends URIs that were refused only together with others
}

func (s *searcher) try(uris [][]URI) Response {
	s.left--
	return s.send(slices.Concat(uris...))
}

// hosts sends the URIs of some hosts, and searches for the refused ones if they are refused together. It then first sends
// those of the first hosts, sure of them, which the service has accepted before, or else those of the first host.
func (s *searcher) hosts(groups [][]URI, sure int) {
	if sure == 0 || sure == len(groups) {
		sure = 1
	}
	var found [][]URI
	known := s.items(groups, len(groups), sure, false, func(uris []URI, alone bool) {
		if !alone || len(uris) > 1 {
			found = append(found, uris) // URIs of other hosts come first
		}
	})
	if known < len(groups) {
		s.undecided(slices.Concat(groups[known:]...), false)
	}
	for _, uris := range found {
		s.host(uris, true)
	}
}

// host searches for the refused URIs of a host; contains means that there is one. Until the service has accepted one, it
// sends single URIs from all over the list, to find out whether the host is refused as a whole.
func (s *searcher) host(uris []URI, contains bool) {
	name, items := uris[0].Host, slices.Collect(slices.Chunk(uris, 1))
	known, found, accepted := 0, 0, false
	for ; known < len(items) && s.left > 0 && !accepted && found < several && (known == 0 || !s.whole(name)); known++ {
		rest := items[known:]
		if known > 0 {
			other := (len(rest) - 1) / known // the last one, one in the middle ...
			rest[0], rest[other] = rest[other], rest[0]
		}
		got := s.try(rest[:1])
		if accepted = got.Err == nil; got.Refused {
			found++
		}
	}
	if accepted {
		size := len(items) - known
		if found > 1 {
			size = groupSize(known, found)
		}
		known += s.items(items[known:], size, 0, contains && found == 0, func(uri []URI, alone bool) {
			if !alone {
				s.try([][]URI{uri}) // to get the error for this URI
			}
		})
	}
	if known < len(items) {
		s.undecided(slices.Concat(items[known:]...), !accepted && (found >= several || s.whole(name)))
	}
}

// groupSize returns the number of items of which about every second group contains a refused one, if found of known items
// are refused.
func groupSize(known, found int) int { return max(1, known*7/10/found) }

// items searches for refused items, each of which is some URIs, and begins with groups of size items. The results of the
// items before known are final. first is the size of the first part of the first refused group, or 0 for half of it.
// contains means that an item is refused. found is called for each refused item; alone means that it was sent by itself.
func (s *searcher) items(items [][]URI, size, first int, contains bool, found func(item []URI, alone bool)) (known int) {
	for count := 0; known < len(items) && s.left > 0; {
		if contains || 3*size > 2*(len(items)-known) {
			size = len(items) - known // a small rest is not worth an extra request
		}
		if !contains && !s.try(items[known:known+size]).Refused {
			known += size
			size *= 2
			continue
		}
		known = s.find(items, known, known+size, first, !contains, found)
		contains, first = false, 0
		if count++; count == 1 {
			size = len(items) - known // usually there is only one refused item
		} else {
			size = groupSize(known, count)
		}
	}
	return known
}

// find searches a refused group, the items from number at to number end, for its first refused item. If the first part
// of a group is accepted, a refused item must be in the rest, so find does not send that as a whole. sent means that the
// group itself was sent.
func (s *searcher) find(items [][]URI, at, end, first int, sent bool, found func(item []URI, alone bool)) (known int) {
	for ; end-at > 1 && s.left > 0; first = 0 {
		part := first
		if part == 0 {
			part = (end - at) / 2
		}
		switch got := s.try(items[at : at+part]); {
		case got.Refused:
			end, sent = at+part, true
		case got.Err != nil:
			return at + part
		default:
			at, sent = at+part, false
		}
	}
	if end-at > 1 || !sent && s.left == 0 {
		return at
	}
	found(items[at], sent)
	return end
}
