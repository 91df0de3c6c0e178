// Package filters builds, prints and parses the filter expressions of security statistics queries
// (service-interface section 4.2): comparisons of a dimension with a value, all joined by AND or all joined by OR.
//
//	filters.Eq("client_country_code", "CN")
//	filters.And(filters.Eq("client_country_code", "CN"), filters.Ne("event_action", "WARN"))
//
// The service takes no mix of AND and OR, and here none can be built: [And] and [Or] take comparisons only. What is wrong
// with a comparison is told when it is used: by Validate, and by every query with it, before anything is sent.
//
// An expression is a value that nothing changes: it can be kept, compared, and used by any number of goroutines. [Parse]
// reads one from a text, such as a flag or a file; [ParseEcho] reads what the service answers with.
package filters

import (
	"strings"
	"unicode"
)

// Operator is how a dimension is compared with a value (service-interface section 4.2). Its zero value is none, and
// refused.
type Operator string

// The operators of the service.
const (
	Equal    Operator = "==" // has the value
	NotEqual Operator = "!=" // does not have it
)

// Expr is a filter expression (service-interface section 4.2): a [Filter], or several joined by [And] or [Or]. Two valid
// expressions that print the same are equal (==). A query without a filter has a nil Expr.
type Expr interface {
	// String prints the expression as it is sent. What Validate refuses has no printed form that could be read back.
	String() string
	// Validate tells what cannot be said to the service, as an [*InvalidError] about the first comparison that cannot.
	Validate() error
	// Filters lists the comparisons, in order; of several that are joined none when Validate refuses one. The list is the
	// caller's.
	Filters() []Filter

	sealed()
}

// Filter compares one dimension with one value. Make it with [Eq] or [Ne].
type Filter struct {
	Dimension string   // required
	Operator  Operator // required
	Value     string   // any text; a comma or semicolon in it is escaped when it is printed
}

// Eq matches what has the value. An empty value is allowed.
func Eq(dimension, value string) Filter { return Filter{dimension, Equal, value} }

// Ne matches what does not have the value.
func Ne(dimension, value string) Filter { return Filter{dimension, NotEqual, value} }

// And matches what all of the filters match. One filter is itself; none is refused by Validate.
func And(filters ...Filter) Expr { return join(and, filters) }

// Or matches what at least one of the filters matches. One filter is itself; none is refused by Validate.
func Or(filters ...Filter) Expr { return join(or, filters) }

// The separators between filters (service-interface section 4.2).
const (
	or  = ','
	and = ';'
)

// list is several filters. It is kept as it is printed, so that expressions can be compared.
type list struct {
	text      string
	separator byte
	problem   InvalidError // of the first filter that has one
}

func join(separator byte, filters []Filter) Expr {
	if len(filters) == 1 {
		return filters[0]
	}
	l := list{separator: separator}
	if len(filters) == 0 {
		l.problem = InvalidError{Reason: "there are no filters to join; leave the filter out instead"}
	}
	texts := make([]string, len(filters))
	for i, f := range filters {
		texts[i] = f.String()
		if problem := f.problem(); l.problem.Reason == "" && problem != "" {
			l.problem = InvalidError{Filter: f, Reason: problem}
		}
	}
	l.text = strings.Join(texts, string(separator))
	return l
}

func (l list) sealed()        {}
func (l list) String() string { return l.text }

func (l list) Validate() error {
	if l.problem.Reason == "" {
		return nil
	}
	return &l.problem
}

func (l list) Filters() []Filter {
	if l.problem.Reason != "" {
		return nil
	}
	var filters []Filter
	for _, part := range split(l.text) {
		f, err := parseFilter(part)
		if err != nil {
			return nil
		}
		filters = append(filters, f)
	}
	return filters
}

func (f Filter) sealed() {}

// escaper writes the two escapes there are (service-interface section 4.2).
var escaper = strings.NewReplacer(`,`, `\,`, `;`, `\;`)

// String prints dimension, operator and escaped value.
func (f Filter) String() string { return f.Dimension + string(f.Operator) + escaper.Replace(f.Value) }

// Filters is the filter alone, also of one that Validate refuses.
func (f Filter) Filters() []Filter { return []Filter{f} }

// Validate refuses a dimension that is empty or holds an operator, a separator or a blank, an operator that is neither of
// the two, and a value in which a backslash stands before a comma or semicolon or at the end: on the wire it could not be
// told from an escape (open point 17). Its error is an [*InvalidError].
func (f Filter) Validate() error {
	if problem := f.problem(); problem != "" {
		return &InvalidError{f, problem}
	}
	return nil
}

func (f Filter) problem() string {
	switch {
	case f.Dimension == "":
		return "the dimension is empty"
	case strings.ContainsAny(f.Dimension, "=!,;") || strings.ContainsFunc(f.Dimension, unicode.IsSpace):
		return "the dimension holds an operator, a separator or a blank"
	case f.Operator != Equal && f.Operator != NotEqual:
		return "the operator is neither == nor !="
	case strings.Contains(f.Value, `\,`) || strings.Contains(f.Value, `\;`) || strings.HasSuffix(f.Value, `\`):
		return "a backslash in the value stands before a comma or semicolon or at the end, where it would be read as an escape"
	default:
		return ""
	}
}

// InvalidError is a filter that cannot be said to the service.
type InvalidError struct {
	Filter Filter // the comparison; zero when there was none to join
	Reason string // what is wrong with it
}

// Error gives the comparison, its parts quoted and clipped, and the reason on one line.
func (e *InvalidError) Error() string {
	if e.Filter == (Filter{}) {
		return "filters: " + e.Reason
	}
	return "filters: " + quote(e.Filter.Dimension) + " " + string(e.Filter.Operator) + " " + quote(e.Filter.Value) + ": " + e.Reason
}
