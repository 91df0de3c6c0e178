package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go"
	"github.com/webdelivery/webdelivery-go/filters"
)

// picker is a list of the form with the values of a dimension.
type picker struct{ Label, Name, Dimension string }

var pickers = []picker{{"Country", "country", webdelivery.DimClientCountryCode}, {"Action", "action", webdelivery.DimEventAction}}

// value returns the value of an expression of a picker. If it is something else, value returns the whole text.
func value(picked string) string {
	expression, _ := filters.Parse(picked)
	if filter, ok := expression.(filters.Filter); ok && filter.Operator == filters.Equal && filter.Value != "" {
		return filter.Value
	}
	return picked
}

// problem says in words what is wrong with a selection.
type problem struct {
	Title, Reason         string
	Before, Marked, After string // a text that cannot be read, with the wrong place in the middle
	HasText               bool
}

// Error returns the title and the reason on one line.
func (p *problem) Error() string { return p.Title + ": " + p.Reason }

// selection joins the typed filter and the picked values by AND. It returns nil if there are none.
func selection(picked url.Values) (filters.Expr, *problem) {
	typed := picked.Get("filter")
	var all, labels []string
	if typed != "" {
		if _, err := filters.Parse(typed); err != nil {
			return nil, unreadable("The filter", typed, err)
		}
		all = append(all, typed)
	}
	for _, p := range pickers {
		if value := picked.Get(p.Name); value != "" {
			if _, err := filters.Parse(value); err != nil {
				return nil, unreadable(p.Label, value, err)
			}
			all, labels = append(all, value), append(labels, p.Label)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	expression, err := filters.Parse(strings.Join(all, ";"))
	if err != nil { // each of them alone can be read, so the typed filter has an OR
		names := strings.Join(labels, " and ")
		return nil, &problem{
			Title: names + " cannot be combined with a filter that has OR",
			Reason: fmt.Sprintf("The page joins %s and the filter by AND, but the service accepts either AND (;) or OR (,) in one query. "+
				"Set %s to “any”, or use only ; in the filter.", names, names),
		}
	}
	return expression, nil
}

// unreadable describes a text that is not a filter expression.
func unreadable(label, text string, err error) *problem {
	p := &problem{Title: label + " cannot be read", Reason: err.Error()}
	var syntax *filters.SyntaxError
	if !errors.As(err, &syntax) {
		return p
	}
	from := min(syntax.Offset, len(text))
	to := from + wrongPart(text[from:])
	p.HasText, p.Before, p.Marked, p.After = true, text[:from], text[from:to], text[to:]
	p.Reason = fmt.Sprintf("At character %d: %s.", utf8.RuneCountInString(text[:from])+1, syntax.Reason)
	return p
}

// wrongPart returns the length of the wrong part at the beginning of a text: a separator, or the text before the next
// one.
func wrongPart(text string) int {
	for i := range len(text) {
		if (text[i] == ',' || text[i] == ';') && (i == 0 || text[i-1] != '\\') {
			return max(i, 1)
		}
	}
	return len(text)
}
