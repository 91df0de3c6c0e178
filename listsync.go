package webdelivery

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Plan compares a desired set of entries with a network list as it is; Apply carries the plan out. Apply adds before it
// removes, so that what is protected before and after stays protected in between, except as far as room must be made in
// a full list. Each step can be repeated without harm, so an Apply that was interrupted anywhere is mended by planning
// and applying again.

// ErrPlanStale means that somebody else changed the list: it is not what it was when the plan was made, or not what the
// plan should have made of it.
var ErrPlanStale = errors.New("webdelivery: the list is not as planned")

// PlanOptions say how a plan is made. The zero value is a good one. MaxRemove, MaxAdd, WidestIPv4 and WidestIPv6 are
// guards: if a plan would pass one of them, Plan returns a [*ValidationError] whose Field is its name. To allow every
// plan, set MaxRemove to 1, and WidestIPv4 and WidestIPv6 to -1.
type PlanOptions struct {
	// MaxRemove is the largest part of the list that the plan may remove, from 0 to 1; a larger one is refused, so that
	// an empty feed cannot open a firewall. 0 means 0.2, and 1 allows all of it.
	MaxRemove float64
	// MaxAdd is the most entries that the plan may add. 0 means 50,000, which is all that a list can hold.
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

// Plan is what would change in a network list. It can be stored as JSON and applied later, by another process too.
// [NetworkListsService.Plan] makes it; one that was changed since may be refused by Apply.
type Plan struct {
	ListID string             `json:"list_id"` // UUID
	Type   ListType           `json:"type"`    // of the list
	Name   string             `json:"name"`    // of the list
	Add    []string           `json:"add"`     // in the order in which they are added
	Remove []NetworkListEntry `json:"remove"`  // in the order in which they are removed
	Keep   int                `json:"keep"`    // entries that stay
	// Largest is the most entries that the list holds on the way.
	Largest int `json:"largest"`
	// Calls is how many calls Apply makes to change the list; reading it comes on top.
	Calls int `json:"calls"`
	// Covering is how many of Add, from the first, cover addresses of entries that are removed.
	Covering int `json:"covering"`
	// MaxRemove is that of the options, with the default in place of 0. Apply keeps to it too.
	MaxRemove float64 `json:"max_remove"`
	// MaxAdd, WidestIPv4 and WidestIPv6 are those of the options, with the defaults in place of 0. Apply keeps to them too.
	MaxAdd     int `json:"max_add"`
	WidestIPv4 int `json:"widest_ipv4"`
	WidestIPv6 int `json:"widest_ipv6"`
	// Unprotected is how many entries must be removed before the added ones that cover their addresses, because the list
	// has no room for both.
	Unprotected int `json:"unprotected"`
	// Before is a fingerprint of the list that was compared, by which Apply knows it again.
	Before string `json:"before"`
}

// Empty tells whether the list is as desired.
func (p *Plan) Empty() bool { return len(p.Add) == 0 && len(p.Remove) == 0 }

// Size is how many entries the list holds when the plan has been applied.
func (p *Plan) Size() int { return p.Keep + len(p.Add) }

// shownEntries bounds how many entries of a kind String lists.
const shownEntries = 20

// String tells people what would change, in some lines: the numbers, and at most 20 entries that are added and 20 that are
// removed. Its form may change.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s list %s (%s): ", p.Type, printable(p.Name), printable(p.ListID))
	if p.Empty() {
		fmt.Fprintf(&b, "nothing to change, %d entries\n", p.Keep)
		return b.String()
	}
	fmt.Fprintf(&b, "add %d, remove %d, keep %d; %d entries become %d, %d at most on the way; %d calls\n",
		len(p.Add), len(p.Remove), p.Keep, p.Keep+len(p.Remove), p.Size(), p.Largest, p.Calls)
	if p.Unprotected > 0 {
		fmt.Fprintf(&b, "the list is full: the addresses of %d entries are not covered for a moment\n", p.Unprotected)
	}
	for i, e := range p.Add {
		if i == shownEntries {
			fmt.Fprintf(&b, "+ and %d more\n", len(p.Add)-i)
			break
		}
		b.WriteString("+ " + printable(e) + "\n")
	}
	for i, e := range p.Remove {
		if i == shownEntries {
			fmt.Fprintf(&b, "- and %d more\n", len(p.Remove)-i)
			break
		}
		b.WriteString("- " + printable(e.Entry) + "\n")
	}
	return b.String()
}

