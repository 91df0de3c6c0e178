package paging

import (
	"net/url"
	"strconv"
)

// Unsaid is the value of a number that a page does not say.
const Unsaid = -1

// Page is what a page says of itself and of the one after it.
type Page struct {
	URI, Next string
	Said      bool  // whether further pages exist
	HasMore   *bool // the member has_more; nil without
	Index     int   // from 1; 0: it does not say
	Count     int   // pages of the collection for the count used, or Unsaid
	Total     int64 // items of the whole collection, or Unsaid
	Items     int   // on this page
}

// more reports whether the page announces another one. A page that says nothing, after others did, leaves out what would
// be false and null.
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

// NumberIn returns a number of a query; 0 without one.
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

// differ compares two numbers, unless one of them is Unsaid.
func differ[N int | int64](a, b N) bool { return a >= 0 && b >= 0 && a != b }
