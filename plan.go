package webdelivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/ipset"
	"github.com/webdelivery/webdelivery-go/internal/listguard"
	"github.com/webdelivery/webdelivery-go/internal/listorder"
	"github.com/webdelivery/webdelivery-go/internal/planning"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// Plan compares desired entries with a network list, and Apply carries the plan out. Apply adds before it removes, so
// that what is protected before and after stays protected in between. The exception is a full list, in which Apply
// must make room. Each step can be repeated without harm. After an interrupted Apply, wait for its tasks, then plan
// and apply again.

// ErrPlanStale means that the list is not what the plan was made for, or not what the plan should have made of it.
// Somebody else changed it, an earlier Apply had a request that arrived late, or a change is not in effect yet. The
// message says which, if that is known. Plan again.
var ErrPlanStale = errors.New("webdelivery: the list is not as planned")

// ErrPlanRefused means that the content of the list or a guard of [PlanOptions] does not allow the plan. The list was
// read and not changed. It matches a [*PlanError].
var ErrPlanRefused = errors.New("webdelivery: plan refused")

// ErrTooManyRemovals means that a plan removes more entries than [PlanOptions].MaxRemove allows. It matches a
// [*TooManyRemovalsError].
var ErrTooManyRemovals = errors.New("webdelivery: the plan removes too many entries")

// PlanError means that [NetworkListsService.Plan] or [NetworkListsService.Apply] refuses a plan because of the
// content of the list or because of a guard of [PlanOptions]. Nothing was changed, so the outcome is
// [OutcomeNotApplied]. It matches [ErrPlanRefused] and never [ErrInvalid]. Several of them are joined, up to 100;
// errors.As finds the first.
type PlanError struct {
	Field  string // option such as MaxRemove, "desired", or a place such as desired[3] or remove[1]
	Reason string // what is wrong; for a guard also which value allows the plan
	// Plan is the refused plan; a dry run can print it. Apply refuses it too, unless its MaxRemove, MaxAdd,
	// WidestIPv4 or WidestIPv6 is changed to allow it. It is nil if no plan can be made from the desired entries.
	Plan *Plan
}

// Error returns one line with field and reason.
func (e *PlanError) Error() string {
	return ErrPlanRefused.Error() + ": " + e.Field + ": " + redact.Line(within(e.Reason))
}

// Is matches [ErrPlanRefused].
func (e *PlanError) Is(target error) bool { return target == ErrPlanRefused }

// LogValue returns field and reason.
func (e *PlanError) LogValue() slog.Value {
	return slog.GroupValue(slog.String("field", e.Field), slog.String("reason", redact.Line(e.Reason)))
}