// Plan compares the desired entries with a list (service-interface section 4.6), by what they mean (open point 27):
// 192.0.2.1 and 192.0.2.1/32 are the same. It reads and changes nothing, desired included; what is there twice counts
// once.
//
// Plan returns a [*ValidationError] for entries that do not belong to the type of the list, for a result of more than
// 50,000 entries (service-interface section 8), and for what the guards of [PlanOptions] do not allow. A text that is
// neither an address, a range nor a country code, such as XK, is accepted only if the list holds it already.
//
// Plan returns [ErrNotFound] if the list does not exist, [ErrBadReply] if its response has no type, and a
// [*PaginationError] if the list changes while it is read; then plan again. It compares the pages with one another, with
// their total, and with the entries that the list itself shows.
func (s *NetworkListsService) Plan(ctx context.Context, id string, desired []string, options PlanOptions) (*Plan, error) {
	if err := options.normalize(); err != nil {
		return nil, err
	}
	wanted, err := readDesired(desired, options.Aggregate)
	if err != nil {
		return nil, err
	}
	list, current, err := s.wholeList(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := wanted.check(list.Type, current); err != nil {
		return nil, err
	}
	plan, err := newPlan(list, current, slices.Concat(wanted.entries, wanted.strange))
	if err != nil {
		return nil, err
	}
	plan.guard(options)
	if err := plan.checkGuards(len(current), plan.placesOf(desired)); err != nil {
		return nil, err
	}
	return plan, nil
}

// newPlan compares by meaning, and orders what follows from it.
func newPlan(list *NetworkList, current []held, wanted []entry) (*Plan, error) {
	p := &Plan{ListID: list.ID, Type: list.Type, Name: list.Name, Before: fingerprint(current)}
	has := meanings(current)
	wants := make(map[meaning]bool, len(wanted))
	add := make([]entry, 0, len(wanted))
	for _, e := range wanted {
		wants[e.meaning] = true
		if !has[e.meaning] {
			add = append(add, e)
		}
	}
	remove, keep := make([]*held, 0, len(current)), make([]*held, 0, len(current))
	for i := range current {
		e := &current[i]
		if wants[e.meaning] {
			keep = append(keep, e)
		} else {
			remove = append(remove, e)
		}
	}
	p.Keep = len(keep)
	if p.Keep+len(add) > maxListEntries {
		return nil, invalid("desired", "the list would hold %d entries, and %d are the most", p.Keep+len(add), maxListEntries)
	}
	p.order(keep, add, remove)
	for _, step := range p.steps() {
		p.Largest = max(p.Largest, step.size)
		p.Calls += step.calls()
	}
	p.Largest = max(p.Largest, len(current))
	return p, nil
}

// order puts first what may go first: of the removals those whose addresses nobody will miss while the additions are
// under way, of the additions those that cover what will be removed.
func (p *Plan) order(keep []*held, add []entry, remove []*held) {
	kept, added, removed := covered(keep, heldPrefix), covered(add, entryPrefix), covered(remove, heldPrefix)
	remove, _ = falseFirst(remove, func(e *held) bool { return missed(e.prefix, added, kept) })
	add, p.Covering = falseFirst(add, func(e entry) bool { return !e.prefix.IsValid() || !removed.overlaps(e.prefix) })
	p.Add = textsOf(add)
	p.Remove = make([]NetworkListEntry, len(remove))
	for i, e := range remove {
		p.Remove[i] = e.NetworkListEntry
	}
	p.countUnprotected(keep, add, remove)
}

// missed: while the later additions are not there, removing this uncovers addresses that are to stay covered. Rather
// too often true than not often enough.
func missed(p netip.Prefix, later, there coverage) bool {
	return p.IsValid() && later.overlaps(p) && !there.contains(p)
}

// countUnprotected goes through the steps that make room in a full list.
func (p *Plan) countUnprotected(keep []*held, add []entry, remove []*held) {
	there := make([]netip.Prefix, 0, len(keep)+len(add))
	for _, e := range keep {
		there = append(there, e.prefix)
	}
	for _, e := range add {
		there = append(there, e.prefix)
	}
	here, gone := len(keep), 0 // so many of these the list holds, so many have been removed
	for _, step := range p.steps() {
		if step.add != nil {
			here += len(step.add)
			continue
		}
		if here == len(there) {
			return // every addition is there: these are the other removals
		}
		now, later := covered(there[:here], itself), covered(there[here:], itself)
		for range step.remove {
			if missed(remove[gone].prefix, later, now) {
				p.Unprotected++
			}
			gone++
		}
	}
}

// falseFirst keeps the order otherwise, and counts the false ones.
func falseFirst[T any](all []T, last func(T) bool) (sorted []T, first int) {
	sorted = make([]T, 0, len(all))
	behind := make([]bool, len(all))
	for i, e := range all {
		if behind[i] = last(e); !behind[i] {
			sorted = append(sorted, e)
		}
	}
	first = len(sorted)
	for i, e := range all {
		if behind[i] {
			sorted = append(sorted, e)
		}
	}
	return sorted, first
}

func heldPrefix(e *held) netip.Prefix    { return e.prefix }
func entryPrefix(e entry) netip.Prefix   { return e.prefix }
func itself(p netip.Prefix) netip.Prefix { return p }

// aggregate merges ranges into the fewest that cover the same addresses, no more and no less.
func aggregate(entries []entry) []entry {
	prefixes := covered(entries, entryPrefix).prefixes()
	merged := make([]entry, len(prefixes))
	for i, p := range prefixes {
		text := p.String()
		if p.IsSingleIP() {
			text = p.Addr().String()
		}
		merged[i] = entry{text, meaning{prefix: p}}
	}
	return merged
}

// step is one part of carrying out a plan: a call that adds, or some removals that may run side by side.
type step struct {
	add    []string
	remove []NetworkListEntry
	size   int // of the list afterwards
}

func (s step) calls() int {
	if s.add != nil {
		return 1
	}
	return len(s.remove)
}

// steps puts the plan into the order in which it is carried out: additions as far as there is room, 5,000 a call; when
// there is none, as many removals as the next additions need, those that cover what is removed by themselves; and the
// other removals last.
func (p *Plan) steps() []step {
	var steps []step
	size, add, remove, covering := p.Keep+len(p.Remove), p.Add, p.Remove, p.Covering
	for len(add) > 0 {
		n := min(len(add), maxCallEntries)
		if room := max(0, maxListEntries-size); room > 0 {
			n = min(n, room)
			size += n
			steps = append(steps, step{add: add[:n], size: size})
			add, covering = add[n:], max(0, covering-n)
			continue
		}
		if covering > 0 {
			n = min(n, covering)
		}
		n = min(max(n, size-maxListEntries+1), len(remove))
		size -= n
		steps = append(steps, step{remove: remove[:n], size: size})
		remove = remove[n:]
	}
	if len(remove) > 0 {
		steps = append(steps, step{remove: remove, size: size - len(remove)})
	}
	return steps
}
