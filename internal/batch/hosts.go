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
	refusedFor = 10 * time.Minute // how long a host is suspect of which the service has refused a URI
	lately     = 10 * time.Second // how long hosts not seen before are, and all URIs of a refused host fail without being sent
	maxHosts   = 10_000           // if there are more, all are forgotten
)

// host is what the queue knows about a host. The URIs without a host count as one more host, with the name "".
type host struct {
	accepted  bool      // the service has accepted a URI
	refused   []URI     // alone, until one was accepted; at most several
	last      time.Time // when a URI was last refused alone
	undecided error     // of its other URIs, if it is refused as a whole
}

// whole reports whether the host is refused as a whole.
func (h host) whole() bool { return len(h.refused) >= several && time.Since(h.last) < lately }

// hosts is what the queue knows about all hosts.
type hosts struct {
	known map[string]host
	wary  time.Time // until then, hosts that the service has not accepted before are suspect, because it has refused one
}

// suspect reports whether the service may refuse URIs of a host. These then travel apart from those of others.
func (hs *hosts) suspect(name string) bool {
	h := hs.known[name]
	return time.Since(h.last) < refusedFor || !h.accepted && time.Now().Before(hs.wary)
}

// learn records what a response says about the hosts of the URIs.
func (hs *hosts) learn(uris []URI, response Response, undecided func(host string, alone int) error) {
	for _, of := range byHost(uris) {
		name := of[0].Host
		h := hs.known[name]
		if response.Refused && !h.accepted {
			hs.wary = time.Now().Add(lately)
		}
		switch {
		case response.Err == nil:
			h.accepted, h.refused = true, nil
		case response.Refused && len(uris) == 1:
			if h.last = time.Now(); !h.accepted && len(h.refused) < several && !slices.Contains(h.refused, uris[0]) {
				h.refused = append(h.refused, uris[0])
			}
			h.undecided = undecided(name, len(h.refused))
		default:
			continue
		}
		if len(hs.known) >= maxHosts {
			clear(hs.known)
		}
		hs.known[name] = h
	}
}

// failures returns the failures of URIs whose hosts are all refused as a whole; none otherwise.
func (hs *hosts) failures(uris []URI) (failures []Failure) {
	for _, uri := range uris {
		h := hs.known[uri.Host]
		if !h.whole() {
			return nil
		}
		failures = append(failures, Failure{URI: uri, Err: h.undecided, Outcome: outcomes.NotApplied})
	}
	return failures
}

// divide divides URIs into those that are sent together: all, or if a request with them was refused, those of hosts that
// are not suspect and the others. Of a host that may be refused as a whole, one URI is sent alone.
func (hs *hosts) divide(uris []URI, all bool) (parts [][]URI) {
	var together, suspect []URI
	var doubtful [][]URI
	for _, of := range byHost(uris) {
		switch name, h := of[0].Host, hs.known[of[0].Host]; {
		case !h.accepted && time.Since(h.last) < refusedFor:
			one, others := oneOf(of)
			doubtful = append(doubtful, one, others)
		case !all && hs.suspect(name):
			suspect = append(suspect, of...)
		default:
			together = append(together, of...)
		}
	}
	parts = append([][]URI{together, suspect}, doubtful...)
	return slices.DeleteFunc(parts, func(uris []URI) bool { return len(uris) == 0 })
}

// byHost groups URIs by host, in the order of their first URIs.
func byHost(uris []URI) (groups [][]URI) {
	at := map[string]int{}
	for _, uri := range uris {
		i, found := at[uri.Host]
		if !found {
			i = len(groups)
			at[uri.Host], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], uri)
	}
	return groups
}

// oneOf takes any URI out of some.
func oneOf(uris []URI) (one, others []URI) {
	i := rand.IntN(len(uris))
	return uris[i : i+1 : i+1], slices.Concat(uris[:i], uris[i+1:])
}

func halves(uris []URI) [][]URI {
	half := len(uris) / 2
	return [][]URI{uris[:half:half], uris[half:]}
}

func sizeOf(uris []URI) (bytes int) {
	for _, uri := range uris {
		bytes += uri.Size
	}
	return bytes
}
