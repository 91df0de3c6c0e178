package webdelivery

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/webdelivery/webdelivery-go/internal/lists"
)

// The guards of a plan keep an empty, truncated or poisoned feed from opening a firewall or blocking everybody. Plan
// checks them, and Apply checks them again, because a stored plan may have been edited.

// PlanOptions are the options of a plan. The zero value is a safe default. MaxRemove, MaxAdd, WidestIPv4, WidestIPv6
// and Never are guards: if a plan exceeds one of them, Plan returns a [*PlanError] that holds the plan. Its Field is
// the name of the option, and its Reason says which value allows the plan. If a plan exceeds several guards, or several
// entries exceed one, up to 100 errors are joined. To allow every plan, set MaxRemove to [RemoveAll], and WidestIPv4 and
// WidestIPv6 to -1.
type PlanOptions struct {
	// MaxRemove limits how many entries of the list the plan may remove, so that an empty feed cannot open a
	// firewall. The zero value is RemoveDefault: 20 % of the entries, or a few of a small list.
	MaxRemove RemovalLimit
	// MaxAdd limits how many entries the plan may add. 0 means 50,000, the size of a full list, which is no guard; a
	// negative value is invalid. Set it if a feed may be poisoned: many ranges may together be too wide, although each of
	// them is allowed.
	MaxAdd int
	// WidestIPv4 is the prefix length of the widest IPv4 range that the plan may add, from 1 to 32: 8 allows 10.0.0.0/8
	// and refuses 10.0.0.0/7. Plan checks ranges after Aggregate and without host bits. ::ffff:0.0.0.0/96, and any wider
	// IPv6 range that contains it, counts as 0.0.0.0/0. Entries that the list already holds are not checked. 0 means 8,
	// and -1 allows every range.
	WidestIPv4 int
	// WidestIPv6 is the same for IPv6, from 1 to 128. 0 means 19, and -1 allows every range.
	WidestIPv6 int
	// Never holds ranges that must not be added, such as those of your offices and monitoring. The plan may add no entry
	// that overlaps one of them. ::/0 overlaps every IPv4 range, too. Entries that the list already holds are not checked.
	Never []netip.Prefix
	// Protect, if not nil, is called for each entry that the plan would remove. If it returns true, the entry stays and
	// does not count toward MaxRemove. Use it to leave alone what other users added, or what was added in the last hour. A
	// stored plan does not need it: protected entries are not among those to remove.
	Protect func(NetworkListEntry) bool
	// Aggregate merges desired addresses and ranges into the fewest ranges that cover exactly the same addresses. Entries
	// replaced by a merged range count as removed, see MaxRemove. If false, the entries are sent as written.
	Aggregate bool
}

// normalize refuses invalid guards, and replaces zero by the defaults: no organization is assigned more than a /8 of
// IPv4 or a /19 of IPv6.
func (o *PlanOptions) normalize() error {
	var p problems
	o.MaxRemove = cmp.Or(o.MaxRemove, RemoveDefault)
	if _, ok := lists.Removals(string(o.MaxRemove), 0); !ok {
		p.add("MaxRemove", "%q is not none, all, default, a share from 0%% to 100%%, or a number of entries", string(o.MaxRemove))
	}
	p.addBelow0("MaxAdd", int64(o.MaxAdd))
	if o.WidestIPv4 < lists.AnyWidth || o.WidestIPv4 > 32 {
		p.add("WidestIPv4", "%d is not between %d and 32", o.WidestIPv4, lists.AnyWidth)
	}
	if o.WidestIPv6 < lists.AnyWidth || o.WidestIPv6 > 128 {
		p.add("WidestIPv6", "%d is not between %d and 128", o.WidestIPv6, lists.AnyWidth)
	}
	for i, never := range o.Never {
		if !never.IsValid() {
			p.add(fmt.Sprintf("Never[%d]", i), "is not a valid range; parse it with netip.ParsePrefix")
		}
	}
	o.MaxAdd = cmp.Or(o.MaxAdd, MaxListEntries)
	o.WidestIPv4 = cmp.Or(o.WidestIPv4, 8)
	o.WidestIPv6 = cmp.Or(o.WidestIPv6, 19)
	return p.err()
}

// RemovalLimit limits how many entries a plan may remove from a list: a share of its entries such as "20%", rounded down,
// a number such as "100", or one of the constants. The zero value is [RemoveDefault]. For any other text,
// [NetworkListsService.Plan] returns a [*ValidationError].
type RemovalLimit string

const (
	// RemoveNone allows no removal.
	RemoveNone RemovalLimit = "none"
	// RemoveAll allows every removal.
	RemoveAll RemovalLimit = "all"
	// RemoveDefault allows 20 % of the entries, rounded down. For a list with fewer than 20 entries it allows up to 3, but
	// never more than half of them. It allows 3 of 6, 1 of 3, 1 of 2, and 0 of 1, so an empty feed cannot empty a list.
	RemoveDefault RemovalLimit = "default"
)
