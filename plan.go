package webdelivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/listorder"
	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Plan compares a desired set of entries with a network list as it is; Apply carries the plan out. Apply adds before it
// removes, so that what is protected before and after stays protected in between, except as far as room must be made in
// a full list. Each step can be repeated without harm, so an Apply that was interrupted is mended by planning and
// applying again, once the tasks that it left have ended well.

// ErrPlanStale means that the list is not what it was when the plan was made, or not what the plan should have made of
// it. Somebody else changed it, or an earlier Apply whose request arrived late, or a change is not in effect yet. The
// message says which, as far as that is known. Plan again.
var ErrPlanStale = errors.New("webdelivery: the list is not as planned")

// Plan is what would change in a network list. It can be stored as JSON and applied later, by another process too.
// [NetworkListsService.Plan] makes it; one that was changed since may be refused by Apply.
type Plan struct {
	// Version is that of the stored form, 1. A plan of another version is refused when it is read and when it is applied.
	Version int `json:"version"`

	ListID string             `json:"list_id"` // UUID
	Type   NetworkListType    `json:"type"`    // of the list
	Name   string             `json:"name"`    // of the list
	Add    []string           `json:"add"`     // in the order in which they are added
	Remove []NetworkListEntry `json:"remove"`  // in the order in which they are removed
	Keep   int                `json:"keep"`    // entries that stay
	// PeakSize is the most entries that the list holds on the way.
	PeakSize int `json:"peak_size"`
	// Requests is how many requests Apply sends to change the list; reading it comes on top.
	Requests int `json:"requests"`
	// CoveringAdds is how many of Add, from the first, cover addresses of entries that are removed. Unless Apply waits and a task
	// is named, it assumes that they are in effect when their call was accepted.
	CoveringAdds int `json:"covering_adds"`
	// MaxRemove is that of the options, with the default in place of "". Apply keeps to it too.
	MaxRemove RemovalLimit `json:"max_remove"`
	// MaxAdd is that of the options, with the default in place of 0. Apply keeps to it too.
	MaxAdd int `json:"max_add"`
	// WidestIPv4 is that of the options, with the default in place of 0. Apply keeps to it too.
	WidestIPv4 int `json:"widest_ipv4"`
	// WidestIPv6 is that of the options, with the default in place of 0. Apply keeps to it too.
	WidestIPv6 int `json:"widest_ipv6"`
	// UncoveredDuringApply is how many entries must be removed before the added ones that cover their addresses, because the list
	// has no room for both. No order of the changes leaves fewer addresses uncovered at once.
	UncoveredDuringApply int `json:"uncovered_during_apply"`
	// Fingerprint is one of the list that was compared, by which Apply knows it again.
	Fingerprint string `json:"fingerprint"`
}

// planVersion changes with the members of a Plan. Version 0 is that of plans that were stored before there was one.
const planVersion = 1

// UnmarshalJSON reads a stored plan. It returns a [*ValidationError] for a plan of another version and for what is no
// plan: plan again.
func (p *Plan) UnmarshalJSON(b []byte) error {
	var stored struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &stored); err != nil {
		return invalid("plan", "%s", decodeReason(err))
	}
	if err := checkVersion(stored.Version); err != nil {
		return err
	}
	type plain Plan
	if err := json.Unmarshal(b, (*plain)(p)); err != nil {
		return invalid("plan", "%s", decodeReason(err))
	}
	return nil
}

func checkVersion(version int) error {
	switch version {
	case planVersion:
		return nil
	case 0:
		return invalid("version", "the plan has none, as an earlier SDK stored it; plan again")
	}
	return invalid("version", "the plan has version %d, and this SDK applies version %d; plan again", version, planVersion)
}

// Empty tells whether the list is as desired.
func (p *Plan) Empty() bool { return len(p.Add) == 0 && len(p.Remove) == 0 }

// Size is how many entries the list holds when the plan has been applied.
func (p *Plan) Size() int { return p.Keep + len(p.Add) }

// shownEntries bounds how many entries of a kind String lists.
const shownEntries = 20

