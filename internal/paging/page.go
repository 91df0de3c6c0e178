package paging

import (
	"net/url"
	"strconv"
)

// Unknown is the value of a number that a page does not give.
const Unknown = -1

// Page holds the facts that a page gives about itself and the next page.
type Page struct {
	URI, Next string
	Announces bool  // it says whether further pages exist
	HasMore   *bool // the member has_more; nil if absent
	Index     int   // page_index, from 1; 0 if absent
	Count     int   // page_count, or Unknown
	Total     int64 // items of the whole collection, or Unknown
	Items     int   // items on this page
}

// more reports whether the page announces another one. After earlier pages announced the next one, a page without these
// members counts as the last: some services omit false and null.
func (p *Page) more(number int) bool {
	switch {
	case p.HasMore != nil:
		return *p.HasMore
	case p.Next != "":
		return true
	default:
		return number < p.Count
	}
}

// NumberIn returns the number that a query has for a name; 0 if there is none.
func NumberIn(query, name string) int {
	values, err := url.ParseQuery(query)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(values.Get(name))
	if err != nil {
		return 0
	}
	return n
}

// differ reports whether two numbers differ. It returns false if one of them is Unknown.
func differ[N int | int64](a, b N) bool { return a >= 0 && b >= 0 && a != b }
