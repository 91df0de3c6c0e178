package testserver

import (
	"net/http"
	"slices"
	"strings"
)

// filter is a filter expression (service document, section 4.2): terms that are all joined by OR or all joined by AND.
// A filter without terms matches every record.
type filter struct {
	or    bool
	terms []term
}

// term is <dimension><operator><value>.
type term struct {
	of    func(*record) value
	not   bool
	value string
}

func (f filter) matches(e *record) bool {
	for _, t := range f.terms {
		if t.matches(e) == f.or {
			return f.or
		}
	}
	return !f.or
}

func (t term) matches(e *record) bool { return t.of(e).is(t.value) != t.not }

// parseFilter reads an expression; lookup finds its dimensions. "" is an expression without terms.
func parseFilter(expression string, lookup func(name string) (column, error)) (filter, error) {
	if expression == "" {
		return filter{}, nil
	}
	texts, separators := splitFilter(expression)
	f := filter{or: strings.Contains(separators, ",")}
	if f.or && strings.Contains(separators, ";") {
		return filter{}, refuse(http.StatusBadRequest, "filters are combined with OR or AND, never both")
	}
	for _, text := range texts {
		t, err := parseTerm(text, lookup)
		if err != nil {
			return filter{}, err
		}
		f.terms = append(f.terms, t)
	}
	return f, nil
}

// splitFilter splits an expression at its separators and resolves the escapes. A backslash escapes a comma or a
// semicolon. Before any other character, it stands for itself (open point 17).
func splitFilter(expression string) (texts []string, separators string) {
	var current, found []byte
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case c == '\\' && i+1 < len(expression) && isSeparator(expression[i+1]):
			i++
			current = append(current, expression[i])
		case isSeparator(c):
			texts, found = append(texts, string(current)), append(found, c)
			current = nil
		default:
			current = append(current, c)
		}
	}
	return append(texts, string(current)), string(found)
}

func isSeparator(c byte) bool { return c == ',' || c == ';' }

// parseTerm splits at the first operator, because a value may contain others.
func parseTerm(text string, lookup func(name string) (column, error)) (term, error) {
	at := slices.DeleteFunc([]int{strings.Index(text, "=="), strings.Index(text, "!=")}, func(i int) bool { return i < 0 })
	if len(at) == 0 {
		return term{}, refuse(http.StatusBadRequest, "filter %q has no operator", text)
	}
	first := slices.Min(at)
	c, err := lookup(text[:first])
	if err != nil {
		return term{}, err
	}
	return term{of: c.of, not: text[first] == '!', value: text[first+2:]}, nil
}

// withCustomer returns the echo of a filter expression: the service appends a filter on the customer with AND (section
// 2.4). It does so even if OR joins the other filters (open point 18).
func withCustomer(expression, customer string) string {
	filter := "customer==" + strings.NewReplacer(",", `\,`, ";", `\;`).Replace(customer)
	if expression == "" {
		return filter
	}
	return expression + ";" + filter
}
