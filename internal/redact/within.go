package redact

import "strings"

// Within returns the text of an error as a part of the text of another one, without the prefix that the outer one has
// already.
func Within(prefix, text string) string {
	text = strings.TrimPrefix(text, prefix)
	return strings.NewReplacer(": "+prefix, ": ", "\n"+prefix, "\n", "("+prefix, "(", ", "+prefix, ", ").Replace(text)
}
