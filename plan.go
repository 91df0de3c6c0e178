package webdelivery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/webdelivery/webdelivery-go/internal/address"
	"github.com/webdelivery/webdelivery-go/internal/lists"
	"github.com/webdelivery/webdelivery-go/internal/redact"
	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// ErrPlanStale means that the list is neither what the plan was made for nor what it makes of it, or not as planned after
// Apply: somebody else changed it, a request of an earlier Apply arrived late, or a change is not in effect yet. The
// message says which, if that is known. Plan again.
var ErrPlanStale = errors.New("webdelivery: the list is not as planned")

// PlanError means that [NetworkListsService.Plan] or [NetworkListsService.Apply] refuses a plan because of the content
// of the list or a guard of [PlanOptions]. Nothing was changed. Several of them are joined, up to 100; errors.As finds
// the first.
type PlanError struct {
	Field  string // option such as MaxRemove, "desired", or a place such as desired[3] or remove[1]
	Reason string // what is wrong; for a guard also which value allows the plan
	// Plan is the refused plan; a dry run can print it. Apply refuses it too, unless its Options are changed to allow it. It
	// is nil if no plan can be made from the desired entries.
	Plan *Plan
}

// Error returns one line with field and reason.
func (e *PlanError) Error() string {
	return prefix + "plan refused: " + e.Field + ": " + redact.Line(within(e.Reason))
}

func (e *PlanError) outcomeOfWrite() Outcome { return OutcomeNotApplied }

// refused returns the PlanError for a problem of the plan, which is nil if there is none yet.
func (p *Plan) refused(e *ValidationError) error { return &PlanError{e.Field, e.Reason, p} }

// Plan says what Apply would change in a network list. You may store it as JSON and apply it later, even in another
// process. Whoever can edit a stored plan decides what Apply changes, and can change the guards.
type Plan struct {
	// Version of the stored form: 1.
	Version int `json:"version"`

	// MadeAt is when Plan made it, in UTC. Service is the origin of the service, and Customer the customer, whose list it
	// is for: Apply refuses a plan for others.
	MadeAt   time.Time `json:"made_at"`
	Service  string    `json:"service"`
	Customer string    `json:"customer"`

	ListID string             `json:"list_id"` // UUID
	Type   NetworkListType    `json:"type"`    // type of the list
	Name   string             `json:"name"`    // name of the list
	Add    []string           `json:"add"`     // entries to add
	Remove []NetworkListEntry `json:"remove"`  // entries to remove
	Keep   int                `json:"keep"`    // entries that stay
	// Undated is how many of these stay only because nobody knows when they were added, see PlanOptions.Protect.
	Undated int `json:"undated,omitempty"`
	// UncoveredDuringApply is how many entries at most Apply removes before it adds those that may cover their
	// addresses, because the list has no room for both.
	UncoveredDuringApply int `json:"uncovered_during_apply"`
	// LeftOut are the desired entries that overlap one of PlanOptions.LeaveOut.
	LeftOut []string `json:"left_out,omitempty"`
	// Options are those of Plan, with the defaults of the guards filled in. Apply checks the guards again.
	Options PlanOptions `json:"options"`
	// Fingerprint identifies the content of the list that was compared. Apply compares it, except with AddOnly or
	// RemoveOnly.
	Fingerprint string `json:"fingerprint"`
}

// planVersion changes with the members of a Plan.
const planVersion = 1

// UnmarshalJSON reads a stored plan. If it has another version or is not a plan, UnmarshalJSON returns a
// [*ValidationError]: plan again.
func (p *Plan) UnmarshalJSON(b []byte) error {
	var stored struct {
		Version int `json:"version"`
	}
	type plain Plan
	err := json.Unmarshal(b, &stored)
	if err == nil {
		if err := checkVersion(stored.Version); err != nil {
			return err
		}
		*p = Plan{}
		err = json.Unmarshal(b, (*plain)(p))
	}
	if err != nil {
		return invalid("plan", "%s", wire.Reason(err))
	}
	return nil
}

