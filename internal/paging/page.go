package paging

import (
	"net/url"
	"strconv"
	"strings"
)

// Unknown is the value of a number that a page does not give.
const Unknown = -1

// Page holds the facts that a page gives about itself and the next page.
type Page struct {
	IDs       []string // of its items
	Own       *Link    // its own address; nil if it has none that can be read
	Next      *Link    // the address of the next page; nil if absent
	Announces bool     // it says whether further pages exist
	HasMore   *bool    // the member has_more; nil if absent
	Index     int      // page_index, from 1; 0 if absent
	Count     int      // page_count, or Unknown
	Total     int64    // items of the whole collection, or Unknown
	PastEnd   bool     // its request failed, maybe because there is no such page
}

// Link is an address that the service sent.
type Link struct {
	Path, Query string // the path is relative to the base URL
	Err         error  // why the address cannot be used
}

// more reports whether the page announces another one. After earlier pages announced the next one, a page without these
// members counts as the last: some services omit false and null.
func (p *Page) more(number int) bool {
	switch {
	case p.HasMore != nil:
		return *p.HasMore
	case p.Next != nil:
		return true
	default:
		return number < p.Count
	}
}

// NumberIn returns the number that a query has for a name; 0 if there is none.
func NumberIn(query, name string) int {
	values, _ := url.ParseQuery(query) // without the parts that cannot be parsed
	n, _ := strconv.Atoi(values.Get(name))
	return n
}

// withFilters returns the query next with the parameters of the first request written over its own: a service may omit
// them, or forget to escape a plus sign, and would then continue with other items. The service alone decides on page,
// and on count if next has one. What it adds stays byte for byte, because a cursor may hold anything that RFC 3986
// allows, such as a semicolon.
func withFilters(next, first string) string {
	var theirs []string
	ours, _ := url.ParseQuery(first)
	ours.Del("page")
	for text := range strings.SplitSeq(next, "&") {
		name, _, _ := strings.Cut(text, "=")
		name, _ = url.QueryUnescape(name)
		if name == "count" {
			ours.Del(name)
		}
		if text != "" && !ours.Has(name) {
			theirs = append(theirs, text)
		}
	}
	return strings.TrimSuffix(strings.Join(append(theirs, ours.Encode()), "&"), "&")
}
