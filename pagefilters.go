package webdelivery

import (
	"net/url"
	"strings"
)

// The parameters of the first request hold on every page of a collection. A service may leave them out of next_uri, and
// would then go on with items that nobody asked for.

// keepFilters adds to the query of a next page what it leaves out of the first one's parameters. changed names a
// parameter that has another value there; then the next page is one of other items. What the service adds by itself stays
// as it is, byte for byte. The number of the page is the service's alone, and so is a count that it gives.
func keepFilters(first, next string) (query, changed string) {
	wanted, given := parameters(first), parameters(next)
	query = next
	for _, want := range wanted {
		if want.name == "page" {
			continue
		}
		found := false
		for _, have := range given {
			if have.name != want.name {
				continue
			}
			found = true
			if want.name != "count" && !sameParameter(want.value, have.value) {
				return "", want.name
			}
		}
		if !found {
			query = joinNonEmpty("&", query, want.text)
		}
	}
	return query, ""
}

// parameter is one part of a query.
type parameter struct{ name, value, text string }

// parameters takes a query apart. Unlike url.ParseQuery it leaves nothing out that RFC 3986 allows, such as a semicolon.
func parameters(query string) []parameter {
	var all []parameter
	for text := range strings.SplitSeq(query, "&") {
		if text == "" {
			continue
		}
		name, value, _ := strings.Cut(text, "=")
		all = append(all, parameter{plainParameter(name), plainParameter(value), text})
	}
	return all
}

func plainParameter(text string) string {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		return text
	}
	return plain
}

// sameParameter tells whether a service means the same. It may write a time or a boolean in another spelling, and forget
// to escape a plus.
func sameParameter(want, have string) bool {
	if have == want || strings.ReplaceAll(have, " ", "+") == strings.ReplaceAll(want, " ", "+") {
		return true
	}
	if want == "true" || want == "false" {
		return strings.EqualFold(want, have)
	}
	wantTime, err := parseTimestamp(want)
	if err != nil {
		return false
	}
	haveTime, err := parseTimestamp(strings.ReplaceAll(have, " ", "+"))
	return err == nil && haveTime.Equal(wantTime)
}