func checkVersion(version int) error {
	switch version {
	case planVersion:
		return nil
	case 0:
		return invalid("version", "the plan has none; create it with NetworkLists.Plan")
	}
	return invalid("version", "the plan has version %d, and this SDK applies version %d; plan again", version, planVersion)
}

// Empty reports whether there is nothing to change.
func (p *Plan) Empty() bool { return len(p.Add) == 0 && len(p.Remove) == 0 }

// String describes the changes for people, in a few lines: the numbers, and at most 20 added and 20 removed entries.
// The format may change.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s list %s (%s): ", p.Type, redact.Line(p.Name), redact.Line(p.ListID))
	kept := ""
	if p.Undated > 0 {
		kept = fmt.Sprintf(", %d of them because nobody knows when they were added", p.Undated)
	}
	if p.Empty() {
		fmt.Fprintf(&b, "nothing to change, %d entries%s\n", p.Keep, kept)
	} else {
		fmt.Fprintf(&b, "add %d, remove %d, keep %d%s; %s %d\n",
			len(p.Add), len(p.Remove), p.Keep, kept, counted(p.Keep+len(p.Remove), "entry becomes", "entries become"), p.Keep+len(p.Add))
	}
	if p.UncoveredDuringApply > 0 {
		fmt.Fprintf(&b, "the list is full: the addresses of up to %d entries are not covered for a moment\n", p.UncoveredDuringApply)
	}
	first := func(sign string, n int, text func(i int) string) {
		const shown = 20
		for i := range min(n, shown) {
			b.WriteString(sign + redact.Line(text(i)) + "\n")
		}
		if n > shown {
			fmt.Fprintf(&b, "%sand %d more\n", sign, n-shown)
		}
	}
	first("+ ", len(p.Add), func(i int) string { return p.Add[i] })
	first("- ", len(p.Remove), func(i int) string {
		if _, err := lists.ParseFor(string(p.Type), p.Remove[i].Entry); err != nil {
			return p.Remove[i].Entry + " (AddEntries cannot add it back)"
		}
		return p.Remove[i].Entry
	})
	first("left out: ", len(p.LeftOut), func(i int) string { return p.LeftOut[i] })
	return b.String()
}

// Plan compares desired entries with a list, and returns the changes that make the list equal to them, or with AddOnly
// or RemoveOnly, that add or remove them. It compares meanings: 192.0.2.1 and 192.0.2.1/32 are the same. A text that
// is not an address, a range or an ISO country code, such as XK, is accepted only if the list holds it.
//
// Plan returns a [*ValidationError] and sends nothing if no list can hold the entries together, and a [*PlanError] if
// they do not fit this list, or with the refused plan if a guard of [PlanOptions] does not allow it. If the list
// changes while it is read, it returns an [*IncompleteError]: plan again.
func (s *NetworkListsService) Plan(ctx context.Context, id string, desired []string, options PlanOptions) (*Plan, error) {
	if err := options.normalize(); err != nil {
		return nil, err
	}
	wanted, err := readDesired(ctx, desired, options, s.limits.List)
	if err != nil {
		return nil, err
	}
	list, err := s.GetSummary(ctx, id)
	if err != nil {
		return nil, err
	}
	listType := s.conn.secrets.Text(string(list.Type))
	if listType == "" { // without it, Plan does not know what it may add
		return nil, s.unusable("the list %s has no type", id)
	}
	current, held, err := s.snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	bad := problems{as: (*Plan)(nil).refused}
	if err := bad.entries("desired", len(desired), wanted.Unfit(listType, held)); err != nil {
		return nil, err
	}
	changes := wanted.Compare(held, options.AddOnly, options.RemoveOnly)
	undated, candidates := 0, len(changes.Remove)
	if options.Protect != nil {
		changes.Remove = slices.DeleteFunc(changes.Remove, func(i int) bool {
			if options.Protect(current[i]) {
				return true
			}
			isUndated := current[i].CreationTimestamp.IsZero()
			if isUndated {
				undated++
			}
			return isUndated
		})
	}
	unprotected := len(held) - (candidates - len(changes.Remove))
	if n := changes.Size(); n > s.limits.List { // the list may hold a meaning twice
		return nil, (*Plan)(nil).refused(invalid("desired", "the list would hold %d entries, but at most %d are allowed", n, s.limits.List))
	}
	plan := &Plan{
		Version: planVersion, MadeAt: time.Now().UTC().Truncate(time.Second), ListID: id, Type: NetworkListType(listType), Name: list.Name, Add: lists.Texts(changes.Add),
		Remove: make([]NetworkListEntry, len(changes.Remove)), Fingerprint: lists.Fingerprint(listType, held),
		Options: options, LeftOut: wanted.LeftOut, Undated: undated,
	}
	plan.Service, plan.Customer, _ = strings.Cut(s.conn.service, "\n")
	for n, i := range changes.Remove {
		plan.Remove[n] = current[i]
	}
	plan.order(changes, s.limits)
	plan.Options.MaxRemove = cmp.Or(options.MaxRemove, lists.Removals(0, unprotected))
	if err := ctx.Err(); err != nil { // Protect may take long
		return nil, planEnded(err)
	}
	places := sync.OnceValue(wanted.Places) // only an error needs them
	err = s.guard(plan, changes, unprotected, func(i int) string {
		if at, ok := places()[changes.Add[i].Meaning]; ok {
			return fmt.Sprintf("desired[%d]", at)
		}
		return "merged by Aggregate"
	})
	if err != nil {
		return nil, err
	}
	return plan, nil
}

