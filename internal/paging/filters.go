package paging

import (
	"net/url"
	"strings"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// The parameters of the first request apply to every page of a collection. A service may omit them from next_uri, and
// would then continue with items that do not match the request.

// keepFilters adds the parameters of the first query that are missing in the next one. If the next query gives a
// parameter another value, changed is its name, because that page would hold other items. If the service forgot to
// escape a plus sign, it would read a blank, so keepFilters sends the parameter as in the first query. Parameters that
// the service added stay unchanged byte for byte. The service alone decides on page, and on count if next has one.
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

// parameters splits a query. Unlike url.ParseQuery it keeps everything that RFC 3986 allows, such as a semicolon.
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

// sameParameter reports whether two values mean the same. A service may write a time or a boolean differently.
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
