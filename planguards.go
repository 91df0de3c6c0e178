package webdelivery

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/webdelivery/webdelivery-go/internal/lists"
)

// The guards of a plan prevent that an empty, cut or poisoned feed opens a firewall or blocks everybody. Plan checks
// them. Apply checks them again, because a stored plan may have been edited.

// PlanOptions are the options of a plan. The zero value is a safe default. MaxRemove, MaxAdd, WidestIPv4, WidestIPv6
// and Never are guards: if a plan goes beyond one of them, Plan returns a [*PlanError] that holds the plan. Its
// Field is the name of the option, and its Reason says which value allows the plan. If a plan goes beyond several
// guards, or several entries go beyond one, the errors are joined, up to 100 ([errors.Join]). To allow every plan, set
// MaxRemove to [RemoveAll], and WidestIPv4 and WidestIPv6 to -1.
type PlanOptions struct {
	// MaxRemove limits how many entries of the list the plan may remove, so that an empty feed cannot open a
	// firewall. The zero value is RemoveDefault: 20 % of the entries, or a few of a small list.
	MaxRemove RemovalLimit
	// MaxAdd limits how many entries the plan may add. 0 means 50,000, which is the size of a full list, so there is
	// no guard; below 0 it is invalid. Set it if a feed may be poisoned: many ranges may together be too wide,
	// although each of them is allowed.
	MaxAdd int
	// WidestIPv4 is the prefix length of the widest IPv4 range that the plan may add, from 1 to 32: 8 allows
	// 10.0.0.0/8 and refuses 10.0.0.0/7. Plan checks ranges after Aggregate and without host bits. It takes
	// ::ffff:0.0.0.0/96, and a wider IPv6 range that contains it, as 0.0.0.0/0. It does not check entries that the
	// list already holds. 0 means 8, and -1 allows every range.
	WidestIPv4 int
	// WidestIPv6 is the same for IPv6, from 1 to 128. 0 means 19, and -1 allows every range.
	WidestIPv6 int
	// Never are ranges that must not be in the list, such as those of your offices and of the monitoring. The plan may
	// add no entry that overlaps one of them. ::/0 overlaps every range of IPv4, too. Entries that the list already
	// holds are not checked.
	Never []netip.Prefix
	// Protect, if not nil, is called for each entry that the plan would remove. If it returns true, the entry stays,
	// and does not count for MaxRemove: so the plan leaves alone what other users or the last hour have added. A stored
	// plan needs no function, because it does not have these entries among those to remove.
	Protect func(NetworkListEntry) bool
	// Aggregate merges desired addresses and ranges into the fewest ranges that cover exactly the same addresses.
	// Entries replaced by a merged range count as removed, see MaxRemove. If false, the entries are sent as they are
	// written.
	Aggregate bool
}

// normalize refuses invalid guards, and replaces zero by the defaults: no organization is assigned more than a /8 of IPv4
// or a /19 of IPv6.
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

// RemovalLimit limits how many entries a plan may remove from a list. It is "none", "all", "default", a share such as
// "20%", or a number such as "100". Create it with [RemoveNone], [RemoveAll], [RemoveShare] or [RemoveAtMost]. The
// zero value is [RemoveDefault]. For any other text, [NetworkListsService.Plan] returns a [*ValidationError].
type RemovalLimit string

const (
	// RemoveNone allows no removal.
	RemoveNone RemovalLimit = lists.None
	// RemoveAll allows every removal.
	RemoveAll RemovalLimit = lists.All
	// RemoveDefault allows 20 % of the entries, rounded down. For a list with fewer than 20 entries it allows up to
	// 3, but never more than half of them. It allows 3 of 6, 1 of 3, 1 of 2, and 0 of 1. So an empty feed cannot
	// empty a list.
	RemoveDefault RemovalLimit = lists.Default
)

// RemoveShare allows to remove a share of the entries, from 0 to 1, rounded down. A share of 0.2 allows 1 of 9
// entries and none of 4. Unlike [RemoveDefault], it does not allow more for a small list. If the share is out of that
// range, [NetworkListsService.Plan] returns a [*ValidationError].
func RemoveShare(share float64) RemovalLimit { return RemovalLimit(lists.Share(share)) }

// RemoveAtMost allows to remove up to n entries, at least 0, also if these are all. If n is below 0,
// [NetworkListsService.Plan] returns a [*ValidationError].
func RemoveAtMost(entries int) RemovalLimit { return RemovalLimit(strconv.Itoa(entries)) }
