package filters

import (
	"fmt"
	"strconv"
	"strings"
)

// SyntaxError reports a text that is not a filter expression.
type SyntaxError struct {
	Offset int    // position of the error, in bytes from 0
	Reason string // what is wrong at that position
}

// Error returns the position and the reason on one line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("filters: at byte %d: %s", e.Offset, e.Reason)
}

// Parse parses an expression in the form that [Expr].String returns. String of the result returns s unchanged. Parse
// returns a [*SyntaxError] if s is empty, mixes AND and OR, or contains an invalid comparison. (Section 4.2.)
func Parse(s string) (Expr, error) {
	var filters []Filter
	var separator byte
	for _, part := range split(s) {
		if separator != 0 && separator != part.separator {
			return nil, &SyntaxError{part.offset - 1, "AND and OR in one expression; use only commas (OR) or only semicolons (AND)"}
		}
		separator = part.separator
		f, err := parseFilter(part)
		if err != nil {
			return nil, err
		}
		filters = append(filters, f)
	}
	return join(separator, filters), nil
}

// part is the text between two separators.
type part struct {
	text      string
	offset    int  // within the whole text
	separator byte // the separator before the part; 0 for the first part
}

// split splits a text at the separators that are not escaped.
func split(s string) []part {
	var parts []part
	begin, separator := 0, byte(0)
	for i := range len(s) {
		if (s[i] == or || s[i] == and) && (i == 0 || s[i-1] != '\\') {
			parts = append(parts, part{s[begin:i], begin, separator})
			begin, separator = i+1, s[i]
		}
	}
	return append(parts, part{s[begin:], begin, separator})
}

var unescaper = strings.NewReplacer(`\,`, `,`, `\;`, `;`)

// parseFilter parses one comparison. The first operator in it ends the dimension.
func parseFilter(p part) (Filter, error) {
	at, operator := len(p.text), Operator("")
	for _, o := range []Operator{Equal, NotEqual} {
		if i := strings.Index(p.text, string(o)); i >= 0 && i < at {
			at, operator = i, o
		}
	}
	if operator == "" {
		return Filter{}, &SyntaxError{p.offset, "no == or != in " + quote(p.text)}
	}
	f := Filter{p.text[:at], operator, unescaper.Replace(p.text[at+len(operator):])}
	if problem := f.problem(); problem != "" {
		return Filter{}, &SyntaxError{p.offset, problem}
	}
	return f, nil
}

// quote truncates and quotes a text for an error.
func quote(s string) string {
	const limit = 100
	if len(s) > limit {
		s = s[:limit] + "..."
	}
	return strconv.Quote(s)
}
