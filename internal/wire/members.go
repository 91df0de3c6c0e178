// Package wire reads JSON the way the SDK needs it. Member names must match exactly. It rejects defects that
// encoding/json silently repairs. It accepts the different ways in which services write a number, a time or an error.
//
// The package knows JSON texts. It must not know HTTP, the operations of the service, or the errors of the SDK. Its
// entry points are [Decode], [ReadPlain], [Defect], [Reason], [EnvelopeCode] and the types of single values: [Code],
// [Int] and [Timestamp].
package wire

import (
	"bytes"
	"encoding/json"
	"iter"
)

// The names of JSON members are case-sensitive, but encoding/json also reads a member Name into a field of name, even
// beside a member name. So Decode reads what the SDK returns. Only what is refused is recognized in any letter case:
// the code of an envelope, and a page with a duplicate member. There an error is the safe side.

// Decode is json.Unmarshal for types whose members have lower-case ASCII names, as in the service document. A member
// whose name differs in letter case is an unknown member.
func Decode(text []byte, out any) error {
	return json.Unmarshal(ExactNames(text), out)
}

// ExactNames prepares a text for encoding/json. It puts a minus sign before each member name that has a capital letter
// or a character beyond ASCII. So encoding/json matches that name with no field. Invalid JSON stays invalid. If there
// is no such name, ExactNames returns the text itself.
func ExactNames(text []byte) []byte {
	var changed []byte
	done := 0 // up to here the text is in changed
	for start := bytes.IndexByte(text, '"'); start >= 0; {
		end := textEnd(text, start)
		behind := SkipBlanks(text, end)
		if behind < len(text) && text[behind] == ':' && !plainLower(text[start:end]) {
			changed = append(append(changed, text[done:start+1]...), '-')
			done = start + 1
		}
		next := bytes.IndexByte(text[end:], '"')
		if next < 0 {
			break
		}
		start = end + next
	}
	if changed == nil {
		return text
	}
	return append(changed, text[done:]...)
}

// plainLower reports whether a quoted name has only ASCII characters and no capital letter. encoding/json matches two
// letters beyond ASCII with s and k.
func plainLower(quoted []byte) bool {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = plainName(quoted)
	}
	for _, c := range name {
		if c >= 0x80 || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// Members returns the names of the members of a JSON object, in order, with every duplicate, of which encoding/json
// silently takes the last. The text must be valid JSON; the names share its memory.
func Members(object []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		depth, named := 0, false // named: the next string is a name
		for i := 0; i < len(object); i++ {
			switch object[i] {
			case '{', '[':
				depth++
				named = depth == 1
			case '}', ']':
				depth--
			case ',':
				named = depth == 1
			case '"':
				end := textEnd(object, i)
				if named && !yield(plainName(object[i:end])) {
					return
				}
				i, named = end-1, false
			}
		}
	}
}

// textEnd returns the index behind a JSON string that begins at start.
func textEnd(text []byte, start int) int {
	for i := start + 1; ; {
		quote := bytes.IndexByte(text[i:], '"')
		if quote < 0 {
			return len(text)
		}
		end := i + quote
		escapes := end
		for text[escapes-1] == '\\' {
			escapes--
		}
		if i = end + 1; (end-escapes)%2 == 0 {
			return i
		}
	}
}

// plainName returns a name without its quotes and escapes.
func plainName(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var name string
	_ = json.Unmarshal(quoted, &name) // it is valid JSON
	return []byte(name)
}

// SkipBlanks returns the index of the next byte from i on that is no blank of JSON.
func SkipBlanks(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}
