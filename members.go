package webdelivery

import (
	"bytes"
	"encoding/json"
	"iter"
)

// The names of JSON members are case-sensitive, and encoding/json reads a member Name into a field of name, also beside a
// member name. So what this package makes of a response is decoded by decodeExactly. Only what is refused is recognized
// in any letter case: the code of an envelope, and a page with a member twice. There an error is the safe side.

// decodeExactly is json.Unmarshal for types whose members have the names of the service document: lower case, ASCII.
func decodeExactly(text []byte, out any) error {
	return json.Unmarshal(exactNames(text), out)
}

// exactNames returns the text, in which no name but one without capital letters and beyond ASCII can be taken for a
// member of this package's types: all others begin with a minus sign. What is no JSON stays none. The result shares the
// memory of a text in which nothing is to do.
func exactNames(text []byte) []byte {
	var changed []byte
	done := 0 // up to here the text is in changed
	for start := bytes.IndexByte(text, '"'); start >= 0; {
		end := textEnd(text, start)
		behind := skipBlanks(text, end)
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

// plainLower: a quoted name without capital letters, of ASCII alone. encoding/json takes letters beyond for an s or a k.
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

// memberNames gives the names of the members of a JSON object, in order, also one that comes twice. encoding/json takes
// the last of these in silence. The text must be valid JSON; the names share its memory.
func memberNames(object []byte) iter.Seq[[]byte] {
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

// textEnd is the index behind a JSON string that begins at start.
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

// plainName is a name without its quotes and escapes.
func plainName(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var name string
	_ = json.Unmarshal(quoted, &name) // it is valid JSON
	return []byte(name)
}
