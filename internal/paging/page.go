package paging

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Page describes a page and how to find the next one. A number of 0 is unknown: an empty collection says nothing more
// than that, and some services count only the page on an empty one.
type Page struct {
	IDs     []string // IDs of its items
	Next    *string  // the query of next_uri; nil if it is absent or null
	Ends    bool     // next_uri is null
	HasMore *bool    // the member has_more; nil if absent
	Index   int      // page_index, from 1
	Count   int      // page_count
	Total   int64    // number of items in the whole collection
	Refused string   // status of a request that failed, possibly because there is no such page
	Taken   func()   // called in the goroutine of the loop when it gets the page; may be nil
}

// More reports whether another page exists or may exist, and whether the page says so. number is that of the page, if
// it does not contain its own. has_more takes precedence over the rest, and a total over a next_uri of null, because it
// is more exact.
func (p *Page) More(number int) (more, said bool) {
	number = cmp.Or(p.Index, number)
	switch {
	case p.HasMore != nil:
		return *p.HasMore, true
	case p.Next != nil:
		return true, true
	case p.Count > 0:
		return number < p.Count, true
	case p.Ends && p.Total == 0:
		return false, true
	case number == 1 && p.Total > 0:
		return p.Total > int64(len(p.IDs)), false
	default:
		return len(p.IDs) > 0 && !p.Ends, false
	}
}

// NumberIn returns the number in the query parameter name, or 0 if there is none.
func NumberIn(query, name string) int {
	values, _ := url.ParseQuery(query) // ignores the parts that cannot be parsed
	n, _ := strconv.Atoi(values.Get(name))
	return n
}

// withFilters returns the query next, overwritten with the parameters of the first request: a service may omit them, or
// fail to escape a plus sign, and would then continue with other items. Only page and count are those of next. What only
// next has is kept byte for byte, because a cursor may contain any character of RFC 3986, such as a semicolon.
func withFilters(next, first string) string {
	ours, _ := url.ParseQuery(first)
	ours.Del("page")
	theirs := slices.DeleteFunc(strings.Split(next, "&"), func(text string) bool {
		name, _, _ := strings.Cut(text, "=")
		name, _ = url.QueryUnescape(name)
		if name == "count" {
			ours.Del(name)
		}
		return text == "" || ours.Has(name)
	})
	return strings.TrimSuffix(strings.Join(append(theirs, ours.Encode()), "&"), "&")
}