func (e *PlanError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

// TooManyRemovalsError means that a plan removes more entries than [PlanOptions].MaxRemove allows. It matches
// [ErrTooManyRemovals], and errors.As also finds it as a [*PlanError].
type TooManyRemovalsError struct {
	PlanError // its Field is MaxRemove

	Remove  int          // entries that the plan removes
	Allowed int          // entries that Limit allows to remove
	Size    int          // entries of the list
	Limit   RemovalLimit // MaxRemove of the plan
}

// Is matches [ErrTooManyRemovals].
func (e *TooManyRemovalsError) Is(target error) bool { return target == ErrTooManyRemovals }

// Unwrap returns the PlanError.
func (e *TooManyRemovalsError) Unwrap() error { return &e.PlanError }

// refused returns the PlanError for a problem of the plan, which is nil if there is none yet.
func (p *Plan) refused(e *ValidationError) error { return &PlanError{e.Field, e.Reason, p} }

// Plan says what Apply would change in a network list. You may store it as JSON and apply it later, also in another
// process. [NetworkListsService.Plan] creates it. If a plan was edited, Apply may refuse it.
type Plan struct {
	// Version of the stored form: 1. A plan of another version can be neither read nor applied.
	Version int `json:"version"`

	ListID string             `json:"list_id"` // UUID
	Type   NetworkListType    `json:"type"`    // type of the list
	Name   string             `json:"name"`    // name of the list
	Add    []string           `json:"add"`     // entries to add, in the order of the additions
	Remove []NetworkListEntry `json:"remove"`  // entries to remove, in the order of the removals
	Keep   int                `json:"keep"`    // entries that stay
	// PeakSize is the most entries that the list holds during Apply.
	PeakSize int `json:"peak_size"`
	// Requests is how many requests Apply sends to change the list, without those that read it.
	Requests int `json:"requests"`
	// CoveringAdds is how many entries of Add, from the first, cover addresses of entries that are removed. Apply
	// considers them in effect when their call is accepted, unless it waits and the response names a task.
	CoveringAdds int          `json:"covering_adds"`
	MaxRemove    RemovalLimit `json:"max_remove"`  // guard of the options with its default filled in; Apply checks it again
	MaxAdd       int          `json:"max_add"`     // likewise
	WidestIPv4   int          `json:"widest_ipv4"` // likewise
	WidestIPv6   int          `json:"widest_ipv6"` // likewise
	// UncoveredDuringApply is how many entries Apply must remove before it adds the entries that cover their
	// addresses, because the list has no room for both. No order of the changes leaves fewer addresses uncovered at
	// once, unless the list already holds more entries than allowed.
	UncoveredDuringApply int `json:"uncovered_during_apply"`
	// Fingerprint identifies the content of the list that was compared. Apply compares it with the list.
	Fingerprint string `json:"fingerprint"`
}

// planVersion changes with the members of a Plan. Plans that were stored before there was a version have 0.
const planVersion = 1

// UnmarshalJSON reads a stored plan. If it has another version or is no plan, UnmarshalJSON returns a
// [*ValidationError]: plan again.
func (p *Plan) UnmarshalJSON(b []byte) error {
	var stored struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &stored); err != nil {
		return invalid("plan", "%s", wire.Reason(err))
	}
	if err := checkVersion(stored.Version); err != nil {
		return err
	}
	type plain Plan
	if err := json.Unmarshal(b, (*plain)(p)); err != nil {
		return invalid("plan", "%s", wire.Reason(err))
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

// Empty reports whether there is nothing to change.
func (p *Plan) Empty() bool { return len(p.Add) == 0 && len(p.Remove) == 0 }

// Size returns how many entries the list holds after Apply.
func (p *Plan) Size() int { return p.Keep + len(p.Add) }

// String describes the changes for people, in some lines: the numbers, and at most 20 added and 20 removed entries.
// Its form may change.
func (p *Plan) String() string {
	text := planning.Summary{
		Type: string(p.Type), Name: p.Name, ListID: p.ListID, Add: p.Add, Remove: len(p.Remove), Keep: p.Keep, Peak: p.PeakSize,
		Requests: p.Requests, Covering: p.CoveringAdds, Uncovered: p.UncoveredDuringApply,
		Removed: func(i int) string { return p.Remove[i].Entry },
	}
	return text.String()
}

// Plan compares desired entries with a list, and returns the changes that make the list equal to them. It compares
// meanings: 192.0.2.1 and 192.0.2.1/32 are the same (open point 27). An entry that comes twice counts once. Plan
// changes neither the list nor desired.
//
// If options are invalid, or if no list can hold the entries together, Plan returns a [*ValidationError] and sends
// nothing. It does the same for more than 50,000 entries. Plan returns a [*PlanError] if the entries do not fit the
// type of the list, or if the list would hold more than 50,000. The same error means that a guard of [PlanOptions]
// does not allow the plan. Their Field is an option, "desired", or the place of an entry, such as "desired[3]".
// Several errors are joined, up to 100 ([errors.Join]). With any error the returned plan is nil; a PlanError holds
// the refused plan.
//
// A text that is neither an address, a range nor a country code, such as XK, is only accepted if the list already
// holds it.
//
// If the list does not exist, Plan returns [ErrNotFound]. If the response has no type or is another list, it returns
// [ErrBadReply]. If the list changes while it is read, it returns a [*PaginationError]: plan again. To notice this,
// Plan compares the pages with one another, with their total, and with the entries of the list itself. (Service
// document, [section 4.6].)
//
// [section 4.6]: https://github.com/webdelivery/webdelivery-go/blob/main/docs/service-interface.md#46-network-lists
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
	bad := problems{as: (*Plan)(nil).refused}
	wanted.Check(string(list.Type), func() ipset.Meanings { return meanings(current) }, bad.entry("desired", len(desired)))
	if err := bad.err(); err != nil {
		return nil, err
	}
	plan, err := newPlan(list, current, wanted.Entries())
	if err != nil {
		return nil, err
	}
	plan.guard(options)
	places := listguard.Places(plan.Add, desired)
	if plan.check(places) == nil {
		return plan, nil
	}
	return nil, s.shown(plan).check(places)
}

// shown returns a copy of a plan for an error, without the client's secrets.
func (s *NetworkListsService) shown(p *Plan) *Plan {
	shown := *p
	shown.Remove = slices.Clone(p.Remove)
	s.funnel.redactAll(&shown.Name)
	for i, e := range shown.Remove {
		s.funnel.redactAll(&e.ID, &e.URI, &e.Entry, &e.AddedBy)
		shown.Remove[i] = e
	}
	return &shown
}

// check refuses a plan beyond its guards. placeOf returns the place of an added entry. The error shows the plan.
func (p *Plan) check(placeOf func(i int) string) error {
	bad := problems{as: p.refused}
	n, size := len(p.Remove), p.Keep+len(p.Remove)
	if most, _ := listguard.Removals(string(p.MaxRemove), size); n > most {
		number, share := listguard.AllowRemovals(n, size)
		reason := fmt.Sprintf("%d of %d entries would be removed, for example %s, but at most %d are allowed (%s); set MaxRemove to %q or %q to allow it",
			n, size, redact.Line(p.Remove[0].Entry), most, p.MaxRemove, number, share)
		bad.found = append(bad.found, &TooManyRemovalsError{PlanError{"MaxRemove", reason, p}, n, most, size, p.MaxRemove})
	}
	guards := p.guards()
	for option, reason := range guards.additions().Refused(p.Add, placeOf) {
		bad.add(option, "%s", reason)
	}
	return bad.err()
}

// newPlan compares meanings and orders the changes.
func newPlan(list *NetworkList, current []NetworkListEntry, wanted *ipset.Distinct) (*Plan, error) {
	c, err := planning.Compare(current, func(e *NetworkListEntry) ipset.Meaning { return e.read().Meaning }, wanted, listLimits)
	if err != nil {
		return nil, &PlanError{Field: "desired", Reason: err.Error()}
	}
	p := &Plan{
		Version: planVersion, ListID: list.ID, Type: list.Type, Name: list.Name, Fingerprint: fingerprint(current),
		Add: make([]string, len(c.Add)), Remove: make([]NetworkListEntry, len(c.Remove)), Keep: c.Keep,
		PeakSize: c.Largest, Requests: c.Calls, CoveringAdds: c.Covering, UncoveredDuringApply: c.Uncovering,
	}
	for at, i := range c.Add {
		p.Add[at] = wanted.Entries[i].Text
	}
	for at, i := range c.Remove {
		p.Remove[at] = current[i]
	}
	return p, nil
}

// listLimits are the limits in section 8 of the service document.
var listLimits = listorder.Limits{List: maxListEntries, Call: maxCallEntries}

// readyToApply refuses a plan that was edited so that Plan could not have made it, as far as this is visible without
// the list. It returns the plan to carry out and the meanings of the added entries.
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
	return &p, add, nil
}

