package batch

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/outcomes"
)

// The service refuses a URI because the user may not purge its domain, or because there is no configuration for its
// path (service document, section 7). So refusals usually come by host, and the queue remembers which hosts were
// refused: callers of other hosts need not wait until they are found again.
const (
	several    = 5                // so many URIs refused alone, and none ever accepted, mean that the host is refused
	refusedFor = 10 * time.Minute // how long a refusal is remembered
	lately     = 10 * time.Second // how long the other URIs of the host fail without being sent
	maxHosts   = 10_000           // if there are more, one of them is forgotten
)

// host is what the queue knows about a host. The URIs without a host count as one more host, with the name "".
type host struct {
	accepted  bool      // the service has accepted a URI
	refused   []URI     // alone, since one was accepted; at most several
	until     time.Time // when the last refusal is forgotten
	undecided error     // of its other URIs, if it is refused as a whole
	search    *bool     // whether the search that finds out if the host is refused is over; nil if there is none
}

// whole reports whether the host is refused as a whole. One that the service has accepted before may have some refused
// paths, which others purge again and again, so only a search can tell.
func (h host) whole() bool { return !h.accepted && len(h.refused) >= several }

// lane is a way to a permit.
type lane int

const (
	ahead  lane = iota // no host is likely to be refused
	apart              // a host may be refused
	search             // a refused request is finding out whether a host is refused: its parts get the permits, and callers wait
	none
)

type hosts struct {
	known    map[string]host
	accepted bool      // the service has accepted a URI of any host
	wary     time.Time // until then, unknown hosts travel apart, because the service has refused one
}

// of returns what is known about a host.
func (hs *hosts) of(name string) host {
	h := hs.known[name]
	if !time.Now().Before(h.until) {
		h.refused, h.until, h.undecided = nil, time.Time{}, nil
	}
	if h.search != nil && *h.search {
		h.search = nil
	}
	return h
}

func (hs *hosts) set(name string, h host) {
	if _, known := hs.known[name]; !known && len(hs.known) >= maxHosts {
		for any := range hs.known {
			delete(hs.known, any)
			break
		}
	}
	hs.known[name] = h
}

// failures returns the failures of a caller whose hosts were all refused as a whole, lately; none otherwise.
func (hs *hosts) failures(c *caller) (failures []Failure) {
	for _, name := range c.hosts {
		if h := hs.of(name); !h.whole() || time.Until(h.until) <= refusedFor-lately {
			return nil
		}
	}
	for _, uri := range c.uris {
		failures = append(failures, Failure{URI: uri, Err: hs.of(uri.Host).undecided, Outcome: outcomes.NotApplied})
	}
	return failures
}

// lane returns the lane of a caller with these hosts.
func (hs *hosts) lane(names []string) (l lane) {
	for _, name := range names {
		switch h := hs.of(name); {
		case h.search != nil:
			return search
		case !h.until.IsZero(), !h.accepted && hs.accepted && time.Now().Before(hs.wary):
			l = apart
		}
	}
	return l
}

// hostsOf returns the hosts of URIs, in the order of their first URIs.
func hostsOf(uris []URI) (names []string) {
	seen := map[string]bool{}
	for _, uri := range uris {
		if !seen[uri.Host] {
			seen[uri.Host], names = true, append(names, uri.Host)
		}
	}
	return names
}

// divide divides URIs by host: those that can be sent together, and those of hosts that were refused. The first ones, sure
// of them, are of hosts that the service has accepted before. After these comes the largest host, and then the others in
// the order of their first URIs.
func (hs *hosts) divide(uris []URI) (together [][]URI, sure int, refused [][]URI) {
	groups := map[string][]URI{}
	for _, uri := range uris {
		groups[uri.Host] = append(groups[uri.Host], uri)
	}
	for _, name := range hostsOf(uris) {
		switch h := hs.of(name); {
		case len(h.refused) > 0 && !h.accepted:
			// In any order, so that a good one has its chance; those that were refused come last.
			uris := groups[name]
			rand.Shuffle(len(uris), func(i, j int) { uris[i], uris[j] = uris[j], uris[i] })
			slices.SortStableFunc(uris, func(a, b URI) int { return slices.Index(h.refused, a) - slices.Index(h.refused, b) })
			refused = append(refused, uris)
		case h.accepted:
			together = slices.Insert(together, sure, groups[name])
			sure++
		default:
			together = append(together, groups[name])
		}
	}
	largest := sure
	for i := largest; i < len(together); i++ {
		if len(together[i]) > len(together[largest]) {
			largest = i
		}
	}
	if largest > sure {
		together = slices.Insert(slices.Delete(slices.Clone(together), largest, largest+1), sure, together[largest])
	}
	return together, sure, refused
}
