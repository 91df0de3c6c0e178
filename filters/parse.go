package filters

import (
	"fmt"
	"strconv"
	"strings"
)

// SyntaxError is a text that is no filter expression.
type SyntaxError struct {
	Offset int    // in bytes, from 0, where the text is wrong
	Reason string // what is wrong there
}

// Error gives place and reason on one line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("filters: at byte %d: %s", e.Offset, e.Reason)
}

// Parse reads an expression as String prints it. What it accepts prints back to the same bytes. A mix of AND and OR is
// refused, as the service refuses it (service-interface section 4.2), and so is an empty text. Errors are [*SyntaxError].
func Parse(s string) (Expr, error) {
	var filters []Filter
	var separator byte
	for _, part := range split(s) {
		if part.separator != 0 {
			if separator != 0 && separator != part.separator {
				return nil, &SyntaxError{part.offset - 1, "AND and OR in one expression"}
			}
			separator = part.separator
		}
		f, err := parseFilter(part)
		if err != nil {
			return nil, err
		}
		filters = append(filters, f)
	}
	return join(separator, filters), nil
}

// customerDimension is what the service's own filter compares (service-interface section 2.4).
const customerDimension = "customer"

// ParseEcho splits the filters of a reply's query: the service joins a filter on the customer by AND to what was
// supplied, even to filters that are joined by OR (service-interface section 2.4, open point 18). supplied is nil when
// there was none. Errors are [*SyntaxError].
func ParseEcho(s string) (supplied Expr, customer string, err error) {
	parts := split(s)
	last := parts[len(parts)-1]
	f, err := parseFilter(last)
	if err != nil {
		return nil, "", err
	}
	if f.Dimension != customerDimension || f.Operator != Equal || last.separator == or {
		return nil, "", &SyntaxError{last.offset, "not a filter on the customer, joined by AND"}
	}
	if len(parts) > 1 {
		if supplied, err = Parse(s[:last.offset-1]); err != nil {
			return nil, "", err
		}
	}
	return supplied, f.Value, nil
}

// part is the text between two separators.
type part struct {
	text      string
	offset    int  // in the whole
	separator byte // before it, 0 at the beginning
}

// split cuts at the separators that are not escaped.
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

// parseFilter reads one comparison: the first operator ends the dimension.
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

// quote clips and quotes a text for an error.
func quote(s string) string {
	const most = 100
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strconv.Quote(s)
}
