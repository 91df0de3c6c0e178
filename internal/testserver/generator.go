package testserver

import (
	"iter"
	"math"
	"net/netip"
	"time"
)

// generator is an endless stream of security events, none of which is stored. The events are numbered from the Unix
// epoch on. Event i has its time in the i-th interval of 1/rate seconds, and only the seed and i decide its contents.
// So the generator can create any range by itself, in order of time, and always with the same result.
type generator struct {
	seed  uint64
	rate  float64           // events per second
	since int64             // time of the first event in Unix milliseconds
	words map[string]string // from the document's words to those of the vocabulary; nil keeps the document's
}

func newGenerator(cfg Config) generator {
	return generator{
		seed: mix(cfg.EventSeed), rate: cfg.EventsPerSecond, since: ceilMilli(cfg.EventsSince),
		words: vocabularies[cfg.Dialect.Vocabulary],
	}
}

// between returns the events with from <= time < until, in Unix milliseconds. An event is valid until the next one.
func (g generator) between(from, until int64) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		if from = max(from, g.since); g.rate == 0 || from >= until {
			return
		}
		var e record
		number := int64(float64(from)/1000*g.rate) - 2 // start two events earlier, because of rounding
		for ; ; number++ {
			at, dice := g.event(number)
			if at >= until {
				return
			}
			if at < from {
				continue
			}
			g.fill(&e, at, dice)
			if !yield(&e) {
				return
			}
		}
	}
}

// event returns the random numbers of an event, and its time in Unix milliseconds, which never decreases with the
// number.
func (g generator) event(number int64) (at int64, d dice) {
	d = dice(g.seed + uint64(number)*golden)
	within := d.unit()
	return int64(math.Floor((float64(number) + within) / g.rate * 1000)), d
}

// fill generates an event: the client, the request, and the rule that applied. Now and then, one client attacks for ten
// minutes.
func (g generator) fill(e *record, at int64, d dice) {
	*e = record{Event: Event{Time: time.UnixMilli(at).UTC()}}
	whatBits, whoBits, whereBits := d.roll(), d.roll(), d.roll()
	if attack := mix(g.seed ^ uint64(at/attackLength)); attack%6 == 0 && whatBits>>63 == 0 {
		whoBits, whereBits = attack*golden, mix(attack)
		e.kind = attacks[attack>>32%uint64(len(attacks))]
	} else {
		e.kind = types.pick(whatBits)
	}
	e.Type = e.kind
	e.fromClient(whoBits)
	s := sites.pick(whereBits)
	e.Domain, e.Property, e.RequestPath = s.domain, s.property, paths.pick(whereBits>>8)
	e.byRule(whatBits >> 8)
	g.translate(e)
}

// translate replaces the document's words by those of the vocabulary.
func (g generator) translate(e *record) {
	if g.words == nil {
		return
	}
	for _, word := range []*string{&e.Type, &e.Severity, &e.Action, &e.WAFAction} {
		*word = g.words[*word]
	}
}

const attackLength = 10 * 60 * 1000

// fromClient derives the fields of the client from the bits.
func (e *record) fromClient(bits uint64) {
	n := networks.pick(bits)
	e.CountryCode, e.ASN = n.country, n.asn
	e.Browser = browsers.pick(bits >> 8)
	host := uint16(bits>>16) & uint16(bits>>24) & 0x3ff // low numbers are more frequent
	e.ClientIP = netip.AddrFrom4(documented(int(n.part)*partSize + int(host%partSize)))
	if bits>>60 == 0 {
		e.ClientIP = netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 5: n.part, 14: byte(host >> 8), 15: byte(host)})
	}
	e.ConnectionRemoteIP = e.ClientIP
	if bits>>57&7 == 1 { // through a proxy
		e.ConnectionRemoteIP = netip.AddrFrom4([4]byte{192, 0, 2, byte(bits>>40) & 15})
	}
}

// partSize is the number of IPv4 addresses of a network.
const partSize = 48

// documented returns the i-th IPv4 address reserved for documentation, after the 16 of the proxies.
func documented(i int) [4]byte {
	i += 16
	prefix := [...][3]byte{{192, 0, 2}, {198, 51, 100}, {203, 0, 113}}[i>>8]
	return [4]byte{prefix[0], prefix[1], prefix[2], byte(i)}
}

// byRule fills in the fields that depend on the type.
func (e *record) byRule(bits uint64) {
	switch {
	case e.isShaping():
		e.Severity, e.Action = "NOTICE", shapingActions.pick(bits)
	default:
		r := wafRules.pick(bits)
		if e.kind == TypeCustom {
			r = customRules.pick(bits)
		}
		e.RuleID, e.Severity = r.id, r.severity
		e.WAFAction = wafActions.pick(bits >> 8)
		e.Action = e.WAFAction
	}
}

// dice is a splitmix64 random number generator: small, quick to seed, and random enough for traffic.
type dice uint64

const golden = 0x9e3779b97f4a7c15

func (d *dice) roll() uint64 {
	*d += golden
	return mix(uint64(*d))
}

// unit returns a number from 0 to below 1.
func (d *dice) unit() float64 { return float64(d.roll()>>11) / (1 << 53) }

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