// planEnded returns the error of a Plan whose context has ended.
func planEnded(err error) error { return &outcomeError{fmt.Errorf("plan: %w", err), OutcomeNotApplied} }

// readDesired reads the entries before the list is read, and refuses entries that no list can hold.
func readDesired(ctx context.Context, texts []string, options PlanOptions, limit int) (*lists.Desired, error) {
	d, err := lists.NewDesired(ctx, texts, options.LeaveOut, limit)
	if err != nil {
		return nil, planEnded(err)
	}
	var bad problems
	if err := bad.entries("desired", len(texts), d.Impossible(limit)); err != nil {
		return nil, err
	}
	if options.Aggregate && !options.RemoveOnly { // it would merge the names of entries into ranges that the list does not hold
		d.Aggregate()
	}
	if n := len(d.Entries); n > limit {
		return nil, invalid("desired", "%d entries are more than the %d that a list can hold", n, limit)
	}
	return d, nil
}

// order finds the order of the changes, and fills in the numbers that follow from it.
func (p *Plan) order(c *lists.Changes, l lists.Limits) lists.Order {
	o := c.Order(l)
	p.Keep, p.UncoveredDuringApply = c.Size()-len(c.Add), o.Uncovered
	return o
}

// shown returns a copy of a plan for an error, without the client's secrets.
func (s *NetworkListsService) shown(p *Plan) *Plan {
	shown := *p
	shown.Remove = slices.Clone(p.Remove)
	s.conn.redactAll(&shown.Name)
	for i, e := range shown.Remove {
		s.conn.redactAll(&e.ID, &e.URI, &e.Entry, &e.AddedBy)
		shown.Remove[i] = e
	}
	return &shown
}

// guard refuses a plan beyond its guards. size is the number of entries that it might remove; place returns the place
// of an added entry. The error shows the plan.
func (s *NetworkListsService) guard(p *Plan, c *lists.Changes, size int, place func(i int) string) error {
	shown := sync.OnceValue(func() *Plan { return s.shown(p) }) // only an error needs it
	bad := problems{as: func(e *ValidationError) error { return shown().refused(e) }}
	n := len(c.Remove)
	o := &p.Options
	if limit := lists.Removals(o.MaxRemove, size); n > limit {
		bad.add("MaxRemove", "%d of %d entries would be removed, for example %s, but at most %d are allowed; set MaxRemove to %d to allow it",
			n, size, redact.Line(shown().Remove[0].Entry), limit, n)
	}
	guards := lists.Additions{Most: o.MaxAdd, WidestIPv4: o.WidestIPv4, WidestIPv6: o.WidestIPv6, Never: o.Never}
	at := 0
	for option, reason := range guards.Refused(c.Add, func(i int) string { at = i; return place(i) }) {
		bad.add(option, "%s", reason)
		if bad.full(len(c.Add) - at - 1) {
			break
		}
	}
	return bad.err()
}

