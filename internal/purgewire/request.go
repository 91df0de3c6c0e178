// Package purgewire is how a purge, its receipt and its transaction look in JSON, in all spellings that a service may use.
//
// It knows JSON, statuses and the addresses of transactions. It must not know requests that are sent, retries, and the
// SDK's types and errors.
//
// Entry points: [URI], [Head], [ReceiptBody], [TransactionBody], [Pending] and [EndedBadly].
package purgewire

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// How a URI matches.
const (
	Exact  = "EXACT_LITERAL"
	Prefix = "PREFIX_LITERAL"
)

// Tail ends the body of a purge.
const Tail = "]}}"

// Head begins the body of a purge. The URIs follow, with commas between them.
func Head(action string) string { return `{"purge_request":{"action":"` + action + `","uris":[` }

// URI is one pattern of a purge.
type URI struct{ MatchMode, Pattern, Modifier string }

// The members of a URI as they stand in JSON.
const (
	jsonMatchMode = `{"match_mode":"`
	jsonPattern   = `","uri_pattern":`
	jsonModifier  = `,"cache_key_modifier_regex":`
)

// Append encodes a URI without a [URI.Problem].
func (u URI) Append(b []byte) []byte {
	b = append(b, jsonMatchMode...)
	b = append(b, u.MatchMode...)
	b = append(b, jsonPattern...)
	b = appendText(b, u.Pattern)
	if u.Modifier != "" {
		b = append(b, jsonModifier...)
		b = appendText(b, u.Modifier)
	}
	return append(b, '}')
}

// Size is the length of that.
func (u URI) Size() int {
	n := len(jsonMatchMode) + len(u.MatchMode) + len(jsonPattern) + textSize(u.Pattern) + len("}")
	if u.Modifier != "" {
		n += len(jsonModifier) + textSize(u.Modifier)
	}
	return n
}

func appendText(b []byte, text string) []byte {
	b, _ = jsontext.AppendQuote(b, text) // its one error is broken UTF-8, which is a problem
	return b
}

func textSize(text string) int {
	if wire.PlainText([]byte(text), 0) == len(text) {
		return len(text) + 2
	}
	return len(appendText(nil, text))
}

// Problem tells what is wrong with a URI, if anything (sections 2.2 and 4.4 of the service document).
func (u URI) Problem() (field, reason string) {
	star := strings.Index(u.Modifier, "*")
	switch {
	case u.MatchMode != Exact && u.MatchMode != Prefix:
		return "match_mode", fmt.Sprintf("%q is neither EXACT_LITERAL nor PREFIX_LITERAL", u.MatchMode)
	case u.Pattern == "":
		return "uri_pattern", "is empty"
	case strings.Contains(u.Pattern, "#"):
		return "uri_pattern", "holds a fragment (#), which no cache ever sees; remove it, or write %23 (open point 44)"
	case !utf8.ValidString(u.Pattern):
		return "uri_pattern", "is not UTF-8, so JSON cannot carry it"
	case u.Modifier == "":
		return "", ""
	case u.MatchMode == Exact:
		return "cache_key_modifier_regex", "is only valid with PREFIX_LITERAL"
	case star >= 0 && star != len(u.Modifier)-1:
		return "cache_key_modifier_regex", "holds a * that is not its only one at the end"
	case !utf8.ValidString(u.Modifier):
		return "cache_key_modifier_regex", "is not UTF-8, so JSON cannot carry it"
	default:
		return "", ""
	}
}