// String tells people what would change, in some lines: the numbers, and at most 20 entries that are added and 20 that
// are removed. Its form may change.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s list %s (%s): ", p.Type, redact.Line(p.Name), redact.Line(p.ListID))
	if p.Empty() {
		fmt.Fprintf(&b, "nothing to change, %d entries\n", p.Keep)
		return b.String()
	}
	fmt.Fprintf(&b, "add %d, remove %d, keep %d; %d entries become %d, %d at most on the way; %d requests\n",
		len(p.Add), len(p.Remove), p.Keep, p.Keep+len(p.Remove), p.Size(), p.PeakSize, p.Requests)
	if p.UncoveredDuringApply > 0 {
		fmt.Fprintf(&b, "the list is full: the addresses of %d entries are not covered for a moment\n", p.UncoveredDuringApply)
	}
	if p.CoveringAdds > 0 && len(p.Remove) > 0 {
		fmt.Fprintf(&b, "%d added entries cover removed ones; unless Apply waits and a task is named, they must be in effect when their call is accepted\n", p.CoveringAdds)
	}
	for i, e := range p.Add {
		if i == shownEntries {
			fmt.Fprintf(&b, "+ and %d more\n", len(p.Add)-i)
			break
		}
		b.WriteString("+ " + redact.Line(e) + "\n")
	}
	for i, e := range p.Remove {
		if i == shownEntries {
			fmt.Fprintf(&b, "- and %d more\n", len(p.Remove)-i)
			break
		}
		b.WriteString("- " + redact.Line(e.Entry) + "\n")
	}
	return b.String()
}

// Plan compares the desired entries with a list (service-interface section 4.6), by what they mean (open point 27):
// 192.0.2.1 and 192.0.2.1/32 are the same. It reads and changes nothing, desired included; what is there twice counts
// once.
//
// Plan returns a [*ValidationError] for options out of their ranges, for entries that do not belong to the type of the
// list, for a result of more than 50,000 entries (service-interface section 8), and for what the guards of
// [PlanOptions] do not allow. Its Field is an option, "desired", or the place of an entry, such as "desired[3]";
// several are joined, up to 100 ([errors.Join]). A text that is neither an address, a range nor a country code, such as
// XK, is accepted only if the list holds it already. With any error the plan is nil. To see what a guard refused, plan
// again with that guard open; nothing is changed until Apply.
//
// Plan returns [ErrNotFound] if the list does not exist, [ErrBadReply] if its response has no type or is another list,
// and a [*PaginationError] if the list changes while it is read; then plan again. It compares the pages with one
// another, with their total, and with the entries that the list itself shows, each as often as it comes.
func (s *NetworkListsService) Plan(ctx context.Context, id string, desired []string, options PlanOptions) (*Plan, error) {
	if err := options.normalize(); err != nil {
		return nil, err
	}
	wanted, err := readDesired(ctx, desired, options.Aggregate)
	if err != nil {
		return nil, err
	}
	list, current, err := s.wholeList(ctx, id)
	if err != nil {
		return nil, err
	}
	has := meanings(current)
	if err := wanted.check(list.Type, has); err != nil {
		return nil, err
	}
	plan, err := newPlan(list, current, has, slices.Concat(wanted.entries, wanted.strange))
	if err != nil {
		return nil, err
	}
	plan.guard(options)
	if err := options.check(len(current), plan.Add, plan.Remove, placesOf(plan.Add, desired)); err != nil {
		return nil, err
	}
	return plan, nil
}