// ready refuses a plan that Plan cannot have made with this client, as far as this shows without the list. It fills in
// the guards, and returns the entries to add.
func (s *NetworkListsService) ready(p *Plan) ([]lists.Entry, error) {
	if err := checkVersion(p.Version); err != nil {
		return nil, err
	}
	service, customer, _ := strings.Cut(s.conn.service, "\n")
	if p.Service != service {
		return nil, invalid("service", "the plan is for %q, and this client uses %q", p.Service, service)
	}
	if p.Customer != customer {
		return nil, invalid("customer", "the plan is for %q, and this client uses %q", p.Customer, customer)
	}
	if !address.Fits(p.ListID) {
		return nil, invalid("list_id", "%q is not the id of a list; create a plan with NetworkLists.Plan", p.ListID)
	}
	if p.Type == "" {
		return nil, invalid("type", "is empty; create a plan with NetworkLists.Plan")
	}
	if p.Options.AddOnly && len(p.Remove) > 0 || p.Options.RemoveOnly && len(p.Add) > 0 {
		return nil, invalid("options", "only add or only remove entries, and the plan does otherwise")
	}
	add, err := parseEntries("add", string(p.Type), p.Add)
	if err != nil {
		return nil, err
	}
	return add, p.Options.normalize()
}

// changesOf returns the changes of a stored plan: none if it was carried out before. It refuses a plan that was made for
// another state of the list, or that Plan cannot have made for this state.
func (s *NetworkListsService) changesOf(p *Plan, add, held []lists.Entry) (*lists.Changes, error) {
	oneKind, remove := p.Options.AddOnly || p.Options.RemoveOnly, readEntries(p.Remove)
	if !oneKind && lists.Fingerprint(string(p.Type), held) != p.Fingerprint {
		if before, ok := lists.Before(held, add, remove); ok && lists.Fingerprint(string(p.Type), before) == p.Fingerprint {
			p.Add, p.Remove = nil, nil
			return &lists.Changes{Held: held}, nil
		}
		for _, other := range []string{lists.IP, lists.GEO} {
			if lists.Fingerprint(other, held) == p.Fingerprint {
				return nil, s.shown(p).refused(invalid("type", "is %s, but the plan was made for a list of type %s", p.Type, other))
			}
		}
		return nil, &outcomeError{fmt.Errorf("%w: it has changed since the plan was made", ErrPlanStale), OutcomeNotApplied}
	}
	var changes *lists.Changes
	var misfit *lists.Misfit
	if oneKind {
		changes = lists.OneKind(held, add, remove)
	} else {
		changes, misfit = lists.Stored(held, add, remove)
	}
	if misfit != nil {
		return nil, &PlanError{misfit.Field, misfit.Reason, s.shown(p)}
	}
	if n := changes.Size(); n > s.limits.List {
		return nil, s.shown(p).refused(invalid("add", "the list would hold %d entries, but at most %d are allowed", n, s.limits.List))
	}
	return changes, nil
}

// The guards of a plan keep an empty, truncated or poisoned feed from opening a firewall or blocking everybody. Plan
// checks them, and Apply checks them again, because a stored plan may have been edited.

