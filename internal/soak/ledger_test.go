package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/webdelivery/webdelivery-go"
)

// tally counts the outcomes of the operations.
type tally struct {
	problems atomic.Int64

	mu     sync.Mutex
	counts map[string]map[string]int // by operation and outcome
	errs   map[string]int            // by type of the error
}

// The outcomes of an operation.
const (
	done       = "ok"
	applied    = "applied" // with an error
	notApplied = "not applied"
	unknown    = "unknown"
	failed     = "error" // of a read
)

func newTally() *tally { return &tally{counts: map[string]map[string]int{}, errs: map[string]int{}} }

func (t *tally) note(operation, outcome, class string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[operation] == nil {
		t.counts[operation] = map[string]int{}
	}
	t.counts[operation][outcome]++
	if class != "" {
		t.errs[class]++
	}
}

// sums returns the counts over all operations, and their total.
func (t *tally) sums() (sums map[string]int, total int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sums = map[string]int{}
	for _, counts := range t.counts {
		for outcome, n := range counts {
			sums[outcome] += n
			total += n
		}
	}
	return sums, total
}

// String returns a line for each operation.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(&b, "%-36s %v\n", name, t.counts[name])
	}
	fmt.Fprintln(&b, t.errs)
	return b.String()
}

// checkThatItTellsSomething fails a run that proves little: nearly all or nearly no operations failed, or an outcome
// never occurred. Such a run would not notice a wrong outcome.
func (t *tally) checkThatItTellsSomething(tt *testing.T) {
	tt.Helper()
	sums, total := t.sums()
	if total < 2000 {
		return
	}
	assert.Greater(tt, sums[done], total/2, "operations that went well")
	for _, outcome := range []string{failed, notApplied, unknown} {
		assert.Positive(tt, sums[outcome], outcome)
	}
	for name, counts := range t.counts {
		if counts[failed]+counts[notApplied]+counts[unknown]+counts[applied] > 100 {
			assert.Positive(tt, counts[done], name)
		}
	}
}

func as[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// classes are all errors that a caller may get, the outermost first. Every request of this test is valid, so they do
// not include *ValidationError.
var classes = []struct {
	name string
	is   func(error) bool
}{
	{"QueueError", as[*webdelivery.QueueError]},
	{"PartialError", as[*webdelivery.PartialError]},
	{"TaskError", as[*webdelivery.TaskError]},
	{"TransactionError", as[*webdelivery.TransactionError]},
	{"IncompleteError", as[*webdelivery.IncompleteError]},
	{"ErrPlanStale", func(err error) bool { return errors.Is(err, webdelivery.ErrPlanStale) }},
	{"ErrQueueClosed", func(err error) bool { return errors.Is(err, webdelivery.ErrQueueClosed) }},
	{"Error", as[*webdelivery.Error]},
	{"context.Canceled", func(err error) bool { return errors.Is(err, context.Canceled) }},
	{"ErrUnauthorized", func(err error) bool { return errors.Is(err, webdelivery.ErrUnauthorized) }}, // of a login
	{"ErrRateLimited", func(err error) bool { return errors.Is(err, webdelivery.ErrRateLimited) }},   // of a permit
	{"context.DeadlineExceeded", func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
}

// class returns the class of an error. If there is none, it fails the run.
func (s *soak) class(operation string, err error) string {
	s.Helper()
	if err == nil {
		return ""
	}
	for _, c := range classes {
		if c.is(err) {
			return c.name
		}
	}
	s.problem(operation, "an error of no known type: %T: %v", err, err)
	return "?"
}

// read counts a read, and returns whether it succeeded. A read applies nothing.
func (s *soak) read(operation string, err error) bool {
	s.Helper()
	return s.note(operation, err, webdelivery.OutcomeNotApplied)
}

// awaited counts a wait, and returns whether it succeeded. A wait has no outcome, because the operation that it waits
// for continues anyway.
func (s *soak) awaited(operation string, err error) bool {
	s.Helper()
	return s.note(operation, err, webdelivery.OutcomeUnknown)
}

// note counts an operation that changes nothing. If it fails, the outcome of its request must be this one.
func (s *soak) note(operation string, err error, want webdelivery.Outcome) bool {
	s.Helper()
	class := s.class(operation, err)
	if err == nil {
		s.tally.note(operation, done, "")
		return true
	}
	s.tally.note(operation, failed, class)
	if got := webdelivery.OutcomeOf(err); class == "Error" && got != want {
		s.problem(operation, "it changes nothing, and it is %v instead of %v: %v", got, want, err)
	}
	return false
}

func (s *soak) wrote(operation string, err error) webdelivery.Outcome {
	s.Helper()
	class, outcome := s.class(operation, err), webdelivery.OutcomeOf(err)
	name := map[webdelivery.Outcome]string{
		webdelivery.OutcomeApplied: applied, webdelivery.OutcomeNotApplied: notApplied, webdelivery.OutcomeUnknown: unknown,
	}[outcome]
	if err == nil {
		name = done
	}
	s.tally.note(operation, name, class)
	return outcome
}

// claim is the statement of an operation that a value is present, or absent.
type claim struct {
	operation string
	list      string // "" for purges
	value     string
	there     bool
	err       error // the error from which the claim follows
}

// claimed returns the claims of a write. An added value is present if the write was applied, and absent if it was not.
// For a removed value it is the other way round. An unknown outcome claims nothing.
func claimed(operation, list string, values []string, outcome webdelivery.Outcome, removed bool, err error) []claim {
	var all []claim
	for _, v := range values {
		if outcome != webdelivery.OutcomeUnknown {
			all = append(all, claim{operation, list, v, (outcome == webdelivery.OutcomeApplied) != removed, err})
		}
	}
	return all
}

// expect compares claims about one list, or about purges, with the contents of the service. It compares them now, and
// again at the end of the round, because a late request must not falsify them.
func (s *soak) expect(has map[string]bool, claims []claim) {
	s.Helper()
	s.compare("at once", has, claims)
	s.claimLock.Lock()
	defer s.claimLock.Unlock()
	s.claims = append(s.claims, claims...)
}

func (s *soak) compare(when string, has map[string]bool, claims []claim) {
	s.Helper()
	for _, c := range claims {
		if has[c.value] != c.there {
			s.problem(c.operation, "%s: %s in %q: claimed to be there: %t, and is there: %t; it said: %v",
				when, c.value, c.list, c.there, has[c.value], c.err)
		}
	}
}

// checkClaims checks all claims of a round, when no request is in flight anymore.
func (s *soak) checkClaims() {
	byList := map[string][]claim{}
	for _, c := range s.claims {
		byList[c.list] = append(byList[c.list], c)
	}
	s.claims = nil
	for list, claims := range byList {
		has := s.purged()
		if list != "" {
			has = s.entries(list)
		}
		s.compare("at the end of the round", has, claims)
	}
}

func (s *soak) entries(list string) map[string]bool { return setOf(s.srv.Entries(list)) }

// purged returns the patterns of all purges that the fake has accepted in this round.
func (s *soak) purged() map[string]bool {
	set := map[string]bool{}
	for _, p := range s.srv.Purged() {
		for _, uri := range p.URIs {
			set[uri.URIPattern] = true
		}
	}
	return set
}

func setOf(values []string) map[string]bool {
	set := make(map[string]bool, len(values))
	for _, v := range values {
		set[v] = true
	}
	return set
}
