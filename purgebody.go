package webdelivery

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// body returns the JSON body of a purge. Unlike encoding/json, it leaves <, > and & as they are.
func (r PurgeRequest) body() []byte {
	size := purgeFrame
	for _, u := range r.URIs {
		size += len(u.URIPattern) + len(u.CacheKeyModifierRegex) + len(`{"match_mode":"PREFIX_LITERAL","uri_pattern":"","cache_key_modifier_regex":""},`)
	}
	b := append(make([]byte, 0, size), `{"purge_request":{"action":"`+string(cmp.Or(r.Action, ActionPurge))+`","uris":[`...)
	for i, u := range r.URIs {
		if i > 0 {
			b = append(b, ',')
		}
		b = u.appendJSON(b)
	}
	return append(b, "]}}"...)
}

// appendJSON appends a valid URI.
func (u PurgeURI) appendJSON(to []byte) []byte {
	to = append(append(to, `{"match_mode":"`...), u.MatchMode...)
	if to = append(to, `","uri_pattern":`...); strings.ContainsAny(u.URIPattern, `"\`) {
		to, _ = jsontext.AppendQuote(to, u.URIPattern) // its only error is broken UTF-8
	} else { // a valid pattern has no control characters
		to = append(append(append(to, '"'), u.URIPattern...), '"')
	}
	if u.CacheKeyModifierRegex != "" {
		to, _ = jsontext.AppendQuote(append(to, `,"cache_key_modifier_regex":`...), u.CacheKeyModifierRegex) // it is UTF-8
	}
	return append(to, '}')
}
