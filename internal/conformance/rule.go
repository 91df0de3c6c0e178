package conformance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Rule is one sentence of the service document.
type Rule struct {
	Section string // of docs/service-interface.md
	Text    string // what the document says, or what it does not say

	Open   bool   // the document leaves it open: what is seen is told
	Point  int    // its number in docs/open-points.md; 0 none
	Unseen string // why it cannot be seen from outside; "" it can

	check func(*probe)
}

// Rules returns all rules, in the order of the document.
func Rules() []Rule {
	all := slices.Concat(
		taskRules(), purgeRules(), transactionRules(), resultRules(), queryRules(), familyRules(), topKRules(), retentionRules(),
		listRules(), pagingRules(), entryRules(), changeRules(), accessRules(), versionRules(),
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

func unseen(section, text, why string) Rule {
	return Rule{Section: section, Text: text, Unseen: why, check: func(p *probe) { p.skip("%s", why) }}
}

// Verdict is what became of a rule.
type Verdict string

// Verdicts.
const (
	Holds    Verdict = "holds"
	Differs  Verdict = "differs"
	Seen     Verdict = "left open"
	NotTried Verdict = "not tried"
)

// Result is a rule and what became of it.
type Result struct {
	Rule

	Verdict Verdict
	Detail  string // what was seen instead; what was seen; why it was not tried
}

// outcome ends the check of a rule from anywhere within it, as t.FailNow ends a test.
type outcome struct {
	verdict Verdict
	detail  string
}

// Try looks whether the service keeps a rule.
func (s *Service) Try(ctx context.Context, rule Rule) (result Result) {
	result = Result{Rule: rule, Verdict: Holds}
	defer func() {
		switch end := recover().(type) {
		case nil:
		case outcome:
			result.Verdict, result.Detail = end.verdict, end.detail
			if rule.Open && end.verdict == Differs {
				result.Verdict = NotTried // nothing is held against a service where the document leaves it open
			}
		default:
			panic(end)
		}
	}()
	rule.check(&probe{Service: s, ctx: ctx})
	return result
}

// differs ends a rule that the service breaks.
func (p *probe) differs(format string, args ...any) {
	panic(outcome{Differs, fmt.Sprintf(format, args...)})
}

// skip ends a rule that cannot be tried.
func (p *probe) skip(format string, args ...any) {
	panic(outcome{NotTried, fmt.Sprintf(format, args...)})
}

// saw ends a rule that the document leaves open.
func (p *probe) saw(format string, args ...any) {
	panic(outcome{Seen, fmt.Sprintf(format, args...)})
}

// want ends a rule that the service breaks unless ok.
func (p *probe) want(ok bool, format string, args ...any) {
	if !ok {
		p.differs(format, args...)
	}
}

// need ends a rule that lacks what it builds on unless ok. Whether it should be there is another rule.
func (p *probe) need(ok bool, format string, args ...any) {
	if !ok {
		p.skip(format, args...)
	}
}