// PlanOptions are the options of a plan. The zero value is a safe default. MaxRemove, MaxAdd, WidestIPv4, WidestIPv6
// and Never are guards: if a plan exceeds one of them, Plan returns a [*PlanError] that holds the plan. Its Field is
// the name of the option, and its Reason says which value allows the plan. To allow every plan, set MaxRemove,
// WidestIPv4 and WidestIPv6 to -1.
type PlanOptions struct {
	// AddOnly keeps what the list has and adds the desired entries; RemoveOnly removes them and keeps all others.
	// Other changes of the list meanwhile do not matter then.
	AddOnly    bool `json:"add_only,omitempty"`
	RemoveOnly bool `json:"remove_only,omitempty"`
	// LeaveOut holds ranges, such as those of your offices: desired entries that overlap one are left out, see
	// Plan.LeftOut. If the list holds them, they are removed, unless AddOnly or RemoveOnly is set.
	LeaveOut []netip.Prefix `json:"leave_out,omitempty"`
	// MaxRemove limits how many entries the plan may remove, so that an empty feed cannot open a firewall. 0 means 20
	// % of the entries that Protect does not keep, or up to 3 of fewer than 20, but never more than half; -1 allows
	// all.
	MaxRemove int `json:"max_remove"`
	// MaxAdd limits how many entries the plan may add, because a feed may be poisoned. 0 means 50,000, a full list.
	MaxAdd int `json:"max_add"`
	// WidestIPv4 is the prefix length of the widest IPv4 range that the plan may add, from 1 to 32, after Aggregate
	// and without host bits. An IPv6 range that contains ::ffff:0.0.0.0/96 counts as 0.0.0.0/0. 0 means 8; -1 allows
	// all.
	WidestIPv4 int `json:"widest_ipv4"`
	// WidestIPv6 is the same for IPv6, from 1 to 128. 0 means 19.
	WidestIPv6 int `json:"widest_ipv6"`
	// Never holds ranges, such as those of your offices, that no added entry may overlap; ::/0 overlaps IPv4, too.
	// LeaveOut leaves such entries out instead. What the list holds already is not checked by these guards.
	Never []netip.Prefix `json:"never,omitempty"`
	// Protect, if not nil, is called for each entry that the plan would remove. If it returns true, the entry stays
	// and does not count for MaxRemove: such as what others added, or what is younger than an hour. An entry whose
	// CreationTimestamp is zero stays, too (Plan.Undated).
	Protect func(NetworkListEntry) bool `json:"-"`
	// Aggregate merges desired addresses and ranges into the fewest ranges that cover the same addresses. The entries
	// that these replace count as removed. It has no effect with RemoveOnly.
	Aggregate bool `json:"aggregate,omitempty"`
}

// normalize refuses invalid guards, and replaces zero by the defaults: no organization is assigned more than a /8 of
// IPv4 or a /19 of IPv6.
func (o *PlanOptions) normalize() error {
	var p problems
	if o.AddOnly && o.RemoveOnly {
		p.add("RemoveOnly", "is set, and so is AddOnly")
	}
	if o.MaxRemove < -1 {
		p.add("MaxRemove", "%d is below -1", o.MaxRemove)
	}
	p.addBelow0("MaxAdd", int64(o.MaxAdd))
	if o.WidestIPv4 < lists.AnyWidth || o.WidestIPv4 > 32 {
		p.add("WidestIPv4", "%d is not between %d and 32", o.WidestIPv4, lists.AnyWidth)
	}
	if o.WidestIPv6 < lists.AnyWidth || o.WidestIPv6 > 128 {
		p.add("WidestIPv6", "%d is not between %d and 128", o.WidestIPv6, lists.AnyWidth)
	}
	valid := func(field string, ranges []netip.Prefix) {
		for i, r := range ranges {
			if !r.IsValid() {
				p.add(fmt.Sprintf("%s[%d]", field, i), "is not a valid range; parse it with netip.ParsePrefix")
			}
		}
	}
	valid("LeaveOut", o.LeaveOut)
	valid("Never", o.Never)
	o.LeaveOut, o.Never = slices.Clone(o.LeaveOut), slices.Clone(o.Never) // a Plan keeps them
	o.MaxAdd = cmp.Or(o.MaxAdd, maxListEntries)
	o.WidestIPv4 = cmp.Or(o.WidestIPv4, 8)
	o.WidestIPv6 = cmp.Or(o.WidestIPv6, 19)
	return p.err()
}
