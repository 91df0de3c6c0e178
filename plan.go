package webdelivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/listguard"
	"github.com/webdelivery/webdelivery-go/internal/listorder"
	"github.com/webdelivery/webdelivery-go/internal/planning"
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

// ErrPlanRefused means that the list was read and stays as it is, because it, or a guard of [PlanOptions], does not allow
// the plan. It matches a [*PlanError].
var ErrPlanRefused = errors.New("webdelivery: plan refused")

// ErrTooManyRemovals means that a plan removes more entries than [PlanOptions].MaxRemove allows. It matches a
// [*TooManyRemovalsError].
var ErrTooManyRemovals = errors.New("webdelivery: the plan removes too many entries")

// PlanError is a plan that [NetworkListsService.Plan] or [NetworkListsService.Apply] refuses because of what the list
// holds or of a guard of [PlanOptions]. Nothing was changed, so its outcome is [OutcomeNotApplied]. It matches
// [ErrPlanRefused] and never [ErrInvalid]. Several of them come joined, a hundred at most; errors.As finds the first.
type PlanError struct {
	Field  string // option such as MaxRemove, "desired", or a place such as desired[3] or remove[1]
	Reason string // what is wrong, and for a guard which value allows the plan
	// Plan is what was refused, so that a dry run can show it with String. Apply refuses it too, unless its own MaxRemove,
	// MaxAdd, WidestIPv4 or WidestIPv6 is changed to allow it. It is nil if the desired entries make no plan.
	Plan *Plan
}

// Error gives field and reason on one line.
func (e *PlanError) Error() string {
	return ErrPlanRefused.Error() + ": " + e.Field + ": " + redact.Line(redact.Within(prefix, e.Reason))
}

// Is matches [ErrPlanRefused].
func (e *PlanError) Is(target error) bool { return target == ErrPlanRefused }

// LogValue gives field and reason.
func (e *PlanError) LogValue() slog.Value {
	return slog.GroupValue(slog.String("field", e.Field), slog.String("reason", redact.Line(e.Reason)))
}

func (e *PlanError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

// TooManyRemovalsError is a plan that removes more entries than [PlanOptions].MaxRemove allows. It matches
// [ErrTooManyRemovals], and it is a [*PlanError] too.
type TooManyRemovalsError struct {
	PlanError // its Field is MaxRemove

	Remove  int          // entries that the plan removes
	Allowed int          // entries that Limit allows to remove
	Size    int          // entries of the list
	Limit   RemovalLimit // MaxRemove of the plan
}

// Is matches [ErrTooManyRemovals].
func (e *TooManyRemovalsError) Is(target error) bool { return target == ErrTooManyRemovals }

// Unwrap gives the PlanError.
func (e *TooManyRemovalsError) Unwrap() error { return &e.PlanError }

// refused makes a PlanError of what is wrong with a plan; nil is none that was made.
func (p *Plan) refused(e *ValidationError) error { return &PlanError{e.Field, e.Reason, p} }

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
		return invalid("version", "the plan has none; create a plan with NetworkLists.Plan (one that an earlier SDK stored: plan again)")
	}
	return invalid("version", "the plan has version %d, and this SDK applies version %d; plan again", version, planVersion)
}

// Empty tells whether the list is as desired.
func (p *Plan) Empty() bool { return len(p.Add) == 0 && len(p.Remove) == 0 }

// Size is how many entries the list holds when the plan has been applied.
func (p *Plan) Size() int { return p.Keep + len(p.Add) }

// String tells people what would change, in some lines: the numbers, and at most 20 entries that are added and 20 that
// are removed. Its form may change.
func (p *Plan) String() string {
	text := planning.Summary{
		Type: string(p.Type), Name: p.Name, ListID: p.ListID, Add: p.Add, Remove: len(p.Remove), Keep: p.Keep, Peak: p.PeakSize,
		Requests: p.Requests, Covering: p.CoveringAdds, Uncovered: p.UncoveredDuringApply,
		Removed: func(i int) string { return p.Remove[i].Entry },
	}
	return text.String()
}

