package conformance

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/webdelivery/webdelivery-go/internal/redact"
)

// Rule is one sentence of the service document.
type Rule struct {
	Section string // section of the service document
	Text    string // what the document states, or what it leaves open

	Open   bool   // the document leaves it open; the report shows what was seen
	Point  int    // number of the open point in docs/open-points.md; 0 means none
	Unseen string // why it cannot be seen from outside; "" means that it can

	check func(*probe)
}

// Rules returns all rules, in the order of the document.
func Rules() []Rule {
	all := slices.Concat(
		taskRules(), purgeRules(), transactionRules(), resultRules(), queryRules(), familyRules(), retentionRules(),
		listRules(), pagingRules("lists", 10, func(*probe) string { return lists }), pagingRules("entries", 100, entriesPath),
		changeRules(), accessRules(),
	)
	slices.SortStableFunc(all, func(a, b Rule) int { return cmp.Compare(a.Section, b.Section) })
	return all
}

func stated(section, text string, check func(*probe)) Rule {
	return Rule{Section: section, Text: text, check: check}
}

func open(section string, point int, text string, check func(*probe)) Rule {
	return Rule{Section: section, Text: text, Open: true, Point: point, check: check}
}

// returned is a rule about a status that the document leaves open.
func returned(section string, point int, text string, send func(*probe) response) Rule {
	return open(section, point, text, func(p *probe) { p.saw("returned %d", send(p).status) })
}

func unseen(section, text, why string) Rule {
	return Rule{Section: section, Text: text, Unseen: why, check: func(p *probe) { p.skip("%s", why) }}
}

// Verdict is the result of checking a rule.
type Verdict string

// Verdicts.
const (
	Holds    Verdict = "holds"
	Differs  Verdict = "differs"
	Seen     Verdict = "left open"
	NotTried Verdict = "not tried"
)

// Result is a rule with its verdict.
type Result struct {
	Rule

	Verdict Verdict
	Detail  string // for Differs and Seen: what was seen; for NotTried: the reason
}

// outcome is a panic value that ends the check of a rule from anywhere within it, as t.FailNow ends a test.
type outcome struct {
	verdict Verdict
	detail  string
}

// Try checks whether the service follows a rule.
func (s *Service) Try(ctx context.Context, rule Rule) (result Result) {
	result = Result{Rule: rule, Verdict: Holds}
	defer func() {
		switch end := recover().(type) {
		case nil:
		case outcome:
			result.Verdict, result.Detail = end.verdict, s.secrets.Text(end.detail, redact.Most)
			if rule.Open && end.verdict == Differs {
				result.Verdict = NotTried // where the document leaves it open, no behavior is wrong
			}
		default:
			panic(end)
		}
	}()
	rule.check(&probe{Service: s, ctx: ctx})
	return result
}

// differs ends the check of a rule that the service breaks.
func (p *probe) differs(format string, args ...any) {
	panic(outcome{Differs, fmt.Sprintf(format, args...)})
}

// skip ends the check of a rule that cannot be tried.
func (p *probe) skip(format string, args ...any) {
	panic(outcome{NotTried, fmt.Sprintf(format, args...)})
}

// saw ends the check of a rule that the document leaves open.
func (p *probe) saw(format string, args ...any) {
	panic(outcome{Seen, fmt.Sprintf(format, args...)})
}

// want calls differs unless ok.
func (p *probe) want(ok bool, format string, args ...any) {
	if !ok {
		p.differs(format, args...)
	}
}

// need calls skip unless ok, because a precondition of the check is missing. Whether the service must meet it is
// another rule.
func (p *probe) need(ok bool, format string, args ...any) {
	if !ok {
		p.skip(format, args...)
	}
}
