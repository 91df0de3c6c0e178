package webdelivery

import (
	"bytes"
	"encoding/json"
	"iter"
)

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