// stepsFor refuses a plan that was made for another state of the list. It returns the steps of the plan.
func (s *NetworkListsService) stepsFor(p *Plan, current []NetworkListEntry, add []ipset.Entry) ([]listorder.Step, error) {
	if fingerprint(current) != p.Fingerprint {
		return nil, &changeError{fmt.Errorf("%w: it is not what it was when the plan was made", ErrPlanStale), OutcomeNotApplied}
	}
	stored := planning.Stored{
		Type: string(p.Type), Add: add, Remove: len(p.Remove), Keep: p.Keep,
		Removed: func(i int) (id, text string) { return p.Remove[i].ID, p.Remove[i].Entry },
	}
	steps, misfit := planning.Steps(stored, current, func(e *NetworkListEntry) planning.Entry { return planning.Entry{ID: e.ID, Entry: e.read()} }, listLimits)
	if misfit != nil {
		return nil, &PlanError{misfit.Field, misfit.Reason, s.shown(p)}
	}
	return steps, nil
}

// guard copies the guards of the options into the plan.
func (p *Plan) guard(o PlanOptions) {
	p.MaxRemove, p.MaxAdd, p.WidestIPv4, p.WidestIPv6 = o.MaxRemove, o.MaxAdd, o.WidestIPv4, o.WidestIPv6
}

// guards returns the guards of the plan as options.
func (p *Plan) guards() PlanOptions {
	return PlanOptions{MaxRemove: p.MaxRemove, MaxAdd: p.MaxAdd, WidestIPv4: p.WidestIPv4, WidestIPv6: p.WidestIPv6}
}