// newPlan compares by meaning, and orders what follows from it. has is what current means.
func newPlan(list *NetworkList, current []held, has ipset.Meanings, wanted []ipset.Entry) (*Plan, error) {
	p := &Plan{Version: planVersion, ListID: list.ID, Type: list.Type, Name: list.Name, Fingerprint: fingerprint(current)}
	wants := make(ipset.Meanings, len(wanted))
	add := make([]ipset.Entry, 0, len(wanted))
	for _, e := range wanted {
		wants[e.Meaning] = true
		if !has[e.Meaning] {
			add = append(add, e)
		}
	}
	remove, keep := make([]*held, 0, len(current)), make([]*held, 0, len(current))
	for i := range current {
		e := &current[i]
		if wants[e.Meaning] {
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
	return p, nil
}

// order puts the changes into the best order, and says what comes of it.
func (p *Plan) order(keep []*held, add []ipset.Entry, remove []*held) {
	o := listorder.Best(prefixesOf(keep, heldPrefix), prefixesOf(add, entryPrefix), prefixesOf(remove, heldPrefix), listLimits)
	p.Add, p.Remove = make([]string, len(add)), make([]NetworkListEntry, len(remove))
	for at, i := range o.Add {
		p.Add[at] = add[i].Text
	}
	for at, i := range o.Remove {
		p.Remove[at] = remove[i].NetworkListEntry
	}
	p.PeakSize, p.Requests, p.CoveringAdds, p.UncoveredDuringApply = o.Largest, o.Calls, o.Covering, o.Uncovering
}

// listLimits are those of service-interface section 8.
var listLimits = listorder.Limits{List: maxListEntries, Call: maxCallEntries}

// stepsOf returns how changes are carried out that are in order already.
func stepsOf(keep []*held, add []ipset.Entry, remove []*held) []listorder.Step {
	return listorder.Steps(prefixesOf(keep, heldPrefix), prefixesOf(add, entryPrefix), prefixesOf(remove, heldPrefix), listLimits)
}

func prefixesOf[T any](entries []T, prefix func(T) netip.Prefix) []netip.Prefix {
	all := make([]netip.Prefix, len(entries))
	for i, e := range entries {
		all[i] = prefix(e)
	}
	return all
}

func heldPrefix(e *held) netip.Prefix        { return e.Prefix }
func entryPrefix(e ipset.Entry) netip.Prefix { return e.Prefix }

// checkPlan refuses a plan that was not made for the list as it is, or that was changed since in a way that Plan would
// not have made it. It returns the plan as it is carried out, and its steps.
func checkPlan(p Plan, current []held) (*Plan, []listorder.Step, error) {
	if err := checkVersion(p.Version); err != nil {
		return nil, nil, err
	}
	if fingerprint(current) != p.Fingerprint {
		return nil, nil, &changeError{fmt.Errorf("%w: it is not what it was when the plan was made", ErrPlanStale), OutcomeNotApplied}
	}
	add, err := parseEntries("add", p.Type, p.Add)
	if err != nil {
		return nil, nil, err
	}
	p.Add = ipset.Texts(add)
	there := make(map[string]*held, len(current))
	for i := range current {
		there[current[i].ID] = &current[i]
	}
	remove := make([]*held, len(p.Remove))
	for i, e := range p.Remove {
		if remove[i] = there[e.ID]; remove[i] == nil || remove[i].Entry != e.Entry {
			return nil, nil, invalid(fmt.Sprintf("remove[%d]", i), "is not in the list, or comes twice")
		}
		delete(there, e.ID)
	}
	if p.Keep != len(there) || p.Size() > maxListEntries || p.CoveringAdds < 0 || p.CoveringAdds > len(p.Add) {
		return nil, nil, invalid("plan", "does not fit the list: keep %d, remove %d, add %d, and there are %d entries",
			p.Keep, len(p.Remove), len(p.Add), len(current))
	}
	guards := p.guards()
	if err := guards.normalize(); err != nil {
		return nil, nil, err
	}
	p.guard(guards)
	if err := guards.check(len(current), p.Add, p.Remove, func(i int) string { return fmt.Sprintf("add[%d]", i) }); err != nil {
		return nil, nil, err
	}
	keep := slices.Collect(maps.Values(there))
	return &p, stepsOf(keep, add, remove), nil
}

// guard takes over the guards of options.
func (p *Plan) guard(o PlanOptions) {
	p.MaxRemove, p.MaxAdd, p.WidestIPv4, p.WidestIPv6 = o.MaxRemove, o.MaxAdd, o.WidestIPv4, o.WidestIPv6
}

// guards are those of the plan as options.
func (p *Plan) guards() PlanOptions {
	return PlanOptions{MaxRemove: p.MaxRemove, MaxAdd: p.MaxAdd, WidestIPv4: p.WidestIPv4, WidestIPv6: p.WidestIPv6}
}
