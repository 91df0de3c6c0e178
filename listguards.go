package webdelivery

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
)

// The guards of a plan keep a feed that is empty, cut short or poisoned from opening a firewall or blocking everybody.
// Plan checks them, and Apply checks them again, because a stored plan may have been edited.

// Defaults of PlanOptions. Nobody is assigned more than a /8 of IPv4 or a /19 of IPv6.
const (
	defaultMaxRemove  = 0.2
	defaultWidestIPv4 = 8
	defaultWidestIPv6 = 19
)

// anyWidth is the value of WidestIPv4 and WidestIPv6 that allows every range.
const anyWidth = -1

// normalize refuses guards that make no sense, and puts the defaults in place of zero.
func (o *PlanOptions) normalize() error {
	var p problems
	if !(o.MaxRemove >= 0 && o.MaxRemove <= 1) {
		p.add("MaxRemove", "%v is not between 0 and 1", o.MaxRemove)
	}
	if o.MaxAdd < 0 {
		p.add("MaxAdd", "%d is below 0", o.MaxAdd)
	}
	if o.WidestIPv4 < anyWidth || o.WidestIPv4 > 32 {
		p.add("WidestIPv4", "%d is not between %d and 32", o.WidestIPv4, anyWidth)
	}
	if o.WidestIPv6 < anyWidth || o.WidestIPv6 > 128 {
		p.add("WidestIPv6", "%d is not between %d and 128", o.WidestIPv6, anyWidth)
	}
	o.MaxRemove = cmp.Or(o.MaxRemove, defaultMaxRemove)
	o.MaxAdd = cmp.Or(o.MaxAdd, maxListEntries)
	o.WidestIPv4 = cmp.Or(o.WidestIPv4, defaultWidestIPv4)
	o.WidestIPv6 = cmp.Or(o.WidestIPv6, defaultWidestIPv6)
	return p.err()
}

// guard takes over the guards of options.
func (p *Plan) guard(o PlanOptions) {
	p.MaxRemove, p.MaxAdd, p.WidestIPv4, p.WidestIPv6 = o.MaxRemove, o.MaxAdd, o.WidestIPv4, o.WidestIPv6
}

// guards are those of the plan as options.
func (p *Plan) guards() PlanOptions {
	return PlanOptions{MaxRemove: p.MaxRemove, MaxAdd: p.MaxAdd, WidestIPv4: p.WidestIPv4, WidestIPv6: p.WidestIPv6}
}

// checkGuards refuses a plan that changes more of a list of this size than its guards allow. placeOf tells where an
// entry of Add comes from.
func (p *Plan) checkGuards(size int, placeOf func(i int) string) error {
	var bad problems
	nameOf := func(i int) string { return fmt.Sprintf("%s (%s)", printable(p.Add[i]), placeOf(i)) }
	const rounding = 1e-9 // 0.29 of 100 is a little less than 29
	if n := len(p.Remove); float64(n) > p.MaxRemove*float64(size)+rounding {
		bad.add("MaxRemove", "%d of %d entries would be removed, for example %s, and at most %.4g of them may be; set MaxRemove to %v to allow it",
			n, size, printable(p.Remove[0].Entry), p.MaxRemove, partFor(n, size))
	}
	if n := len(p.Add); n > p.MaxAdd {
		bad.add("MaxAdd", "%d entries would be added, for example %s, and at most %d may be; set MaxAdd to %d to allow it", n, nameOf(0), p.MaxAdd, n)
	}
	for i, text := range p.Add {
		p.checkWidth(&bad, ipset.Read(text).Prefix, func() string { return nameOf(i) })
	}
	return bad.err()
}

// partFor is the smallest MaxRemove of four digits that allows to remove n of size entries.
func partFor(n, size int) float64 {
	const digits = 10_000
	return float64((n*digits+size-1)/size) / digits
}

// checkWidth refuses a range that is wider than the guard of its family allows. An IPv6 range that contains the addresses
// of all IPv4 in IPv6 is as wide as 0.0.0.0/0, because a service may match IPv4 clients in that form.
func (p *Plan) checkWidth(bad *problems, added netip.Prefix, name func() string) {
	switch {
	case !added.IsValid():
	case added.Addr().Is4():
		if added.Bits() < p.WidestIPv4 {
			bad.add("WidestIPv4", "%s would be added, and /%d is the widest IPv4 range that may be; %s",
				name(), p.WidestIPv4, toAllow("WidestIPv4", added.Bits()))
		}
	default:
		if added.Bits() < p.WidestIPv6 {
			bad.add("WidestIPv6", "%s would be added, and /%d is the widest IPv6 range that may be; %s",
				name(), p.WidestIPv6, toAllow("WidestIPv6", added.Bits()))
		}
		if p.WidestIPv4 > 0 && ipset.HoldsMappedIPv4(added) {
			bad.add("WidestIPv4", "%s would be added, it holds all IPv4 addresses in their IPv6 form, and /%d is the widest IPv4 range "+
				"that may be added; %s", name(), p.WidestIPv4, toAllow("WidestIPv4", 0))
		}
	}
}

// toAllow says how to set a guard for a range of so many bits. 0 would be the default.
func toAllow(option string, bits int) string {
	if bits == 0 {
		bits = anyWidth
	}
	return fmt.Sprintf("set %s to %d to allow it", option, bits)
}

// placesOf finds each addition among the desired entries. One that is not there was merged from several.
func (p *Plan) placesOf(desired []string) func(i int) string {
	places := sync.OnceValue(func() map[ipset.Meaning]int { // only for an error
		places := make(map[ipset.Meaning]int, len(desired))
		for i, text := range slices.Backward(desired) {
			places[ipset.Read(text).Meaning] = i
		}
		return places
	})
	return func(i int) string {
		if at, ok := places()[ipset.Read(p.Add[i]).Meaning]; ok {
			return fmt.Sprintf("desired[%d]", at)
		}
		return "merged by Aggregate"
	}
}