// Plan compares the desired entries with a list (service-interface section 4.6), by what they mean (open point 27):
// 192.0.2.1 and 192.0.2.1/32 are the same. It reads and changes nothing, desired included; what is there twice counts
// once.
//
// Plan returns a [*ValidationError] and sends nothing for options out of their ranges, for entries that no list can hold
// together, and for more than 50,000 of them (service-interface section 8). If the entries do not belong to the type of
// the list, if the list would hold more than 50,000, or if a guard of [PlanOptions] does not allow the plan, Plan returns
// a [*PlanError], because it had to read the list to know. The Field of these errors is an option, "desired", or the place
// of an entry, such as "desired[3]"; several are joined, up to 100 ([errors.Join]). A text that is neither an address, a
// range nor a country code, such as XK, is accepted only if the list holds it already. With any error the returned plan
// is nil; what a guard refused is in the error.
//
// Plan returns [ErrNotFound] if the list does not exist, [ErrBadReply] if its response has no type or is another list,
// and a [*PaginationError] if the list changes while it is read; then plan again. It compares the pages with one
// another, with their total, and with the entries that the list itself shows, each as often as it comes.
func (s *NetworkListsService) Plan(ctx context.Context, id string, desired []string, options PlanOptions) (*Plan, error) {
	if err := cmp.Or(s.via().usable(ctx), options.normalize()); err != nil {
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
	if err := wanted.check(list.Type, has, (*Plan)(nil).refused); err != nil {
		return nil, err
	}
	plan, err := newPlan(list, current, has, slices.Concat(wanted.entries, wanted.strange))
	if err != nil {
		return nil, err
	}
	plan.guard(options)
	places := listguard.Places(plan.Add, desired)
	if plan.check(places) == nil {
		return plan, nil
	}
	s.funnel.secrets.Texts(&plan.Name) // it is a part of an error now
	for i := range plan.Remove {
		e := &plan.Remove[i]
		s.funnel.secrets.Texts(&e.ID, &e.URI, &e.Entry, &e.AddedBy)
	}
	return nil, plan.check(places)
}

// check refuses to change more of the list than the guards of the plan allow. placeOf tells where an added entry comes
// from.
func (p *Plan) check(placeOf func(i int) string) error {
	bad := problems{as: p.refused}
	n, size := len(p.Remove), p.Keep+len(p.Remove)
	if most, _ := listguard.Removals(string(p.MaxRemove), size); n > most {
		number, share := listguard.AllowRemovals(n, size)
		reason := fmt.Sprintf("%d of %d entries would be removed, for example %s, and at most %d may be (%s); set MaxRemove to %q or %q to allow it",
			n, size, redact.Line(p.Remove[0].Entry), most, p.MaxRemove, number, share)
		bad.found = append(bad.found, &TooManyRemovalsError{PlanError{"MaxRemove", reason, p}, n, most, size, p.MaxRemove})
	}
	guards := p.guards()
	for option, reason := range guards.additions().Refused(p.Add, placeOf) {
		bad.add(option, "%s", reason)
	}
	return bad.err()
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
		reason := fmt.Sprintf("the list would hold %d entries, and %d are the most", p.Keep+len(add), maxListEntries)
		return nil, &PlanError{Field: "desired", Reason: reason}
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

// readyToApply refuses a plan that was changed in a way that Plan would not have made it, as far as that is known before
// the list is read. It returns the plan as it is carried out, and what it adds.
func readyToApply(p Plan) (*Plan, []ipset.Entry, error) {
	if err := checkVersion(p.Version); err != nil {
		return nil, nil, err
	}
	if !address.Fits(p.ListID) {
		return nil, nil, invalid("list_id", "%q is no id of a list; create a plan with NetworkLists.Plan", p.ListID)
	}
	add, err := parseEntries("add", p.Type, p.Add)
	if err != nil {
		return nil, nil, err
	}
	p.Add = ipset.Texts(add)
	for i, e := range p.Remove {
		if !address.Fits(e.ID) {
			return nil, nil, invalid(fmt.Sprintf("remove[%d].id", i), "%q is no id", e.ID)
		}
	}
	if p.Keep < 0 || p.Size() > maxListEntries || p.CoveringAdds < 0 || p.CoveringAdds > len(p.Add) {
		return nil, nil, invalid("plan", "makes no sense: keep %d, add %d, covering_adds %d, and %d entries are the most",
			p.Keep, len(p.Add), p.CoveringAdds, maxListEntries)
	}
	guards := p.guards()
	if err := guards.normalize(); err != nil {
		return nil, nil, err
	}
	p.guard(guards)
	return &p, add, p.check(func(i int) string { return fmt.Sprintf("add[%d]", i) })
}

// stepsFor refuses a plan that was not made for the list as it is. It returns the steps of the plan.
func (p *Plan) stepsFor(current []held, add []ipset.Entry) ([]listorder.Step, error) {
	if fingerprint(current) != p.Fingerprint {
		return nil, &changeError{fmt.Errorf("%w: it is not what it was when the plan was made", ErrPlanStale), OutcomeNotApplied}
	}
	if p.fitsNone(current) {
		return nil, &PlanError{"type", fmt.Sprintf("does not fit the list: none of its entries belongs to a list of type %s", p.Type), p}
	}
	there := make(map[string]*held, len(current))
	for i := range current {
		there[current[i].ID] = &current[i]
	}
	remove := make([]*held, len(p.Remove))
	for i, e := range p.Remove {
		if remove[i] = there[e.ID]; remove[i] == nil || remove[i].Entry != e.Entry {
			return nil, &PlanError{fmt.Sprintf("remove[%d]", i), "is not in the list, or comes twice", p}
		}
		delete(there, e.ID)
	}
	if p.Keep != len(there) {
		reason := fmt.Sprintf("does not fit the list: keep %d, remove %d, and there are %d entries", p.Keep, len(p.Remove), len(current))
		return nil, &PlanError{"keep", reason, p}
	}
	return stepsOf(slices.Collect(maps.Values(there)), add, remove), nil
}

// fitsNone reports whether the list has entries of the other type, and none of the plan's.
func (p *Plan) fitsNone(current []held) bool {
	others := false
	for i := range current {
		if e, err := ipset.Parse(current[i].Entry); err == nil {
			if listTypeOf(e) == p.Type {
				return false
			}
			others = true
		}
	}
	return others && (p.Type == ListTypeIP || p.Type == ListTypeGEO)
}

// guard takes over the guards of options.
func (p *Plan) guard(o PlanOptions) {
	p.MaxRemove, p.MaxAdd, p.WidestIPv4, p.WidestIPv6 = o.MaxRemove, o.MaxAdd, o.WidestIPv4, o.WidestIPv6
}

// guards are those of the plan as options.
func (p *Plan) guards() PlanOptions {
	return PlanOptions{MaxRemove: p.MaxRemove, MaxAdd: p.MaxAdd, WidestIPv4: p.WidestIPv4, WidestIPv6: p.WidestIPv6}
}
