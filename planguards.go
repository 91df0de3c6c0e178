package webdelivery

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// The guards of a plan keep a feed that is empty, cut short or poisoned from opening a firewall or blocking everybody.
// Plan checks them, and Apply checks them again, because a stored plan may have been edited.

// PlanOptions say how a plan is made. The zero value is a good one. MaxRemove, MaxAdd, WidestIPv4 and WidestIPv6 are
// guards: if a plan would pass one of them, Plan returns a [*ValidationError] whose Field is its name, which says the
// value that allows the plan. If it would pass several, or one with several entries, their errors are joined, up to 100
// ([errors.Join]). To allow every plan, set MaxRemove to [RemoveAll], and WidestIPv4 and WidestIPv6 to -1.
type PlanOptions struct {
	// MaxRemove bounds how many entries of the list the plan may remove, so that an empty feed cannot open a firewall. The
	// zero value allows 20 % of them.
	MaxRemove RemovalLimit
	// MaxAdd is the most entries that the plan may add. 0 means 50,000, which is all that a list can hold: no guard. Set it
	// if a feed may be poisoned, as many ranges may each be within the bounds of their width.
	MaxAdd int
	// WidestIPv4 is the prefix length of the widest IPv4 range that the plan may add, from 1 to 32: 8 allows 10.0.0.0/8 and
	// refuses 10.0.0.0/7. A range counts as it is added: after Aggregate, without host bits, and ::ffff:0.0.0.0/96 as
	// 0.0.0.0/0. So does a wider IPv6 range with those addresses in it. Entries that the list already holds do not count.
	// 0 means 8, and -1 allows every range.
	WidestIPv4 int
	// WidestIPv6 is the same for IPv6, from 1 to 128. 0 means 19, and -1 allows every range.
	WidestIPv6 int
	// Aggregate merges desired addresses and ranges into the fewest ranges that cover exactly the same addresses. What a
	// range takes the place of counts as removed, see MaxRemove. false sends them as they are written.
	Aggregate bool
}

// Defaults of PlanOptions. Nobody is assigned more than a /8 of IPv4 or a /19 of IPv6.
const (
	defaultWidestIPv4 = 8
	defaultWidestIPv6 = 19
)

// anyWidth is the value of WidestIPv4 and WidestIPv6 that allows every range.
const anyWidth = -1

// normalize refuses guards that make no sense, and puts the defaults in place of zero.
func (o *PlanOptions) normalize() error {
	var p problems
	o.MaxRemove = cmp.Or(o.MaxRemove, defaultRemovals)
	if _, ok := o.MaxRemove.of(0); !ok {
		p.add("MaxRemove", "%q is neither none, all, a share from 0%% to 100%%, nor a number of entries", string(o.MaxRemove))
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
	o.MaxAdd = cmp.Or(o.MaxAdd, maxListEntries)
	o.WidestIPv4 = cmp.Or(o.WidestIPv4, defaultWidestIPv4)
	o.WidestIPv6 = cmp.Or(o.WidestIPv6, defaultWidestIPv6)
	return p.err()
}

// check refuses to change more of a list of this size than the guards allow. placeOf tells where an added entry comes
// from.
func (o *PlanOptions) check(size int, add []string, remove []NetworkListEntry, placeOf func(i int) string) error {
	var bad problems
	nameOf := func(i int) string { return fmt.Sprintf("%s (%s)", redact.Line(add[i]), placeOf(i)) }
	if most, _ := o.MaxRemove.of(size); len(remove) > most {
		n := len(remove)
		bad.add("MaxRemove", "%d of %d entries would be removed, for example %s, and at most %d may be (%s); set MaxRemove to %q or %q to allow it",
			n, size, redact.Line(remove[0].Entry), most, o.MaxRemove, RemoveAtMost(n), shareFor(n, size))
	}
	if n := len(add); n > o.MaxAdd {
		bad.add("MaxAdd", "%d entries would be added, for example %s, and at most %d may be; set MaxAdd to %d to allow it", n, nameOf(0), o.MaxAdd, n)
	}
	for i, text := range add {
		o.checkWidth(&bad, ipset.Read(text).Prefix, func() string { return nameOf(i) })
	}
	return bad.err()
}

// checkWidth refuses a range that is wider than the guard of its family allows. An IPv6 range that contains the addresses
// of all IPv4 in IPv6 is as wide as 0.0.0.0/0, because a service may match IPv4 clients in that form.
func (o *PlanOptions) checkWidth(bad *problems, added netip.Prefix, name func() string) {
	switch {
	case !added.IsValid():
	case added.Addr().Is4():
		if added.Bits() < o.WidestIPv4 {
			bad.add("WidestIPv4", "%s would be added, and /%d is the widest IPv4 range that may be; %s",
				name(), o.WidestIPv4, toAllow("WidestIPv4", added.Bits()))
		}
	default:
		if added.Bits() < o.WidestIPv6 {
			bad.add("WidestIPv6", "%s would be added, and /%d is the widest IPv6 range that may be; %s",
				name(), o.WidestIPv6, toAllow("WidestIPv6", added.Bits()))
		}
		if o.WidestIPv4 > 0 && ipset.HoldsMappedIPv4(added) {
			bad.add("WidestIPv4", "%s would be added, it holds all IPv4 addresses in their IPv6 form, and /%d is the widest IPv4 range "+
				"that may be added; %s", name(), o.WidestIPv4, toAllow("WidestIPv4", 0))
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
func placesOf(add, desired []string) func(i int) string {
	places := sync.OnceValue(func() map[ipset.Meaning]int { // only for an error
		places := make(map[ipset.Meaning]int, len(desired))
		for i, text := range slices.Backward(desired) {
			places[ipset.Read(text).Meaning] = i
		}
		return places
	})
	return func(i int) string {
		if at, ok := places()[ipset.Read(add[i]).Meaning]; ok {
			return fmt.Sprintf("desired[%d]", at)
		}
		return "merged by Aggregate"
	}
}
