// Package filters builds, prints and parses filter expressions for security statistics queries. An expression is a
// comparison of a dimension with a value, or several comparisons joined either all by AND or all by OR.
//
//	filters.Eq("client_country_code", "CN")
//	filters.And(filters.Eq("client_country_code", "CN"), filters.Ne("event_action", "WARN"))
//
// The service rejects expressions that mix AND and OR, so [And] and [Or] accept only comparisons. The functions return
// no errors; call Validate to check an expression. Queries also check their expression before they send a request.
//
// Expressions are immutable, comparable and safe for concurrent use. [Parse] parses an expression, for example from a
// flag or a file.
//
// (Section 4.2.)
package filters

import (
	"strings"
	"unicode"
)

// Operator compares a dimension with a value. The zero value is invalid. (Section 4.2.)
type Operator string

// The operators that the service supports.
const (
	Equal    Operator = "==" // the dimension has the value
	NotEqual Operator = "!=" // the dimension does not have the value
)

// Expr is a filter expression: a [Filter], or several filters joined by [And] or [Or]. Two valid expressions are equal
// (==) if their String is the same. A query without a filter has a nil Expr. (Section 4.2.)
type Expr interface {
	// String returns the expression as queries send it. Parse accepts it if Validate returns nil.
	String() string
	// Validate returns an [*InvalidError] about the first comparison that cannot be sent, or nil.
	Validate() error
	// Filters returns a copy of the comparisons, in order. For an invalid expression of And or Or, it returns none.
	Filters() []Filter

	sealed()
}

// Filter compares one dimension with one value. Create it with [Eq] or [Ne].
type Filter struct {
	Dimension string   // required
	Operator  Operator // required
	Value     string   // any text that Validate accepts, also ""; String escapes commas and semicolons
}

// Eq returns a filter that matches records whose dimension has the value. The value may be empty.
func Eq(dimension, value string) Filter { return Filter{dimension, Equal, value} }

// Ne returns a filter that matches records whose dimension does not have the value. The value may be empty.
func Ne(dimension, value string) Filter { return Filter{dimension, NotEqual, value} }

// And returns an expression that matches the records that all of the filters match. If there is only one filter, And
// returns that filter. If there are none, Validate of the result returns an error.
func And(filters ...Filter) Expr { return join(and, filters) }

// Or returns an expression that matches the records that at least one of the filters matches. If there is only one
// filter, Or returns that filter. If there are none, Validate of the result returns an error.
func Or(filters ...Filter) Expr { return join(or, filters) }

// The separators between filters (service document, section 4.2).
const (
	or  = ','
	and = ';'
)

// list holds joined filters. It stores their printed form rather than a slice, so that expressions can be compared with
// ==.
type list struct {
	text      string
	separator byte
	problem   InvalidError // the problem of the first invalid filter
}

func join(separator byte, filters []Filter) Expr {
	if len(filters) == 1 {
		return filters[0]
	}
	l := list{separator: separator}
	if len(filters) == 0 {
		l.problem = InvalidError{Reason: "there are no filters to join; pass at least one, or no filter to the query"}
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

// escaper writes the only two escapes that the service knows (service document, section 4.2).
var escaper = strings.NewReplacer(`,`, `\,`, `;`, `\;`)

// String returns the dimension, the operator and the escaped value.
func (f Filter) String() string { return f.Dimension + string(f.Operator) + escaper.Replace(f.Value) }

// Filters returns the filter as the only element, even if Validate returns an error.
func (f Filter) Filters() []Filter { return []Filter{f} }

// Validate returns an [*InvalidError] if the filter cannot be sent:
//   - The dimension is empty, or contains white space or one of the characters = ! , ;
//   - The operator is neither [Equal] nor [NotEqual].
//   - The value has a backslash before a comma or a semicolon, or ends with one. The service reads it as an escape, at
//     the end that of the separator before the filter that it appends (open points 17 and 18).
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
		return "the dimension contains white space or one of the characters = ! , ;"
	case f.Operator != Equal && f.Operator != NotEqual:
		return "the operator is neither == nor !=; use Eq or Ne"
	case strings.Contains(f.Value, `\,`) || strings.Contains(f.Value, `\;`):
		return "the value has a backslash before a comma or a semicolon, where the service reads it as an escape"
	case strings.HasSuffix(f.Value, `\`):
		return "the value ends with a backslash, which the service reads as an escape of the separator after it"
	default:
		return ""
	}
}

// InvalidError reports a filter that cannot be sent to the service.
type InvalidError struct {
	Filter Filter // the invalid filter; zero if And or Or got no filters
	Reason string // why it is invalid
}

// Error returns the filter and the reason on one line. The parts of the filter are quoted and truncated.
func (e *InvalidError) Error() string {
	if e.Filter == (Filter{}) {
		return "filters: " + e.Reason
	}
	return "filters: " + quote(e.Filter.Dimension) + " " + string(e.Filter.Operator) + " " + quote(e.Filter.Value) + ": " + e.Reason
}
