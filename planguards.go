package webdelivery

import (
	"cmp"

	"github.com/webdelivery/webdelivery-go/internal/listguard"
)

// The guards of a plan keep a feed that is empty, cut short or poisoned from opening a firewall or blocking everybody.
// Plan checks them, and Apply checks them again, because a stored plan may have been edited.

// PlanOptions say how a plan is made. The zero value is a good one. MaxRemove, MaxAdd, WidestIPv4 and WidestIPv6 are
// guards: if a plan goes beyond one of them, Plan returns a [*PlanError] that holds the plan. Its Field is the name of the
// option, and its Reason says which value allows the plan. For MaxRemove it is a [*TooManyRemovalsError]. If a plan goes
// beyond several, or beyond one with several entries, their errors are joined, up to 100 ([errors.Join]). To allow every
// plan, set MaxRemove to [RemoveAll], and WidestIPv4 and WidestIPv6 to -1.
type PlanOptions struct {
	// MaxRemove bounds how many entries of the list the plan may remove, so that an empty feed cannot open a firewall. The
	// zero value is RemoveDefault: 20 % of them, and of a small list a few.
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

// normalize refuses guards that make no sense, and puts the defaults in place of zero.
func (o *PlanOptions) normalize() error {
	var p problems
	o.MaxRemove = cmp.Or(o.MaxRemove, RemoveDefault)
	if _, ok := listguard.Removals(string(o.MaxRemove), 0); !ok {
		p.add("MaxRemove", "%q is neither none, all, default, a share from 0%% to 100%%, nor a number of entries", string(o.MaxRemove))
	}
	if o.MaxAdd < 0 {
		p.add("MaxAdd", "%d is below 0", o.MaxAdd)
	}
	if o.WidestIPv4 < listguard.AnyWidth || o.WidestIPv4 > 32 {
		p.add("WidestIPv4", "%d is not between %d and 32", o.WidestIPv4, listguard.AnyWidth)
	}
	if o.WidestIPv6 < listguard.AnyWidth || o.WidestIPv6 > 128 {
		p.add("WidestIPv6", "%d is not between %d and 128", o.WidestIPv6, listguard.AnyWidth)
	}
	o.MaxAdd = cmp.Or(o.MaxAdd, maxListEntries)
	o.WidestIPv4 = cmp.Or(o.WidestIPv4, defaultWidestIPv4)
	o.WidestIPv6 = cmp.Or(o.WidestIPv6, defaultWidestIPv6)
	return p.err()
}

// additions are the guards of what is added.
func (o *PlanOptions) additions() listguard.Additions {
	return listguard.Additions{Most: o.MaxAdd, WidestIPv4: o.WidestIPv4, WidestIPv6: o.WidestIPv6}
}
