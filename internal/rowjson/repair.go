package rowjson

import (
	"unicode/utf8"

	"github.com/webdelivery/webdelivery-go/internal/wire"
)

// repairText returns a quoted JSON string in which U+FFFD replaces invalid characters, as encoding/json does. These are
// each byte that is not UTF-8, and each escape of half a surrogate pair. Everything else stays unchanged. If there is
// nothing to repair, repairText returns quoted itself. In every other way the string must be valid JSON.
func repairText(quoted []byte) []byte {
	var repaired []byte
	done := 0 // up to here the string is in repaired
	for i := wire.PlainText(quoted, 1); i < len(quoted); i = wire.PlainText(quoted, i) {
		size, broken := character(quoted[i:])
		if broken {
			repaired = utf8.AppendRune(append(repaired, quoted[done:i]...), utf8.RuneError)
			done = i + size
		}
		i += size
	}
	if repaired == nil {
		return quoted
	}
	return append(repaired, quoted[done:]...)
}
