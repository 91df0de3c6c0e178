package paging

import (
	"net/url"
	"strconv"
	"strings"
)

// Unknown is the value of a number that a page does not contain.
const Unknown = -1

// Page describes a page and how to find the next one.
type Page struct {
	IDs       []string // IDs of its items
	Own       *Link    // the page's own address; nil if absent or unreadable
	Next      *Link    // the address of the next page; nil if absent
	Announces bool     // the page says whether further pages exist
	HasMore   *bool    // the member has_more; nil if absent
	Index     int      // page_index, from 1; 0 if absent
	Count     int      // page_count, or Unknown
	Total     int64    // number of items in the whole collection, or Unknown
	PastEnd   bool     // the request failed, possibly because there is no such page
}

// Link is an address from the service.
type Link struct {
	Path, Query string // the path is relative to the base URL
	Err         error  // why the address cannot be used
}

// more reports whether the page, whose number is given, announces another one. A page without these members counts as
// the last, because some services omit false and null.
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

// NumberIn returns the number in the query parameter name, or 0 if there is none.
func NumberIn(query, name string) int {
	values, _ := url.ParseQuery(query) // ignores the parts that cannot be parsed
	n, _ := strconv.Atoi(values.Get(name))
	return n
}

// withFilters returns the query next, overwritten with the parameters of the first request: a service may omit them, or
// fail to escape a plus sign, and would then continue with other items. Only page, and count if it is in next, are
// taken from next. Parameters that only next has are kept byte for byte, because a cursor may contain anything that RFC
// 3986 allows, such as a semicolon.
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
