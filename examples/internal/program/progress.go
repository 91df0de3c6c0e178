package program

import (
	"fmt"
	"strings"
)

// Show puts a text in place of the last one on a terminal, and nothing with "". Elsewhere it shows nothing. One call at a
// time.
func (s Streams) Show(text string) {
	if s.ErrTerminal {
		fmt.Fprintf(s.Err, "\r%s\x1b[K", text) // \x1b[K clears what is left of the line
	}
}

// Bar draws how much of something is done, for Show.
func Bar(percent int) string {
	const width = 30
	done := width * min(max(percent, 0), 100) / 100
	return fmt.Sprintf("[%s%s] %3d %%", strings.Repeat("#", done), strings.Repeat(".", width-done), percent)
}
