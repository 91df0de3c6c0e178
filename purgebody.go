package webdelivery

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"
)

// body returns the JSON body of a purge. Unlike encoding/json, it leaves <, > and & as they are.
func (r PurgeRequest) body() []byte {
	b := []byte(`{"purge_request":{"action":"` + string(cmp.Or(r.Action, ActionPurge)) + `","uris":[`)
	for i, u := range r.URIs {
		if i > 0 {
			b = append(b, ',')
		}
		b = u.appendJSON(b)
	}
	return append(b, "]}}"...)
}

// appendJSON appends a valid URI. Unlike encoding/json, it leaves <, > and & as they are.
func (u PurgeURI) appendJSON(to []byte) []byte {
	to = append(append(to, `{"match_mode":"`...), u.MatchMode...)
	to, _ = jsontext.AppendQuote(append(to, `","uri_pattern":`...), u.URIPattern) // its only error is broken UTF-8
	if u.CacheKeyModifierRegex != "" {
		to, _ = jsontext.AppendQuote(append(to, `,"cache_key_modifier_regex":`...), u.CacheKeyModifierRegex) // it is UTF-8
	}
	return append(to, '}')
}
