// Package purgewire encodes purges, and decodes their receipts and transactions in all spellings that a service may
// use.
//
// It knows JSON, statuses and the addresses of transactions. It must not know how requests are sent and retried, or the
// SDK's types and errors.
//
// Entry points: [URI], [Head], [ReceiptBody], [TransactionBody], [Pending] and [EndedBadly].
package purgewire

import (
	"encoding/binary"

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
	if isPlain(text) {
		return append(append(append(b, '"'), text...), '"')
	}
	b, _ = jsontext.AppendQuote(b, text) // its one error is broken UTF-8, which is a problem
	return b
}

func textSize(text string) int {
	if isPlain(text) {
		return len(text) + len(`""`)
	}
	return len(appendText(nil, text))
}

// isPlain reports whether a text needs no escapes. It checks eight bytes at a time, the last eight first.
func isPlain(text string) bool {
	const word = 8
	b := []byte(text)
	if len(b) < word {
		return wire.PlainText(b, 0) == len(b)
	}
	found := wire.Special(binary.LittleEndian.Uint64(b[len(b)-word:]))
	for ; len(b) >= word; b = b[word:] {
		found |= wire.Special(binary.LittleEndian.Uint64(b))
	}
	return found == 0
}
