package paging

import (
	"net/url"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// The parameters of the first request hold on every page of a collection. A service may leave them out of next_uri, and
// would then go on with items that nobody asked for.

// keepFilters adds to the query of a next page what it leaves out of the first one's parameters. changed names a
// parameter that has another value there; then the next page is one of other items. Where the service forgot to escape a
// plus, it would read a blank, so the parameter is sent as it was at first. What the service adds by itself stays as it
// is, byte for byte. The number of the page is the service's alone, and so is a count that it gives.
func keepFilters(first, next string) (query, changed string) {
	wanted, given := parameters(first), parameters(next)
	for _, want := range wanted {
		if want.name == "page" {
			continue
		}
		found := false
		for i := range given {
			have := &given[i]
			if have.name != want.name {
				continue
			}
			found = true
			switch {
			case want.name == "count" || sameParameter(want.value, have.value):
			case sameParameter(want.value, strings.ReplaceAll(have.value, " ", "+")):
				have.text = want.text
			default:
				return "", want.name
			}
		}
		if !found {
			given = append(given, want)
		}
	}
	texts := make([]string, len(given))
	for i, have := range given {
		texts[i] = have.text
	}
	return strings.Join(texts, "&"), ""
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

// sameParameter tells whether a service means the same. It may write a time or a boolean in another spelling.
func sameParameter(want, have string) bool {
	if have == want {
		return true
	}
	if want == "true" || want == "false" {
		return strings.EqualFold(want, have)
	}
	wantTime, err := wire.ParseTimestamp(want)
	if err != nil {
		return false
	}
	haveTime, err := wire.ParseTimestamp(have)
	return err == nil && haveTime.Equal(wantTime)
}
